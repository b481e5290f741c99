//! The users of SASL: a file that is read at the start, and again when it changes.

use crate::{
    config::{JaasSection, PrincipalSettings, QuorumSasl, SaslSettings},
    driver::Driver,
    error::ServerError,
    principal_names::PrincipalNames,
    sasl_logins::{ClientMechanism, KerberosService, SaslLogins, SaslQueue, SharedUsers},
    watched_files::{LOOK_EVERY, SettledContents},
};
use ostler_kerberos::{Acceptor, Initiator, KeySource, default_realm};
use ostler_sasl::{
    digest_md5::{Profile, SaslCredentials, Users},
    jaas::{JaasFile, KerberosLogin, Login},
};
use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{task::JoinSet, task::spawn_blocking};

/// The parts that log clients in.
pub(crate) struct SaslParts {
    pub(crate) queue: SaslQueue,
    logins: SaslLogins,
    /// The users, which are read again; `None` with Kerberos, whose library reads its keytab itself.
    watched: Option<WatchedUsers>,
}

/// The users of DIGEST-MD5, and the text of their file.
struct WatchedUsers {
    settings: SaslSettings,
    text: String,
    users: SharedUsers,
}

/// The logins of clients in a file.
enum ClientLogins {
    /// Nothing, and none are needed.
    None,
    Digest(Users),
    Kerberos(KerberosLogin),
}

/// Reads the text of the file. The error says what to do, and has no secret.
fn read(settings: &SaslSettings, text: &str) -> Result<ClientLogins, ServerError> {
    let file = settings.file();
    Ok(match settings {
        SaslSettings::UsersFile(_) => {
            let users = Users::parse(Profile::Clients, text).map_err(|error| failed(file, error))?;
            ClientLogins::Digest(users)
        }
        SaslSettings::Jaas { section, super_password, is_needed, .. } => {
            if !is_needed && jaas_file(section, text)?.section(&section.section).is_none() {
                return Ok(ClientLogins::None);
            }
            match login(section, text)? {
                Login::Kerberos(kerberos) => ClientLogins::Kerberos(kerberos),
                Login::Digest { users, .. } => {
                    let mut users = known(Profile::Clients, &users);
                    if let Some(password) = super_password {
                        users.insert(Profile::Clients, "super", password);
                    }
                    ClientLogins::Digest(users)
                }
            }
        }
    })
}

fn failed(file: &Path, problem: impl ToString) -> ServerError {
    ServerError::SaslFile { file: file.into(), problem: problem.to_string() }
}

fn known(profile: Profile, users: &[SaslCredentials]) -> Users {
    Users::new(profile, users.iter().map(|one| (&*one.user, &*one.password)))
}

fn read_text(file: &Path) -> Result<String, ServerError> {
    std::fs::read_to_string(file).map_err(|error| failed(file, format!("it cannot be read: {error}")))
}

fn jaas_file(section: &JaasSection, text: &str) -> Result<JaasFile, ServerError> {
    let property = |name: &str| match name {
        "user.name" => std::env::var("USER").ok(),
        "user.home" => std::env::var("HOME").ok(),
        _ => None,
    };
    JaasFile::parse(text, &property).map_err(|error| failed(&section.file, error))
}

/// The login of a section.
fn login(section: &JaasSection, text: &str) -> Result<Login, ServerError> {
    let file = jaas_file(section, text)?;
    let name = &section.section;
    let found = file.section(name).ok_or_else(|| {
        let problem =
            format!("there is no section {name} in it; add one, or name another section in zoo.cfg");
        failed(&section.file, problem)
    })?;
    Login::of(found).map_err(|error| failed(&section.file, error))
}

/// How servers of an ensemble let each other in.
#[derive(Debug)]
pub(crate) enum PeerLogins {
    Digest(Arc<Users>),
    Kerberos(Acceptor),
}

