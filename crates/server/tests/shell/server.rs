//! A server in this process.

use crate::gate;
use ostler_server::{RunningServer, ServerError, ServerHandle, config::ServerConfig};
use ostler_server_core::quorum::MemberMode;
use std::{
    net::SocketAddr,
    path::Path,
    sync::{Mutex, Once, PoisonError, RwLockReadGuard},
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Panics in threads of servers. A runtime hides them here; a release build would abort.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static HOOK: Once = Once::new();
const SERVER_THREADS: [&str; 4] = ["server", "disk", "snapshot", "audit"];

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) znodes: usize,
    handle: ServerHandle,
    // `None` after `stop`.
    runtime: Option<Runtime>,
    running: Option<Running>,
    dir: Option<TempDir>,
    _beside: Option<RwLockReadGuard<'static, ()>>,
}

struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), ServerError>>,
}

/// A configuration for tests: a free port, small files, no limit per address.
pub(crate) fn config(dir: &Path) -> ServerConfig {
    let mut config = ServerConfig::embedded(dir);
    config.clients.client_address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.log.pre_alloc_size_kb = 256;
    config.clients.max_client_cnxns = None;
    config
}

impl TestServer {
    pub(crate) fn start() -> TestServer {
        TestServer::start_with(|_| {})
    }

    pub(crate) fn start_with(adjust: impl FnOnce(&mut ServerConfig)) -> TestServer {
        let beside = gate::beside_others();
        let mut server = TestServer::start_unguarded(adjust);
        server._beside = Some(beside);
        server
    }

    /// For a test that holds [`gate::alone`].
    pub(crate) fn start_unguarded(adjust: impl FnOnce(&mut ServerConfig)) -> TestServer {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        adjust(&mut config);
        let mut server = TestServer::start_in(&config).unwrap();
        server.dir = Some(dir);
        server
    }

    /// Starts a server in the folders of the configuration, which stay after its end.
    pub(crate) fn start_in(config: &ServerConfig) -> Result<TestServer, ServerError> {
        HOOK.call_once(note_panics);
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("server").enable_all().build().unwrap();
        let server = runtime.block_on(RunningServer::start(config))?;
        let (address, znodes, handle) = (server.address, server.znodes, server.handle());
        let (stop, stopped) = oneshot::channel();
        let ended = runtime.spawn(server.run_until(async move {
            let _ = stopped.await;
        }));
        let running = Some(Running { stop, ended });
        Ok(TestServer { address, znodes, handle, runtime: Some(runtime), running, dir: None, _beside: None })
    }

    /// Stops the server in order.
    pub(crate) fn stop(mut self) -> Result<(), ServerError> {
        let Running { stop, ended } = self.running.take().unwrap();
        let _ = stop.send(());
        let result = self.runtime.as_ref().unwrap().block_on(ended).unwrap();
        check_panics();
        result
    }

    /// Waits until the server stops by itself.
    pub(crate) fn ended_by_itself(mut self) -> Result<(), ServerError> {
        let Running { stop: _keep, ended } = self.running.take().unwrap();
        self.runtime.as_ref().unwrap().block_on(ended).unwrap()
    }

    /// Asks the server to stop. Returns true if it does so in time. Its runtime goes on.
    pub(crate) fn stops_within(&mut self, patience: Duration) -> bool {
        let Running { stop, ended } = self.running.take().unwrap();
        let _ = stop.send(());
        let ended = async { timeout(patience, ended).await.is_ok() };
        self.runtime.as_ref().unwrap().block_on(ended)
    }

    /// Waits until the server leads its ensemble.
    pub(crate) fn wait_until_it_leads(&self) {
        let leads = self.handle.until(|server| server.mode() == Some(MemberMode::Leader));
        let leads = async { timeout(Duration::from_secs(15), leads).await };
        self.runtime.as_ref().unwrap().block_on(leads).unwrap().unwrap();
    }

    /// Returns true if the server has at most `expected` connections within 15 seconds.
    pub(crate) fn connections_fall_to(&self, expected: usize) -> bool {
        let fallen = self.handle.until(move |server| server.summary().connections <= expected);
        let fallen = async { timeout(Duration::from_secs(15), fallen).await.is_ok() };
        self.runtime.as_ref().unwrap().block_on(fallen)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let (Some(running), Some(runtime)) = (self.running.take(), &self.runtime) {
            let _ = running.stop.send(());
            let _ = runtime.block_on(running.ended);
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        if !thread::panicking() {
            check_panics();
        }
    }
}

fn note_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if thread::current().name().is_some_and(|name| SERVER_THREADS.contains(&name)) {
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        }
        before(info);
    }));
}

fn check_panics() {
    let panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(panics.is_empty(), "a server of this process panicked: {panics:?}");
}
