//! A server with its runtime, treated like a process: it can be killed, stopped, frozen and continued.

use crate::{error::TestkitError, runtime::OwnRuntime};
use ostler_proto::id::SessionId;
use ostler_server::{Overrides, RunningServer, ServerError, ServerHandle, config::ServerConfig};
use ostler_server_core::{Server, quorum::MemberMode};
use std::sync::mpsc;
use tokio::{sync::oneshot, task::JoinHandle};

/// A running server. When it is dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) handle: ServerHandle,
    /// `None` after the end, as is `ended`.
    runtime: Option<OwnRuntime>,
    ended: Option<JoinHandle<Result<(), ServerError>>>,
    stop: Option<oneshot::Sender<()>>,
    /// Set while the server is frozen. Dropping it continues the server.
    frozen: Option<mpsc::Sender<()>>,
}

impl Process {
    pub(crate) async fn start(
        config: ServerConfig,
        overrides: Overrides,
        name: &str,
    ) -> Result<Process, TestkitError> {
        let runtime = OwnRuntime::new(name)?;
        let starting =
            runtime.handle().spawn(async move { RunningServer::start_with(&config, overrides).await });
        let server = starting.await.map_err(|_| TestkitError::Panicked)??;
        let (handle, (stop, stopped)) = (server.handle(), oneshot::channel());
        let ended = runtime.handle().spawn(server.run_until(async move {
            // A dropped sender does not stop the server: a kill ends it in another way.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Ok(Process { handle, runtime: Some(runtime), ended: Some(ended), stop: Some(stop), frozen: None })
    }

    /// Ends the server as `kill -9` does.
    pub(crate) async fn kill(self) {
        self.handle.abandon();
        // The result of a killed server does not matter.
        let _ = self.until_end().await;
    }

    /// Stops the server as SIGTERM does.
    pub(crate) async fn stop(mut self) -> Result<(), TestkitError> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.until_end().await
    }

    async fn until_end(mut self) -> Result<(), TestkitError> {
        self.frozen = None;
        let result = match self.ended.take() {
            Some(ended) => ended.await.map_err(|_| TestkitError::Panicked).and_then(|end| Ok(end?)),
            None => Ok(()),
        };
        if let Some(runtime) = self.runtime.take() {
            runtime.end().await;
        }
        result
    }

    /// Freezes the server as SIGSTOP does: its thread blocks, and bytes that are sent to it stay in the system's buffers.
    /// The disk's thread finishes its work.
    pub(crate) async fn freeze(&mut self) {
        let Some(runtime) = &self.runtime else { return };
        if self.frozen.is_some() {
            return;
        }
        let (standing, stands) = oneshot::channel();
        let (release, released) = mpsc::channel::<()>();
        runtime.handle().spawn(async move {
            let _ = standing.send(());
            let _ = released.recv();
        });
        let _ = stands.await;
        self.frozen = Some(release);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Continues the server as SIGCONT does.
    pub(crate) fn go_on(&mut self) {
        self.frozen = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.frozen = None;
        if let (Some(runtime), Some(ended)) = (self.runtime.take(), self.ended.take()) {
            self.handle.abandon();
            runtime.end_after(ended);
        }
    }
}

impl Process {
    pub(crate) async fn expire(&self, session: SessionId) -> Result<(), TestkitError> {
        let lives = move |server: &Server| sessions(server).contains(&session);
        let may = |server: &Server| matches!(server.mode(), None | Some(MemberMode::Leader));
        if !self.has_local(session) && !self.handle.inspect(may) {
            return Err(TestkitError::NotLeading);
        }
        if !self.handle.inspect(lives) {
            return Err(TestkitError::NoSession(session));
        }
        self.handle.expire_session(session);
        self.handle.until(move |server| !lives(server)).await.map_err(|_| TestkitError::Down)
    }

    /// Whether this is a local session of this server.
    pub(crate) fn has_local(&self, session: SessionId) -> bool {
        self.handle.inspect(|server| local_sessions(server).contains(&session))
    }

    /// Closes the connections whose session is chosen. Returns their number.
    pub(crate) fn cut(&self, chosen: impl Fn(Option<SessionId>) -> bool) -> usize {
        let mut connections = self.handle.inspect(Server::connections);
        connections.retain(|report| chosen(report.session.map(|(id, _)| id)));
        for report in &connections {
            self.handle.close_connection(report.conn);
        }
        connections.len()
    }
}

fn local_sessions(server: &Server) -> Vec<SessionId> {
    let buckets = server.local_session_buckets().unwrap_or_default();
    buckets.into_iter().flat_map(|(_, sessions)| sessions).collect()
}

/// All sessions that this server knows of.
pub(crate) fn sessions(server: &Server) -> Vec<SessionId> {
    server.tree().sessions().map(|(id, _)| id).chain(local_sessions(server)).collect()
}
