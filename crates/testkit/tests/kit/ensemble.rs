//! Ensembles and their faults.

use crate::client::{Client, Frame};
use ostler_testkit::{
    ChangeKind, CutPoint, FrameProxy, SeenFrame, ServerId, TestEnsemble, TestOptions, TestkitError, Zxid,
};
use std::{collections::BTreeSet, io::ErrorKind, net::TcpStream, time::Duration};

async fn client_of(ensemble: &TestEnsemble, id: ServerId) -> Client {
    Client::open(ensemble.member(id).unwrap().address()).await.unwrap()
}

fn others(ensemble: &TestEnsemble, id: ServerId) -> Vec<ServerId> {
    ensemble.ids().filter(|other| *other != id).collect()
}

async fn all_have(ensemble: &TestEnsemble, path: &str) {
    ensemble.until_all_serve().await.unwrap();
    ensemble.until_settled().await.unwrap();
    for id in ensemble.ids() {
        assert!(client_of(ensemble, id).await.exists(path, false).await.unwrap(), "{path} at {id:?}");
    }
}

#[tokio::test]
async fn an_ensemble_serves_and_removes_its_folders_when_dropped() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut dirs = Vec::new();
    for id in ensemble.ids() {
        let mut client = client_of(&ensemble, id).await;
        assert_eq!(client.create(&format!("/by-{}", id.0)).await.unwrap(), 0);
        dirs.push(ensemble.member(id).unwrap().data_dir().to_path_buf());
    }
    for id in ensemble.ids() {
        all_have(&ensemble, &format!("/by-{}", id.0)).await;
    }
    assert_eq!(ensemble.leader(), Some(leader));
    let named: BTreeSet<String> = ensemble.connect_string().split(',').map(Into::into).collect();
    assert_eq!(named.len(), 3);
    drop(ensemble);
    assert!(dirs.iter().all(|dir| !dir.exists()));
}

#[tokio::test]
async fn ensembles_of_one_member_and_with_observers_work() {
    let one = TestEnsemble::start(1).await.unwrap();
    assert_eq!(client_of(&one, ServerId(1)).await.create("/a").await.unwrap(), 0);
    let mut ensemble = TestEnsemble::start_with(4, TestOptions::new().observers(1)).await.unwrap();
    assert_eq!(client_of(&ensemble, ServerId(4)).await.create("/a").await.unwrap(), 0);
    for id in [1, 2].map(ServerId) {
        ensemble.kill(id).await.unwrap();
    }
    // With the observer's vote there would be a quorum.
    let led = tokio::time::timeout(Duration::from_millis(500), ensemble.wait_for_another_leader(ServerId(3)));
    assert!(!matches!(led.await, Ok(Ok(_))));
    ensemble.restart(ServerId(1)).await.unwrap();
    ensemble.wait_for_leader().await.unwrap();
    ensemble.until_all_serve().await.unwrap();
    assert!(client_of(&ensemble, ServerId(4)).await.exists("/a", false).await.unwrap());
}

#[tokio::test]
async fn the_others_go_on_when_the_leader_is_killed() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    for round in 0..3 {
        let leader = ensemble.leader().unwrap();
        let other = others(&ensemble, leader)[0];
        let mut client = client_of(&ensemble, other).await;
        assert_eq!(client.create(&format!("/before-{round}")).await.unwrap(), 0);
        ensemble.kill(leader).await.unwrap();
        let address = ensemble.member(leader).unwrap().address();
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert!(client.read_end().await, "who follows has no leader, so its clients are sent away");

        let next = ensemble.wait_for_leader().await.unwrap();
        assert_ne!(next, leader);
        ensemble.until_all_serve().await.unwrap();
        let mut client = Client::reopen(ensemble.member(other).unwrap().address(), &client).await.unwrap();
        assert_eq!(client.create(&format!("/without-{round}")).await.unwrap(), 0);

        ensemble.restart(leader).await.unwrap();
        all_have(&ensemble, &format!("/before-{round}")).await;
        all_have(&ensemble, &format!("/without-{round}")).await;
    }
}

