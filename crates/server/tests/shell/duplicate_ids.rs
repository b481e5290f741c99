//! Callers at the election port that are not of the ensemble, or have the id of another server. Each is disconnected, with
//! a log line that names the caller and the reason.

use crate::{gate, log};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server::{Overrides, PeerListeners, RunningServer, config};
use ostler_server_core::{Server, quorum::MemberMode};
use ostler_zab::election::{ElectionEvent, IgnoreReason, Verdict};
use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

const PATIENCE: Duration = Duration::from_secs(20);

/// Server 2 of three. The others do not run. Each test has its own host names, by which it finds its log lines.
struct SingleMember {
    runtime: Runtime,
    server: Option<RunningServer>,
    election: SocketAddr,
    names: &'static str,
    _dir: TempDir,
    _beside: std::sync::RwLockReadGuard<'static, ()>,
}

impl SingleMember {
    fn start(names: &'static str, more: &str) -> SingleMember {
        log::keep();
        let beside = gate::beside_others();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (quorum, election) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = election.local_addr().unwrap();
        fs::write(dir.path().join("myid"), "2").unwrap();
        let own = format!(
            "dataDir={}\nclientPort=2181\ntickTime=1000\ninitLimit=300\n{more}",
            dir.path().display()
        );
        let file = dir.path().join("zoo.cfg");
        fs::write(&file, own + &servers(names)).unwrap();
        let mut config = config::load(&file).unwrap().config;
        config.clients.client_address = Some(([127, 0, 0, 1], 0).into());
        let overrides = Overrides { peers: Some(PeerListeners { quorum, election }), ..Overrides::default() };
        let server = runtime.block_on(RunningServer::start_with(&config, overrides)).unwrap();
        // Votes that come before the first search do not count.
        let handle = server.handle();
        let looks = handle.until(|server| server.elections().is_some_and(|of| !of.searches.is_empty()));
        runtime.block_on(async { tokio::time::timeout(PATIENCE, looks).await.unwrap().unwrap() });
        SingleMember { runtime, server: Some(server), election: address, names, _dir: dir, _beside: beside }
    }

    fn call(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.election.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Connects as server `id`, with `address` as its election address.
    fn greet(&self, id: i64, address: &str) -> TcpStream {
        let mut stream = self.call();
        stream.write_all(&greeting(id, address)).unwrap();
        stream
    }

    /// The configured election address of a server.
    fn address_of(&self, id: i64) -> String {
        format!("zk{id}.{}.invalid:3888", self.names)
    }

    fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        self.server.as_ref().unwrap().handle().inspect(look)
    }
}

impl Drop for SingleMember {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = self.runtime.block_on(server.run_until(async {}));
        }
    }
}

fn servers(names: &str) -> String {
    (1..=3).map(|id| format!("server.{id}=zk{id}.{names}.invalid:2888:3888\n")).collect()
}

fn greeting(id: i64, address: &str) -> Vec<u8> {
    let mut bytes = (-65536_i64).to_be_bytes().to_vec();
    bytes.extend(id.to_be_bytes());
    bytes.extend((address.len() as u32).to_be_bytes());
    bytes.extend(address.as_bytes());
    bytes
}

/// A vote for server 3, which has the latest history, by a server with this configuration.
fn vote(config: &str) -> Vec<u8> {
    let candidate = Candidate { epoch: Epoch(7), zxid: Zxid::new(Epoch(7), 7), id: ServerId(3) };
    let vote = Notification {
        state: PeerState::Leading,
        candidate: Some(candidate),
        round: 9,
        version: NOTIFICATION_VERSION,
        config: format!("{config}version=0"),
    };
    let mut message = Vec::new();
    vote.write(&mut message);
    let mut framed = (message.len() as u32).to_be_bytes().to_vec();
    framed.extend(message);
    framed
}

/// Reads until the end of the connection. Returns false if the end does not come in time.
fn is_disconnected(stream: &mut TcpStream) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
    false
}

/// Waits for a vote of the server. Returns false if none comes.
fn gets_a_vote(stream: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    stream.read_exact(&mut length).is_ok()
}

