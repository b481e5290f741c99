//! Security contexts of MIT Kerberos: whom a server accepts, and as whom a client goes.
//!
//! Calls block: they read files, and a client's ask the KDC. Run them on a thread of their own. Where the KDC is comes
//! from krb5.conf, which the environment's `KRB5_CONFIG` names.
//!
//! Without the feature `gssapi` the types are here, and none of them can be made: [`KerberosError::NotBuilt`].

#[cfg(not(feature = "gssapi"))]
#[path = "absent.rs"]
mod library;
#[cfg(feature = "gssapi")]
#[path = "mit/mod.rs"]
mod library;

pub use library::{Acceptor, AcceptorContext, Initiator, InitiatorContext, default_realm};
use std::path::PathBuf;

/// Whether this build can speak Kerberos.
pub const IS_BUILT: bool = cfg!(feature = "gssapi");

/// Why there are no credentials or no context.
#[derive(Debug, thiserror::Error)]
pub enum KerberosError {
    /// The build has no Kerberos.
    #[error(
        "Kerberos is not part of this build; build it with --features gssapi, or use a package that has it"
    )]
    NotBuilt,
    /// The library cannot use a keytab or a ticket cache.
    #[error("Kerberos has no credentials from {origin}: {problem}")]
    Credentials {
        /// Where they should come from.
        origin: String,
        /// The library's text.
        problem: String,
    },
    /// A principal that is no principal.
    #[error("{principal} is no principal of Kerberos: {problem}")]
    Principal {
        /// The principal.
        principal: String,
        /// The library's text.
        problem: String,
    },
}

/// Where the keys or tickets of a principal are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySource {
    /// The file with the keys. Without one, a server uses the library's keytab, and a client its ticket cache.
    pub keytab: Option<PathBuf>,
    /// The principal, such as `zookeeper/zk1.example.com@EXAMPLE.COM`. Without one, a server accepts tickets for each
    /// principal of the keytab, and a client is the first one in it or the owner of the ticket cache.
    pub principal: Option<String>,
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.keytab {
            Some(file) => write!(f, "the keytab {}", file.display())?,
            None => f.write_str("the default keytab or ticket cache")?,
        }
        match &self.principal {
            Some(principal) => write!(f, " for {principal}"),
            None => Ok(()),
        }
    }
}

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> KeySource {
        KeySource { keytab: Some("/nowhere/zk.keytab".into()), principal: Some("zk/localhost@R".into()) }
    }

    #[test]
    fn a_server_without_keys_says_where_it_looked() {
        let error = Acceptor::new(&nowhere()).unwrap_err().to_string();
        let expected =
            if IS_BUILT { "the keytab /nowhere/zk.keytab for zk/localhost@R" } else { "--features gssapi" };
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_client_without_keys_says_where_it_looked() {
        let error = Initiator::new(nowhere()).and_then(|keys| keys.check()).unwrap_err().to_string();
        let expected =
            if IS_BUILT { "the keytab /nowhere/zk.keytab for zk/localhost@R" } else { "--features gssapi" };
        assert!(error.contains(expected), "{error}");
    }
}
