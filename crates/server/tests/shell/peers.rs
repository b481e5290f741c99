//! Members of an ensemble in one runtime. All tasks and connections of a member end with it, while the others go on.

use crate::{client::handshake, gate};
use ostler_proto::id::{ServerId, SessionId};
use ostler_server::{Overrides, PeerListeners, RunningServer, ServerHandle, config};
use ostler_server_core::{Server, quorum::MemberMode};
use ostler_zab::election::ElectionEvent;
use std::{
    fs,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

struct Member {
    address: SocketAddr,
    handle: ServerHandle,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Two members with timeouts of minutes: they notice each other's end only by the end of the connection.
async fn pair(dir: &Path) -> Vec<Member> {
    let (mut members, second) = half_a_pair(dir).await;
    members.push(second.await);
    members
}

/// One member of a pair, and a future that starts the other.
async fn half_a_pair(dir: &Path) -> (Vec<Member>, impl Future<Output = Member> + use<>) {
    let ports: Vec<_> = (0..2).map(|_| (listener(), listener())).collect();
    let lines: String = (1..)
        .zip(&ports)
        .map(|(id, ((_, quorum), (_, election)))| format!("server.{id}=127.0.0.1:{quorum}:{election};0\n"))
        .collect();
    let mut starts = Vec::new();
    for (id, ((quorum, _), (election, _))) in (1..).zip(ports) {
        let data = dir.join(format!("{id}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("myid"), format!("{id}")).unwrap();
        let file = dir.join(format!("{id}.cfg"));
        let own = format!(
            "dataDir={}\ntickTime=1000\ninitLimit=300\nsyncLimit=200\n4lw.commands.whitelist=*\n",
            data.display()
        );
        fs::write(&file, own + &lines).unwrap();
        starts.push(start(file, PeerListeners { quorum, election }));
    }
    let second = starts.remove(1);
    (vec![starts.remove(0).await], second)
}

async fn start(file: PathBuf, peers: PeerListeners) -> Member {
    let mut config = config::load(&file).unwrap().config;
    config.clients.client_address = Some(([127, 0, 0, 1], 0).into());
    let overrides = Overrides { peers: Some(peers), ..Overrides::default() };
    let server = RunningServer::start_with(&config, overrides).await.unwrap();
    let (address, handle, (stop, stopped)) = (server.address, server.handle(), oneshot::channel());
    let ended = async { server.run_until(async { drop(stopped.await) }).await.unwrap() };
    Member { address, handle, stop, ended: tokio::spawn(ended) }
}

async fn wait_for_mode(handle: &ServerHandle, mode: MemberMode) {
    let reached = handle.until(move |server: &Server| server.mode() == Some(mode));
    timeout(PATIENCE, reached).await.expect("in time").unwrap();
}

#[test]
fn a_leader_notices_at_once_that_its_follower_has_stopped() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for abandoned in [false, true] {
        runtime.block_on(end_the_follower_of_two(abandoned));
    }
}

/// Clients that are refused at once come back at once. If there are very many, the machine has no time to elect.
#[test]
fn a_handshake_waits_for_a_leader() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (mut members, second) = half_a_pair(dir.path()).await;
        let address = members[0].address;
        let (tries, second) = tokio::join!(tries_until_answered(address), second);
        // Each try but the last has waited for a second, and the second member is there within moments. A server that
        // refuses at once has refused dozens by then.
        assert!(tries <= 20, "{tries} tries");
        members.push(second);
        for member in members {
            let _ = member.stop.send(());
            member.ended.await.unwrap();
        }
    });
}

/// Sends handshakes, one after the other, until one is answered. Returns their number.
async fn tries_until_answered(server: SocketAddr) -> usize {
    for tries in 1.. {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(&handshake(30_000, SessionId::NONE, &[0; 16])).await.unwrap();
        let answered = timeout(PATIENCE, stream.read(&mut [0])).await.expect("in time");
        if answered.is_ok_and(|bytes| bytes > 0) {
            return tries;
        }
    }
    unreachable!("an endless range")
}

/// The machine of a suspended program accepts connections, but nothing is answered.
#[test]
fn a_server_that_does_not_connect_back_after_a_greeting_counts_as_lost() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (mute, mute_port) = listener();
        let (server, _) = start_with_other_at(mute_port, dir.path()).await;
        let handle = server.handle();
        let is_lost = handle.until(|server: &Server| {
            let lost = ElectionEvent::Lost { peer: ServerId(2) };
            let report = server.elections().expect("a member");
            report.searches.iter().any(|search| search.votes.entries.iter().any(|entry| entry.event == lost))
        });
        timeout(PATIENCE, is_lost).await.expect("in time").unwrap();
        server.run_until(async {}).await.unwrap();
        drop(mute);
    });
}

