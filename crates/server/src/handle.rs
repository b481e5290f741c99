//! A running server as the program around it sees and steers it.

use crate::{disk_thread::DiskQueue, driver::Driver, snapshot_thread::SnapshotQueue};
use ostler_proto::id::SessionId;
use ostler_server_core::{ConnId, Input, Server};
use std::{fmt, sync::Arc};

/// Looks into a server and interferes with it, from any thread. Cheap to clone. After the server's end it still shows
/// the last state, and changes nothing.
#[derive(Clone)]
pub struct ServerHandle {
    pub(crate) driver: Arc<Driver>,
    pub(crate) disk: Arc<DiskQueue>,
    pub(crate) snapshots: Arc<SnapshotQueue>,
}

/// The server has ended, so nothing will change any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has ended")]
pub struct Ended;

impl ServerHandle {
    /// Looks at the core between two steps. Everything else waits meanwhile.
    pub fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        self.driver.inspect(|server| look(server))
    }

    /// Waits until `condition` holds after a step. It is asked while the member is locked, at once and after each
    /// step, so it sees every state, must be quick, and must not use this handle.
    pub async fn until(&self, condition: impl FnMut(&Server) -> bool + Send + 'static) -> Result<(), Ended> {
        self.driver.until(Box::new(condition)).await.map_err(|_| Ended)
    }

    /// Ends a session as if its time were over, by a transaction. Only the server that leads can do so, or, without a
    /// transaction, a local session's own server; elsewhere, and where there is no such session, nothing happens. Does
    /// not wait for the commit.
    pub fn expire_session(&self, session: SessionId) {
        self.driver.step(Input::ExpireSession(session));
    }

    /// Closes a client's connection. Requests under way are not answered; the session lives on.
    pub fn close_connection(&self, conn: ConnId) {
        self.driver.step(Input::CloseConnection(conn));
    }

    /// Ends the server as a crash would: changes that are not on disk yet are not written any more, and
    /// [`RunningServer::run_until`](crate::RunningServer::run_until) returns. What is being written at this moment is
    /// complete once it has returned.
    pub fn abandon(&self) {
        self.disk.abandon();
        self.snapshots.stop();
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").finish_non_exhaustive()
    }
}
