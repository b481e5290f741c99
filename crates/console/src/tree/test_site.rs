//! A server in a test, and its console, whose parts the test calls.

use crate::{inner_client, rights::Caller, state::Console, tree::runs::Run};
use axum::{Router, extract::FromRequestParts, http::Request};
use ostler_client::Client;
use ostler_server::{
    Overrides, RunningServer,
    admin::{AdminConn, AdminHandle},
    config,
};
use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
};
use tempfile::TempDir;

pub(super) struct TestSite {
    pub(super) console: Arc<Console>,
    _dir: TempDir,
}

impl TestSite {
    /// Starts a server. It ends with the test's runtime.
    pub(super) async fn start() -> TestSite {
        let dir = tempfile::tempdir().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let file = dir.path().join("zoo.cfg");
        let text = format!(
            "tickTime=500\ndataDir={}\nclientPort=1\nadmin.serverPort=1\nadmin.readOnly=false\nforceSync=no\n",
            dir.path().join("data").display()
        );
        std::fs::write(&file, text).unwrap();
        let mut config = config::load(&file).unwrap().config;
        config.clients.client_address = Some(any);
        config.admin.as_mut().unwrap().address = any;
        let (sender, made) = mpsc::channel();
        let routes = move |handle: AdminHandle| {
            sender.send(Console::new(handle).unwrap()).unwrap();
            Router::new()
        };
        let overrides = Overrides { admin_routes: Some(Box::new(routes)), ..Overrides::of(&config) };
        let server = RunningServer::start_with(&config, overrides).await.unwrap();
        tokio::spawn(async move { server.run_until(std::future::pending()).await });
        TestSite { console: Arc::new(made.recv().unwrap()), _dir: dir }
    }

    /// Somebody who has not signed in.
    pub(super) async fn caller(&self) -> Caller {
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let conn = AdminConn { peer, has_tls: false, certificate: None, names: Arc::default() };
        let (mut parts, ()) = Request::builder().extension(conn).body(()).unwrap().into_parts();
        Caller::from_request_parts(&mut parts, &self.console).await.unwrap()
    }

    /// The client with which the console makes this caller's changes.
    pub(super) async fn client(&self, caller: &Caller) -> Client {
        inner_client::client(&self.console, caller).await.unwrap()
    }

    /// A run that has begun.
    pub(super) fn run(&self, of: usize) -> Arc<Run> {
        let mut begun = None;
        let begin = |run: Arc<Run>| {
            begun = Some(run);
            std::future::pending()
        };
        self.console.tree.runs.begin(Vec::new(), of, begin).unwrap();
        begun.unwrap()
    }
}
