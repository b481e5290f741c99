//! `ostler explain election` after a leader was killed: it names the old and the new one, and tells why.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../server/tests/shell/client.rs"]
mod client;

use client::{Client, read_to_end, socket};
use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const SERVERS: u16 = 3;

/// A folder and ports of this test; its servers, killed at the end.
struct Ensemble {
    folder: PathBuf,
    port: u16,
    children: Vec<Option<Child>>,
}

impl Ensemble {
    fn start() -> Ensemble {
        let begin = std::process::id() as u16 % 90;
        let free = |port: &u16| {
            (*port..port + 3 * SERVERS).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        };
        let ports = (0..90).map(|at| 29_000 + 10 * ((begin + at) % 90));
        let port = ports.into_iter().find(free).unwrap();
        let name = format!("explain-{}-{port}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut ensemble = Ensemble { folder, port, children: Vec::new() };
        for id in 1..=SERVERS {
            ensemble.children.push(Some(ensemble.server(id)));
        }
        ensemble
    }

    fn server(&self, id: u16) -> Child {
        let home = self.folder.join(format!("server-{id}"));
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("myid"), format!("{id}\n")).unwrap();
        let mut text = format!(
            "tickTime=200\ninitLimit=50\nsyncLimit=20\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n\
             preAllocSize=256\n4lw.commands.whitelist=srvr,elec\n",
            home.display(),
            self.address(id).port(),
        );
        for other in 1..=SERVERS {
            let quorum = self.port + SERVERS + 2 * (other - 1);
            text += &format!("server.{other}=127.0.0.1:{quorum}:{}\n", quorum + 1);
        }
        let zoo_cfg = home.join("zoo.cfg");
        fs::write(&zoo_cfg, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        for variable in ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "JVMFLAGS"] {
            command.env_remove(variable);
        }
        let command = command.arg("server").arg(zoo_cfg).env("RUST_LOG", "off").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn address(&self, id: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port + id - 1).into()
    }

    fn running(&self) -> Vec<u16> {
        (1..=SERVERS).filter(|id| self.children[usize::from(*id) - 1].is_some()).collect()
    }

    fn kill(&mut self, id: u16) {
        if let Some(mut child) = self.children[usize::from(id) - 1].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The mode of a server, by `srvr`; `None` while it does not answer.
    fn mode(&self, id: u16) -> Option<String> {
        TcpStream::connect(self.address(id)).ok()?;
        let mut stream = socket(self.address(id));
        stream.write_all(b"srvr").ok()?;
        let text = String::from_utf8(read_to_end(&mut stream)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Mode: ").map(Into::into))
    }

    /// Waits until all that run serve; who leads them.
    #[track_caller]
    fn leader(&self) -> u16 {
        let begun = Instant::now();
        loop {
            let modes: Vec<(u16, Option<String>)> =
                self.running().into_iter().map(|id| (id, self.mode(id))).collect();
            let of = |wanted: &str| {
                let found = modes.iter().filter(|(_, mode)| mode.as_deref() == Some(wanted));
                found.map(|(id, _)| *id).collect::<Vec<u16>>()
            };
            if let ([leader], followers) = (&of("leader")[..], of("follower").len())
                && followers + 1 == modes.len()
            {
                return *leader;
            }
            assert!(begun.elapsed() < PATIENCE, "no leader of all: {modes:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn explain(&self, options: &[&str]) -> Output {
        let servers: Vec<String> = (1..=SERVERS).map(|id| self.address(id).to_string()).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        command.args(["explain", "election", &servers.join(",")]).args(options);
        command.output().unwrap()
    }

    /// The epoch of the newest election, which this server has won.
    #[track_caller]
    fn newest_epoch_of(&self, winner: u16) -> u64 {
        let begun = Instant::now();
        loop {
            let json = String::from_utf8(self.explain(&["--json"]).stdout).unwrap();
            let page: serde_json::Value = serde_json::from_str(&json).unwrap();
            let newest = &page["elections"][0];
            if newest["winner"] == winner && newest["under_way"] == false {
                return newest["epoch"].as_u64().unwrap();
            }
            assert!(begun.elapsed() < PATIENCE, "{json}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        (1..=SERVERS).for_each(|id| self.kill(id));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_dead_leader_and_the_new_one_are_named() {
    let mut ensemble = Ensemble::start();
    let old = ensemble.leader();
    // A voter that starts late makes the others elect once more.
    let before = ensemble.newest_epoch_of(old);
    let epoch = before + 1;
    ensemble.kill(old);
    let new = ensemble.leader();
    Client::open(ensemble.address(new)).create("/after", b"");

    let done = ensemble.explain(&[]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}");
    assert!(text.starts_with(&format!("Server {new} leads epoch {epoch} since ")), "{text}");
    let summary = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(summary.contains("2 of 3 voters backed it"), "{summary}");
    let span = format!("from the loss of server {old} to the start of epoch {epoch}");
    assert!(summary.contains(&span), "{summary}");
    assert!(summary.ends_with("to the first commit."), "{summary}");
    assert!(text.contains(&format!("The connection to server {old} is gone")), "{text}");
    assert!(text.contains(&format!("Note: {} did not answer: ", ensemble.address(old))), "{text}");
    assert!(text.contains(&format!("2 of 3 voters back it ({})", both(ensemble.running()))), "{text}");

    let json = String::from_utf8(ensemble.explain(&["--json", "--last", "9"]).stdout).unwrap();
    let page: serde_json::Value = serde_json::from_str(&json).unwrap();
    let elections = page["elections"].as_array().unwrap();
    let leaders: Vec<_> =
        elections.iter().map(|one| (one["epoch"].as_u64(), one["winner"].as_u64())).collect();
    assert_eq!(page["format"], "ostler-elections-1");
    assert_eq!(leaders.first(), Some(&(Some(epoch), Some(new.into()))), "{json}");
    assert_eq!(leaders.get(1), Some(&(Some(before), Some(old.into()))), "{json}");
    assert_eq!(elections[0]["summary"][0].as_str().unwrap(), summary, "the same sentences");
}

#[test]
fn where_nobody_answers_it_fails_and_says_who() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    let done = command.args(["explain", "election", &port.to_string()]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(out.starts_with(&format!("Note: {port} did not answer: ")), "{out}");
    assert_eq!(err, "ostler explain: no server answered, so there is nothing to explain\n");
}

fn both(ids: Vec<u16>) -> String {
    ids.iter().map(u16::to_string).collect::<Vec<_>>().join(" and ")
}