#[tokio::test]
async fn a_member_stops_in_order_and_comes_back() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    let follower = others(&ensemble, ensemble.leader().unwrap())[0];
    ensemble.stop(follower).await.unwrap();
    let leader = ensemble.leader().unwrap();
    assert_eq!(client_of(&ensemble, leader).await.create("/a").await.unwrap(), 0);
    ensemble.restart(follower).await.unwrap();
    all_have(&ensemble, "/a").await;
    assert_eq!(ensemble.leader(), Some(leader), "no election took place");
    assert!(matches!(ensemble.kill(ServerId(9)).await, Err(TestkitError::NoMember(ServerId(9)))));
}

#[tokio::test]
async fn a_session_at_a_follower_is_expired_by_the_leader() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let follower = others(&ensemble, leader)[0];
    let mut client = client_of(&ensemble, follower).await;
    assert_eq!(client.create_ephemeral("/mine").await.unwrap(), 0);
    let refused = ensemble.member(follower).unwrap().expire(client.session).await;
    assert!(matches!(refused, Err(TestkitError::NotLeading)));

    ensemble.expire(client.session).await.unwrap();
    assert!(client.read_end().await);
    ensemble.until_settled().await.unwrap();
    for id in ensemble.ids() {
        assert!(!client_of(&ensemble, id).await.exists("/mine", false).await.unwrap());
        let again = Client::reopen(ensemble.member(id).unwrap().address(), &client).await.unwrap();
        assert_eq!(again.timeout_ms, 0);
    }
}

#[tokio::test]
async fn a_leader_that_is_cut_off_gives_up_and_follows_when_the_links_heal() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut left = client_of(&ensemble, leader).await;
    ensemble.cut_member(leader);
    let next = ensemble.wait_for_another_leader(leader).await.unwrap();
    assert_eq!(client_of(&ensemble, next).await.create("/a").await.unwrap(), 0);
    assert!(left.read_end().await, "it has no quorum");
    ensemble.heal();
    all_have(&ensemble, "/a").await;
    assert_eq!(ensemble.leader(), Some(next));
}

/// The others elect another leader at once. The deserted one answers reads, accepts writes and does not answer them.
#[tokio::test]
async fn a_deserted_leader_goes_on_until_the_links_heal() {
    // It would give up after ten ticks.
    let ensemble =
        TestEnsemble::start_with(3, TestOptions::new().tick(Duration::from_secs(2))).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut left = client_of(&ensemble, leader).await;
    ensemble.cut_member_unnoticed(leader);
    let next = ensemble.wait_for_another_leader(leader).await.unwrap();
    assert_eq!(client_of(&ensemble, next).await.create("/a").await.unwrap(), 0);
    assert!(!left.exists("/a", false).await.unwrap(), "it has not heard of it");
    let unanswered = left.send_create("/unanswered", false).await.unwrap();
    ensemble.member(leader).unwrap().until(|counts| counts.outstanding == 1).await.unwrap();
    ensemble.heal();
    assert!(left.reply_to(unanswered).await.is_err(), "the create was never acknowledged");
    ensemble.wait_for_leader().await.unwrap();
    all_have(&ensemble, "/a").await;
    assert!(!client_of(&ensemble, leader).await.exists("/unanswered", false).await.unwrap());
    // The history comes from the logs of the others. Its own log can have transactions that a snapshot has undone.
    let history = ensemble.history(Zxid::ZERO).unwrap();
    assert_eq!(history.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["/a"]);
}

/// The others notice the silence only after a timeout.
#[tokio::test]
async fn an_isolated_leader_is_replaced_and_loses_its_uncommitted_writes() {
    let options = TestOptions::new().tick(Duration::from_millis(300));
    let ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut left = client_of(&ensemble, leader).await;
    ensemble.silence_member(leader);
    let unanswered = left.send_create("/unanswered", false).await.unwrap();
    let next = ensemble.wait_for_another_leader(leader).await.unwrap();
    assert_eq!(client_of(&ensemble, next).await.create("/a").await.unwrap(), 0);
    assert!(left.reply_to(unanswered).await.is_err(), "the create was never acknowledged");
    ensemble.heal();
    all_have(&ensemble, "/a").await;
    assert!(!client_of(&ensemble, leader).await.exists("/unanswered", false).await.unwrap());
}

