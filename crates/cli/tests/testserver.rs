//! Tests of `ostler testserver`: its calls, its bounds and errors, and that nothing is left of it.
#![allow(clippy::unwrap_used)]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// A running `ostler testserver` with its own temporary folder.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    address: SocketAddr,
    /// The path of the calls.
    path: String,
    temporary: TempDir,
}

fn command(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.arg("testserver").env("TMPDIR", temporary);
    command
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        Running::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    fn start_in(temporary: TempDir, arguments: &[&str]) -> Running {
        let mut child = command(temporary.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["pid"], child.id());
        let control = line["control"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (address, path) = control.split_once('/').unwrap();
        let stdin = child.stdin.take();
        Running { child, stdin, address: address.parse().unwrap(), path: format!("/{path}"), temporary }
    }

    /// One call. Returns the status and the answer.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        http(self.address, method, &format!("{}{path}", self.path), body)
    }

    fn done(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, answer) = self.call(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    fn refused(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (status, answer) = self.call(method, path, body);
        (status, answer["error"].as_str().unwrap_or_else(|| panic!("{method} {path}: {answer}")).to_owned())
    }

    /// Waits for the end. Returns the exit code.
    fn until_ended(&mut self) -> Option<i32> {
        let last = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < last, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The number of files and folders in its folder.
    fn files(&self) -> usize {
        let folders = fs::read_dir(self.temporary.path()).unwrap();
        folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count()).sum()
    }

    fn left(&self) -> usize {
        fs::read_dir(self.temporary.path()).unwrap().count()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}"
    );
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn address_of(server: &Value) -> SocketAddr {
    server["address"].as_str().unwrap().parse().unwrap()
}

/// The mode by the four-letter word `srvr`, through the network of clients.
fn mode(server: &Value) -> Option<String> {
    let mut stream = TcpStream::connect(address_of(server)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"srvr").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
}

fn states(ensemble: &Value) -> Vec<&str> {
    let servers = ensemble["servers"].as_array().unwrap();
    servers.iter().map(|server| server["state"].as_str().unwrap()).collect()
}

#[test]
fn a_standalone_server_is_killed_started_again_and_deleted() {
    let running = Running::start(&[]);
    let started = running.done("POST", "/ensembles", "");
    let server = &started["servers"][0];
    assert_eq!(started["connect"], server["address"]);
    assert_eq!(started["leader"], 1);
    assert_eq!(mode(server).unwrap(), "standalone");
    assert!(Path::new(server["data_dir"].as_str().unwrap()).starts_with(running.temporary.path()));

    assert_eq!(states(&running.done("POST", "/ensembles/1/servers/leader/kill", "")), ["down"]);
    assert_eq!(mode(server), None);
    assert_eq!(states(&running.done("POST", "/ensembles/1/servers/1/restart", "")), ["standalone"]);
    assert_eq!(mode(server).unwrap(), "standalone");
    assert_eq!(states(&running.done("POST", "/ensembles/1/servers/1/pause", "")), ["paused"]);
    assert_eq!(states(&running.done("POST", "/ensembles/1/servers/1/resume", "")), ["standalone"]);
    assert_eq!(states(&running.done("POST", "/ensembles/1/servers/1/stop", "")), ["down"]);

    assert_eq!(running.done("DELETE", "/ensembles/1", "")["deleted"][0], 1);
    // Its port may be another test's by now, its folder may not.
    assert!(!Path::new(server["data_dir"].as_str().unwrap()).exists());
    assert_eq!(running.refused("GET", "/ensembles/1", "").0, 404);
}

#[test]
fn an_ensemble_elects_the_next_leader() {
    let running = Running::start(&[]);
    let started = running.done("POST", "/ensembles", r#"{"servers": 3}"#);
    let leader = started["leader"].as_i64().unwrap();
    assert_eq!(mode(&started["servers"][leader as usize - 1]).unwrap(), "leader");
    running.done("POST", "/ensembles/1/servers/leader/kill", "");
    let next = running.done("GET", "/ensembles/1/leader", "");
    assert_ne!(next["leader"], leader);
    running.done("POST", &format!("/ensembles/1/servers/{leader}/restart"), "");
    let all = running.done("GET", "/ensembles/1/serving", "");
    assert!(states(&all).iter().all(|state| ["leader", "follower"].contains(state)), "{all}");
}

#[test]
fn a_leader_that_is_cut_off_is_replaced_and_comes_back() {
    let running = Running::start(&[]);
    let leader = running.done("POST", "/ensembles", r#"{"servers": 3}"#)["leader"].as_i64().unwrap();
    running.done("POST", "/ensembles/1/network/cut", r#"{"between": ["leader", "servers"]}"#);
    let next = running.done("GET", &format!("/ensembles/1/leader?other_than={leader}"), "");
    assert_ne!(next["leader"], leader);
    let (status, error) = running.refused("GET", "/ensembles/1/serving?within_ms=1500", "");
    assert_eq!(status, 504, "{error}");
    running.done("POST", "/ensembles/1/network/heal", "");
    running.done("GET", "/ensembles/1/serving", "");
}

#[test]
fn clients_are_cut_off_until_the_network_is_healed() {
    let running = Running::start(&[]);
    let started = running.done("POST", "/ensembles", r#"{"servers": 3}"#);
    let servers = started["servers"].as_array().unwrap();
    running.done("POST", "/ensembles/1/network/cut", r#"{"between": ["clients", 2]}"#);
    let heard: Vec<bool> = servers.iter().map(|server| mode(server).is_some()).collect();
    assert_eq!(heard, [true, false, true]);
    running.done("POST", "/ensembles/1/network/heal", r#"{"between": [2, "clients"]}"#);
    assert!(mode(&servers[1]).is_some());
    running.done("POST", "/ensembles/1/network/delay", r#"{"from": "clients", "to": "servers", "ms": 300}"#);
    let asked = Instant::now();
    assert!(mode(&servers[0]).is_some());
    assert!(asked.elapsed() >= Duration::from_millis(300), "{:?}", asked.elapsed());
}

#[test]
fn what_cannot_be_done_is_refused_with_the_way_out() {
    let running = Running::start(&["--ensembles-max", "2"]);
    running.done("POST", "/ensembles", r#"{"servers": 3}"#);
    running.done("POST", "/ensembles", "");
    running.done("POST", "/ensembles/2/servers/1/kill", "");
    for (method, path, body, status, reason) in [
        ("POST", "/ensembles", "", 409, "2 ensembles are there"),
        ("POST", "/ensembles/3/servers/1/kill", "", 404, "GET /ensembles lists"),
        ("POST", "/ensembles/one/servers/1/kill", "", 400, "the number from the answer"),
        ("POST", "/ensembles/1/servers/4/kill", "", 404, "ids 1 to 3"),
        ("POST", "/ensembles/1/servers/last/kill", "", 400, "or `leader`"),
        ("POST", "/ensembles/1/servers/1/burn", "", 404, "docs/testserver.md"),
        ("GET", "/ensembles/1/servers/1/kill", "", 404, "docs/testserver.md"),
        ("GET", "/all", "", 404, "docs/testserver.md"),
        ("POST", "/ensembles/2/servers/1/pause", "", 409, "restart it first"),
        ("POST", "/ensembles/2/servers/leader/kill", "", 409, "no leader"),
        ("GET", "/ensembles/2/leader?within_ms=1", "", 504, "servers down"),
        ("GET", "/ensembles/2/leader?within_ms=soon", "", 400, "a number"),
        ("GET", "/ensembles/2/leader?within_ms=300001", "", 400, "300000"),
        ("POST", "/ensembles/1/sessions/0x77/expire", "", 404, "no session 0x77"),
        ("POST", "/ensembles/1/sessions/0x77/disconnect", "", 404, "no session 0x77"),
        ("POST", "/ensembles/1/sessions/x/expire", "", 400, "as clients have it"),
        ("POST", "/ensembles/2/sessions/0x77/expire", "", 409, "restart it first"),
        ("POST", "/ensembles/1/network/cut", "", 400, "`between`"),
        ("POST", "/ensembles/1/network/cut", r#"{"from": 1, "to": 2}"#, 400, "`between`"),
        (
            "POST",
            "/ensembles/1/network/cut",
            r#"{"between": [1, 1]}"#,
            400,
            "no network between server 1 and server 1",
        ),
        ("POST", "/ensembles/1/network/cut", r#"{"between": [1, 7]}"#, 404, "ids 1 to 3"),
        ("POST", "/ensembles/2/network/cut", r#"{"between": [1, "servers"]}"#, 400, "no network"),
        ("POST", "/ensembles/1/network/cut", r#"{"betwixt": [1, 2]}"#, 400, "betwixt"),
        ("POST", "/ensembles/1/network/delay", r#"{"between": [1, 2]}"#, 400, "a delay takes"),
        ("POST", "/ensembles/1/network/burn", "", 404, "docs/testserver.md"),
    ] {
        let (found, error) = running.refused(method, path, body);
        assert_eq!(found, status, "{method} {path}: {error}");
        assert!(error.contains(reason), "{method} {path}: {error}");
    }
    running.done("DELETE", "/ensembles", "");
    running.done("POST", "/ensembles", "");
}

#[test]
fn a_start_that_fails_leaves_its_place_free() {
    let running = Running::start(&["--ensembles-max", "1"]);
    let (status, error) = running.refused("POST", "/ensembles", r#"{"settings": {"snapCount": "many"}}"#);
    assert_eq!(status, 400, "{error}");
    assert!(error.contains("snapCount"), "{error}");
    running.done("POST", "/ensembles", r#"{"settings": {"snapCount": 1000}}"#);
}

#[test]
fn only_the_whole_address_can_call() {
    let running = Running::start(&[]);
    for path in ["/ensembles", "/0123456789abcdef0123456789abcdef/ensembles", "/"] {
        let (status, answer) = http(running.address, "POST", path, "");
        assert_eq!(status, 404);
        assert!(answer["error"].as_str().unwrap().contains("whole address"), "{answer}");
    }
    assert_eq!(running.done("GET", "/ensembles", "")["ensembles"].as_array().unwrap().len(), 0);
}

#[test]
fn the_end_of_standard_input_ends_it_and_leaves_nothing() {
    let mut running = Running::start(&["--end-with-stdin"]);
    let server = running.done("POST", "/ensembles", r#"{"servers": 3}"#)["servers"][0].clone();
    assert_eq!(running.left(), 1);
    drop(running.stdin.take());
    assert_eq!(running.until_ended(), Some(0));
    assert_eq!(running.left(), 0);
    assert!(TcpStream::connect(address_of(&server)).is_err());
}

#[test]
fn an_ensemble_that_is_being_started_ends_too() {
    for _ in 0..5 {
        let mut running = Running::start(&["--end-with-stdin"]);
        let body = r#"{"servers": 3}"#;
        let mut call = TcpStream::connect(running.address).unwrap();
        write!(
            call,
            "POST {}/ensembles HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            running.path,
            body.len()
        )
        .unwrap();
        // The servers are being started when the first of their folders is there, beside the file of the lock.
        let last = Instant::now() + PATIENCE;
        while running.files() < 2 {
            assert!(Instant::now() < last, "no server is started");
            thread::yield_now();
        }
        drop(running.stdin.take());
        assert_eq!((running.until_ended(), running.left()), (Some(0), 0));
    }
}

#[test]
fn without_the_option_it_outlives_its_standard_input_until_a_signal() {
    let mut running = Running::start(&[]);
    running.done("POST", "/ensembles", "");
    drop(running.stdin.take());
    thread::sleep(Duration::from_millis(300));
    running.done("POST", "/ensembles", "");
    running.signal(Signal::TERM);
    assert_eq!(running.until_ended(), Some(0));
    assert_eq!(running.left(), 0);
}

#[test]
fn after_a_kill_the_next_one_removes_the_folders() {
    let mut killed = Running::start(&[]);
    killed.done("POST", "/ensembles", "");
    killed.signal(Signal::KILL);
    assert_eq!(killed.until_ended(), None);
    assert_eq!(killed.left(), 1);
    let temporary = std::mem::replace(&mut killed.temporary, tempfile::tempdir().unwrap());
    let next = Running::start_in(temporary, &[]);
    assert_eq!(next.left(), 1, "its own folder");
    next.done("POST", "/ensembles", "");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let temporary = tempfile::tempdir().unwrap();
    let output = command(temporary.path()).args(["--port", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("--port"), "{error}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}
