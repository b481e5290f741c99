//! Tests of `ostler ensemble`: elections, a new leader, and the end of all processes.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../server/tests/shell/client.rs"]
mod client;
#[path = "shell/ended.rs"]
mod ended;

use client::{Client, op, path_watch};
use ended::ends_within;
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{self, OpenptFlags},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const SYNC: i32 = 9;
const NOT_STARTED: Option<i32> = Some(2);

/// A folder of this test, deleted at the end, and ports for three servers.
struct Place {
    folder: PathBuf,
    port: u16,
}

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Other tests may look for ports at the same time.
        let begin = std::process::id() as u16 % 22;
        let port = loop {
            let block = (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 22;
            let port = 20_000 + 400 * block;
            let all = (0..3).flat_map(|at| [port + at, port + 100 + at, port + 200 + at, port + 300 + at]);
            if all.into_iter().all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
                break port;
            }
        };
        let name = format!("ensemble-{}-{port}", std::process::id());
        Place { folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), port }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        command.arg("ensemble").arg("--folder").arg(&self.folder).stdin(Stdio::null());
        for variable in ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "JVMFLAGS", "RUST_LOG", "NO_COLOR"] {
            command.env_remove(variable);
        }
        command
    }

    fn server(&self, id: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port + id - 1).into()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The state of a server, as a printed line has it.
#[derive(Debug, Clone)]
struct Told {
    id: u16,
    state: String,
    pid: Option<i32>,
    epoch: Option<u64>,
    line: String,
}

impl Told {
    /// Reads `server 2: leader, pid 77, port 2182, epoch 1, zxid 0x100000000`
    fn of(line: &str) -> Option<Told> {
        let (id, rest) = line.strip_prefix("server ")?.split_once(": ")?;
        let mut parts = rest.split(", ");
        let state = parts.next()?.to_owned();
        let pid = parts.find_map(|part| part.strip_prefix("pid ")?.parse().ok());
        let epoch = parts.find_map(|part| part.strip_prefix("epoch ")?.parse().ok());
        Some(Told { id: id.parse().ok()?, state, pid, epoch, line: line.to_owned() })
    }
}

/// The command, without a terminal.
struct Ensemble {
    child: Child,
    lines: Receiver<String>,
    all_lines: Vec<String>,
    /// The last state of each server.
    told: [Option<Told>; 3],
    /// All processes that were ever printed.
    pids: Vec<i32>,
}

impl Ensemble {
    fn start(mut command: Command) -> Ensemble {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ensemble { child, lines: receiver, all_lines: Vec::new(), told: Default::default(), pids: Vec::new() }
    }

