//! A server in this process with the console at its admin port.

use crate::free_ports::free;
use ostler_client::{Client, RetryPolicy};
use ostler_server::{Overrides, RunningServer, ServerHandle, config};
use ostler_server_core::quorum::MemberMode;
use serde_json::Value;
use std::{
    fmt::Write,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
};
use ureq::Agent;

/// A busy machine needs long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Site {
    pub(crate) clients: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) handle: ServerHandle,
    pub(crate) home: PathBuf,
    agent: Agent,
    _dir: Option<TempDir>,
    running: Option<(Runtime, oneshot::Sender<()>, JoinHandle<()>)>,
}

/// An answer: the status, and the JSON.
pub(crate) type Answer = (u16, Value);

/// A super user for the login `super:secret`, and a console that changes things.
pub(crate) fn open() -> String {
    format!(
        "admin.readOnly=false\nDigestAuthenticationProvider.superDigest={}\n",
        ostler_server_core::auth::digest_id("super:secret")
    )
}

impl Site {
    /// A server whose console changes things.
    pub(crate) fn start() -> Site {
        Site::start_with("")
    }

    /// The same with more lines in its zoo.cfg.
    pub(crate) fn start_with(lines: &str) -> Site {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_owned();
        let text = format!("{}clientPort=1\n{lines}\n", open());
        Site::run(home, &text, Some(dir), |config| {
            config.clients.client_address = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        })
    }

    fn run(
        home: PathBuf,
        text: &str,
        dir: Option<TempDir>,
        adjust: impl FnOnce(&mut config::ServerConfig),
    ) -> Site {
        let zoo_cfg = home.join("zoo.cfg");
        let common = format!(
            "tickTime=200\nmaxSessionTimeout=3600000\ndataDir={}\nadmin.serverPort=1\nforceSync=no\npreAllocSize=64\n",
            home.join("data").display()
        );
        fs::write(&zoo_cfg, common + text).unwrap();
        let mut config = config::load(&zoo_cfg).unwrap().config;
        config.clients.max_client_cnxns = None;
        config.admin.as_mut().unwrap().address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        adjust(&mut config);
        // A runtime may not block on another one's thread.
        let started = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let overrides =
                Overrides { admin_routes: Some(Box::new(ostler_console::routes)), ..Overrides::of(&config) };
            let server = runtime.block_on(RunningServer::start_with(&config, overrides)).unwrap();
            let (clients, admin, handle) = (server.address, server.admin.unwrap(), server.handle());
            let (stop, stopped) = oneshot::channel();
            let ended = runtime.spawn(async move {
                server.run_until(async move { drop(stopped.await) }).await.unwrap();
            });
            (clients, admin, handle, (runtime, stop, ended))
        });
        let (clients, admin, handle, running) = started.join().unwrap();
        let agent = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build()
            .new_agent();
        Site { clients, admin, handle, home, agent, _dir: dir, running: Some(running) }
    }

    /// A client with this login; an empty one for none.
    pub(crate) async fn client(&self, login: &str) -> Client {
        self.client_for(login, Duration::from_secs(30)).await
    }

    pub(crate) async fn client_for(&self, login: &str, timeout: Duration) -> Client {
        let mut builder =
            Client::builder(&self.clients.to_string()).session_timeout(timeout).retry(RetryPolicy::default());
        if !login.is_empty() {
            builder = builder.auth("digest", login);
        }
        builder.connect().await.unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1/{path}", self.admin)
    }

    /// The JSON of a page.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, page) = self.get_as("", path);
        assert_eq!(status, 200, "{path}: {page:#}");
        page
    }

    pub(crate) fn get_as(&self, login: &str, path: &str) -> Answer {
        let mut request = self.agent.get(self.url(path));
        if !login.is_empty() {
            request = request.header("Authorization", format!("digest {login}"));
        }
        read(request.call().unwrap())
    }

    /// Sends a change as a program does that has this login; without one as a page does.
    pub(crate) fn post_as(&self, login: &str, path: &str, body: &str) -> Answer {
        let header = match login {
            "" => ("X-Ostler-Token", self.get("me")["token"].as_str().unwrap_or_default().to_owned()),
            login => ("Authorization", format!("digest {login}")),
        };
        self.post_with(&[header, ("Content-Type", "application/json".into())], path, body)
    }

    pub(crate) fn post_with(&self, headers: &[(&str, String)], path: &str, body: &str) -> Answer {
        let request = self.agent.post(self.url(path));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        read(request.send(body.as_bytes()).unwrap())
    }

    /// Asks until the page is as wanted.
    #[track_caller]
    pub(crate) fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let page = self.get(path);
            if wanted(&page) {
                return page;
            }
            assert!(began.elapsed() < PATIENCE, "{path}: {page:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All items of a list, page by page.
    #[track_caller]
    pub(crate) fn all(&self, path: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}{cursor}"));
            all.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={}", encoded(next)),
                None => return all,
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some((runtime, stop, ended)) = self.running.take() {
            std::thread::spawn(move || {
                let _ = stop.send(());
                let _ = runtime.block_on(ended);
            })
            .join()
            .unwrap();
        }
    }
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(64 << 20).read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}")))
}

/// A text for the address of a request.
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

/// The names of an object's members, in order.
pub(crate) fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// An ensemble of three servers, which know where each other's consoles are.
pub(crate) fn ensemble(lines: &str) -> (TempDir, Vec<Site>) {
    let dir = tempfile::tempdir().unwrap();
    let ports: Vec<[u16; 4]> = (0..3).map(|_| free()).collect();
    let (mut members, mut peers) = (String::new(), Vec::new());
    for (id, [clients, quorum, election, admin]) in (1..).zip(&ports) {
        let addresses = format!("127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{clients}");
        writeln!(members, "server.{id}={addresses}").unwrap();
        peers.push(format!("{id}=127.0.0.1:{admin}"));
    }
    let start = |(id, ports): (i64, &[u16; 4])| {
        let home = dir.path().join(format!("server-{id}"));
        write_id(&home.join("data"), id);
        let text = format!(
            "{}initLimit=50\nsyncLimit=20\nstandaloneEnabled=false\n{members}admin.peers={}\n{lines}\n",
            open(),
            peers.join(";")
        );
        let admin = ports[3];
        Site::run(home, &text, None, move |config| config.admin.as_mut().unwrap().address.set_port(admin))
    };
    let sites: Vec<Site> = (1..).zip(&ports).map(start).collect();
    let began = Instant::now();
    let serves = |site: &Site| {
        let mode = site.handle.inspect(ostler_server_core::Server::mode);
        matches!(mode, Some(MemberMode::Leader | MemberMode::Follower))
    };
    while !sites.iter().all(serves) {
        assert!(began.elapsed() < PATIENCE, "there is no leader");
        std::thread::sleep(Duration::from_millis(50));
    }
    (dir, sites)
}

fn write_id(data: &Path, id: i64) {
    fs::create_dir_all(data).unwrap();
    fs::write(data.join("myid"), format!("{id}\n")).unwrap();
}