/// As whom this server logs in.
#[derive(Debug)]
pub(crate) enum OwnPeerLogin {
    Digest(SaslCredentials),
    Kerberos {
        initiator: Initiator,
        /// The realm of the own principal: the other servers have the same.
        realm: Option<String>,
    },
}

/// The logins of servers at each other.
#[derive(Debug)]
pub(crate) struct QuorumLogins {
    pub(crate) expected: PeerLogins,
    pub(crate) own: OwnPeerLogin,
}

impl QuorumLogins {
    /// Reads the sections of zoo.cfg.
    pub(crate) fn read(settings: &QuorumSasl) -> Result<QuorumLogins, ServerError> {
        let (server, learner) = (&settings.server, &settings.learner);
        let text = read_text(&server.file)?;
        warn_of_readers(&server.file);
        let expected = match login(server, &text)? {
            Login::Digest { users, .. } => PeerLogins::Digest(Arc::new(known(Profile::Quorum, &users))),
            Login::Kerberos(kerberos) => PeerLogins::Kerberos(acceptor(server, &kerberos)?),
        };
        let own = match login(learner, &text)? {
            Login::Digest { own: Some(own), .. } => OwnPeerLogin::Digest(own),
            Login::Digest { own: None, .. } => {
                let problem = format!("the section {} needs username and password", learner.section);
                return Err(failed(&learner.file, problem));
            }
            Login::Kerberos(kerberos) => {
                let realm = kerberos.principal.as_ref().and_then(|own| own.split_once('@'));
                let realm = realm.map(|(_, realm)| realm.to_owned());
                let initiator = Initiator::new(key_source(&kerberos));
                let initiator = initiator.and_then(|initiator| initiator.check().map(|()| initiator));
                let initiator =
                    initiator.map_err(|error| failed(&learner.file, in_section(learner, &error)))?;
                OwnPeerLogin::Kerberos { initiator, realm }
            }
        };
        Ok(QuorumLogins { expected, own })
    }
}

fn acceptor(section: &JaasSection, kerberos: &KerberosLogin) -> Result<Acceptor, ServerError> {
    Acceptor::new(&key_source(kerberos)).map_err(|error| failed(&section.file, in_section(section, &error)))
}

fn in_section(section: &JaasSection, error: &dyn std::fmt::Display) -> String {
    format!("the section {}: {error}", section.section)
}

fn key_source(kerberos: &KerberosLogin) -> KeySource {
    let path = |name: &String| PathBuf::from(name.strip_prefix("FILE:").unwrap_or(name));
    KeySource {
        keytab: kerberos.keytab.as_ref().filter(|_| !kerberos.use_ticket_cache).map(path),
        // Java's sign for every principal of the keytab.
        principal: kerberos.principal.clone().filter(|principal| principal != "*"),
    }
}

fn warn_of_readers(file: &Path) {
    const OTHERS_READ: u32 = 0o004;
    if std::fs::metadata(file).is_ok_and(|found| found.mode() & OTHERS_READ != 0) {
        tracing::warn!(file = %file.display(), "every user of this machine can read this file with passwords: chmod o-r");
    }
}