    /// Reads lines until the servers are in the wanted states.
    #[track_caller]
    fn until(&mut self, what: &str, wanted: impl Fn(&[Option<Told>]) -> bool) {
        let begun = Instant::now();
        while !wanted(&self.told) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("never saw {what}: {:#?}", self.all_lines);
            };
            if let Some(told) = Told::of(&line) {
                self.pids.extend(told.pid.filter(|pid| !self.pids.contains(pid)));
                let at = usize::from(told.id) - 1;
                self.told[at] = Some(told);
            }
            self.all_lines.push(line);
        }
    }

    /// Waits until this number of servers serves, one of them as leader.
    #[track_caller]
    fn leader(&mut self, serving: usize) -> Told {
        let leaders = |told: &[Option<Told>]| in_state(told, "leader").len();
        self.until("a leader with its followers", |told| {
            leaders(told) == 1 && in_state(told, "follower").len() == serving - 1
        });
        in_state(&self.told, "leader").remove(0)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    fn terminate(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(ended(&mut self.child).code(), Some(0));
        self.all_gone();
    }

    /// Asserts that every server that was printed ends soon.
    #[track_caller]
    fn all_gone(&self) {
        assert!(self.pids.len() >= 3, "{:#?}", self.all_lines);
        for pid in &self.pids {
            gone(*pid);
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn in_state(told: &[Option<Told>], state: &str) -> Vec<Told> {
    told.iter().flatten().filter(|told| told.state == state).cloned().collect()
}

#[track_caller]
fn ended(child: &mut Child) -> ExitStatus {
    assert!(ends_within(PATIENCE, Pid::from_child(child)), "it does not end");
    child.wait().unwrap()
}

#[track_caller]
fn gone(pid: i32) {
    assert!(ends_within(PATIENCE, Pid::from_raw(pid).unwrap()), "server {pid} does not end");
}

#[track_caller]
fn refused(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), NOT_STARTED, "{said}");
    assert_eq!(String::from_utf8(stdout).unwrap(), "");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// A page of the console, as soon as it is as wanted.
#[track_caller]
fn page_of(console: &str, page: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let begun = Instant::now();
    loop {
        let text = ureq::get(format!("{console}/api/v1/{page}")).call().unwrap().body_mut().read_to_string();
        let answer: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        if wanted(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{answer:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn read(server: SocketAddr, path: &str) -> Vec<u8> {
    let mut client = Client::open(server);
    client.ask(SYNC, &path_of(path));
    let reply = client.ask(op::GET_DATA, &path_watch(path, false));
    assert_eq!(reply.error, 0, "getData {path}");
    let length = u32::from_be_bytes(*reply.body.first_chunk().unwrap()) as usize;
    reply.body[4..4 + length].to_vec()
}

/// The body of a sync.
fn path_of(path: &str) -> Vec<u8> {
    let mut body = (path.len() as u32).to_be_bytes().to_vec();
    body.extend(path.as_bytes());
    body
}

#[test]
fn another_server_leads_when_the_leader_is_killed() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["3", "--port", &place.port.to_string()]);
    let mut ensemble = Ensemble::start(command);
    let first = ensemble.leader(3);
    let greeting = ensemble.all_lines[..4].to_vec();
    let connect: Vec<String> = (1..=3).map(|id| place.server(id).to_string()).collect();
    assert_eq!(greeting[1], format!("connect with zkCli.sh -server {}", connect.join(",")));
    let console = greeting[2].strip_prefix("console at ").unwrap().strip_suffix("/console/").unwrap();
    let serving = |page: &serde_json::Value| page["quorum"]["present"] == 3;
    let page = page_of(console, "ensemble", serving);
    let verdict = &page["verdict"];
    // A machine may have findings of its own, such as little space on its disk.
    assert!(verdict["sentence"].as_str().unwrap().starts_with("Serving. 3 of 3 voters"), "{verdict:#}");
    // A voter that starts late makes the others elect once more, which is no new line if it is over at once.
    let epoch = page["leader"]["epoch"].as_u64().unwrap();
    let printed = first.epoch.unwrap();
    assert!((1..=epoch).contains(&printed), "{epoch}: {}", first.line);
    assert!(first.line.contains(&format!(", zxid 0x{printed:x}0000")), "{}", first.line);

    let follower = in_state(&ensemble.told, "follower").remove(0);
    Client::open(place.server(follower.id)).create("/tried", b"out");
    assert_eq!(read(place.server(first.id), "/tried"), b"out");

    kill_process(Pid::from_raw(first.pid.unwrap()).unwrap(), Signal::KILL).unwrap();
    ensemble.until("the end of the leader", |told| !in_state(told, "down").is_empty());
    let second = ensemble.leader(2);
    assert_ne!(second.id, first.id);
    let down = in_state(&ensemble.told, "down").remove(0);
    assert_eq!(down.line, format!("server {}: down, ended by kill -9", first.id));
    assert_eq!(second.epoch, Some(epoch + 1), "{}", second.line);
    assert_eq!(read(place.server(second.id), "/tried"), b"out");
    // The console of the first server: if that one was killed, its address is free.
    if first.id != 1 {
        let page = page_of(console, "elections", |page| page["elections"][0]["epoch"] == epoch + 1);
        assert_eq!(page["elections"][0]["winner"], second.id, "{page:#}");
        let summary = page["elections"][0]["summary"][0].as_str().unwrap();
        assert!(
            summary.contains(&format!(
                "from the loss of server {} to the start of epoch {}",
                first.id,
                epoch + 1
            )),
            "{summary}"
        );
    }
    ensemble.terminate();
}

#[test]
fn data_is_kept_until_the_next_start() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["--port", &place.port.to_string()]);
    let mut ensemble = Ensemble::start(command);
    let leader = ensemble.leader(3);
    Client::open(place.server(leader.id)).create("/kept", b"data");
    ensemble.terminate();

    // The number of servers and their ports are those of the folder.
    let mut ensemble = Ensemble::start(place.command());
    let leader = ensemble.leader(3);
    assert_eq!(read(place.server(leader.id), "/kept"), b"data");
    ensemble.terminate();

    let mut other = place.command();
    other.arg("5");
    assert!(refused(other).contains("an ensemble of 3, not of 5"));
}

#[test]
fn servers_end_when_the_command_is_killed() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["--port", &place.port.to_string()]);
    let mut ensemble = Ensemble::start(command);
    let leader = ensemble.leader(3);
    // Also the paused server, which handles no other signal.
    kill_process(Pid::from_raw(leader.pid.unwrap()).unwrap(), Signal::STOP).unwrap();
    ensemble.until("the pause of the leader", |told| !in_state(told, "paused").is_empty());
    ensemble.signal(Signal::KILL);
    assert_eq!(ended(&mut ensemble.child).code(), None);
    ensemble.all_gone();
}

