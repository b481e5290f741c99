//! The users of SASL: a file that is read at the start, and again when it changes.

use crate::{
    config::{JaasSection, QuorumSasl, SaslSettings},
    driver::Driver,
    error::ServerError,
    sasl_logins::{SaslLogins, SaslQueue, SharedUsers},
};
use ostler_sasl::{
    digest_md5::{Profile, SaslCredentials, Users},
    jaas::{JaasFile, Login},
};
use std::{os::unix::fs::MetadataExt, path::Path, sync::Arc, time::Duration};
use tokio::{task::JoinSet, task::spawn_blocking};

/// The time between two looks at the file.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The parts that log clients in.
pub(crate) struct SaslParts {
    pub(crate) queue: SaslQueue,
    logins: SaslLogins,
    users: SharedUsers,
    settings: SaslSettings,
    text: String,
}

/// Reads the users; `None` if the file has none and none are needed. The error says what to do, and has no secret.
fn read(settings: &SaslSettings) -> Result<(String, Option<Users>), ServerError> {
    let file = settings.file();
    let text = read_text(file)?;
    let failed = |problem: String| ServerError::SaslFile { file: file.into(), problem };
    let users = match settings {
        SaslSettings::UsersFile(_) => {
            Users::parse(Profile::Clients, &text).map_err(|error| failed(error.to_string()))?
        }
        SaslSettings::Jaas { section, super_password, is_needed } => {
            if !is_needed && jaas_file(section, &text)?.section(&section.section).is_none() {
                return Ok((text, None));
            }
            let mut users = users_of(section, &text, Profile::Clients)?;
            if let Some(password) = super_password {
                users.insert(Profile::Clients, "super", password);
            }
            users
        }
    };
    Ok((text, Some(users)))
}

fn read_text(file: &Path) -> Result<String, ServerError> {
    std::fs::read_to_string(file).map_err(|error| ServerError::SaslFile {
        file: file.into(),
        problem: format!("it cannot be read: {error}"),
    })
}

fn jaas_file(section: &JaasSection, text: &str) -> Result<JaasFile, ServerError> {
    let property = |name: &str| match name {
        "user.name" => std::env::var("USER").ok(),
        "user.home" => std::env::var("HOME").ok(),
        _ => None,
    };
    JaasFile::parse(text, &property)
        .map_err(|error| ServerError::SaslFile { file: section.file.clone(), problem: error.to_string() })
}

/// The login of a section.
fn login(section: &JaasSection, text: &str) -> Result<Login, ServerError> {
    let failed = |problem: String| ServerError::SaslFile { file: section.file.clone(), problem };
    let file = jaas_file(section, text)?;
    let name = &section.section;
    let found = file.section(name).ok_or_else(|| {
        failed(format!("there is no section {name} in it; add one, or name another section in zoo.cfg"))
    })?;
    match Login::of(found).map_err(|error| failed(error.to_string()))? {
        Login::Kerberos(_) => {
            Err(failed(format!("the section {name} asks for Kerberos, which is not part of this build")))
        }
        digest => Ok(digest),
    }
}

fn users_of(section: &JaasSection, text: &str, profile: Profile) -> Result<Users, ServerError> {
    let Login::Digest { users, .. } = login(section, text)? else { return Ok(Users::default()) };
    Ok(Users::new(profile, users.iter().map(|one| (&*one.user, &*one.password))))
}

/// The users with whom the servers of an ensemble log in.
#[derive(Debug)]
pub(crate) struct QuorumLogins {
    pub(crate) users: Users,
    pub(crate) own: SaslCredentials,
}

impl QuorumLogins {
    /// Reads the sections of zoo.cfg.
    pub(crate) fn read(settings: &QuorumSasl) -> Result<QuorumLogins, ServerError> {
        let text = read_text(&settings.server.file)?;
        warn_of_readers(&settings.server.file);
        let users = users_of(&settings.server, &text, Profile::Quorum)?;
        let learner = &settings.learner;
        match login(learner, &text)? {
            Login::Digest { own: Some(own), .. } => Ok(QuorumLogins { users, own }),
            _ => Err(ServerError::SaslFile {
                file: learner.file.clone(),
                problem: format!("the section {} needs username and password", learner.section),
            }),
        }
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
        let (text, first) = read(settings)?;
        let Some(first) = first else {
            tracing::warn!(
                file = %settings.file().display(),
                "the JAAS file has no section for clients (sasl.serverconfig): clients cannot log in by SASL"
            );
            return Ok(None);
        };
        tracing::info!(
            file = %settings.file().display(), users = first.len(),
            "clients can log in by SASL (DIGEST-MD5)"
        );
        warn_of_readers(settings.file());
        let users = SharedUsers::new(first);
        let (queue, logins) = SaslQueue::new(users.clone());
        Ok(Some(SaslParts { queue, logins, users, settings: settings.clone(), text }))
    }

    /// Logs clients in, and watches the file.
    pub(crate) fn spawn(self, driver: &Arc<Driver>, tasks: &mut JoinSet<()>) {
        tasks.spawn(self.logins.run(driver.clone()));
        tasks.spawn(watch(self.settings, self.text, self.users));
    }
}

/// Looks at the file until it is dropped.
async fn watch(settings: SaslSettings, mut text: String, users: SharedUsers) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let again = settings.clone();
        let Ok(found) = spawn_blocking(move || read(&again)).await else { return };
        match found {
            Ok((same, _)) if same == text => {}
            Ok((changed, now)) => {
                let now = now.unwrap_or_default();
                tracing::info!(file = %settings.file().display(), users = now.len(), "the users of SASL have changed");
                users.replace(now);
                text = changed;
            }
            Err(error) => {
                tracing::error!(%error, "the users of SASL cannot be read again: those that were read before stay in force");
            }
        }
    }
}
