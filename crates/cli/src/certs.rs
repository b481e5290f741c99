//! `ostler certs`: a private authority for an ensemble, and the certificates of its servers and clients.

mod authority;
mod files;

use authority::{Authority, Subject};
use clap::{Args, Subcommand};
use files::Folder;
use std::{io, path::PathBuf, process::ExitCode};

/// Make a private authority, and certificates for the servers and clients of an ensemble.
///
/// Keys are ECDSA (P-256). A folder holds the authority, and all that it has issued. Keep the file ca-key.pem there on a
/// machine of its own: with it anybody can make certificates that all servers accept.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ostler certs init
  ostler certs server zk1 --host zk1.example.com --host 10.0.0.1
  ostler certs client app")]
pub(crate) struct CertsArgs {
    #[command(subcommand)]
    command: CertsCommand,
}

#[derive(Debug, Subcommand)]
enum CertsCommand {
    /// Make an authority.
    Init {
        #[command(flatten)]
        place: Place,
        /// The authority's name.
        #[arg(long, default_value = "Ostler ensemble authority")]
        name: String,
        /// Days until the authority's certificate expires.
        #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Issue a server's certificate.
    Server {
        /// The server's name, which also names the file.
        name: String,
        #[command(flatten)]
        place: Place,
        /// A host name or address of the server, as its server.N line and its clients have it; can be repeated.
        #[arg(long = "host", required = true)]
        hosts: Vec<String>,
        /// Days until the certificate expires.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Issue a client's certificate.
    Client {
        /// The client's name, which also names the file.
        name: String,
        #[command(flatten)]
        place: Place,
        /// Days until the certificate expires.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
    /// Replace the authority, in two steps that no client notices.
    ///
    /// The first step makes a new authority: ca.pem then trusts both. Copy it to all servers and clients, issue all
    /// certificates anew and copy those. The second step, with --finish, ends the trust in the old authority.
    Rotate {
        #[command(flatten)]
        place: Place,
        /// End the trust in the old authority.
        #[arg(long)]
        finish: bool,
        /// Days until the new authority's certificate expires.
        #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: u32,
    },
}

#[derive(Debug, Args)]
struct Place {
    /// The folder of the authority.
    #[arg(long, value_name = "FOLDER", default_value = "ostler-certs")]
    folder: PathBuf,
}

/// Why a certificate was not made.
#[derive(Debug, thiserror::Error)]
enum CertsError {
    #[error("{}: {cause}", .file.display())]
    File { file: PathBuf, cause: io::Error },
    #[error("{} is there already; to replace the authority, use `ostler certs rotate`", .0.display())]
    HasAuthority(PathBuf),
    #[error("there is no authority in {}; `ostler certs init` makes one", .0.display())]
    NoAuthority(PathBuf),
    #[error("no authority is being replaced in {}; `ostler certs rotate` begins that", .0.display())]
    NotRotating(PathBuf),
    #[error("an authority is being replaced in {} already; `ostler certs rotate --finish` ends that", .0.display())]
    Rotating(PathBuf),
    #[error(
        "the key {} is not that of the authority's certificate (ca-current.pem, or the first one in ca.pem); copy the folder \
         again from where it was whole",
        .0.display()
    )]
    OtherKey(PathBuf),
    #[error("the name {0} cannot be a file's name; use letters, digits, dots, _ and -")]
    BadName(String),
    #[error("{0} is no host name and no address")]
    BadHost(String),
    #[error("the certificate cannot be made: {0}")]
    Making(#[from] rcgen::Error),
}

/// Runs the command.
pub(crate) fn run(args: &CertsArgs) -> ExitCode {
    match perform(&args.command) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ostler: {error}");
            ExitCode::FAILURE
        }
    }
}

fn perform(command: &CertsCommand) -> Result<String, CertsError> {
    match command {
        CertsCommand::Init { place, name, days } => init(&Folder::new(&place.folder), name, *days),
        CertsCommand::Server { name, place, hosts, days } => {
            let folder = Folder::new(&place.folder);
            let file = issue(&folder, &Subject::server(name, hosts)?, *days)?;
            Ok(server_lines(&folder, &file))
        }
        CertsCommand::Client { name, place, days } => {
            let folder = Folder::new(&place.folder);
            let file = issue(&folder, &Subject::client(name)?, *days)?;
            Ok(client_lines(&folder, &file, name))
        }
        CertsCommand::Rotate { place, finish: false, days } => rotate(&Folder::new(&place.folder), *days),
        CertsCommand::Rotate { place, finish: true, .. } => finish(&Folder::new(&place.folder)),
    }
}

