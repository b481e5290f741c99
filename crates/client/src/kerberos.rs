//! Logins by Kerberos (SASL GSSAPI).

use crate::{
    error::{Error, Result},
    shared::{FailedStep, SaslToken},
};
use ostler_client_core::{AttemptId, SaslStep};
use ostler_kerberos::{Initiator, InitiatorContext, KeySource};
use ostler_sasl::gssapi::{GssapiClient, GssapiStep};
use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
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
    state: Mutex<LoginState>,
    /// One call at a time: a KDC that does not answer must not take a thread for each attempt to connect.
    calls: Mutex<()>,
}

/// The newest attempt, and its context between two steps.
#[derive(Debug, Default)]
struct LoginState {
    newest: AttemptId,
    context: Option<GssapiClient<InitiatorContext>>,
}

impl FailedStep {
    fn new(step: SaslStep, problem: impl ToString) -> FailedStep {
        FailedStep { step, problem: problem.to_string() }
    }
}

impl KerberosSession {
    /// # Errors
    /// [`Error::Kerberos`] if there are no keys.
    pub(crate) fn new(login: KerberosLogin) -> Result<KerberosSession> {
        let initiator = Initiator::new(login.keys.clone()).map_err(failed)?;
        Ok(KerberosSession { login, initiator, state: Mutex::default(), calls: Mutex::default() })
    }

    /// Looks for the keys or tickets, so that a caller learns at once that there are none. Blocks.
    pub(crate) fn check(&self) -> Result<()> {
        self.initiator.check().map_err(failed)
    }

    /// Notes the newest attempt to connect. Steps of earlier ones do nothing from now on.
    pub(crate) fn begin(&self, attempt: AttemptId) {
        *self.state() = LoginState { newest: attempt, context: None };
    }

    fn state(&self) -> MutexGuard<'_, LoginState> {
        // A panic within the lock would leave whole values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works at a token of the server of this host. Blocks. `None` if a newer attempt has begun.
    pub(crate) fn step(
        &self,
        host: &str,
        SaslToken { attempt, token }: SaslToken,
    ) -> Option<std::result::Result<SaslStep, FailedStep>> {
        let _one_at_a_time = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let context = {
            let mut state = self.state();
            if state.newest != attempt {
                return None;
            }
            state.context.take()
        };
        let (client, result) = self.work(host, context, token.as_deref());
        let mut state = self.state();
        if state.newest != attempt {
            return None;
        }
        state.context = client;
        Some(result)
    }

    fn work(
        &self,
        host: &str,
        context: Option<GssapiClient<InitiatorContext>>,
        token: Option<&[u8]>,
    ) -> (Option<GssapiClient<InitiatorContext>>, std::result::Result<SaslStep, FailedStep>) {
        let is_first = context.is_none();
        let mut client = match context {
            Some(client) => client,
            None if token.is_some() => {
                let problem = "the server speaks although the login has not begun";
                return (None, Err(FailedStep::new(SaslStep::Refused, problem)));
            }
            None => match self.initiator.context(&self.login.principal_of(host)) {
                Ok(context) => GssapiClient::new(context),
                Err(error) => return (None, Err(FailedStep::new(SaslStep::Unavailable, error))),
            },
        };
        match client.step(token) {
            Ok(GssapiStep::Complete) => (None, Ok(SaslStep::Complete)),
            Ok(GssapiStep::Send(next)) => (Some(client), Ok(SaslStep::Send(next))),
            // The first step asks the KDC; the others hear the server.
            Err(error) if is_first => (None, Err(FailedStep::new(SaslStep::Unavailable, error))),
            Err(error) => (None, Err(FailedStep::new(SaslStep::Refused, error))),
        }
    }
}

fn failed(error: ostler_kerberos::KerberosError) -> Error {
    Error::Kerberos { problem: error.to_string().into() }
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
}
