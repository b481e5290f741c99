//! One server.

use crate::{
    child_counter,
    counts::{Connection, Counts},
    error::TestkitError,
    frame_proxy::FrameProxy,
    history::{self, Change, Logged},
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

/// A real server on a free port of 127.0.0.1, its data in a temporary folder. Dropped, it is killed, and its folder
/// removed.
///
/// It has a thread of its own, so it goes on while the test blocks.
pub struct TestServer {
    // First, so that it ends before its folder and its port go.
    process: Option<Process>,
    files: Arc<dyn Disk>,
    port: ReservedPort,
    data_dir: PathBuf,
    dir: TempDir,
}

impl TestServer {
    /// Starts a server with the default options; it takes clients when this returns.
    pub async fn start() -> Result<TestServer, TestkitError> {
        TestServer::start_with(TestOptions::default()).await
    }

    /// Starts a server.
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

    /// A server that has its files and its port, and does not run yet.
    pub(crate) fn prepare(
        options: &TestOptions,
        port: ReservedPort,
        own: &[(String, String)],
    ) -> Result<TestServer, TestkitError> {
        let dir = tempfile::Builder::new().prefix("ostler-test-").tempdir().map_err(TestkitError::Folder)?;
        let data_dir = dir.path().join("data");
        let mut own = own.to_vec();
        own.push(("dataDir".into(), data_dir.display().to_string()));
        let server = TestServer { process: None, files: options.files(), port, data_dir, dir };
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
        let config = config::load(&self.zoo_cfg())?.config;
        // Seen in a debugger, and in logs that show threads.
        let name = match &config.ensemble {
            Some(ensemble) => format!("test-server-{}", ensemble.me.0),
            None => "test-server".into(),
        };
        let overrides = Overrides { files: self.files.clone(), peers };
        self.process = Some(Process::start(config, overrides, &name).await?);
        Ok(())
    }

    /// Where clients connect; the same after each restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The same as clients want it: `127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        self.address().to_string()
    }

    /// A proxy in front of it; see [`FrameProxy`].
    pub async fn proxy(&self) -> Result<FrameProxy, TestkitError> {
        FrameProxy::start(self.address()).await
    }

    /// The server's `dataDir`.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Whether it runs; one that is paused does.
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Starts the server again after [`kill`](TestServer::kill) or [`stop`](TestServer::stop), on the same port with
    /// the same data. One that runs is stopped in order first.
    pub async fn restart(&mut self) -> Result<(), TestkitError> {
        self.stop().await?;
        self.start_process(None).await
    }

    /// Ends the server as `kill -9` would: from the moment that this returns nothing more is written or answered, the
    /// port refuses connections, and the files are as they are. What was acknowledged is in them.
    pub async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Ends the server in order: what it has taken is written first. Nothing happens to one that is down.
    pub async fn stop(&mut self) -> Result<(), TestkitError> {
        match self.process.take() {
            Some(process) => process.stop().await,
            None => Ok(()),
        }
    }

    /// Has the server stand still, as SIGSTOP does: it reads nothing, answers nothing, and no timer fires. Its port
    /// and its connections stay open. Its clock goes on, so sessions may have expired when it continues.
    pub async fn pause(&mut self) -> Result<(), TestkitError> {
        self.process.as_mut().ok_or(TestkitError::Down)?.freeze().await;
        Ok(())
    }

    /// Has a paused server go on.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.go_on();
        }
    }

    /// Has the next sequential child of `parent` get this number, if the next one is not above that already. The server
    /// is stopped for it and started again: sessions live on.
    pub async fn number_children_from(&mut self, parent: &str, number: i32) -> Result<(), TestkitError> {
        let last = self.applied()?;
        self.stop().await?;
        let logs = DataFolders::at(&self.data_dir, None).logs;
        child_counter::append(&self.files, &logs, last, parent, number)?;
        self.start_process(None).await
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_frozen)
    }

    pub(crate) fn process(&self) -> Result<&Process, TestkitError> {
        self.process.as_ref().ok_or(TestkitError::Down)
    }

    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> Result<T, TestkitError> {
        Ok(self.process()?.handle.inspect(look))
    }

    /// What it holds and has done. Works while it is paused, too.
    pub fn counts(&self) -> Result<Counts, TestkitError> {
        self.inspect(Counts::of)
    }

    /// The znodes that have come and gone in the transactions that it has applied, in their order, after the one with
    /// this zxid: 0 for all. They are read from its log. Of an ensemble's members each can be a moment ahead of its log,
    /// or have been sent a snapshot: so ask [the ensemble](crate::TestEnsemble::history).
    pub fn history(&self, after: u64) -> Result<Vec<Change>, TestkitError> {
        let applied = self.applied()?;
        let logged = self.logged(Zxid(after), applied)?;
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
    pub fn connections(&self) -> Result<Vec<Connection>, TestkitError> {
        self.inspect(Connection::all)
    }

    /// The sessions that live, and that this server knows of.
    pub fn sessions(&self) -> Result<Vec<SessionId>, TestkitError> {
        self.inspect(process::sessions)
    }

    /// Waits until the counts are as `wanted` says, without polling: it is asked after everything that happens to the
    /// server, on the server's thread, so it must be quick and must not panic. It is about the server that runs now, and
    /// ends with that.
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

    /// Ends a session now, as if its time were over: a `closeSession` transaction removes its ephemerals, and its
    /// client is disconnected and finds out when it comes back. Returns once that is done. Of an ensemble's members only
    /// the leader can do this, or a local session's own server.
    pub async fn expire(&self, session: SessionId) -> Result<(), TestkitError> {
        self.process()?.expire(session).await
    }

    /// Cuts all clients' connections: none of the requests under way is answered, all sessions live on. Returns how
    /// many.
    pub fn cut_connections(&self) -> Result<usize, TestkitError> {
        Ok(self.process()?.cut(|_| true))
    }

    /// Cuts the connection of a session, if it has one. Returns how many that were.
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
