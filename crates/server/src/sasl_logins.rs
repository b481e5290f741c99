//! SASL logins of clients: the mechanism, outside the core's lock.

use crate::driver::Driver;
use ostler_proto::id::Xid;
use ostler_sasl::digest_md5::{Profile, RefusedLogin, ServerExchange, ServerStep, Users};
use ostler_server_core::{ConnId, Input, SaslAnswer};
use rustc_hash::FxBuildHasher;
use std::{
    collections::HashMap,
    io,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::sync::mpsc;

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

    fn current(&self) -> Arc<Users> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
    pub(crate) fn new(users: SharedUsers) -> (SaslQueue, SaslLogins) {
        let (sender, work) = mpsc::unbounded_channel();
        (SaslQueue(Some(sender)), SaslLogins { work, users, logins: HashMap::default() })
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
    users: SharedUsers,
    logins: HashMap<ConnId, ServerExchange, FxBuildHasher>,
}

impl SaslLogins {
    /// Answers tokens until it is dropped.
    pub(crate) async fn run(mut self, driver: Arc<Driver>) {
        while let Some(work) = self.work.recv().await {
            match work {
                Work::Gone(conn) => drop(self.logins.remove(&conn)),
                Work::Token { conn, xid, token } => {
                    let answer = self.answer(conn, &token).unwrap_or_else(|error| {
                        tracing::error!(%error, "a SASL login is refused: the system gives no random numbers");
                        SaslAnswer::Refused
                    });
                    driver.step(Input::SaslAnswered { conn, xid, answer });
                }
            }
        }
    }

    fn answer(&mut self, conn: ConnId, token: &[u8]) -> io::Result<SaslAnswer> {
        let login = match self.logins.get_mut(&conn) {
            Some(login) => login,
            None => {
                let login = ServerExchange::new(Profile::Clients, nonce()?);
                self.logins.entry(conn).or_insert(login)
            }
        };
        Ok(match login.step(token, &self.users.current()) {
            ServerStep::Challenge(challenge) => SaslAnswer::Challenge(challenge),
            ServerStep::Complete { token, user } => SaslAnswer::Complete { token: Some(token), user },
            ServerStep::Refused(why) => {
                log_refused(conn, why);
                SaslAnswer::Refused
            }
        })
    }
}

fn log_refused(conn: ConnId, why: RefusedLogin) {
    tracing::warn!(?conn, %why, "a SASL login is refused");
}

/// 40 letters and digits that nobody can predict, as many as Java's server sends.
pub(crate) fn nonce() -> io::Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
