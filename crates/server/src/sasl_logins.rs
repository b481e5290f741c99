//! SASL logins of clients: the mechanism, outside the core's lock.

use crate::{driver::Driver, principal_names::PrincipalNames};
use ostler_kerberos::{Acceptor, AcceptorContext};
use ostler_proto::id::Xid;
use ostler_sasl::{
    digest_md5::{Profile, ServerExchange, ServerStep, Users},
    gssapi::{GssapiAnswer, GssapiServer},
};
use ostler_server_core::{ConnId, Input, SaslAnswer};
use rustc_hash::FxBuildHasher;
use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::{sync::mpsc, task::spawn_blocking};

/// The users of DIGEST-MD5. They are replaced when their file changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedUsers(Arc<RwLock<Arc<Users>>>);

impl SharedUsers {
    pub(crate) fn new(users: Users) -> SharedUsers {
        SharedUsers(Arc::new(RwLock::new(Arc::new(users))))
    }

    pub(crate) fn replace(&self, users: Users) {
        // A panic aborts the process, so a poisoned lock is never met.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users);
    }

    pub(crate) fn current(&self) -> Arc<Users> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The mechanism of clients' logins. A server has one of the two, as Java's.
#[derive(Debug, Clone)]
pub(crate) enum ClientMechanism {
    /// DIGEST-MD5.
    Digest(SharedUsers),
    /// GSSAPI.
    Kerberos(Arc<KerberosService>),
}

/// The keys and the names of logins by Kerberos.
#[derive(Debug)]
pub(crate) struct KerberosService {
    pub(crate) acceptor: Acceptor,
    pub(crate) names: PrincipalNames,
}

/// A login that is under way or done.
enum ClientLogin {
    Digest(ServerExchange),
    /// `None` while the library works at it, and once it is over.
    Kerberos(Option<Box<GssapiServer<AcceptorContext>>>),
}

/// Work for the mechanism.
enum Work {
    Token { conn: ConnId, xid: Xid, token: Vec<u8> },
    Gone(ConnId),
}

/// The way to the mechanism. A connection has one token in it at most: the core sees to that.
#[derive(Debug, Clone)]
pub(crate) struct SaslQueue(Option<mpsc::UnboundedSender<Work>>);

impl SaslQueue {
    /// Without a mechanism.
    pub(crate) fn none() -> SaslQueue {
        SaslQueue(None)
    }

    /// With the task that works at the tokens.
    pub(crate) fn new(mechanism: ClientMechanism) -> (SaslQueue, SaslLogins) {
        let (sender, work) = mpsc::unbounded_channel();
        (
            SaslQueue(Some(sender)),
            SaslLogins { work, mechanism, logins: HashMap::default(), waiting: WaitingTokens::default() },
        )
    }

    /// Never blocks.
    pub(crate) fn put(&self, conn: ConnId, xid: Xid, token: Vec<u8>) {
        self.send(Work::Token { conn, xid, token });
    }

    /// A connection is gone.
    pub(crate) fn gone(&self, conn: ConnId) {
        self.send(Work::Gone(conn));
    }

    fn send(&self, work: Work) {
        if let Some(sender) = &self.0 {
            // It fails when the server ends.
            let _ = sender.send(work);
        }
    }
}

/// The logins that are under way or done, by their connections.
pub(crate) struct SaslLogins {
    work: mpsc::UnboundedReceiver<Work>,
    mechanism: ClientMechanism,
    logins: HashMap<ConnId, ClientLogin, FxBuildHasher>,
    waiting: WaitingTokens,
}

/// The tokens that wait for the mechanism: one at most of each connection that is there. Those of connections that are
/// gone are dropped, so that callers that come and go cannot fill the memory, and keep nobody waiting.
#[derive(Debug, Default)]
struct WaitingTokens {
    tokens: HashMap<ConnId, (Xid, Vec<u8>), FxBuildHasher>,
    order: VecDeque<ConnId>,
}

impl WaitingTokens {
    fn put(&mut self, conn: ConnId, xid: Xid, token: Vec<u8>) {
        self.tokens.insert(conn, (xid, token));
        self.order.push_back(conn);
    }

    fn drop_of(&mut self, conn: ConnId) {
        self.tokens.remove(&conn);
    }