#[tokio::test]
async fn one_silent_direction_is_enough_to_lose_a_follower() {
    let options = TestOptions::new().tick(Duration::from_millis(300));
    for from_leader in [true, false] {
        let ensemble = TestEnsemble::start_with(3, options.clone()).await.unwrap();
        let leader = ensemble.leader().unwrap();
        let follower = others(&ensemble, leader)[0];
        let mut client = client_of(&ensemble, follower).await;
        match from_leader {
            true => ensemble.silence_link(leader, follower),
            false => ensemble.silence_link(follower, leader),
        }
        assert!(client.read_end().await, "from the leader: {from_leader}");
        assert_eq!(client_of(&ensemble, leader).await.create("/a").await.unwrap(), 0, "two are left");
        ensemble.heal_link(leader, follower);
        all_have(&ensemble, "/a").await;
    }
}

#[tokio::test]
async fn a_paused_leader_wakes_up_as_a_follower() {
    let options = TestOptions::new().tick(Duration::from_millis(300));
    let mut ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut left = client_of(&ensemble, leader).await;
    ensemble.pause(leader).await.unwrap();
    assert_eq!(ensemble.leader(), None, "a paused member does not count as leader");
    let asked = left.send_create("/late", false).await.unwrap();
    let next = ensemble.wait_for_leader().await.unwrap();
    assert_ne!(next, leader);
    assert_eq!(client_of(&ensemble, next).await.create("/a").await.unwrap(), 0);
    ensemble.resume(leader).unwrap();
    assert!(left.reply_to(asked).await.is_err(), "a write to it is never acknowledged");
    all_have(&ensemble, "/a").await;
    assert!(!client_of(&ensemble, leader).await.exists("/late", false).await.unwrap());
}

#[tokio::test]
async fn a_paused_member_can_be_killed() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    let leader = ensemble.leader().unwrap();
    ensemble.pause(leader).await.unwrap();
    ensemble.kill(leader).await.unwrap();
    ensemble.wait_for_leader().await.unwrap();
    ensemble.restart(leader).await.unwrap();
    ensemble.until_all_serve().await.unwrap();
}

#[tokio::test]
async fn one_frame_proxy_serves_all_members() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let proxy = FrameProxy::start_for(&ensemble.addresses()).await.unwrap();
    let mut client = Client::open(proxy.addresses()[0]).await.unwrap();
    proxy.cut_at(CutPoint::BeforeReply(2));
    assert!(client.create("/a").await.is_err());
    ensemble.until_settled().await.unwrap();
    let mut client = Client::reopen(proxy.addresses()[1], &client).await.unwrap();
    assert!(client.exists("/a", false).await.unwrap());
    assert_eq!(proxy.requests(), 4);
    let handshakes: Vec<SeenFrame> =
        proxy.seen().into_iter().filter(|seen| matches!(seen, SeenFrame::Handshake { .. })).collect();
    assert_eq!(
        handshakes,
        [SeenFrame::Handshake { number: 1, server: 0 }, SeenFrame::Handshake { number: 3, server: 1 }]
    );
}

/// Sessions of the ensemble are known to all members, and local ones to their own server.
#[tokio::test]
async fn each_session_counts_once() {
    for options in [TestOptions::new(), TestOptions::new().read_only_mode()] {
        let ensemble = TestEnsemble::start_with(3, options).await.unwrap();
        let mut clients = Vec::new();
        for id in ensemble.ids() {
            clients.push(client_of(&ensemble, id).await);
        }
        // With its first ephemeral a local session becomes a global one.
        assert_eq!(clients[0].create_ephemeral("/of-1").await.unwrap(), 0);
        ensemble.until_settled().await.unwrap();
        assert_eq!(ensemble.counts().unwrap().sessions, 3);
        for (id, client) in ensemble.ids().zip(&clients) {
            let member = ensemble.member(id).unwrap();
            let sessions = member.sessions().unwrap();
            assert!(sessions.contains(&client.session) && sessions.contains(&clients[0].session));
            assert_eq!(member.counts().unwrap().sessions, sessions.len());
        }
    }
}

