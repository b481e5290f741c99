//! Who calls at the election port and does not belong there, or says to be another: each has a line in the log that names
//! it and the reason, and is sent away.

use crate::{gate, log};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server::{Overrides, PeerListeners, RunningServer, config};
use ostler_server_core::{Server, ensemble::MemberMode};
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

/// Server 2 of three, alone. The others are where nobody is; each test has names of its own, by which its lines are known.
struct Alone {
    runtime: Runtime,
    server: Option<RunningServer>,
    election: SocketAddr,
    names: &'static str,
    _dir: TempDir,
    _beside: std::sync::RwLockReadGuard<'static, ()>,
}

impl Alone {
    fn start(names: &'static str, more: &str) -> Alone {
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
        config.clients.client_address = ([127, 0, 0, 1], 0).into();
        let overrides = Overrides { peers: Some(PeerListeners { quorum, election }), ..Overrides::default() };
        let server = runtime.block_on(RunningServer::start_with(&config, overrides)).unwrap();
        // What comes before that is of no election.
        let handle = server.handle();
        let looks = handle.until(|server| server.elections().is_some_and(|of| !of.searches.is_empty()));
        runtime.block_on(async { tokio::time::timeout(PATIENCE, looks).await.unwrap().unwrap() });
        Alone { runtime, server: Some(server), election: address, names, _dir: dir, _beside: beside }
    }

    fn call(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.election.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A connection of a server that says that its election port is there.
    fn greet(&self, id: i64, place: &str) -> TcpStream {
        let mut stream = self.call();
        stream.write_all(&greeting(id, place)).unwrap();
        stream
    }

    fn place(&self, id: i64) -> String {
        format!("zk{id}.{}.invalid:3888", self.names)
    }

    fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        self.server.as_ref().unwrap().handle().inspect(look)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = self.runtime.block_on(server.run_until(async {}));
        }
    }
}

fn servers(names: &str) -> String {
    (1..=3).map(|id| format!("server.{id}=zk{id}.{names}.invalid:2888:3888\n")).collect()
}

fn greeting(id: i64, place: &str) -> Vec<u8> {
    let mut bytes = (-65536_i64).to_be_bytes().to_vec();
    bytes.extend(id.to_be_bytes());
    bytes.extend((place.len() as u32).to_be_bytes());
    bytes.extend(place.as_bytes());
    bytes
}

/// A vote for server 3, which has more than anybody else, by a server with this configuration.
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

