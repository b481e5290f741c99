//! A server with the console in this process, and requests of its API.

use ostler_client::Client;
use ostler_server::{Overrides, RunningServer, config};
use serde_json::{Value, json};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::Instant,
};

/// The digest of `ann:pw`, who is the operator.
pub(crate) const ANN: &str = "digest:ann:RYbu6l5aZwqon8VWmkcGvezdzfc=";
/// Her header, and that of somebody else.
pub(crate) const AS_ANN: &str = "digest ann:pw";
pub(crate) const AS_BOB: &str = "digest bob:pw";

/// The time within which something must have happened.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    agent: ureq::Agent,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
    pub(crate) dir: TempDir,
}

/// A status, and a body.
pub(crate) type Answer = (u16, Value);

impl World {
    /// A server on which ann is the operator.
    pub(crate) async fn start() -> World {
        World::start_with(&["admin.readOnly=false"]).await
    }

    /// A server with more lines in its zoo.cfg.
    pub(crate) async fn start_with(lines: &[&str]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let own = [
            format!("dataDir={}", dir.path().join("data").display()),
            "clientPort=2181\ntickTime=500\nadmin.enableServer=true\nadmin.serverAddress=127.0.0.1".into(),
            format!("admin.serverPort=0\nadmin.operators={ANN}\n"),
        ];
        let file = dir.path().join("zoo.cfg");
        fs::write(&file, own.join("\n") + &lines.join("\n")).unwrap();
        let mut config = config::load(&file).unwrap().config;
        config.clients.client_address = Some((Ipv4Addr::LOCALHOST, 0).into());
        // The server goes on while a test blocks.
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, stopped) = oneshot::channel();
        let overrides =
            Overrides { admin_routes: Some(Box::new(ostler_console::routes)), ..Overrides::of(&config) };
        let starting = runtime.spawn(async move { RunningServer::start_with(&config, overrides).await });
        let server = starting.await.unwrap().unwrap();
        let (address, admin) = (server.address, server.admin.unwrap());
        runtime.spawn(server.run_until(async move {
            let _ = stopped.await;
        }));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        World { address, admin, agent, stop: Some(stop), runtime: Some(runtime), dir }
    }

    pub(crate) async fn client(&self) -> Client {
        let builder = Client::builder(&self.address.to_string()).session_timeout(Duration::from_secs(10));
        builder.connect().await.unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1{path}", self.admin)
    }

    /// A GET with this `Authorization`; none if it is empty.
    pub(crate) fn get_as(&self, who: &str, path: &str) -> Answer {
        let mut request = self.agent.get(self.url(path));
        if !who.is_empty() {
            request = request.header("Authorization", who);
        }
        read(request.call().unwrap())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_as("", path)
    }

    pub(crate) fn post_as(&self, who: &str, path: &str, body: &Value) -> Answer {
        let mut request = self.agent.post(self.url(path)).header("Content-Type", "application/json");
        if !who.is_empty() {
            request = request.header("Authorization", who);
        }
        read(request.send(body.to_string()).unwrap())
    }

    /// The answer of ann's request to hand over from the present holder.
    pub(crate) fn hand_over(&self, group: &str, way: &str) -> Answer {
        let holder = &self.group(group)["holder"];
        let body = json!({ "path": group, "holder": holder["path"], "token": holder["token"], "way": way });
        self.post_as(AS_ANN, "/recipes/hand-over", &body)
    }

    /// A group, which exists.
    pub(crate) fn group(&self, path: &str) -> Value {
        let (status, group) = self.get(&format!("/recipes/group?path={path}"));
        assert_eq!(status, 200, "{path}: {group}");
        group
    }

    /// The group, as soon as `wanted` returns true for it. The server shows for 2 s what it has gathered.
    pub(crate) async fn group_when(&self, path: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let (status, group) = self.get(&format!("/recipes/group?path={path}"));
            if status == 200 && wanted(&group) {
                return group;
            }
            assert!(Instant::now() < until, "{path} is {group}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let text = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), serde_json::from_str(&text).unwrap())
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
