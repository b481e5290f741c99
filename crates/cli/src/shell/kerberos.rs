//! Logins by Kerberos, in builds with Kerberos and in others.

use ostler_client::{ClientBuilder, Result};
use std::path::PathBuf;

/// As whom the shell logs in by Kerberos.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "gssapi"), expect(dead_code, reason = "only a build with Kerberos reads it"))]
pub(super) struct KerberosUser {
    /// The file with the keys, and the principal; `None`: the ticket cache.
    pub(super) keytab: Option<(PathBuf, String)>,
    /// The first part of the servers' principals.
    pub(super) service: String,
    /// The principal of all servers, if it does not follow from their hosts.
    pub(super) server_principal: Option<String>,
}

impl KerberosUser {
    #[cfg(feature = "gssapi")]
    pub(super) fn log_in(&self, builder: ClientBuilder) -> Result<ClientBuilder> {
        use ostler_client::KerberosLogin;
        let login = match &self.keytab {
            Some((keytab, principal)) => KerberosLogin::from_keytab(keytab, principal),
            None => KerberosLogin::from_ticket_cache(),
        };
        let login = login.service(&self.service);
        Ok(builder.sasl_gssapi(match &self.server_principal {
            Some(principal) => login.server_principal(principal),
            None => login,
        }))
    }

    #[cfg(not(feature = "gssapi"))]
    pub(super) fn log_in(&self, _: ClientBuilder) -> Result<ClientBuilder> {
        let problem = ostler_kerberos::KerberosError::NotBuilt.to_string().into();
        Err(ostler_client::Error::Kerberos { problem })
    }
}

#[cfg(all(test, not(feature = "gssapi")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_kerberos_says_so() {
        let user = KerberosUser { keytab: None, service: "zookeeper".into(), server_principal: None };
        let refused = user.log_in(ostler_client::Client::builder("localhost")).unwrap_err();
        assert!(refused.to_string().contains("--features gssapi"), "{refused}");
    }
}
