//! The znode by which a leader says that it is ready, at an ensemble, disturbed at each message.

use crate::{
    servers::{
        Attach, Ensemble, Servers, connect_string,
        faults::{self, Fault, Kind, tests_of_faults},
    },
    world::{SESSION, World, connect, patiently},
};
use ostler_client::Client;
use ostler_recipes::{
    Error,
    leader::{Acknowledged, Acknowledgement, LeaderLatch},
};
use ostler_testkit::{Change, ChangeKind};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

struct Site {
    world: World<Ensemble>,
    /// Up to which zxid the history was looked at.
    checked: AtomicU64,
}

/// Errors that pass when there is a connection, or a session, again.
fn assert_passes(error: &Error) {
    let passes = |error: &ostler_client::Error| error.is_connection_trouble() || error.is_session_over();
    assert!(error.is_not_held() || error.client().is_some_and(passes), "{error}");
}

/// Acknowledges at the beginning of each leadership.
async fn lead(latch: &LeaderLatch, ready: &Acknowledgement, text: &str) -> Infallible {
    loop {
        let fence = latch.wait_for_leadership().await.unwrap();
        match ready.acknowledge(&fence, text).await {
            Ok(()) => fence.lost().await,
            Err(error) => assert_passes(&error),
        }
    }
}

async fn hear(ready: &Acknowledgement) -> Acknowledged {
    loop {
        match ready.wait().await {
            Ok(said) => return said,
            Err(error) => assert_passes(&error),
        }
    }
}

async fn hear_of(latch: &LeaderLatch, (says, hears): (&Acknowledgement, &Acknowledgement)) -> Acknowledged {
    tokio::select! {
        said = hear(hears) => said,
        never = lead(latch, says, latch.id()) => match never {},
    }
}

/// We lead and say so, which another one hears; then it leads and says so, and we hear that.
async fn hand_over(world: &World<Ensemble>, ours: &Client, path: &str) {
    // At a leader that does not know yet that it is none, `sync` waits for nobody.
    let followers = world.server.addresses_from(Attach::ToFollower).await;
    let other = connect(&connect_string(&followers[..2]), SESSION).await;
    let ready = format!("{path}-ready");
    let (by_us, by_other) = (Acknowledgement::new(ours, &ready), Acknowledgement::new(&other, &ready));
    let first = LeaderLatch::new(ours, path, "first");
    first.start();
    let said = hear_of(&first, (&by_us, &by_other)).await;
    assert_eq!(said.data, "first");
    first.close().await;
    other.sync("/").await.unwrap();
    assert_eq!(by_other.now().await.unwrap(), None, "void, whether the znode is there or not");

    let second = LeaderLatch::new(&other, path, "second");
    second.start();
    let next = hear_of(&second, (&by_other, &by_us)).await;
    assert_eq!(next.data, "second", "never older than what we know");
    assert!(said.token < next.token);
    second.close().await;
    other.close().await;
}

/// Whatever is said to be so by a leader is said while that leader's znode is there. Gives how often it was said.
fn never_by_another(history: &[Change], what: &str) -> usize {
    let (mut there, mut said) = (BTreeSet::new(), 0);
    for change in history {
        match &change.kind {
            ChangeKind::Created { data, .. } if change.path.ends_with("-ready") => {
                let text = std::str::from_utf8(data).unwrap();
                let (token, node) = text.lines().next().unwrap().split_once(' ').unwrap();
                let token = u64::from_str_radix(token.strip_prefix("0x").unwrap(), 16).unwrap();
                assert!(there.contains(&(token, node.to_owned())), "{what}: {text} is not so");
                said += 1;
            }
            ChangeKind::Created { .. } => drop(there.insert((change.zxid.0, change.path.clone()))),
            ChangeKind::Deleted => there.retain(|(_, path)| *path != change.path),
        }
    }
    said
}