fn init(folder: &Folder, name: &str, days: u32) -> Result<String, CertsError> {
    folder.create()?;
    let authority = Authority::make(name, days)?;
    folder.write_authority(&authority)?;
    let (trust, key) = (folder.trust(), folder.authority_key());
    Ok(format!(
        "The authority is in {}; its key is in {}, which has to stay secret.\nNext: ostler certs server NAME --host \
         HOST, for each server.",
        trust.display(),
        key.display()
    ))
}

fn issue(folder: &Folder, subject: &Subject, days: u32) -> Result<PathBuf, CertsError> {
    let issued = folder.read_authority()?.issue(subject, days)?;
    folder.write_issued(&subject.file_name(), &issued)
}

fn server_lines(folder: &Folder, file: &std::path::Path) -> String {
    let (file, trust) = (file.display(), folder.trust());
    let trust = trust.display();
    format!(
        "# The certificate and its key are in {file}. Copy it and {trust} to the server, and add to its zoo.cfg,\n\
         # with the paths there:\n\
         secureClientPort=2281\n\
         ssl.keyStore.location={file}\n\
         ssl.trustStore.location={trust}\n\
         # and for an ensemble:\n\
         sslQuorum=true\n\
         ssl.quorum.keyStore.location={file}\n\
         ssl.quorum.trustStore.location={trust}\n\
         # A Java server needs serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory, too."
    )
}

fn client_lines(folder: &Folder, file: &std::path::Path, name: &str) -> String {
    let (file, trust) = (file.display(), folder.trust());
    let trust = trust.display();
    format!(
        "The certificate and its key are in {file}. Copy it and {trust} to the client.\n\n\
         The shell:    ostler shell --tls-ca {trust} --tls-cert {file} --tls-key {file} HOST:2281\n\
         Java:         -Dzookeeper.client.secure=true \
         -Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n\
         \x20             -Dzookeeper.ssl.keyStore.location={file} -Dzookeeper.ssl.trustStore.location={trust}\n\
         In ACLs:      x509:CN={name}:cdrwa\n\
         Super user:   X509AuthenticationProvider.superUser=CN={name} in zoo.cfg"
    )
}

fn rotate(folder: &Folder, days: u32) -> Result<String, CertsError> {
    let old = folder.read_authority()?;
    folder.begin_rotation(&Authority::make(&next_name(&old.name()), days)?)?;
    let trust = folder.trust();
    Ok(format!(
        "1. {} now trusts the old authority and the new one. Copy it to all servers and clients.\n\
         2. Then issue the certificates of all servers and clients anew (ostler certs server, ostler certs client), and \
         copy\n   them. Servers read changed files again within seconds; nothing has to be restarted.\n\
         3. Then run ostler certs rotate --finish, and copy {} once more.",
        trust.display(),
        trust.display()
    ))
}

/// Another name: of two authorities with one name Java trusts the last in the file only.
fn next_name(name: &str) -> String {
    let numbered = name.rsplit_once(' ').and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
    match numbered {
        Some((name, number)) => format!("{name} {}", number.saturating_add(1)),
        None => format!("{name} 2"),
    }
}

