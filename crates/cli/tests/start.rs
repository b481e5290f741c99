//! Tests of `ostler server`: its messages, its end, and the data that is there afterwards.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../server/tests/shell/client.rs"]
mod client;
#[path = "shell/ended.rs"]
mod ended;

use client::{Client, create, op, request, set_data};
use ended::ends_within;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);
const NOT_STARTED: Option<i32> = Some(2);

/// A folder of this test, deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("start-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// A configuration: the three lines that every test needs, and more lines.
    fn zoo_cfg(&self, more: &str) -> PathBuf {
        let data = self.data();
        let text = format!("dataDir={}\nclientPort=0\nclientPortAddress=127.0.0.1\n{more}\n", data.display());
        self.file("zoo.cfg", &text)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server process, killed at the end if it still runs.
struct Ostler {
    child: Child,
    address: SocketAddr,
    greeting: Vec<String>,
}

fn command(zoo_cfg: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.arg("server").arg(zoo_cfg).stdin(Stdio::null());
    for flags in ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "JVMFLAGS", "RUST_LOG"] {
        command.env_remove(flags);
    }
    command
}

impl Ostler {
    fn start(zoo_cfg: &Path) -> Ostler {
        let mut child = command(zoo_cfg).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut greeting = Vec::new();
        while !greeting.last().is_some_and(|line: &String| line.starts_with("connect with ")) {
            let Some(line) = lines.next() else {
                panic!("it ended with {:?}: {greeting:#?}", child.wait());
            };
            greeting.push(line.unwrap());
        }
        // Read on, so that a server that logs does not wait for a full pipe.
        thread::spawn(move || lines.for_each(drop));
        let listening = greeting.iter().find_map(|line| line.strip_prefix("listening on ")).unwrap();
        let address = listening.split(',').next().unwrap().parse().unwrap();
        Ostler { child, address, greeting }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    fn ended(&mut self) -> ExitStatus {
        assert!(ends_within(PATIENCE, Pid::from_child(&self.child)), "it does not end");
        self.child.wait().unwrap()
    }

    #[track_caller]
    fn terminate(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.ended().code(), Some(0));
    }
}

impl Drop for Ostler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The message of a server that does not start. It must end by itself with the exit code for that.
#[track_caller]
fn refusal(zoo_cfg: &Path) -> String {
    let mut child = command(zoo_cfg).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !ends_within(PATIENCE, Pid::from_child(&child)) {
        let _ = child.kill();
        panic!("it runs");
    }
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), NOT_STARTED, "{said}");
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "");
    said
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn the_greeting_says_where_it_listens_and_where_its_data_are() {
    let folder = Folder::new();
    let mut server = Ostler::start(&folder.zoo_cfg("admin.enableServer=false\n"));
    let [listening, data, connect] = &server.greeting[..] else { panic!("{:#?}", server.greeting) };
    let address = server.address;
    let rest = listening.strip_prefix(&format!("listening on {address}, ready after ")).unwrap();
    assert!(rest.strip_suffix(" ms").is_some_and(is_number), "{listening}");
    let rest =
        data.strip_prefix(&format!("data in {}, 4 znodes loaded in ", folder.data().display())).unwrap();
    assert!(rest.strip_suffix(" ms").is_some_and(is_number), "{data}");
    let port = address.port();
    assert_eq!(
        *connect,
        format!("connect with any ZooKeeper client, for example: zkCli.sh -server 127.0.0.1:{port}")
    );

    assert!(Client::open(address).exists("/zookeeper"));
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    let mut out = String::new();
    server.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "");
}