/// Plays it once, with the fault; gives the requests and events, and whether the fault has happened.
async fn run(site: &Site, (number, attach, fault): (usize, Attach, Option<Fault>)) -> (u64, u64, bool) {
    let (world, ensemble) = (&site.world, &site.world.server);
    ensemble.until_whole().await;
    let (proxy, ours) = world.proxied_by(&ensemble.addresses_from(attach).await).await;
    let what = format!("{attach:?}, {fault:?}");
    let path = format!("/election-{number}");
    let exchange = hand_over(world, &ours, &path);
    let play = faults::play(exchange, (fault, &proxy, ensemble), async || world.expire(&ours).await);
    let ((), happened) = patiently(&what, play).await;
    let counted = (proxy.requests(), proxy.events(), happened);
    ours.close().await;
    let is_cut = happened && fault.is_some_and(|fault| fault.kind == Kind::Cut);
    assert!(!is_cut || !proxy.cuts().is_empty(), "{what}: it is cut");
    world.until_clean(&what).await;
    let history = ensemble.history(site.checked.load(SeqCst)).await;
    site.checked.store(history.last().map_or(0, |change| change.zxid.0), SeqCst);
    assert!(never_by_another(&history, &what) >= 2, "{what}");
    counted
}

async fn at_every_message(kind: Kind) {
    let site = Site { world: World::ensemble().await, checked: AtomicU64::new(0) };
    let attach = kind.attach();
    if kind == Kind::Cut {
        site.world.server.let_second_follower_lag().await;
    }
    let undisturbed = async |number| {
        let (requests, events, _) = run(&site, (number, attach, None)).await;
        (requests, events)
    };
    let (requests, events) = faults::count(undisturbed).await;
    let play = async |number, fault: &Fault| run(&site, (number, attach, Some(*fault))).await.2;
    let happened = faults::at_each(kind.everywhere(requests, events, attach), play).await;
    println!("acknowledgement, {kind:?}: {happened}");
}

tests_of_faults!(at_every_message, [Cut, Leader, Expired]);

/// Each names the znodes from its own root.
#[tokio::test]
async fn those_who_say_it_and_those_who_hear_it_can_have_different_roots() {
    let world = World::start().await;
    let whole = world.client().await;
    let app = whole.using_namespace("/app").unwrap();
    let of_whole = Acknowledgement::new(&whole, "/app/deep/ready");
    let of_app = Acknowledgement::new(&app, "/deep/ready");
    for (client, election) in [(&whole, "/app/election"), (&app, "/election")] {
        let latch = LeaderLatch::new(client, election, "a");
        latch.start();
        let fence = patiently("leads", latch.wait_for_leadership()).await.unwrap();
        for says in [&of_whole, &of_app] {
            patiently("acknowledged", says.acknowledge(&fence, "yes")).await.unwrap();
            let heard = patiently("heard", of_whole.wait()).await.unwrap();
            assert_eq!((heard.token, &heard.data[..]), (fence.token(), &b"yes"[..]));
            assert!(heard.leader.starts_with("/app/election/"), "{heard:?}");
            let heard = patiently("heard", of_app.wait()).await.unwrap();
            assert!(heard.leader.starts_with("/election/"), "{heard:?}");
            says.withdraw(&fence).await.unwrap();
            assert_eq!(of_app.now().await.unwrap(), None);
        }
        patiently("closed", latch.close()).await;
    }
    // It cannot write outside of the leader's root.
    let latch = LeaderLatch::new(&app, "/election", "a");
    latch.start();
    let fence = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    let outside = Acknowledgement::new(&whole, "/deep/ready");
    let refused = patiently("refused", outside.acknowledge(&fence, "")).await.unwrap_err();
    assert!(matches!(refused, Error::OutsideOfRoot { .. }), "{refused}");
    assert_eq!(refused.to_string(), "/deep/ready cannot be named by a client whose root is /app");
    // And what a reader cannot look at, it cannot judge.
    of_app.acknowledge(&fence, "").await.unwrap();
    let reader = Acknowledgement::new(&whole.using_namespace("/app/deep").unwrap(), "/ready");
    let refused = patiently("refused", reader.wait()).await.unwrap_err();
    assert!(matches!(refused, Error::OutsideOfRoot { .. }), "{refused}");
    patiently("closed", latch.close()).await;
}