/// Each unidentified peer uses a file descriptor and memory that the ensemble's servers need.
#[test]
fn unidentified_peers_at_the_quorum_port_are_limited_in_number_and_bytes() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (mute, mute_port) = listener();
        let (server, port) = start_with_other_at(mute_port, dir.path()).await;
        let call = || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let is_disconnected = async |mut peer: TcpStream| {
            timeout(PATIENCE, peer.read(&mut [0])).await.expect("in time").unwrap_or(0) == 0
        };
        let mut talker = call().await.unwrap();
        // The head of a FOLLOWERINFO packet with more data than the identity of a learner has.
        let begin = [&11_i32.to_be_bytes()[..], &0_i64.to_be_bytes(), &5_000_i32.to_be_bytes()].concat();
        talker.write_all(&begin).await.unwrap();
        assert!(is_disconnected(talker).await);
        let mut silent = Vec::new();
        for _ in 0..64 {
            silent.push(call().await.unwrap());
        }
        // The oldest connection is closed to make room.
        let stays = call().await.unwrap();
        assert!(is_disconnected(silent.remove(0)).await);
        assert_eq!(stays.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        server.run_until(async {}).await.unwrap();
        drop(mute);
    });
}

/// Starts server 1 of two. The election port of server 2 is given. Returns the quorum port, too.
async fn start_with_other_at(other: u16, dir: &Path) -> (RunningServer, u16) {
    let ((quorum, quorum_port), (election, election_port)) = (listener(), listener());
    let (_, unused) = listener();
    let file = dir.join("1.cfg");
    fs::write(dir.join("myid"), "1").unwrap();
    let servers = format!(
        "server.1=127.0.0.1:{quorum_port}:{election_port};0\nserver.2=127.0.0.1:{unused}:{other};0\n"
    );
    let own = format!("dataDir={}\ntickTime=1000\ninitLimit=300\nsyncLimit=300\n", dir.display());
    fs::write(&file, own + &servers).unwrap();
    let mut config = config::load(&file).unwrap().config;
    config.clients.client_address = Some(([127, 0, 0, 1], 0).into());
    let overrides = Overrides { peers: Some(PeerListeners { quorum, election }), ..Overrides::default() };
    (RunningServer::start_with(&config, overrides).await.unwrap(), quorum_port)
}

async fn end_the_follower_of_two(abandoned: bool) {
    let dir = tempfile::tempdir().unwrap();
    let mut members = pair(dir.path()).await;
    let leads = |member: &Member| member.handle.inspect(|s| s.mode() == Some(MemberMode::Leader));
    for member in &members {
        let serves = member.handle.until(|server| server.mode() != Some(MemberMode::Looking));
        timeout(PATIENCE, serves).await.expect("in time").unwrap();
    }
    let leader = members.remove(members.iter().position(leads).unwrap());
    let follower = members.remove(0);
    match abandoned {
        true => follower.handle.abandon(),
        false => follower.stop.send(()).unwrap(),
    }
    follower.ended.await.unwrap();
    wait_for_mode(&leader.handle, MemberMode::Looking).await;
    leader.stop.send(()).unwrap();
    leader.ended.await.unwrap();
    assert!(leader.handle.until(|_| true).await.is_err(), "nothing comes after the end");
}

#[test]
fn conf_of_a_member_shows_its_ensemble() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let members = pair(dir.path()).await;
        wait_for_mode(&members[0].handle, MemberMode::Follower).await;
        let mut stream = TcpStream::connect(members[0].address).await.unwrap();
        stream.write_all(b"conf").await.unwrap();
        let mut text = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("in time").unwrap();
        let config = fs::read_to_string(dir.path().join("1.cfg")).unwrap();
        let lines: Vec<&str> = config.lines().filter(|line| line.starts_with("server.")).collect();
        let mut ports = lines[0].split([':', ';']).skip(1);
        let (quorum, election) = (ports.next().unwrap(), ports.next().unwrap());
        let member = |line: &str| line.replace(";0", ":participant;0.0.0.0:0");
        let (_, of_ensemble) = text.split_once("serverId=1\n").unwrap();
        assert_eq!(
            of_ensemble,
            format!(
                "initLimit=300\nsyncLimit=200\nelectionAlg=3\nelectionPort={election}\nquorumPort={quorum}\n\
                 peerType=0\nmembership: \n{}\n{}\nversion=0",
                member(lines[0]),
                member(lines[1])
            )
        );
        for member in members {
            let _ = member.stop.send(());
            member.ended.await.unwrap();
        }
    });
}