/// Reads to the end of the connection, however much is said before.
fn is_sent_away(stream: &mut TcpStream) -> bool {
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

/// Whether the server talks to who is at the other end.
fn is_told_a_vote(stream: &mut TcpStream) -> bool {
    let mut length = [0; 4];
    stream.read_exact(&mut length).is_ok()
}

#[test]
fn a_server_of_another_ensemble_has_no_vote() {
    let alone = Alone::start("ours", "");
    let others = servers("theirs");
    let mut stranger = alone.greet(3, "zk3.theirs.invalid:3888");
    stranger.write_all(&vote(&others)).unwrap();
    assert!(is_sent_away(&mut stranger));
    let line = log::comes(&["of another ensemble was sent away", "theirs"]);
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
    let mut again = alone.greet(3, "zk3.theirs.invalid:3888");
    again.write_all(&vote(&others)).unwrap();
    assert!(is_sent_away(&mut again));
    assert_eq!(log::lines(&["of another ensemble was sent away", "theirs"]).len(), 1, "not at each time");
    alone.inspect(|server| {
        assert_eq!(server.mode(), Some(MemberMode::Looking));
        let elections = server.elections().unwrap();
        let heard = elections.searches.iter().flat_map(|search| &search.votes.entries);
        let verdicts: Vec<Verdict> = heard
            .filter_map(|entry| match entry.event {
                ElectionEvent::Received { verdict, .. } => Some(verdict),
                _ => None,
            })
            .collect();
        assert_eq!(verdicts, [Verdict::Ignored(IgnoreReason::AnotherEnsemble); 2]);
    });
    // One of its own ensemble stays.
    let mut friend = alone.greet(3, &alone.place(3));
    friend.write_all(&vote(&servers("ours"))).unwrap();
    assert!(is_told_a_vote(&mut friend));
}

#[test]
fn an_ensemble_that_moves_as_a_whole_may_be_let_in() {
    let alone = Alone::start("before", "election.refuseOtherEnsembles=false\n");
    let mut moved = alone.greet(3, "zk3.after.invalid:3888");
    moved.write_all(&vote(&servers("after"))).unwrap();
    let handle = alone.server.as_ref().unwrap().handle();
    let is_counted = handle.until(|server: &Server| {
        let elections = server.elections().expect("a member");
        elections.searches.iter().any(|search| {
            let counted = |what: &ElectionEvent| {
                matches!(what, ElectionEvent::Received { verdict: Verdict::Counted, .. })
            };
            search.votes.entries.iter().any(|entry| counted(&entry.event))
        })
    });
    alone.runtime.block_on(async { tokio::time::timeout(PATIENCE, is_counted).await.unwrap().unwrap() });
}

#[test]
fn who_is_not_where_its_id_should_be_does_not_replace_who_is() {
    let alone = Alone::start("twins", "");
    let mut right = alone.greet(3, &alone.place(3));
    assert!(is_told_a_vote(&mut right));
    let mut wrong = alone.greet(3, "elsewhere.invalid:3888");
    assert!(is_sent_away(&mut wrong));
    let line = log::comes(&["server=3", "(elsewhere.invalid:3888)"]);
    for part in ["was refused", "connected=127.0.0.1:", "(zk3.twins.invalid:3888)", "same myid"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    right.set_nonblocking(true).unwrap();
    let mut rest = [0; 4096];
    let end = std::iter::repeat_with(|| right.read(&mut rest)).find(|read| !matches!(read, Ok(1..)));
    assert_eq!(end.unwrap().unwrap_err().kind(), io::ErrorKind::WouldBlock, "its connection goes on");
    // It may come back itself, and once it is gone the other may come: it may have moved.
    right.set_nonblocking(false).unwrap();
    let mut back = alone.greet(3, &alone.place(3));
    assert!(is_sent_away(&mut right), "the newer one of the same server counts");
    assert!(is_told_a_vote(&mut back));
    drop((right, back));
    loop {
        let mut moved = alone.greet(3, "elsewhere.invalid:3888");
        if is_told_a_vote(&mut moved) {
            break;
        }
    }
}

#[test]
fn who_takes_the_place_of_another_is_named() {
    let alone = Alone::start("taken", "");
    let mut first = alone.greet(3, "one.taken.invalid:3888");
    assert!(is_told_a_vote(&mut first));
    let mut second = alone.greet(3, "two.taken.invalid:3888");
    assert!(is_told_a_vote(&mut second), "as upstream has it");
    assert!(is_sent_away(&mut first));
    let line = log::comes(&["has taken the place", "(two.taken.invalid:3888)"]);
    for part in ["server=3", "instead_of=127.0.0.1:", "(one.taken.invalid:3888)", "same myid"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

/// Each of them is closed with a line that has its address and the reason, and nobody else notices.
#[test]
fn who_does_not_belong_here_is_named_with_the_reason() {
    let alone = Alone::start("refusals", "");
    let mut friend = alone.greet(3, &alone.place(3));
    assert!(is_told_a_vote(&mut friend));
    // It would have to be called there.
    let unknown = greeting(0, "zk0.refusals.invalid:3888");
    let own = greeting(2, &alone.place(2));
    let long = [&greeting(3, "x")[..16], &5_000_i32.to_be_bytes()].concat();
    for (said, reason) in [
        (&b"\xffGET / HTTP/1.1\r\n"[..], "no version of the protocol"),
        (&unknown, "server 0 is not in the configuration"),
        (&own, "it has this server's own id"),
        (&long, "an address of 5000 bytes"),
    ] {
        let mut caller = alone.call();
        let from = format!("from={}", caller.local_addr().unwrap());
        caller.write_all(said).unwrap();
        assert!(is_sent_away(&mut caller), "{reason}");
        log::comes(&[&from, reason]);
    }
    // A vote that is none is left out, and one that is too long ends the connection.
    let from = friend.local_addr().unwrap().to_string();
    friend.write_all(&[0, 0, 0, 3, 1, 2, 3]).unwrap();
    log::comes(&["server=3", &format!("address={from}"), "a vote of 3 bytes is too short"]);
    friend.write_all(&(600_000_i32).to_be_bytes()).unwrap();
    assert!(is_sent_away(&mut friend));
    log::comes(&["server=3", &format!("from={from}"), "a message of 600000 bytes"]);
    alone.inspect(|server| assert_eq!(server.mode(), Some(MemberMode::Looking)));
}
