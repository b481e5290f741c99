//! One test server.

use crate::{
    child_counter,
    client_proxy::ClientProxy,
    counts::{Connection, Counts},
    error::TestkitError,
    frame_proxy::FrameProxy,
    history::{self, Change, Logged},
    mode::Mode,
    options::TestOptions,
    port::ReservedPort,
    process::{self, Process},
};
use ostler_proto::id::{SessionId, Zxid};
use ostler_server::{Overrides, PeerListeners, config};
use ostler_server_core::Server;
use ostler_storage::{disk::Disk, folders::DataFolders};
use std::{
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// A real server on a free port of 127.0.0.1, with its data in a temporary folder. Curator's `TestingServer`. When it is
/// dropped, the server is killed and its folder removed.
///
/// The server has its own thread, so it goes on while the test blocks.
#[must_use = "a server that is dropped is killed"]
pub struct TestServer {
    // Dropped first, so that the server ends before its folder and its port are released.
    process: Option<Process>,
    client_proxy: Option<ClientProxy>,
    files: Arc<dyn Disk>,
    port: ReservedPort,
    data_dir: PathBuf,
    dir: TempDir,
}

impl TestServer {
    /// Starts a server with the default options. It accepts clients when this returns.
    ///
    /// # Errors
    /// Those of [`start_with`](TestServer::start_with).
    pub async fn start() -> Result<TestServer, TestkitError> {
        TestServer::start_with(TestOptions::default()).await
    }

    /// Starts a server with these options. It accepts clients when this returns.
    ///
    /// # Errors
    /// [`TestkitError::Config`] for a setting that is not valid; [`TestkitError::Folder`], [`TestkitError::Port`],
    /// [`TestkitError::Thread`] and the like if this machine lacks something; [`TestkitError::Server`] if the server does not
    /// start.
    pub async fn start_with(options: TestOptions) -> Result<TestServer, TestkitError> {
        let port = ReservedPort::any()?;
        let own = [
            ("clientPort".into(), port.address().port().to_string()),
            ("clientPortAddress".into(), port.address().ip().to_string()),
        ];
        let mut server = TestServer::prepare(&options, port, &own)?;
        server.start_process(None).await?;
        Ok(server)
    }

    /// A server with its files and its port that does not run yet.
    pub(crate) fn prepare(
        options: &TestOptions,
        port: ReservedPort,
        own: &[(String, String)],
    ) -> Result<TestServer, TestkitError> {
        let mut named = tempfile::Builder::new();
        named.prefix("ostler-test-");
        let dir = match &options.folder {
            Some(folder) => named.tempdir_in(folder),
            None => named.tempdir(),
        };
        let dir = dir.map_err(TestkitError::Folder)?;
        let client_proxy = options.client_proxies.then(|| ClientProxy::start(&port)).transpose()?;
        let data_dir = dir.path().join("data");
        let mut own = own.to_vec();
        own.push(("dataDir".into(), data_dir.display().to_string()));
        let server = TestServer { process: None, client_proxy, files: options.files(), port, data_dir, dir };
        server.write(&server.zoo_cfg(), &options.zoo_cfg(&own))?;
        Ok(server)
    }

    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), TestkitError> {
        let written = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text));
        written.map_err(|source| TestkitError::File { path: path.into(), source })
    }

    fn zoo_cfg(&self) -> PathBuf {
        self.dir.path().join("zoo.cfg")
    }

    pub(crate) async fn start_process(&mut self, peers: Option<PeerListeners>) -> Result<(), TestkitError> {
        let mut config = config::load(&self.zoo_cfg())?.config;
        if let Some(proxy) = &self.client_proxy {
            config.clients.client_address = Some(proxy.server_address());
        }
        // The thread's name, for debuggers and logs.
        let name = match &config.ensemble {
            Some(ensemble) => format!("test-server-{}", ensemble.me.0),
            None => "test-server".into(),
        };
        let overrides = Overrides { files: self.files.clone(), peers, ..Overrides::default() };
        self.process = Some(Process::start(config, overrides, &name).await?);
        Ok(())
    }

    /// The address for clients. It is the same after each restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The connect string for clients: `127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        self.address().to_string()
    }

    /// Starts a proxy in front of the server; see [`FrameProxy`].
    ///
    /// # Errors
    /// [`TestkitError::Port`] and [`TestkitError::Thread`] if this machine lacks something.
    pub async fn start_proxy(&self) -> Result<FrameProxy, TestkitError> {
        FrameProxy::start(self.address()).await
    }

    /// The proxy between clients and the server, with [`TestOptions::client_proxies`].
    pub fn client_proxy(&self) -> Option<&FrameProxy> {
        self.client_proxy.as_ref().map(ClientProxy::proxy)
    }

    /// The address at which the server itself listens, behind the [proxy](TestServer::client_proxy) if there is one.
    pub fn direct_address(&self) -> SocketAddr {
        self.client_proxy.as_ref().map_or_else(|| self.address(), ClientProxy::server_address)
    }

    /// The part of the server in its ensemble. Also works while it is paused.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn mode(&self) -> Result<Mode, TestkitError> {
        self.inspect(|server| Mode::of(server.mode()))
    }

    /// The server's `dataDir`.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Whether the server runs. A paused server counts as running.
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Starts the server again after [`kill`](TestServer::kill) or [`stop`](TestServer::stop), on the same port and with
    /// the same data. A running server is stopped in order first.
    ///
    /// # Errors
    /// Those of [`stop`](TestServer::stop) and [`start_with`](TestServer::start_with).
    pub async fn restart(&mut self) -> Result<(), TestkitError> {
        self.stop().await?;
        self.start_process(None).await
    }

    /// Ends the server as `kill -9` does. When this returns, the server writes and answers nothing more, and the port
    /// refuses connections. All acknowledged writes are in the files.
    pub async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Stops the server in order, as SIGTERM does: accepted requests are written first. Does nothing if the server is down.
    ///
    /// # Errors
    /// [`TestkitError::Server`] if the server has stopped by itself; [`TestkitError::Panicked`].
    pub async fn stop(&mut self) -> Result<(), TestkitError> {
        match self.process.take() {
            Some(process) => process.stop().await,
            None => Ok(()),
        }
    }

    /// Freezes the server, as SIGSTOP does: it reads nothing, answers nothing, and no timer fires. Its port and its
    /// connections stay open. Its clock goes on, so sessions may have expired when it continues.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub async fn pause(&mut self) -> Result<(), TestkitError> {
        self.process.as_mut().ok_or(TestkitError::Down)?.freeze().await;
        Ok(())
    }

    /// Continues a paused server.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.go_on();
        }
    }

    /// Stops the server and starts it again, so that the next sequential child of `parent` has the number `next`, unless
    /// its counter is above that already. Sessions live on.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if the server does not run; [`TestkitError::Log`]; those of [`restart`](TestServer::restart).
    pub async fn restart_with_next_sequence(&mut self, parent: &str, next: i32) -> Result<(), TestkitError> {
        let last = self.applied()?;
        self.stop().await?;
        let logs = DataFolders::at(&self.data_dir, None).logs;
        child_counter::append(&self.files, &logs, last, parent, next)?;
        self.start_process(None).await
    }

    /// Whether the server is paused.
    pub fn is_paused(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_frozen)
    }

    pub(crate) fn process(&self) -> Result<&Process, TestkitError> {
        self.process.as_ref().ok_or(TestkitError::Down)
    }

    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> Result<T, TestkitError> {
        Ok(self.process()?.handle.inspect(look))
    }

    /// The counters of the server. Also works while it is paused.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn counts(&self) -> Result<Counts, TestkitError> {
        self.inspect(Counts::of)
    }

    /// The created and deleted znodes in the applied transactions after this zxid ([`Zxid::ZERO`] for all), in order. They are read from
    /// the server's log. A member of an ensemble can be ahead of its log for a moment, or may have received a snapshot, so
    /// use [`TestEnsemble::history`](crate::TestEnsemble::history) there.
    ///
    /// # Errors
    /// [`TestkitError::Down`]; [`TestkitError::NotLogged`] if the log does not have all transactions; [`TestkitError::Log`] and
    /// [`TestkitError::Record`] for a log that cannot be read.
    pub fn history(&self, after: Zxid) -> Result<Vec<Change>, TestkitError> {
        let applied = self.applied()?;
        let logged = self.logged(after, applied)?;
        let whole = logged.reaches && !logged.gaps;
        if whole { Ok(logged.changes) } else { Err(TestkitError::NotLogged(applied)) }
    }

    pub(crate) fn applied(&self) -> Result<Zxid, TestkitError> {
        self.inspect(|server| server.tree().last_processed())
    }

    pub(crate) fn logged(&self, after: Zxid, to: Zxid) -> Result<Logged, TestkitError> {
        history::read(&*self.files, &DataFolders::at(&self.data_dir, None).logs, after, to)
    }

    /// The clients' connections, oldest first.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn connections(&self) -> Result<Vec<Connection>, TestkitError> {
        self.inspect(Connection::all)
    }

    /// The live sessions that this server knows.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn sessions(&self) -> Result<Vec<SessionId>, TestkitError> {
        self.inspect(process::sessions)
    }

    /// Waits until `wanted` returns true for the counts. There is no polling: `wanted` is called on the server's thread after
    /// each step of the server, so it must be quick and must not panic.
    ///
    /// # Errors
    /// [`TestkitError::Down`] if the server does not run, or ends before.
    pub fn until(
        &self,
        mut wanted: impl FnMut(&Counts) -> bool + Send + 'static,
    ) -> impl Future<Output = Result<(), TestkitError>> + Send + 'static {
        let handle = self.process().map(|process| process.handle.clone());
        async move {
            let met = handle?.until(move |server| wanted(&Counts::of(server))).await;
            met.map_err(|_| TestkitError::Down)
        }
    }

    /// Expires a session now: a `closeSession` transaction removes its ephemerals, and its client is disconnected and
    /// learns of the expiry when it reconnects. Returns once this is done. In an ensemble only the leader can do this, or
    /// for a local session its own server.
    ///
    /// # Errors
    /// [`TestkitError::Down`]; [`TestkitError::NoSession`]; [`TestkitError::NotLeading`].
    pub async fn expire(&self, session: SessionId) -> Result<(), TestkitError> {
        self.process()?.expire(session).await
    }

    /// Closes all clients' connections. Requests under way are not answered, and all sessions live on. Returns the number of
    /// closed connections.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn cut_connections(&self) -> Result<usize, TestkitError> {
        Ok(self.process()?.cut(|_| true))
    }

    /// Closes the connection of a session, if it has one. Returns the number of closed connections.
    ///
    /// # Errors
    /// [`TestkitError::Down`].
    pub fn cut_session(&self, session: SessionId) -> Result<usize, TestkitError> {
        Ok(self.process()?.cut(|of| of == Some(session)))
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer")
            .field("address", &self.address())
            .field("data_dir", &self.data_dir)
            .field("is_up", &self.is_up())
            .finish()
    }
}
