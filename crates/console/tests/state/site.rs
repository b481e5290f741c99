//! A server in this process with the console at its admin port.

use axum::{Router, extract::Request, middleware::map_request};
use ostler_client::{Client, Id};
use ostler_server::{
    Overrides, RunningServer,
    admin::{AdminConn, AdminHandle},
    config::{self, ServerConfig},
};
use serde_json::Value;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
};
use ureq::{Agent, Body, http::Response};

/// An operator whom `admin.operators` names, a super user, and somebody who may do nothing.
pub(crate) const OPERATOR: &str = "oli:pw";
pub(crate) const SUPER: &str = "super:test";
pub(crate) const NOBODY: &str = "ned:pw";
/// The line with the super user.
const SUPER_LINE: &str = "DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

/// The status of an answer, and its JSON.
pub(crate) type Answer = (u16, Value);

pub(crate) struct Site {
    clients: SocketAddr,
    /// The address at which the admin server listens, and the one by which it is asked.
    admin: SocketAddr,
    pub(crate) asked: SocketAddr,
    agent: Agent,
    dir: TempDir,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Site {
    /// A server that operators may act on.
    pub(crate) fn start() -> Site {
        Site::start_with("admin.readOnly=false\n")
    }

    /// A server with these lines in its zoo.cfg.
    pub(crate) fn start_with(lines: &str) -> Site {
        Site::start_with_flags(lines, &[])
    }

    /// The same at an address that other machines reach.
    pub(crate) fn start_exposed(lines: &str) -> Site {
        Site::start_at((Ipv4Addr::UNSPECIFIED, 0).into(), lines, &[])
    }

    pub(crate) fn start_with_flags(lines: &str, flags: &[(&str, &str)]) -> Site {
        Site::start_at((Ipv4Addr::LOCALHOST, 0).into(), lines, flags)
    }

    fn start_at(admin: SocketAddr, lines: &str, flags: &[(&str, &str)]) -> Site {
        let dir = tempfile::tempdir().unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let agent = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .build()
            .new_agent();
        let operator = ostler_server_core::auth::digest_id(OPERATOR);
        let text = format!(
            "dataDir={}\nclientPort=1\nadmin.serverPort=1\nforceSync=no\npreAllocSize=64\n{SUPER_LINE}\n\
             admin.operators=digest:{operator}\nadmin.rateLimiterIntervalInMS=0\n{lines}",
            dir.path().join("data").display()
        );
        std::fs::write(dir.path().join("zoo.cfg"), text).unwrap();
        let mut site = Site { clients: any, admin, asked: any, agent, dir, running: None };
        site.run(flags);
        site
    }

    /// Reads zoo.cfg, and starts the server at free ports.
    fn run(&mut self, flags: &[(&str, &str)]) {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = config::load_with_flags(&self.zoo_cfg(), flags).unwrap().config;
        config.clients.client_address = Some(any);
        config.admin.as_mut().unwrap().address = (self.admin.ip(), 0).into();
        // A runtime cannot be waited for in a thread of another one.
        let (clients, admin, running) = thread::spawn(move || run(&config)).join().unwrap();
        (self.clients, self.admin, self.running) = (clients, admin, Some(running));
        self.asked = (Ipv4Addr::LOCALHOST, admin.port()).into();
    }

    pub(crate) fn restart(&mut self) {
        self.end();
        self.run(&[]);
    }

    fn end(&mut self) {
        if let Some(Running { runtime, stop, ended }) = self.running.take() {
            let _ = stop.send(());
            thread::spawn(move || drop(runtime.block_on(ended))).join().unwrap();
        }
    }

    pub(crate) fn zoo_cfg(&self) -> PathBuf {
        self.dir.path().join("zoo.cfg")
    }

    /// The folder of snapshots and logs.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("data/version-2")
    }

    /// Waits until the audit log has this number of lines with a text, and returns them.
    pub(crate) fn audited(&self, text: &str, count: usize) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let file = self.dir.path().join("data/zookeeper_audit.log");
            let all = std::fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<String> =
                all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
            if lines.len() >= count {
                assert_eq!(lines.len(), count, "{all}");
                return lines;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{text}: {all}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::builder(&self.clients.to_string()).connect().await.unwrap()
    }

    /// Creates this number of znodes below a new parent.
    pub(crate) async fn write(&self, parent: &str, count: usize) {
        let client = self.client().await;
        client.create(parent, b"").await.unwrap();
        for number in 0..count {
            client.create(&format!("{parent}/{number}"), b"data").await.unwrap();
        }
        client.close().await;
    }

    /// Lets a number of snapshots be taken, each after twelve transactions.
    pub(crate) async fn take_snapshots(&self, count: usize) {
        for number in 0..count {
            self.write(&format!("/{number}"), 9).await;
            let (status, taken) = self.post_as(OPERATOR, "disk/snapshot", serde_json::json!({}));
            assert_eq!((status, &taken["done"]), (200, &Value::Bool(true)), "{taken}");
        }
    }