#[test]
fn the_vote_of_a_server_of_another_ensemble_does_not_count() {
    let member = SingleMember::start("ours", "");
    let others = servers("theirs");
    let mut other = member.greet(3, "zk3.theirs.invalid:3888");
    other.write_all(&vote(&others)).unwrap();
    assert!(is_disconnected(&mut other));
    let line = log::wait_for(&["of another ensemble was sent away", "theirs"]);
    for part in [
        "server=3",
        "127.0.0.1:",
        "server.1 at zk1.theirs.invalid, server.2 at zk2.theirs.invalid",
        "server.1 at zk1.ours.invalid",
        "correct the server.N lines",
        "election.refuseOtherEnsembles=false",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let mut again = member.greet(3, "zk3.theirs.invalid:3888");
    again.write_all(&vote(&others)).unwrap();
    assert!(is_disconnected(&mut again));
    assert_eq!(
        log::lines(&["of another ensemble was sent away", "theirs"]).len(),
        1,
        "the second time is not logged"
    );
    member.inspect(|server| {
        assert_eq!(server.mode(), Some(MemberMode::Looking));
        let elections = server.elections().unwrap();
        let heard = elections.searches.iter().flat_map(|search| &search.votes.entries);
        let verdicts: Vec<Verdict> = heard
            .filter_map(|entry| match entry.event {
                ElectionEvent::Received { verdict, .. } => Some(verdict),
                _ => None,
            })
            .collect();
        assert_eq!(verdicts, [Verdict::Ignored { why: IgnoreReason::AnotherEnsemble }; 2]);
    });
    // A server of the same ensemble stays connected.
    let mut third = member.greet(3, &member.address_of(3));
    third.write_all(&vote(&servers("ours"))).unwrap();
    assert!(gets_a_vote(&mut third));
}

#[test]
fn votes_of_other_ensembles_count_if_they_are_not_refused() {
    let member = SingleMember::start("before", "election.refuseOtherEnsembles=false\n");
    let mut moved = member.greet(3, "zk3.after.invalid:3888");
    moved.write_all(&vote(&servers("after"))).unwrap();
    let handle = member.server.as_ref().unwrap().handle();
    let is_counted = handle.until(|server: &Server| {
        let elections = server.elections().expect("a member");
        elections.searches.iter().any(|search| {
            let counted = |what: &ElectionEvent| {
                matches!(what, ElectionEvent::Received { verdict: Verdict::Counted, .. })
            };
            search.votes.entries.iter().any(|entry| counted(&entry.event))
        })
    });
    member.runtime.block_on(async { tokio::time::timeout(PATIENCE, is_counted).await.unwrap().unwrap() });
}

#[test]
fn a_caller_from_elsewhere_does_not_replace_the_server_at_the_configured_address() {
    let member = SingleMember::start("twins", "");
    let mut right = member.greet(3, &member.address_of(3));
    assert!(gets_a_vote(&mut right));
    let mut wrong = member.greet(3, "elsewhere.invalid:3888");
    assert!(is_disconnected(&mut wrong));
    let line = log::wait_for(&["server=3", "(elsewhere.invalid:3888)"]);
    for part in ["was refused", "connected=127.0.0.1:", "(zk3.twins.invalid:3888)", "same myid"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    right.set_nonblocking(true).unwrap();
    let mut rest = [0; 4096];
    let end = std::iter::repeat_with(|| right.read(&mut rest)).find(|read| !matches!(read, Ok(1..)));
    assert_eq!(
        end.unwrap().unwrap_err().kind(),
        io::ErrorKind::WouldBlock,
        "the connection of the right server goes on"
    );
    // The right server may connect again. Once it is gone, the other may connect: the server may have moved.
    right.set_nonblocking(false).unwrap();
    let mut back = member.greet(3, &member.address_of(3));
    assert!(is_disconnected(&mut right), "the newer connection of the same server counts");
    assert!(gets_a_vote(&mut back));
    drop((right, back));
    loop {
        let mut moved = member.greet(3, "elsewhere.invalid:3888");
        if gets_a_vote(&mut moved) {
            break;
        }
    }
}

#[test]
fn a_caller_that_replaces_a_connection_from_elsewhere_is_logged() {
    let member = SingleMember::start("taken", "");
    let mut first = member.greet(3, "one.taken.invalid:3888");
    assert!(gets_a_vote(&mut first));
    let mut second = member.greet(3, "two.taken.invalid:3888");
    assert!(gets_a_vote(&mut second), "the newer connection counts, as upstream");
    assert!(is_disconnected(&mut first));
    let line = log::wait_for(&["has taken the place", "(two.taken.invalid:3888)"]);
    for part in ["server=3", "instead_of=127.0.0.1:", "(one.taken.invalid:3888)", "same myid"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

/// Each caller is disconnected with a log line that has its address and the reason. Other connections stay.
#[test]
fn refused_callers_are_logged_with_the_reason() {
    let member = SingleMember::start("refusals", "");
    let mut third = member.greet(3, &member.address_of(3));
    assert!(gets_a_vote(&mut third));
    // The server would have to connect back to this address.
    let unknown = greeting(0, "zk0.refusals.invalid:3888");
    let own = greeting(2, &member.address_of(2));
    let long = [&greeting(3, "x")[..16], &5_000_i32.to_be_bytes()].concat();
    for (sent, reason) in [
        (&b"\xffGET / HTTP/1.1\r\n"[..], "no version of the protocol"),
        (&unknown, "server 0 is not in the configuration"),
        (&own, "has this server's own id"),
        (&long, "an address of 5000 bytes"),
    ] {
        let mut caller = member.call();
        let from = format!("from={}", caller.local_addr().unwrap());
        caller.write_all(sent).unwrap();
        assert!(is_disconnected(&mut caller), "{reason}");
        log::wait_for(&[&from, reason]);
    }
    // A malformed vote is ignored, and one that is too long ends the connection.
    let from = third.local_addr().unwrap().to_string();
    third.write_all(&[0, 0, 0, 3, 1, 2, 3]).unwrap();
    log::wait_for(&["server=3", &format!("address={from}"), "a vote of 3 bytes is too short"]);
    third.write_all(&(600_000_i32).to_be_bytes()).unwrap();
    assert!(is_disconnected(&mut third));
    log::wait_for(&["server=3", &format!("from={from}"), "a message of 600000 bytes"]);
    member.inspect(|server| assert_eq!(server.mode(), Some(MemberMode::Looking)));
}