#[test]
fn a_bad_line_is_refused_with_its_file_and_number() {
    let folder = Folder::new();
    for (more, line, says) in [
        ("tickTime=2s", 4, "tickTime=2s is not allowed"),
        ("\n\n# comment\nmaxClientCnxns=many", 7, "maxClientCnxns=many is not allowed"),
        ("reconfigEnabled=on", 4, "must be true or false"),
        ("minSessionTimeout=9000\nmaxSessionTimeout=8000", 5, "maxSessionTimeout"),
        ("secureClientPort=2281", 4, "TLS"),
        ("dataLogDir=", 4, "dataLogDir"),
        ("broken=\\u00zz", 4, ""),
    ] {
        let path = folder.zoo_cfg(more);
        let said = refusal(&path);
        assert!(said.starts_with(&format!("ostler: {}:{line}: ", path.display())), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!folder.data().exists(), "nothing is made before the file is right");
    }
}

#[test]
fn a_missing_or_incomplete_configuration_is_named() {
    let folder = Folder::new();
    for text in ["clientPort=0\n", "dataDir=/nowhere\n", ""] {
        let path = folder.file("lacking.cfg", text);
        let said = refusal(&path);
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    }
    let missing = folder.0.join("missing.cfg");
    assert!(refusal(&missing).contains(missing.to_str().unwrap()));
    assert!(refusal(&folder.0).contains(folder.0.to_str().unwrap()), "a folder is no file");
}

#[test]
fn keys_without_effect_are_reported_and_the_server_starts() {
    let folder = Folder::new();
    let path = folder.zoo_cfg("tickTme=2000\nmaxResponseCacheSize=10");
    let server = Ostler::start(&path);
    let told = |start: &str| server.greeting.iter().any(|line| line.starts_with(start));
    assert!(told(&format!("ostler: warning: {}:4: tickTme ", path.display())), "{:#?}", server.greeting);
    assert!(
        told(&format!("ostler: note: {}:5: maxResponseCacheSize", path.display())),
        "{:#?}",
        server.greeting
    );
    assert!(Client::open(server.address).exists("/"));
    server.terminate();
}

#[test]
fn a_port_in_use_is_refused_before_any_file_is_written() {
    let folder = Folder::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let path = folder.zoo_cfg(&format!("clientPort={}", address.port()));
    let said = refusal(&path);
    assert!(said.contains(&address.to_string()) && said.contains("in use"), "{said}");
    assert!(said.contains("clientPort"), "{said}");
    assert!(!folder.data().exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = Folder::new();
    let file = folder.file("file", "in the way");
    let below = folder.file("below.cfg", &format!("dataDir={}/data\nclientPort=0\n", file.display()));
    assert!(refusal(&below).contains(file.to_str().unwrap()));

    let path = folder.zoo_cfg("");
    let first = Ostler::start(&path);
    let said = refusal(&path);
    assert!(said.contains(folder.data().to_str().unwrap()), "{said}");
    assert!(said.contains(&format!("process {}", first.child.id())), "{said}");
    assert!(Client::open(first.address).exists("/"), "the first one goes on");
    first.terminate();
}

#[test]
fn a_damaged_log_is_refused_and_kept() {
    let folder = Folder::new();
    let path = folder.zoo_cfg("");
    let server = Ostler::start(&path);
    let mut client = Client::open(server.address);
    for at in 0..20 {
        client.create(&format!("/znode-{at}"), &[b'x'; 100]);
    }
    server.terminate();
    let log = folder.data().join("version-2/log.1");
    let mut bytes = fs::read(&log).unwrap();
    bytes[700] ^= 0x40;
    fs::write(&log, &bytes).unwrap();
    let said = refusal(&path);
    assert!(said.contains(log.to_str().unwrap()) && said.contains("damaged at byte"), "{said}");
    assert!(fs::read(&log).unwrap() == bytes);
}

#[test]
fn sigterm_and_sigint_end_it_with_code_0() {
    let folder = Folder::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Ostler::start(&folder.zoo_cfg(""));
        let mut client = Client::open(server.address);
        client.ask(op::PING, &[]);
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "{signal:?}");
        assert_eq!(client.reply(), None, "the client sees the end");
    }
}