impl SaslParts {
    /// Reads the file for the first time. `None` if it has no users and none are needed.
    pub(crate) fn open(settings: &SaslSettings) -> Result<Option<SaslParts>, ServerError> {
        let file = settings.file();
        let text = read_text(file)?;
        let found = read(settings, &text)?;
        let (mechanism, watched) = match (found, settings) {
            (ClientLogins::None, _) => {
                tracing::warn!(
                    file = %file.display(),
                    "the JAAS file has no section for clients (sasl.serverconfig): clients cannot log in by SASL"
                );
                return Ok(None);
            }
            (ClientLogins::Digest(first), _) => {
                tracing::info!(file = %file.display(), users = first.len(), "clients can log in by SASL (DIGEST-MD5)");
                warn_of_readers(file);
                let users = SharedUsers::new(first);
                let watched = WatchedUsers { settings: settings.clone(), text, users: users.clone() };
                (ClientMechanism::Digest(users), Some(watched))
            }
            (ClientLogins::Kerberos(kerberos), SaslSettings::Jaas { section, names, .. }) => {
                let acceptor = acceptor(section, &kerberos)?;
                tracing::info!(
                    file = %file.display(), keys = %key_source(&kerberos),
                    "clients can log in by SASL (GSSAPI, Kerberos)"
                );
                let names = principal_names(names, file)?;
                (ClientMechanism::Kerberos(Arc::new(KerberosService { acceptor, names })), None)
            }
            // Only a JAAS file has sections.
            (ClientLogins::Kerberos(_), SaslSettings::UsersFile(_)) => return Ok(None),
        };
        let (queue, logins) = SaslQueue::new(mechanism);
        Ok(Some(SaslParts { queue, logins, watched }))
    }

    /// Logs clients in, and watches the file.
    pub(crate) fn spawn(self, driver: &Arc<Driver>, tasks: &mut JoinSet<()>) {
        tasks.spawn(self.logins.run(driver.clone()));
        if let Some(watched) = self.watched {
            tasks.spawn(watch(watched));
        }
    }
}

fn principal_names(settings: &PrincipalSettings, file: &Path) -> Result<PrincipalNames, ServerError> {
    let realm = default_realm();
    if realm.is_none() {
        let problem = "krb5.conf has no default_realm, so principals get no ids; set it, or name the file by KRB5_CONFIG";
        return Err(failed(file, problem));
    }
    settings.names(realm).map_err(|error| failed(file, error))
}

/// Looks at the file until it is dropped.
async fn watch(WatchedUsers { settings, text, users }: WatchedUsers) {
    // `None` while the file cannot be read.
    let mut contents = SettledContents::new(Some(text));
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let path = settings.file().to_owned();
        let Ok(found) = spawn_blocking(move || std::fs::read_to_string(path)).await else { return };
        if contents.note(found.ok()) {
            use_changed(&settings, contents.in_force().as_deref(), &users);
        }
    }
}

/// Uses the users of a file that has changed.
fn use_changed(settings: &SaslSettings, text: Option<&str>, users: &SharedUsers) {
    let file = settings.file().display();
    let Some(text) = text else {
        tracing::error!(%file, "the users of SASL cannot be read any more: those that were read before stay in force");
        return;
    };
    match read(settings, text) {
        Ok(ClientLogins::Digest(now)) => {
            tracing::info!(%file, users = now.len(), "the users of SASL have changed");
            users.replace(now);
        }
        Ok(ClientLogins::None) => {
            tracing::warn!(%file, "the section with the users of SASL is gone: no client can log in by SASL");
            users.replace(Users::default());
        }
        Ok(ClientLogins::Kerberos(_)) => tracing::error!(
            %file,
            "the section with the users of SASL asks for Kerberos now: restart the server for that; until then the users that \
             were read before stay in force"
        ),
        Err(error) => {
            tracing::error!(%error, "the users of SASL cannot be read again: those that were read before stay in force");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sasl::digest_md5::Users;
    use std::fs;

    #[test]
    fn users_stay_in_force_while_their_file_is_gone_or_broken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        fs::write(&file, "bob:secret\n").unwrap();
        let settings = SaslSettings::UsersFile(file.clone());
        let Ok(ClientLogins::Digest(first)) = read(&settings, "bob:secret\n") else { panic!("no users") };
        let users = SharedUsers::new(first);
        let count = || Users::len(&users.current());
        fs::remove_file(&file).unwrap();
        use_changed(&settings, None, &users);
        assert_eq!(count(), 1);
        use_changed(&settings, Some("no colon"), &users);
        assert_eq!(count(), 1);
        use_changed(&settings, Some("bob:secret\nann:other\n"), &users);
        assert_eq!(count(), 2);
    }
}