/// A wait on all members includes members that were killed and started meanwhile.
#[tokio::test]
async fn counts_are_those_of_all_members_that_run() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    let mut clients = Vec::new();
    for id in ensemble.ids().collect::<Vec<_>>() {
        let mut client = client_of(&ensemble, id).await;
        assert_eq!(client.create_ephemeral(&format!("/of-{}", id.0)).await.unwrap(), 0);
        assert!(!client.exists("/wanted", true).await.unwrap());
        clients.push(client);
    }
    ensemble.until(|counts| (counts.ephemerals, counts.watches) == (3, 3)).await.unwrap();
    assert_eq!(ensemble.counts().unwrap().connections, 3);

    let leader = ensemble.leader().unwrap();
    ensemble.kill(leader).await.unwrap();
    ensemble.until(|counts| counts.watches == 0).await.unwrap();
    let again = tokio::spawn(ensemble.until(|counts| counts.watches == 1));
    ensemble.wait_for_leader().await.unwrap();
    ensemble.restart(leader).await.unwrap();
    ensemble.until_serving(leader).await.unwrap();
    let address = ensemble.member(leader).unwrap().address();
    let mut client = Client::reopen(address, &clients[0]).await.unwrap();
    assert!(!client.exists("/wanted", true).await.unwrap());
    again.await.unwrap().unwrap();
    let gone = ensemble.until(|counts| counts.ephemerals == 4);
    drop(ensemble);
    assert!(matches!(gone.await, Err(TestkitError::Down)));
}

/// The history comes from the logs of all members. Some of them were down meanwhile.
#[tokio::test]
async fn the_history_has_each_created_and_deleted_znode() {
    let mut ensemble = TestEnsemble::start(3).await.unwrap();
    let mut sessions = Vec::new();
    for round in 0..3 {
        let leader = ensemble.leader().unwrap();
        let mut client = client_of(&ensemble, leader).await;
        assert_eq!(client.create_ephemeral(&format!("/in-{round}")).await.unwrap(), 0);
        sessions.push(client.session);
        ensemble.kill(leader).await.unwrap();
        ensemble.wait_for_leader().await.unwrap();
        ensemble.restart(leader).await.unwrap();
        ensemble.until_all_serve().await.unwrap();
    }
    for session in &sessions {
        ensemble.expire(*session).await.unwrap();
    }
    let history = ensemble.history(Zxid::ZERO).unwrap();
    assert!(history.is_sorted_by(|a, b| a.zxid < b.zxid));
    let created = |round: usize| ChangeKind::Created { owner: Some(sessions[round]), data: vec![] };
    let changes: Vec<(&str, ChangeKind)> =
        history.iter().map(|change| (&*change.path, change.kind.clone())).collect();
    let expected = [
        ("/in-0", created(0)),
        ("/in-1", created(1)),
        ("/in-2", created(2)),
        ("/in-0", ChangeKind::Deleted),
        ("/in-1", ChangeKind::Deleted),
        ("/in-2", ChangeKind::Deleted),
    ];
    assert_eq!(changes, expected);
    let later = ensemble.history(history[3].zxid).unwrap();
    assert_eq!(later, history[4..]);
}

#[tokio::test]
async fn slow_links_make_slow_writes() {
    let ensemble = TestEnsemble::start(3).await.unwrap();
    let leader = ensemble.leader().unwrap();
    let mut client = client_of(&ensemble, leader).await;
    for other in others(&ensemble, leader) {
        ensemble.delay_link(leader, other, Duration::from_millis(40));
        ensemble.delay_link(other, leader, Duration::from_millis(40));
    }
    let begun = std::time::Instant::now();
    // Pipelined: a delay does not limit the throughput.
    for at in 0..20 {
        client.send_create(&format!("/{at}"), false).await.unwrap();
    }
    for _ in 0..20 {
        assert!(matches!(client.next().await.unwrap(), Frame::Reply { error: 0, .. }));
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(80), "{took:?}");
    assert_eq!(client.sync().await.unwrap(), 0);
}