/// A program that has read the greeting may stop the server at once.
#[test]
fn sigterm_right_after_the_greeting_ends_it_with_code_0() {
    let folder = Folder::new();
    let path = folder.zoo_cfg("");
    for round in 0..20 {
        let mut server = Ostler::start(&path);
        server.signal(Signal::TERM);
        let status = server.ended();
        assert_eq!(status.code(), Some(0), "start {round} ended with {status}");
    }
}

/// Clients that never wait keep the disk busy. The server must end all the same.
#[test]
fn sigterm_ends_it_while_clients_go_on_writing() {
    let folder = Folder::new();
    let mut server = Ostler::start(&folder.zoo_cfg(""));
    Client::open(server.address).create("/busy", b"");
    let (to, well_under_way) = mpsc::channel();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let mut client = Client::open(server.address);
            let mut reader = client.stream.try_clone().unwrap();
            let to = to.clone();
            let reads = thread::spawn(move || {
                // Some thousand replies.
                let _ = to.send(reader.read_exact(&mut vec![0; 256 << 10]).is_ok());
                let mut bytes = [0; 64 << 10];
                while matches!(reader.read(&mut bytes), Ok(1..)) {}
            });
            let many = request(1, op::SET_DATA, &set_data("/busy", b"0123456789")).repeat(50);
            let writes = thread::spawn(move || while client.stream.write_all(&many).is_ok() {});
            (reads, writes)
        })
        .collect();
    for _ in &writers {
        assert_eq!(well_under_way.recv_timeout(PATIENCE), Ok(true));
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
    for (reads, writes) in writers {
        reads.join().unwrap();
        writes.join().unwrap();
    }
}

#[test]
fn a_restart_keeps_the_data() {
    let folder = Folder::new();
    let path = folder.zoo_cfg("");
    for round in 0..3 {
        let server = Ostler::start(&path);
        let mut client = Client::open(server.address);
        for earlier in 0..round {
            let read = client.ask(op::GET_DATA, &client::path_watch(&format!("/round-{earlier}"), false));
            assert_eq!(read.body[4..8], *b"data");
        }
        client.create(&format!("/round-{round}"), b"data");
        client.ask(op::CLOSE, &[]);
        server.terminate();
    }
}

/// The server is killed at any moment. Answered writes are there, and of the others at most the first ones.
#[test]
fn kill_9_loses_no_acknowledged_write() {
    const SENT: usize = 2000;
    let folder = Folder::new();
    let path = folder.zoo_cfg("snapCount=300");
    let mut kept = Vec::new();
    for round in 0..5 {
        let mut server = Ostler::start(&path);
        let mut observer = Client::open(server.address);
        for (earlier, there) in kept.iter().enumerate() {
            for at in 0..*there {
                assert!(
                    observer.exists(&format!("/r{earlier}-{at}")),
                    "round {earlier}, znode {at} of {there}"
                );
            }
        }
        let mut client = Client::open(server.address);
        let bytes: Vec<u8> = (0..SENT)
            .flat_map(|at| request(at as i32 + 1, op::CREATE, &create(&format!("/r{round}-{at}"), b"data")))
            .collect();
        let mut sender = client.stream.try_clone().unwrap();
        let sends = thread::spawn(move || client::write_if_open(&mut sender, &bytes));
        let wanted = 37 + round * 211;
        for at in 0..wanted {
            let reply = client.reply().unwrap();
            assert_eq!((reply.xid, reply.error), (at as i32 + 1, 0));
        }
        server.signal(Signal::KILL);
        assert_eq!(server.ended().code(), None);
        sends.join().unwrap();
        let more = std::iter::from_fn(|| client.reply()).filter(|reply| reply.error == 0).count();
        let acknowledged = wanted + more;

        let server = Ostler::start(&path);
        let mut observer = Client::open(server.address);
        let there = (0..SENT).take_while(|at| observer.exists(&format!("/r{round}-{at}"))).count();
        assert!(there >= acknowledged, "{there} of {acknowledged} acknowledged znodes are there");
        assert!((there..SENT).all(|at| !observer.exists(&format!("/r{round}-{at}"))), "a hole in the order");
        kept.push(there);
        server.terminate();
    }
}
