//! `ostler entrypoint`: the first program of a container. It makes zoo.cfg of the environment variables of the images
//! that are in use for ZooKeeper, and goes on as a server.

mod configuration;
mod error;
mod logins;
mod servers;
mod variables;

use clap::Args;
use configuration::{Folders, Found, Plan};
use error::EntryError;
use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};
use variables::Variables;

/// Run a server in a container, with zoo.cfg and myid made from the environment.
///
/// The variables are those of the official zookeeper image and of Bitnami's, see docs/packages.md. A zoo.cfg that is
/// there already wins. Other words are another command of ostler, or a program.
#[derive(Debug, Args)]
#[command(after_help = "Example: ZOO_MY_ID=1 ostler entrypoint server")]
pub(crate) struct EntrypointArgs {
    /// A command of ostler and its arguments [default: server].
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// The exit code of `ostler server` for a configuration that cannot be obeyed.
const EXIT_NOT_STARTED: u8 = 2;

/// Returns the command line of `ostler` that follows. Starts a program that is none of its commands.
///
/// # Errors
/// The exit code, after the reason was printed.
pub(crate) fn prepare(args: EntrypointArgs, commands: &[String]) -> Result<Vec<OsString>, ExitCode> {
    let next = next_command(args.words, commands);
    let prepared = match next {
        Next::Server(flags) => write_files().map(|zoo_cfg| {
            let line = [OsString::from("ostler"), "server".into()].into_iter().chain(flags);
            line.chain([zoo_cfg.into()]).collect()
        }),
        Next::Ostler(words) => Ok([OsString::from("ostler")].into_iter().chain(words).collect()),
        Next::Program(program, words) => {
            let source = Command::new(&program).args(words).exec();
            Err(EntryError::Program { program: program.to_string_lossy().into_owned(), source })
        }
    };
    prepared.map_err(|error| {
        eprintln!("ostler: {error}");
        ExitCode::from(EXIT_NOT_STARTED)
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A server with the zoo.cfg of the container, and flags.
    Server(Vec<OsString>),
    /// Another command of this program.
    Ostler(Vec<OsString>),
    Program(OsString, Vec<OsString>),
}

/// Reads the words of a container's command, also those of the other images.
fn next_command(mut words: Vec<OsString>, commands: &[String]) -> Next {
    if words.first().is_some_and(|first| first == "ostler") {
        words.remove(0);
    }
    let Some(first) = words.first() else { return Next::Server(Vec::new()) };
    let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rest = words[1..].to_vec();
    match &*name {
        // `start` of zkServer.sh goes into the background, which would end the container.
        "zkServer.sh" if rest.iter().all(|word| word == "start-foreground" || word == "start") => {
            Next::Server(Vec::new())
        }
        "zkCli.sh" => Next::Ostler([OsString::from("shell")].into_iter().chain(rest).collect()),
        "server" if rest.iter().all(|word| word.as_encoded_bytes().starts_with(b"-")) => Next::Server(rest),
        _ if commands.contains(&name) || first.as_encoded_bytes().starts_with(b"-") => Next::Ostler(words),
        _ => Next::Program(first.clone(), rest),
    }
}

/// Writes the files of the container. Returns the path of zoo.cfg.
fn write_files() -> Result<String, EntryError> {
    let environment = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables = Variables::new(environment, |file| fs::read_to_string(file))?;
    let folders = Folders::of(&variables);
    let found = find(&folders)?;
    let Plan { zoo_cfg, jaas, my_id, notes } = configuration::plan(&variables, &folders, &found)?;
    notes.iter().for_each(|note| eprintln!("ostler: note: {note}"));
    for (path, text) in
        [(format!("{}/myid", folders.data), my_id), (folders.jaas(), jaas), (folders.zoo_cfg(), zoo_cfg)]
    {
        if let Some(text) = text {
            let failed = |source| EntryError::Write {
                path: path.clone().into(),
                user: rustix::process::geteuid().as_raw(),
                source,
            };
            replace(Path::new(&path), &text).map_err(failed)?;
        }
    }
    Ok(folders.zoo_cfg())
}

fn find(folders: &Folders) -> Result<Found, EntryError> {
    let zoo_cfg = read(&folders.zoo_cfg())?;
    let dynamic = zoo_cfg.as_deref().and_then(configuration::dynamic_file);
    let dynamic = dynamic.map(read).transpose()?.flatten();
    Ok(Found { dynamic, my_id: read(&format!("{}/myid", folders.data))?, zoo_cfg })
}

/// The text of a file; `None` if there is none.
fn read(path: &str) -> Result<Option<String>, EntryError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(EntryError::Read { path: path.into(), source }),
    }
}

/// Writes a file that only its owner may read, because it may have passwords. A reader sees the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let _ = fs::remove_file(&name);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&name, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn commands_of_other_images_start_a_server_or_a_shell() {
        let commands = ["server".to_owned(), "shell".to_owned()];
        for (line, next) in [
            ("", Next::Server(vec![])),
            ("server", Next::Server(vec![])),
            ("ostler server --log-json", Next::Server(words("--log-json"))),
            ("zkServer.sh start-foreground", Next::Server(vec![])),
            ("/apache-zookeeper/bin/zkServer.sh start", Next::Server(vec![])),
            ("server /mine/zoo.cfg", Next::Ostler(words("server /mine/zoo.cfg"))),
            ("zkCli.sh -server zk:2181 ls /", Next::Ostler(words("shell -server zk:2181 ls /"))),
            ("ostler shell zk:2181", Next::Ostler(words("shell zk:2181"))),
            ("--version", Next::Ostler(words("--version"))),
            ("bash -c true", Next::Program("bash".into(), words("-c true"))),
            ("zkServer.sh status", Next::Program("zkServer.sh".into(), words("status"))),
        ] {
            assert_eq!(next_command(words(line), &commands), next, "{line}");
        }
    }

    #[test]
    fn a_replaced_file_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("conf/zoo.cfg");
        replace(&path, "a=1\n").unwrap();
        replace(&path, "a=2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a=2\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
