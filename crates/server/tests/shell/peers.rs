//! Members of an ensemble in one runtime: what belongs to one of them ends with it, whatever the others do.

use crate::gate;
use ostler_proto::id::ServerId;
use ostler_server::{Overrides, PeerListeners, RunningServer, ServerHandle, config};
use ostler_server_core::{Server, ensemble::MemberMode};
use ostler_zab::election::ElectionEvent;
use std::{
    fs,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
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

/// Two members that would wait for each other for minutes.
async fn pair(dir: &Path) -> Vec<Member> {
    let ports: Vec<_> = (0..2).map(|_| (listener(), listener())).collect();
    let lines: String = (1..)
        .zip(&ports)
        .map(|(id, ((_, quorum), (_, election)))| format!("server.{id}=127.0.0.1:{quorum}:{election};0\n"))
        .collect();
    let mut members = Vec::new();
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
        let mut config = config::load(&file).unwrap().config;
        config.clients.client_address = ([127, 0, 0, 1], 0).into();
        let overrides = Overrides { peers: Some(PeerListeners { quorum, election }), ..Overrides::default() };
        let server = RunningServer::start_with(&config, overrides).await.unwrap();
        let (address, handle, (stop, stopped)) = (server.address, server.handle(), oneshot::channel());
        let ended = async { server.run_until(async { drop(stopped.await) }).await.unwrap() };
        members.push(Member { address, handle, stop, ended: tokio::spawn(ended) });
    }
    members
}

async fn until(handle: &ServerHandle, mode: MemberMode) {
    let reached = handle.until(move |server: &Server| server.mode() == Some(mode));
    timeout(PATIENCE, reached).await.expect("in time").unwrap();
}

#[test]
fn a_member_that_stops_is_gone_for_the_others_at_once() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for abandoned in [false, true] {
        runtime.block_on(one_of_two_ends(abandoned));
    }
}

/// Who only takes connections, as a machine does for a program that stands still, cannot be reached.
#[test]
fn a_server_that_is_greeted_and_does_not_call_back_is_missed() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (mute, mute_port) = listener();
        let (server, _) = beside_one_at(mute_port, dir.path()).await;
        let handle = server.handle();
        let is_missed = handle.until(|server: &Server| {
            let lost = ElectionEvent::Lost { peer: ServerId(2) };
            let report = server.elections().expect("a member");
            report.searches.iter().any(|search| search.votes.entries.iter().any(|entry| entry.event == lost))
        });
        timeout(PATIENCE, is_missed).await.expect("in time").unwrap();
        server.run_until(async {}).await.unwrap();
        drop(mute);
    });
}

/// Who does not say who it is takes a descriptor and memory from those who are of the ensemble.
#[test]
fn strangers_at_the_quorum_port_are_few_and_say_little() {
    let _beside = gate::beside_others();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (mute, mute_port) = listener();
        let (server, port) = beside_one_at(mute_port, dir.path()).await;
        let call = || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let is_sent_away = async |mut stranger: TcpStream| {
            timeout(PATIENCE, stranger.read(&mut [0])).await.expect("in time").unwrap_or(0) == 0
        };
        let mut talker = call().await.unwrap();
        // FOLLOWERINFO, of an epoch, with more data than anybody has to say about itself.
        let begin = [&11_i32.to_be_bytes()[..], &0_i64.to_be_bytes(), &5_000_i32.to_be_bytes()].concat();
        talker.write_all(&begin).await.unwrap();
        assert!(is_sent_away(talker).await);
        let mut silent = Vec::new();
        for _ in 0..64 {
            silent.push(call().await.unwrap());
        }
        // The oldest makes room.
        let stays = call().await.unwrap();
        assert!(is_sent_away(silent.remove(0)).await);
        assert_eq!(stays.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        server.run_until(async {}).await.unwrap();
        drop(mute);
    });
}

/// A server beside one whose election port is given, and its quorum port.
async fn beside_one_at(other: u16, dir: &Path) -> (RunningServer, u16) {
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
    config.clients.client_address = ([127, 0, 0, 1], 0).into();
    let overrides = Overrides { peers: Some(PeerListeners { quorum, election }), ..Overrides::default() };
    (RunningServer::start_with(&config, overrides).await.unwrap(), quorum_port)
}

async fn one_of_two_ends(abandoned: bool) {
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
    until(&leader.handle, MemberMode::Looking).await;
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
        until(&members[0].handle, MemberMode::Follower).await;
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