#[test]
fn a_paused_server_ends_with_the_others() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["--port", &place.port.to_string()]);
    let mut ensemble = Ensemble::start(command);
    let follower = {
        ensemble.leader(3);
        in_state(&ensemble.told, "follower").remove(0)
    };
    kill_process(Pid::from_raw(follower.pid.unwrap()).unwrap(), Signal::STOP).unwrap();
    ensemble.until("the pause", |told| !in_state(told, "paused").is_empty());
    ensemble.terminate();
}

#[test]
fn a_port_in_use_is_refused_in_one_sentence() {
    let place = Place::new();
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, place.port + 101)).unwrap();
    let mut command = place.command();
    command.args(["--port", &place.port.to_string()]);
    let said = refused(command);
    let address = holder.local_addr().unwrap();
    let expected =
        format!("{address}, for followers of server 2, is in use by process {}", std::process::id());
    assert!(said.contains(&expected), "{said}");
    assert!(!place.folder.exists(), "nothing is written");
}

#[test]
fn the_command_fails_when_all_servers_have_ended() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["1", "--port", &place.port.to_string()]);
    let mut ensemble = Ensemble::start(command);
    let leader = ensemble.leader(1);
    kill_process(Pid::from_raw(leader.pid.unwrap()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(ended(&mut ensemble.child).code(), Some(1));
}

/// The command at a terminal of 80 columns, and all that it has written there.
struct Live {
    child: Child,
    terminal: File,
    bytes: Receiver<Vec<u8>>,
    seen: String,
}

impl Live {
    fn start(mut command: Command) -> Live {
        let terminal = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&terminal).unwrap();
        pty::unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = pty::ptsname(&terminal, Vec::new()).unwrap();
        let other_end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || OwnedFd::from(other_end.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").spawn().unwrap();
        let terminal = File::from(terminal);
        let mut reader = terminal.try_clone().unwrap();
        let (sender, bytes) = mpsc::channel();
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut some) {
                let _ = sender.send(some[..count].to_vec());
            }
        });
        Live { child, terminal, bytes, seen: String::new() }
    }

    /// Waits until this text is painted. Returns and forgets everything up to it.
    #[track_caller]
    fn until(&mut self, painted: &str) -> String {
        let begun = Instant::now();
        loop {
            if let Some((before, rest)) = self.seen.split_once(painted) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.seen = rest;
                return before;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(_) => {
                    let last: String = self.seen.chars().rev().take(2000).collect();
                    panic!(
                        "never painted {painted:?}; the last was {:?}",
                        last.chars().rev().collect::<String>()
                    )
                }
            }
        }
    }

    /// Waits until a server leads. Returns its id, which is its key.
    #[track_caller]
    fn leader(&mut self) -> String {
        let before = self.until(" leads, epoch ");
        before.rsplit(' ').next().unwrap().to_owned()
    }

    /// Waits until a server follows.
    #[track_caller]
    fn follows(&mut self, id: &str) {
        loop {
            let before = self.until("  follower");
            // The row begins behind the last code for the terminal.
            let row = before.rsplit(['m', 'H']).next().unwrap_or_default();
            if row.split_whitespace().next() == Some(id) {
                return;
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_kill_start_and_pause_servers() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["--port", &place.port.to_string()]);
    let mut live = Live::start(command);
    live.until("connect with zkCli.sh");
    let first = live.leader();
    // A server that has not joined yet does not vote.
    for other in ["1", "2", "3"].into_iter().filter(|id| *id != first) {
        live.follows(other);
    }
    live.press("k");
    live.until("kill -9");
    live.until("down");
    let second = live.leader();
    assert_ne!(second, first);
    live.press(&second);
    live.until("no quorum: 1 of 3 run, 2 are needed");
    live.press(&first);
    live.until("started, pid ");
    live.leader();
    live.press(&format!("p{first}"));
    live.until("paused");
    live.press(&format!("p{first}"));
    live.until("goes on");
    // Ctrl-C is a key here.
    live.press("\x03");
    assert_eq!(ended(&mut live.child).code(), Some(0));
    live.until("ending all servers");
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&*place.folder.to_string_lossy())
    });
    assert_eq!(left.count(), 0, "no server is left");
}
