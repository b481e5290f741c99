//! A handle by which a program inspects and controls a running server.

use crate::{
    admin::observations::{self, BadParameter, Parameters},
    disk_thread::DiskQueue,
    driver::Driver,
    snapshot_thread::SnapshotQueue,
};
use ostler_proto::id::SessionId;
use ostler_server_core::{
    ConnId, Input, Server,
    sessions::ends::EndsReport,
    stats::{hot::HotReport, slow_requests::SlowReport},
};
use std::{fmt, sync::Arc};

/// Inspects and controls a server, from any thread. Cheap to clone. After the server's end it shows the last state, and
/// its other functions have no effect.
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
    /// Calls `look` with the core between two steps. The core is locked meanwhile, so everything else waits.
    pub fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        self.driver.inspect(|server| look(server))
    }

    /// Waits until `condition` holds. It is called at once and after each step, so it sees every state. The core is locked
    /// meanwhile, so the function must be quick, and must not use this handle.
    pub async fn until(&self, condition: impl FnMut(&Server) -> bool + Send + 'static) -> Result<(), Ended> {
        self.driver.until(Box::new(condition)).await.map_err(|_| Ended)
    }

    /// Ends a session as if it had expired, by a transaction. Does not wait for the commit. Only the leader can do this, or
    /// for a local session its own server, without a transaction. On other servers, or without such a session, nothing
    /// happens.
    pub fn expire_session(&self, session: SessionId) {
        self.driver.step(Input::ExpireSession(session));
    }

    /// Closes a client's connection. Requests under way are not answered; the session goes on.
    pub fn close_connection(&self, conn: ConnId) {
        self.driver.step(Input::CloseConnection(conn));
    }

    /// The records of ended connections and sessions: the answer of the command `session_ends` to these parameters.
    pub fn session_ends(&self, parameters: &Parameters) -> Result<EndsReport, BadParameter> {
        observations::session_ends(&self.driver, parameters)
    }

    /// The last slow requests: the answer of the command `slow_requests` to these parameters.
    pub fn slow_requests(&self, parameters: &Parameters) -> Result<SlowReport, BadParameter> {
        observations::slow_requests(&self.driver, parameters)
    }

    /// The hottest paths and clients of the last minutes: the answer of the command `hot_paths` to these parameters.
    pub fn hot_paths(&self, parameters: &Parameters) -> Result<HotReport, BadParameter> {
        observations::hot_paths(&self.driver, parameters)
    }

    /// Ends the server as a crash would: operations that wait for the disk are not written any more. A write that has begun
    /// is complete once [`RunningServer::run_until`](crate::RunningServer::run_until) returns.
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
