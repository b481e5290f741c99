//! The acts of operators on a server, by the rights of the server itself. The audit log names the operator.

use super::{AdminHandle, is_super};
use ostler_proto::{acl::Id, id::SessionId};
use ostler_server_core::{
    Input, Now, Server,
    audit::{AuditRecord, AuditResult},
    sessions::ends::ActingOperator,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::net::TcpStream;

/// The time for the end of a session to be committed.
const COMMIT_WITHIN: Duration = Duration::from_secs(5);

/// Why a session has not been ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotExpired {
    /// No such session lives.
    #[error("the session does not live any more")]
    NoSession,
    /// Only the leader ends sessions, and this server has none.
    #[error("this server has no leader, and only the leader ends sessions")]
    NotLeader,
    /// The leader was asked, and the end is not committed yet.
    #[error("the leader was asked to end the session, and no quorum has committed that within 5 s")]
    NotCommitted,
}

impl AdminHandle {
    /// As [`AdminHandle::inspect`], with the time.
    pub fn inspect_now<T>(&self, look: impl FnOnce(Now, &Server) -> T) -> T {
        self.state.driver.inspect(|server| look(self.state.driver.now(), server))
    }

    /// A client's connection to this server with the rights of a super user, for an act that an operator may ask for
    /// whatever the ACLs are. Everything on it is audited under the operator's identities and address. Nothing that
    /// the operator has written may choose what is done there.
    ///
    /// # Errors
    /// There is no port or descriptor left, or the server ends.
    pub async fn connect_as_operator(&self, from: SocketAddr, ids: &[Id]) -> io::Result<TcpStream> {
        let mut ids = ids.to_vec();
        if !is_super(&ids) {
            ids.push(Id::new("super", ""));
        }
        self.connect_with(from, ids).await
    }

    /// Ends a session as if it had expired, and waits until this is committed. A server that does not lead asks its leader.
    /// The record of the end names the operator. The caller has checked that these identities, from this address, may do
    /// that.
    ///
    /// # Errors
    /// Why it has not ended.
    pub async fn expire_session(
        &self,
        session: SessionId,
        (ids, from): (&[Id], IpAddr),
    ) -> Result<(), NotExpired> {
        let done = self.expire(session, ActingOperator::new(ids, from)).await;
        let result = match done {
            Ok(()) => AuditResult::Success,
            Err(NotExpired::NotCommitted) => AuditResult::Invoked,
            Err(_) => AuditResult::Failure,
        };
        let driver = &self.state.driver;
        driver.audit(AuditRecord::of_expired_session(driver.now(), session, (ids, from), result));
        done
    }

    /// Counts each request by path and client for this time. The caller has checked that these identities, from this address,
    /// may do that.
    pub fn measure_hot_paths(&self, time: Duration, by: (&[Id], IpAddr)) {
        let driver = &self.state.driver;
        driver.measure_hot_paths(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        driver.audit(AuditRecord::of_measurement(driver.now(), by));
    }

    async fn expire(&self, session: SessionId, by: ActingOperator) -> Result<(), NotExpired> {
        let driver = &self.state.driver;
        let lives = move |server: &Server| server.has_session(session);
        let (is_known, can_end) = driver.inspect(|server| (lives(server), server.can_end(session)));
        if !is_known {
            return Err(NotExpired::NoSession);
        }
        if !can_end {
            return Err(NotExpired::NotLeader);
        }
        driver.step(Input::EndSession { session, by });
        let ended = driver.until(Box::new(move |server| !lives(server)));
        match tokio::time::timeout(COMMIT_WITHIN, ended).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(NotExpired::NotCommitted),
        }
    }
}