fn finish(folder: &Folder) -> Result<String, CertsError> {
    folder.end_rotation()?;
    let trust = folder.trust();
    Ok(format!("{} trusts the new authority only. Copy it to all servers and clients.", trust.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_tls::trust::Purpose;
    use ostler_tls::{Certificate, Password, StoreKind, read_key_store, read_trust_store, subject_name};
    use std::{fs, os::unix::fs::MetadataExt, path::Path};

    fn place(folder: &Path) -> Place {
        Place { folder: folder.into() }
    }

    fn init_in(folder: &Path) -> Result<String, CertsError> {
        perform(&CertsCommand::Init { place: place(folder), name: "authority".into(), days: 10 })
    }

    fn trusted(folder: &Path) -> usize {
        let bytes = fs::read(folder.join("ca.pem")).unwrap();
        read_trust_store(&bytes, StoreKind::Pem, &Password::new(String::new())).unwrap().len()
    }

    #[test]
    fn certificates_can_be_read_as_stores_and_keys_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("certs");
        init_in(&folder).unwrap();
        assert!(matches!(init_in(&folder), Err(CertsError::HasAuthority(_))));
        let hosts = vec!["zk1.example.com".to_owned(), "10.0.0.1".to_owned()];
        let command = CertsCommand::Server { name: "zk1".into(), place: place(&folder), hosts, days: 5 };
        let text = perform(&command).unwrap();
        assert!(text.contains("ssl.quorum.keyStore.location="), "{text}");
        let file = folder.join("server-zk1.pem");
        let store = read_key_store(&fs::read(&file).unwrap(), StoreKind::Pem, &Password::new(String::new()));
        let store = store.unwrap();
        assert_eq!(subject_name(&store.chain[0]).unwrap(), "CN=zk1");
        let read = Certificate::read(&store.chain[0]).unwrap();
        assert_eq!(read.dns_names, ["zk1.example.com"]);
        for secret in ["server-zk1.pem", "ca-key.pem"] {
            assert_eq!(fs::metadata(folder.join(secret)).unwrap().mode() & 0o777, 0o600, "{secret}");
        }
        let text =
            perform(&CertsCommand::Client { name: "app".into(), place: place(&folder), days: 5 }).unwrap();
        assert!(text.contains("x509:CN=app:cdrwa"), "{text}");
    }

    #[test]
    fn a_rotation_trusts_both_authorities_until_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        let rotate = |finish| perform(&CertsCommand::Rotate { place: place(folder), finish, days: 10 });
        assert!(matches!(rotate(false), Err(CertsError::NoAuthority(_))));
        init_in(folder).unwrap();
        assert!(matches!(rotate(true), Err(CertsError::NotRotating(_))));
        rotate(false).unwrap();
        assert_eq!(trusted(folder), 2);
        assert!(matches!(rotate(false), Err(CertsError::Rotating(_))));
        perform(&CertsCommand::Client { name: "app".into(), place: place(folder), days: 5 }).unwrap();
        rotate(true).unwrap();
        assert_eq!(trusted(folder), 1);
    }

    /// The files of a rotation that was broken off after this number of its three steps.
    fn broken_off(folder: &Path, steps: usize) {
        init_in(folder).unwrap();
        let files = ["ca.pem", "ca-key.pem", "ca-current.pem"];
        let before: Vec<_> = files.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect();
        perform(&CertsCommand::Rotate { place: place(folder), finish: false, days: 10 }).unwrap();
        for (name, bytes) in files.iter().zip(before).skip(steps) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }

    #[test]
    fn a_rotation_that_was_broken_off_can_be_ended() {
        for steps in 0..=3 {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path();
            broken_off(folder, steps);
            let issue = || {
                let name = "app".into();
                perform(&CertsCommand::Client { name, place: place(folder), days: 5 }).unwrap();
                let own = fs::read(folder.join("client-app.pem")).unwrap();
                let own = read_key_store(&own, StoreKind::Pem, &Password::new(String::new())).unwrap();
                let trusted = fs::read(folder.join("ca.pem")).unwrap();
                let trusted =
                    read_trust_store(&trusted, StoreKind::Pem, &Password::new(String::new())).unwrap();
                let trust = ostler_tls::trust::Trust::new(trusted, Vec::new()).unwrap();
                let now = rustls_pki_types::UnixTime::now();
                assert_eq!(
                    trust.check_directly(&own.chain[0], Purpose::Client, now),
                    Ok(()),
                    "{steps} steps"
                );
            };
            issue();
            let finish = perform(&CertsCommand::Rotate { place: place(folder), finish: true, days: 10 });
            assert_eq!(finish.is_ok(), steps > 0, "{steps} steps");
            assert_eq!(trusted(folder), 1);
            issue();
        }
    }

    #[test]
    fn a_first_start_that_was_broken_off_can_be_repeated() {
        let dir = tempfile::tempdir().unwrap();
        init_in(dir.path()).unwrap();
        fs::remove_file(dir.path().join("ca-key.pem")).unwrap();
        init_in(dir.path()).unwrap();
        let name = "app".into();
        perform(&CertsCommand::Client { name, place: place(dir.path()), days: 5 }).unwrap();
    }

    #[test]
    fn each_authority_has_a_name_of_its_own() {
        assert_eq!(next_name("Ostler ensemble authority"), "Ostler ensemble authority 2");
        assert_eq!(next_name("authority 9"), "authority 10");
    }

    #[test]
    fn names_that_are_no_file_names_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        init_in(dir.path()).unwrap();
        for name in ["", "../x", "a/b", ".x"] {
            let command = CertsCommand::Client { name: name.into(), place: place(dir.path()), days: 5 };
            assert!(matches!(perform(&command), Err(CertsError::BadName(_))), "{name}");
        }
    }
}
