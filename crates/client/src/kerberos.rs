//! Logins by Kerberos (SASL GSSAPI).

use crate::{
    error::{Error, Result},
    shared::SaslToken,
};
use ostler_client_core::{AttemptId, SaslStep};
use ostler_kerberos::{Initiator, InitiatorContext, KeySource};
use ostler_sasl::gssapi::{GssapiClient, GssapiStep};
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// As whom a client logs in by Kerberos, and what it expects of the servers. krb5.conf says where the KDC is; the
/// environment's `KRB5_CONFIG` names another file than the system's.
///
/// Needs the feature `gssapi`, which links MIT's library.
#[derive(Debug, Clone)]
pub struct KerberosLogin {
    keys: KeySource,
    service: String,
    server: Option<String>,
}

impl KerberosLogin {
    fn of(keys: KeySource) -> KerberosLogin {
        KerberosLogin { keys, service: "zookeeper".to_owned(), server: None }
    }

    /// The owner of the ticket cache, which `kinit` fills and the environment's `KRB5CCNAME` names.
    pub fn from_ticket_cache() -> KerberosLogin {
        KerberosLogin::of(KeySource::default())
    }

    /// A principal whose keys are in a keytab, such as `client@EXAMPLE.COM`. New tickets are got as they expire.
    pub fn from_keytab(keytab: impl Into<PathBuf>, principal: &str) -> KerberosLogin {
        KerberosLogin::of(KeySource { keytab: Some(keytab.into()), principal: Some(principal.to_owned()) })
    }

    /// The first part of the servers' principals; `zookeeper` by default. The second part is the host of the connect
    /// string, as it is written there.
    #[must_use]
    pub fn service(mut self, service: &str) -> KerberosLogin {
        service.clone_into(&mut self.service);
        self
    }

    /// The principal of all servers, such as `zookeeper/zk.example.com@EXAMPLE.COM`, whatever their hosts are.
    #[must_use]
    pub fn server_principal(mut self, principal: &str) -> KerberosLogin {
        self.server = Some(principal.to_owned());
        self
    }

    fn principal_of(&self, host: &str) -> String {
        self.server.clone().unwrap_or_else(|| format!("{}/{host}", self.service))
    }
}

/// The logins of one client, one after the other.
#[derive(Debug)]
pub(crate) struct KerberosSession {
    login: KerberosLogin,
    initiator: Initiator,
    current: Mutex<Option<(AttemptId, GssapiClient<InitiatorContext>)>>,
}

/// A login that cannot go on.
#[derive(Debug)]
pub(crate) struct FailedStep {
    pub(crate) step: SaslStep,
    pub(crate) problem: String,
}

impl KerberosSession {
    /// # Errors
    /// [`Error::Kerberos`] if the build has none.
    pub(crate) fn new(login: KerberosLogin) -> Result<KerberosSession> {
        let initiator = Initiator::new(login.keys.clone()).map_err(failed)?;
        Ok(KerberosSession { login, initiator, current: Mutex::new(None) })
    }

    /// Gets a ticket, so that a caller learns at once that there is none. Blocks.
    pub(crate) fn check(&self) -> Result<()> {
        self.initiator.check().map_err(failed)
    }

    /// Works at a token of the server of this host. Blocks.
    pub(crate) fn step(
        &self,
        host: &str,
        SaslToken { attempt, token }: SaslToken,
    ) -> std::result::Result<SaslStep, FailedStep> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let known = current.take().filter(|(of, _)| *of == attempt);
        let is_first = known.is_none();
        let mut client = match known {
            Some((_, client)) => client,
            None => {
                let context = self.initiator.context(&self.login.principal_of(host));
                GssapiClient::new(context.map_err(|error| FailedStep {
                    step: SaslStep::Unavailable,
                    problem: error.to_string(),
                })?)
            }
        };
        match client.step(token.as_deref()) {
            Ok(GssapiStep::Complete) => Ok(SaslStep::Complete),
            Ok(GssapiStep::Send(next)) => {
                *current = Some((attempt, client));
                Ok(SaslStep::Send(next))
            }
            // The first step asks the KDC; the others hear the server.
            Err(error) => Err(FailedStep {
                step: if is_first { SaslStep::Unavailable } else { SaslStep::Refused },
                problem: error.to_string(),
            }),
        }
    }
}

fn failed(error: ostler_kerberos::KerberosError) -> Error {
    Error::Kerberos(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_host_or_by_its_principal() {
        let login = KerberosLogin::from_ticket_cache();
        assert_eq!(login.principal_of("zk1"), "zookeeper/zk1");
        assert_eq!(login.clone().service("zk").principal_of("zk1"), "zk/zk1");
        assert_eq!(login.server_principal("z/h@R").principal_of("zk1"), "z/h@R");
    }

    #[cfg(not(feature = "gssapi"))]
    #[test]
    fn a_build_without_kerberos_says_so() {
        let refused = KerberosSession::new(KerberosLogin::from_ticket_cache());
        assert!(matches!(refused, Err(Error::Kerberos(text)) if text.contains("--features gssapi")));
    }
}
