//! A server in this process with the console at its admin port.

use base64::{Engine, engine::general_purpose::STANDARD};
use ostler_client::{Client, RetryPolicy};
use ostler_server::{Overrides, RunningServer, config};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
};
use ureq::{Agent, http::Response};

pub(crate) struct Site {
    pub(crate) clients: SocketAddr,
    pub(crate) admin: SocketAddr,
    agent: Agent,
    dir: TempDir,
    running: Option<(Runtime, oneshot::Sender<()>, JoinHandle<()>)>,
}

/// An answer: the status, and the JSON.
pub(crate) type Answer = (u16, Value);

impl Site {
    /// A server whose console changes znodes.
    pub(crate) fn start() -> Site {
        Site::start_with("admin.readOnly=false\n")
    }

    /// A server with these lines in its zoo.cfg.
    pub(crate) fn start_with(lines: &str) -> Site {
        let dir = tempfile::tempdir().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let agent = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .new_agent();
        let text = format!(
            "tickTime=500\ndataDir={}\nclientPort=1\nadmin.serverPort=1\nforceSync=no\npreAllocSize=64\n{lines}",
            dir.path().join("data").display()
        );
        std::fs::write(dir.path().join("zoo.cfg"), text).unwrap();
        let mut site = Site { clients: any, admin: any, agent, dir, running: None };
        site.run();
        site
    }

    fn run(&mut self) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = config::load(&self.dir.path().join("zoo.cfg")).unwrap().config;
        config.clients.client_address = Some(any);
        config.clients.max_client_cnxns = None;
        config.admin.as_mut().unwrap().address = any;
        let (runtime, clients, admin, stop, ended) = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let overrides =
                Overrides { admin_routes: Some(Box::new(ostler_console::routes)), ..Overrides::of(&config) };
            let server = runtime.block_on(RunningServer::start_with(&config, overrides)).unwrap();
            let (clients, admin) = (server.address, server.admin.unwrap());
            let (stop, stopped) = oneshot::channel();
            let ended = runtime.spawn(async move {
                server.run_until(async move { drop(stopped.await) }).await.unwrap();
            });
            (runtime, clients, admin, stop, ended)
        })
        .join()
        .unwrap();
        (self.clients, self.admin) = (clients, admin);
        self.running = Some((runtime, stop, ended));
    }

    fn end(&mut self) {
        if let Some((runtime, stop, ended)) = self.running.take() {
            std::thread::spawn(move || {
                let _ = stop.send(());
                let _ = runtime.block_on(ended);
            })
            .join()
            .unwrap();
        }
    }

    /// Ends the server and starts it again with the same data.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.run();
    }

    /// The logs, oldest first.
    pub(crate) fn logs(&self) -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(self.dir.path().join("data/version-2")).unwrap();
        let paths = files.map(|entry| entry.unwrap().path());
        let zxid = |path: &std::path::Path| {
            let name = path.file_name()?.to_str()?;
            u64::from_str_radix(name.strip_prefix("log.")?, 16).ok()
        };
        let mut logs: Vec<_> = paths.filter_map(|path| zxid(&path).map(|zxid| (zxid, path))).collect();
        logs.sort();
        logs.into_iter().map(|(_, path)| path).collect()
    }

    /// A client with this login; an empty one for none.
    pub(crate) async fn client(&self, login: &str) -> Client {
        let mut builder = Client::builder(&self.clients.to_string())
            .session_timeout(Duration::from_secs(10))
            .retry(RetryPolicy::default());
        if !login.is_empty() {
            builder = builder.auth("digest", login);
        }
        builder.connect().await.unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1/{path}", self.admin)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_as("", path)
    }

    pub(crate) fn get_as(&self, login: &str, path: &str) -> Answer {
        read(self.raw(login, path))
    }

    /// The answer to a GET as it is.
    pub(crate) fn raw(&self, login: &str, path: &str) -> Response<ureq::Body> {
        let mut request = self.agent.get(self.url(path));
        if !login.is_empty() {
            request = request.header("Authorization", format!("digest {login}"));
        }
        request.call().unwrap()
    }

    /// The token of pages of somebody who has not signed in.
    pub(crate) fn token(&self) -> String {
        self.get("me").1["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.post_as("", path, body)
    }

    pub(crate) fn post_as(&self, login: &str, path: &str, body: Value) -> Answer {
        let header = match login {
            "" => ("X-Ostler-Token", self.token()),
            login => ("Authorization", format!("digest {login}")),
        };
        self.post_with(&[header, ("Content-Type", "application/json".into())], path, body)
    }

    pub(crate) fn post_with(&self, headers: &[(&str, String)], path: &str, body: Value) -> Answer {
        let request = headers
            .iter()
            .fold(self.agent.post(self.url(path)), |request, (name, value)| request.header(*name, value));
        read(request.send(body.to_string().as_bytes()).unwrap())
    }

    /// The state of a run once it is over.
    pub(crate) fn until_over(&self, login: &str, run: &Value) -> Value {
        let (id, began) = (run["run"].as_str().unwrap_or_else(|| panic!("no run: {run}")), Instant::now());
        loop {
            let (status, state) = self.get_as(login, &format!("tree/runs?id={id}"));
            assert_eq!(status, 200, "{state}");
            if state["state"] != "running" {
                return state;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{state}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(mut response: Response<ureq::Body>) -> Answer {
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}")))
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A path or name for the address of a request.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// An ACL as JSON, of entries such as `digest:ann:pw:cdrwa`, where the password is hashed.
pub(crate) fn acl(entries: &[&str]) -> Value {
    entries
        .iter()
        .map(|entry| {
            let (rest, perms) = entry.rsplit_once(':').unwrap();
            let (scheme, id) = rest.split_once(':').unwrap();
            let id = if scheme == "digest" { digest_id(id) } else { id.to_owned() };
            json!({ "scheme": scheme, "id": id, "perms": perms })
        })
        .collect()
}

pub(crate) fn digest_id(login: &str) -> String {
    ostler_server_core::auth::digest_id(login)
}