    /// A path of the admin server, without the console's prefix.
    pub(crate) fn text(&self, path: &str) -> String {
        let mut response = self.agent.get(format!("http://{}{path}", self.asked)).call().unwrap();
        response.body_mut().read_to_string().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_as("", path)
    }

    pub(crate) fn get_as(&self, login: &str, path: &str) -> Answer {
        read(self.raw(login, path))
    }

    /// The answer to a GET as it is.
    pub(crate) fn raw(&self, login: &str, path: &str) -> Response<Body> {
        let mut request = self.agent.get(format!("http://{}/api/v1/{path}", self.asked));
        if !login.is_empty() {
            request = request.header("Authorization", format!("digest {login}"));
        }
        request.call().unwrap()
    }

    /// The answer to a GET that names another host than the one that it goes to.
    pub(crate) fn get_by_name(&self, host: &str, path: &str) -> Answer {
        let request = self.agent.get(format!("http://{}/api/v1/{path}", self.asked));
        read(request.header("Host", format!("{host}:{}", self.asked.port())).call().unwrap())
    }

    /// Signs in by digest. Returns the answer, and the cookie.
    pub(crate) fn sign_in(&self, host: &str, login: &str) -> (Answer, String) {
        let (user, password) = login.split_once(':').unwrap();
        let body = serde_json::json!({ "scheme": "digest", "user": user, "password": password });
        self.sign_in_with(&[("Host", host)], &body)
    }

    pub(crate) fn sign_in_with(&self, headers: &[(&str, &str)], body: &Value) -> (Answer, String) {
        let request = self.agent.post(format!("http://{}/api/v1/sign-in", self.asked));
        let request = request.header("Content-Type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send(body.to_string().as_bytes()).unwrap();
        let cookie = response.headers().get("set-cookie").map(|cookie| cookie.to_str().unwrap().to_owned());
        (read(response), cookie.unwrap_or_default().split(';').next().unwrap_or_default().to_owned())
    }

    pub(crate) fn get_with_cookie(&self, cookie: &str, path: &str) -> Answer {
        self.get_with(&[("Cookie", cookie)], path)
    }

    pub(crate) fn get_with(&self, headers: &[(&str, &str)], path: &str) -> Answer {
        let request = self.agent.get(format!("http://{}/api/v1/{path}", self.asked));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        read(request.call().unwrap())
    }

    pub(crate) fn post_as(&self, login: &str, path: &str, body: Value) -> Answer {
        let header = match login {
            "" => ("X-Ostler-Token", self.get("me").1["token"].as_str().unwrap().to_owned()),
            login => ("Authorization", format!("digest {login}")),
        };
        let request = self.agent.post(format!("http://{}/api/v1/{path}", self.asked));
        let request = request.header(header.0, header.1).header("Content-Type", "application/json");
        read(request.send(body.to_string().as_bytes()).unwrap())
    }

    /// Asks until the answer is as it should be.
    pub(crate) fn until(&self, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.get(path);
            assert_eq!(status, 200, "{answer}");
            if is_right(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer:#}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The header with the name of a certificate, as if the connection had TLS and the client had shown it.
pub(crate) const CERTIFICATE: &str = "x-made-up-certificate";

/// The console's paths. A request with [`CERTIFICATE`] has that certificate.
fn routes(handle: AdminHandle) -> Router {
    ostler_console::routes(handle).layer(map_request(|mut request: Request| async move {
        let name = request.headers().get(CERTIFICATE).map(|name| name.to_str().unwrap().to_owned());
        if let Some(name) = name {
            let conn = request.extensions_mut().get_mut::<AdminConn>().unwrap();
            (conn.has_tls, conn.certificate) = (true, Some(Id::new("x509", name)));
        }
        request
    }))
}

fn run(config: &ServerConfig) -> (SocketAddr, SocketAddr, Running) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let overrides = Overrides { admin_routes: Some(Box::new(routes)), ..Overrides::of(config) };
    let server = runtime.block_on(RunningServer::start_with(config, overrides)).unwrap();
    let (clients, admin) = (server.address, server.admin.unwrap());
    let (stop, stopped) = oneshot::channel();
    let ended = runtime.spawn(async move {
        server.run_until(async move { drop(stopped.await) }).await.unwrap();
    });
    (clients, admin, Running { runtime, stop, ended })
}

impl Drop for Site {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(mut response: Response<Body>) -> Answer {
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}")))
}

/// The names of an object's members, in their order.
pub(crate) fn members(of: &Value) -> Vec<&str> {
    of.as_object().unwrap().keys().map(String::as_str).collect()
}
