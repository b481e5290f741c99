//! The logins of ZooKeeper in a JAAS file.

use super::{LoginModule, Section};
use crate::digest_md5::SaslCredentials;
use alloc::{string::String, vec::Vec};

const DIGEST: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
const KERBEROS: &str = "com.sun.security.auth.module.Krb5LoginModule";
/// The beginning of the options that name users.
const USER: &str = "user_";

/// Why a section is no login.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// A class that is not one of ZooKeeper's.
    #[error("the section {section} has the login module {class}; known are {DIGEST} and {KERBEROS}")]
    UnknownModule {
        /// The section.
        section: String,
        /// The class.
        class: String,
    },
    /// There is no module.
    #[error("the section {section} has no login module")]
    Empty {
        /// The section.
        section: String,
    },
    /// A name without a password, or a password without a name.
    #[error("the section {section} needs both username and password")]
    HalfUser {
        /// The section.
        section: String,
    },
}

/// A login by Kerberos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KerberosLogin {
    /// `keyTab`: the file with the keys.
    pub keytab: Option<String>,
    /// `principal`
    pub principal: Option<String>,
    /// `useTicketCache`: the tickets of the user who runs the program.
    pub use_ticket_cache: bool,
}

/// The login that a section asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// DIGEST-MD5.
    Digest {
        /// The users that a server knows.
        users: Vec<SaslCredentials>,
        /// The user as whom a client logs in.
        own: Option<SaslCredentials>,
    },
    /// Kerberos.
    Kerberos(KerberosLogin),
}

impl Login {
    /// Reads a section.
    pub fn of(section: &Section) -> Result<Login, LoginError> {
        let name = || section.name.clone();
        let unknown =
            section.modules.iter().find(|module| module.class != DIGEST && module.class != KERBEROS);
        if let Some(module) = unknown {
            return Err(LoginError::UnknownModule { section: name(), class: module.class.clone() });
        }
        if let Some(kerberos) = section.modules.iter().find(|module| module.class == KERBEROS) {
            return Ok(Login::Kerberos(kerberos_login(kerberos)));
        }
        let options = || section.modules.iter().flat_map(|module| &module.options);
        let named = |option: &(String, String)| {
            let user = option.0.strip_prefix(USER)?;
            Some(SaslCredentials { user: user.into(), password: option.1.clone() })
        };
        let find = |name: &str| options().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        let own = match (find("username"), find("password")) {
            (Some(user), Some(password)) => Some(SaslCredentials { user, password }),
            (None, None) => None,
            _ => return Err(LoginError::HalfUser { section: name() }),
        };
        match section.modules.is_empty() {
            true => Err(LoginError::Empty { section: name() }),
            false => Ok(Login::Digest { users: options().filter_map(named).collect(), own }),
        }
    }
}

fn kerberos_login(module: &LoginModule) -> KerberosLogin {
    KerberosLogin {
        keytab: module.option("keyTab").map(Into::into),
        principal: module.option("principal").map(Into::into),
        use_ticket_cache: module.option("useTicketCache") == Some("true"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jaas::JaasFile;
    use alloc::{format, vec};

    fn login(text: &str) -> Result<Login, LoginError> {
        let file = JaasFile::parse(&format!("S {{ {text} }};"), &|_| None).unwrap();
        Login::of(&file.sections[0])
    }

    fn credentials(user: &str, password: &str) -> SaslCredentials {
        SaslCredentials { user: user.into(), password: password.into() }
    }

    #[test]
    fn digest_sections_have_users_or_one_user() {
        let users = login(&format!("{DIGEST} required user_a=\"b\" user_c=\"d\" other=x;")).unwrap();
        let known = vec![credentials("a", "b"), credentials("c", "d")];
        assert_eq!(users, Login::Digest { users: known, own: None });
        let own = login(&format!("{DIGEST} required username=\"a\" password=\"b\";")).unwrap();
        assert_eq!(own, Login::Digest { users: vec![], own: Some(credentials("a", "b")) });
        assert!(matches!(login(&format!("{DIGEST} required username=a;")), Err(LoginError::HalfUser { .. })));
    }

    #[test]
    fn kerberos_sections_name_a_keytab() {
        let text = format!("{KERBEROS} required useKeyTab=true keyTab=\"/k\" principal=\"z/h@R\";");
        let expected = KerberosLogin {
            keytab: Some("/k".into()),
            principal: Some("z/h@R".into()),
            use_ticket_cache: false,
        };
        assert_eq!(login(&text).unwrap(), Login::Kerberos(expected));
    }

    #[test]
    fn other_modules_are_refused() {
        assert!(matches!(login("a.B required;"), Err(LoginError::UnknownModule { .. })));
        assert!(matches!(login(""), Err(LoginError::Empty { .. })));
    }
}
