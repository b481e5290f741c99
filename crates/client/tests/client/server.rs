// A server in this process, with a free port and its own folder. The examples in the documentation include this file.

use ostler_client::{Client, ClientBuilder};
use ostler_server::{RunningServer, config::ServerConfig};
use std::{net::SocketAddr, time::Duration};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
};

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    config: ServerConfig,
    _dir: TempDir,
    running: Option<(Runtime, oneshot::Sender<()>, JoinHandle<()>)>,
}

impl TestServer {
    pub(crate) fn start() -> TestServer {
        TestServer::start_with(|_| {})
    }

    pub(crate) fn start_with(adjust: impl FnOnce(&mut ServerConfig)) -> TestServer {
        let dir = tempfile::tempdir().unwrap();
        let mut config = ServerConfig::embedded(dir.path());
        config.clients.client_address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        config.log.pre_alloc_size_kb = 256;
        config.clients.max_client_cnxns = None;
        adjust(&mut config);
        let mut server =
            TestServer { address: SocketAddr::from(([127, 0, 0, 1], 0)), config, _dir: dir, running: None };
        server.restart();
        server.config.clients.client_address = Some(server.address);
        server
    }

    /// Starts it again after [`TestServer::stop`], on the same port and folder.
    pub(crate) fn restart(&mut self) {
        let config = self.config.clone();
        // The server has its own runtime, so that it neither blocks the test's runtime nor ends with it.
        let (runtime, address, stop, ended) = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let server = runtime.block_on(RunningServer::start(&config)).unwrap();
            let address = server.address;
            let (stop, stopped) = oneshot::channel();
            let ended = runtime.spawn(async move {
                let stopped = async move { drop(stopped.await) };
                server.run_until(stopped).await.unwrap();
            });
            (runtime, address, stop, ended)
        })
        .join()
        .unwrap();
        self.address = address;
        self.running = Some((runtime, stop, ended));
    }

    pub(crate) fn stop(&mut self) {
        let Some((runtime, stop, ended)) = self.running.take() else { return };
        std::thread::spawn(move || {
            let _ = stop.send(());
            runtime.block_on(ended).unwrap();
        })
        .join()
        .unwrap();
    }

    pub(crate) fn builder(&self, root: &str) -> ClientBuilder {
        Client::builder(&format!("{}{root}", self.address)).session_timeout(Duration::from_secs(6))
    }

    pub(crate) async fn client(&self) -> Client {
        self.builder("").connect().await.unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}