    fn next(&mut self) -> Option<(ConnId, Xid, Vec<u8>)> {
        while let Some(conn) = self.order.pop_front() {
            if let Some((xid, token)) = self.tokens.remove(&conn) {
                return Some((conn, xid, token));
            }
        }
        None
    }
}

impl SaslLogins {
    /// Answers tokens until it is dropped.
    pub(crate) async fn run(mut self, driver: Arc<Driver>) {
        while let Some(work) = self.work.recv().await {
            self.note(work);
            while let Some((conn, xid, token)) = self.waiting.next() {
                let answer = self.answer(conn, token).await.unwrap_or_else(|error| {
                    tracing::error!(%error, "a SASL login is refused: the system gives no random numbers");
                    SaslAnswer::Refused
                });
                driver.step(Input::SaslAnswered { conn, xid, answer });
                while let Ok(work) = self.work.try_recv() {
                    self.note(work);
                }
            }
        }
    }

    fn note(&mut self, work: Work) {
        match work {
            Work::Token { conn, xid, token } => self.waiting.put(conn, xid, token),
            Work::Gone(conn) => {
                self.waiting.drop_of(conn);
                self.logins.remove(&conn);
            }
        }
    }

    async fn answer(&mut self, conn: ConnId, token: Vec<u8>) -> io::Result<SaslAnswer> {
        let login = match self.logins.get_mut(&conn) {
            Some(login) => login,
            None => {
                let login = self.mechanism.begin()?;
                self.logins.entry(conn).or_insert(login)
            }
        };
        match (login, &self.mechanism) {
            (ClientLogin::Digest(login), ClientMechanism::Digest(users)) => {
                Ok(digest_answer(conn, login.step(&token, &users.current())))
            }
            (ClientLogin::Kerberos(login), ClientMechanism::Kerberos(service)) => {
                Ok(kerberos_answer(conn, login, service, token).await)
            }
            // The mechanism has not changed since the login began.
            _ => Ok(SaslAnswer::Refused),
        }
    }
}

impl ClientMechanism {
    fn begin(&self) -> io::Result<ClientLogin> {
        Ok(match self {
            ClientMechanism::Digest(_) => {
                ClientLogin::Digest(ServerExchange::new(Profile::Clients, nonce()?))
            }
            ClientMechanism::Kerberos(service) => {
                ClientLogin::Kerberos(Some(Box::new(GssapiServer::new(service.acceptor.context()))))
            }
        })
    }
}

fn digest_answer(conn: ConnId, step: ServerStep) -> SaslAnswer {
    match step {
        ServerStep::Challenge(challenge) => SaslAnswer::Challenge(challenge),
        ServerStep::Complete { token, user } => SaslAnswer::Complete { token: Some(token), user },
        ServerStep::Refused(why) => refused(conn, &why),
    }
}

/// The library reads and writes files, so it works on a thread of its own.
async fn kerberos_answer(
    conn: ConnId,
    login: &mut Option<Box<GssapiServer<AcceptorContext>>>,
    service: &KerberosService,
    token: Vec<u8>,
) -> SaslAnswer {
    let Some(mut taken) = login.take() else { return SaslAnswer::Refused };
    let worked = spawn_blocking(move || {
        let answer = taken.step(&token);
        (taken, answer)
    });
    let Ok((taken, answer)) = worked.await else { return SaslAnswer::Refused };
    match answer {
        Ok(GssapiAnswer::Challenge(challenge)) => {
            // A login that is over, well or not, keeps no context: a later token is refused.
            *login = Some(taken);
            SaslAnswer::Challenge(challenge)
        }
        Ok(GssapiAnswer::Complete { principal, wanted }) => match service.names.is_own(&principal, &wanted) {
            true => SaslAnswer::Complete { token: None, user: service.names.id(&principal) },
            false => refused(conn, &format_args!("{principal:?} wants to act as {wanted:?}")),
        },
        Err(why) => refused(conn, &why),
    }
}

fn refused(conn: ConnId, why: &dyn std::fmt::Display) -> SaslAnswer {
    tracing::warn!(?conn, %why, "a SASL login is refused");
    SaslAnswer::Refused
}

/// 40 letters and digits that nobody can predict, as many as Java's server sends.
pub(crate) fn nonce() -> io::Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_wait_in_their_order_and_go_with_their_connection() {
        let mut waiting = WaitingTokens::default();
        for conn in 1..=4 {
            waiting.put(ConnId(conn), Xid(1), vec![0; 10]);
        }
        waiting.drop_of(ConnId(2));
        waiting.drop_of(ConnId(4));
        let left: Vec<u64> = std::iter::from_fn(|| waiting.next()).map(|(conn, ..)| conn.0).collect();
        assert_eq!(left, [1, 3]);
        assert!(waiting.tokens.is_empty() && waiting.order.is_empty());
    }
}
