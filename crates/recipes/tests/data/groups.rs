//! Sets that are divided, and transactions of several sites.

use crate::{
    servers::{Servers, all_but, faults, patiently},
    world::{World, at_every_cut, builder, server, struck_at, with_expiry_after_every_request, within},
};
use futures_util::FutureExt;
use ostler_client::{Client, Error, Perms, RetryPolicy, SessionId, WatcherType};
use ostler_recipes::{
    nodes::GroupMember,
    partitioner::{SetPartitioner, Share, ShareEnd},
    two_phase_commit::{Transaction, Vote},
};
use ostler_testkit::CutPoint;
use std::{pin::pin, time::Duration};

fn member(client: &Client, id: &str) -> SetPartitioner {
    let items = ["1", "2", "3", "4", "5"].map(str::to_owned);
    SetPartitioner::start(client, "/deep/set", id, items, Duration::from_millis(4)).unwrap()
}

async fn shares(members: &mut [&mut SetPartitioner]) -> Vec<Share> {
    let mut shares = Vec::new();
    for member in members {
        shares.push(member.acquire().await.unwrap());
    }
    shares
}

/// Alone it owns everything; with a second member each owns its part, and nothing is owned twice at any time.
pub(crate) async fn divide<S: Servers>(world: &World<S>) {
    let mut here = member(&world.client, "a");
    let mut all = here.acquire().await.unwrap();
    assert_eq!(all.items(), ["1", "2", "3", "4", "5"]);
    let mut there = member(&world.other, "b");
    let theirs = async {
        loop {
            let share = there.acquire().await.unwrap();
            // A cut connection can make it look alone for a moment.
            if share.items() == ["2", "4"] {
                return share;
            }
            share.ended().await;
            share.release().await.unwrap();
        }
    };
    let ours = async {
        loop {
            all.ended().await;
            all.release().await.unwrap();
            all = here.acquire().await.unwrap();
            if all.items() == ["1", "3", "5"] && all.is_held() {
                return all;
            }
        }
    };
    let (ours, theirs) = tokio::join!(ours, theirs);
    assert!(ours.token("1") > theirs.token("1"));
    drop((ours, theirs, here, there));
    world.no_ephemerals().await;
}

#[tokio::test]
async fn a_set_is_divided_at_every_cut() {
    at_every_cut(divide).await;
}

#[tokio::test]
async fn a_set_is_divided_again_after_the_end_of_a_session() {
    let world = World::new().await;
    let (mut a, mut b) = (member(&world.client, "a"), member(&world.other, "b"));
    within(world.server.until(|counts| counts.ephemerals == 2)).await.unwrap();
    let held = within(shares(&mut [&mut a, &mut b])).await;
    assert_eq!((held[0].items(), held[1].items()), (vec!["1", "3", "5"], vec!["2", "4"]));
    let token = held[0].token("1").unwrap();
    world.expire().await;
    let end = within(held[0].ended()).await;
    assert!(matches!(end, ShareEnd::Lost | ShareEnd::Suspended | ShareEnd::MembersChanged), "{end:?}");
    assert_eq!(within(held[1].ended()).await, ShareEnd::MembersChanged);
    drop(held);
    loop {
        let held = within(shares(&mut [&mut a, &mut b])).await;
        if held[0].items() == ["1", "3", "5"] && held[1].items() == ["2", "4"] {
            assert!(held[0].token("1").unwrap() > token, "tokens only grow");
            break;
        }
    }
}

#[tokio::test]
async fn items_of_the_next_owner_stay_when_a_release_is_repeated() {
    let world = World::new().await;
    let mut here = member(&world.client, "b");
    let all = within(here.acquire()).await.unwrap();
    let mut there = member(&world.other, "a");
    // The event has come before the share is asked, so that the share sets no watches, and its next request is a deletion.
    within(world.until(|counts| counts.events == 1)).await;
    world.client.exists("/").await.unwrap();
    within(all.ended()).await;
    let next_owner = async {
        loop {
            let (queue, changed) = world.other.get_children("/deep/set/locks/1").watch().await.unwrap();
            if owner_of_first(&world, &queue).await == world.other.session_id() {
                return;
            }
            changed.await.unwrap();
        }
    };
    let released = CutPoint::BeforeReply(world.proxy.requests() + 1);
    let giving = within(struck_at(&world, released, all.release(), next_owner));
    let ((done, struck), theirs) = tokio::join!(giving, within(there.acquire()));
    done.unwrap();
    assert!(struck.is_some());
    let theirs = theirs.unwrap();
    assert_eq!((theirs.items(), theirs.is_held()), (vec!["1", "3", "5"], true));
    let queue = world.other.get_children("/deep/set/locks/1").await.unwrap();
    assert_eq!(owner_of_first(&world, &queue).await, world.other.session_id());
}

/// The session that owns the first znode in the queue of item 1.
async fn owner_of_first(world: &World, queue: &[String]) -> Option<SessionId> {
    let first = queue.iter().min_by_key(|name| name[name.len() - 10..].to_owned())?;
    let stat = world.other.exists(&format!("/deep/set/locks/1/{first}")).await.unwrap()?;
    Some(SessionId(stat.ephemeral_owner))
}

#[tokio::test]
async fn items_taken_without_a_reply_are_owned() {
    let server = server().await;
    let take_and_release = async |root: &str, cut: Option<CutPoint>| {
        let world = World::on(server.clone(), root, None).await;
        world.client.close().await;
        world.proxy.reset();
        if let Some(point) = cut {
            world.proxy.cut_at(point);
        }
        let servers = format!("{}{root}", world.proxy.connect_string());
        let client = builder(&servers).retry(RetryPolicy::none()).connect().await.unwrap();
        let mut member = member(&client, "a");
        let share = within(member.acquire()).await.unwrap();
        assert_eq!((share.items().len(), share.is_held()), (5, true), "{cut:?}");
        if let Err(error) = within(share.release()).await {
            assert!(error.is_retryable(), "{error}");
        }
        // Also without a reply to the release. The member's own znode is left.
        within(world.until(|counts| counts.ephemerals == 1)).await;
        let (requests, session) = (world.proxy.requests(), client.session_id().unwrap());
        drop(member);
        client.close().await;
        // Without a connection the client could not close its session.
        world.expire_session(session).await;
        world.no_ephemerals().await;
        requests
    };
    let requests = take_and_release("/whole", None).await;
    for number in 2..=requests {
        let point = CutPoint::BeforeReply(number);
        take_and_release(&format!("/cut-{number}"), Some(point)).await;
    }
}

/// A share is released, or another client deletes an item's znode. Then another member owns the item.
#[tokio::test]
async fn fence_of_a_former_owner_refuses_writes() {
    for released in [true, false] {
        let world = World::new().await;
        let mut here = member(&world.client, "a");
        let share = within(here.acquire()).await.unwrap();
        let fence = share.fence("2").unwrap().clone();
        fence.multi().create("/by", b"a").await.unwrap();
        let mut there = member(&world.other, "b");
        assert_eq!(within(share.ended()).await, ShareEnd::MembersChanged);
        let kept = match released {
            true => {
                within(share.release()).await.unwrap();
                None
            }
            false => {
                for (_, fence) in share.fences() {
                    world.other.delete(fence.node()).await.unwrap();
                }
                Some(share)
            }
        };
        let theirs = within(there.acquire()).await.unwrap();
        let next = theirs.fence("2").unwrap();
        next.multi().set_data("/by", b"b").await.unwrap();
        assert!(next.token() > fence.token());
        assert_eq!(fence.is_held(), !released, "only the servers know of a deletion");
        let late = fence.multi().set_data("/by", b"late").await.unwrap_err();
        assert!(late.is_not_held(), "{late}");
        assert_eq!(world.other.get_data("/by").await.unwrap().0, "b");
        drop((kept, theirs, here, there));
        within(world.end()).await;
    }
}

/// The client that has taken the znode's place owns the item, though no member has come or gone.
#[tokio::test]
async fn a_share_ends_with_the_znode_of_any_item() {
    let world = World::new().await;
    let mut alone = member(&world.client, "a");
    for item in ["1", "5"] {
        let share = within(alone.acquire()).await.unwrap();
        let deleted = async {
            let mut ended = pin!(share.ended());
            assert!((&mut ended).now_or_never().is_none());
            world.other.delete(share.fence(item).unwrap().node()).await.unwrap();
            ended.await
        };
        assert_eq!(within(deleted).await, ShareEnd::Lost, "{item}");
        share.release().await.unwrap();
    }
    drop(alone);
    within(world.end()).await;
}

/// Others divide the set without waiting for the end of the session.
#[tokio::test]
async fn a_member_that_is_closed_has_left() {
    let world = World::new().await;
    let (mut a, mut b) = (member(&world.client, "a"), member(&world.other, "b"));
    within(world.until(|counts| counts.ephemerals == 2)).await;
    let held = within(shares(&mut [&mut a, &mut b])).await;
    for share in held {
        share.release().await.unwrap();
    }
    for _ in 0..2 {
        within(a.close()).await;
    }
    let all = within(b.acquire()).await.unwrap();
    assert_eq!(all.items(), ["1", "2", "3", "4", "5"]);
    let late = within(a.acquire()).await.map(drop);
    assert!(matches!(late, Err(ostler_recipes::Error::Closed { .. })), "{late:?}");
}

#[tokio::test]
async fn the_end_of_a_share_can_be_waited_for_by_and_by() {
    let world = World::new().await;
    let mut alone = member(&world.client, "a");
    let share = within(alone.acquire()).await.unwrap();
    for _ in 0..3 {
        let waited = tokio::time::timeout(Duration::ZERO, share.ended()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
    let _second = member(&world.other, "b");
    assert_eq!(within(share.ended()).await, ShareEnd::MembersChanged);
}

#[tokio::test]
async fn a_share_can_be_dropped_outside_of_the_runtime() {
    let world = World::new().await;
    let mut alone = member(&world.client, "a");
    let share = within(alone.acquire()).await.unwrap();
    std::thread::spawn(move || drop(share)).join().unwrap();
    within(world.until(|counts| counts.ephemerals == 1)).await;
    for item in world.other.get_children("/deep/set/locks").await.unwrap() {
        let queue = world.other.get_children(&format!("/deep/set/locks/{item}")).await.unwrap();
        assert!(queue.is_empty(), "{item}: {queue:?}");
    }
}

pub(crate) async fn agree<S: Servers>(world: &World<S>, votes: [Vote; 2], expected: Vote) {
    let path = "/tx";
    loop {
        match Transaction::begin(&world.client, path, &["here", "there"]).await {
            Ok(_) => break,
            // All of it or nothing.
            Err(error) if error.is_node_exists() => {
                world.let_other_see().await;
                assert_eq!(world.other.get_children(path).await.unwrap().len(), 2);
                break;
            }
            Err(error) => assert!(error.is_connection_trouble() || error.is_session_over(), "{error}"),
        }
    }
    let (here, there) = (Transaction::join(&world.client, path), Transaction::join(&world.other, path));
    let ours = async {
        assert_eq!(here.vote("here", votes[0]).await.unwrap(), votes[0]);
        here.announce().await.unwrap()
    };
    let theirs = async {
        assert_eq!(there.vote("there", votes[1]).await.unwrap(), votes[1]);
        let (decision, announced) = tokio::join!(there.decision(), there.announced());
        assert_eq!(decision.unwrap(), announced.unwrap());
        // A vote is final.
        assert_eq!(there.vote("there", Vote::Abort).await.unwrap(), votes[1]);
    };
    let (decision, ()) = tokio::join!(ours, theirs);
    assert_eq!(decision, expected);
    here.end().await.unwrap();
    here.end().await.unwrap();
    world.let_other_see().await;
    assert!(world.other.exists(path).await.unwrap().is_none());
}

#[tokio::test]
async fn a_transaction_survives_a_cut_at_every_message() {
    at_every_cut(async |world| agree(world, [Vote::Commit; 2], Vote::Commit).await).await;
    at_every_cut(async |world| agree(world, [Vote::Abort, Vote::Commit], Vote::Abort).await).await;
}

#[tokio::test]
async fn a_transaction_survives_the_end_of_a_session_at_every_step() {
    with_expiry_after_every_request(async |world| agree(world, [Vote::Commit; 2], Vote::Commit).await).await;
    let abort = [Vote::Abort, Vote::Commit];
    with_expiry_after_every_request(async |world| agree(world, abort, Vote::Abort).await).await;
}

#[tokio::test]
async fn transaction_is_aborted_for_sites_that_do_not_vote() {
    let world = World::new().await;
    let transaction = Transaction::begin(&world.client, "/tx", &["a", "b"]).await.unwrap();
    transaction.vote("a", Vote::Commit).await.unwrap();
    let waiting = Transaction::join(&world.other, "/tx");
    let (decision, aborted) =
        within(async { tokio::join!(waiting.decision(), transaction.abort_undecided()) }).await;
    assert_eq!((decision.unwrap(), aborted.unwrap()), (Vote::Abort, Vote::Abort));
    // Too late.
    assert_eq!(transaction.vote("b", Vote::Commit).await.unwrap(), Vote::Abort);
    assert!(transaction.vote("c", Vote::Commit).await.unwrap_err().is_no_node());
    within(world.end()).await;
}

/// Whoever ends it can be cut off in the middle: what is left of a transaction does not say what was decided.
#[tokio::test]
async fn partly_deleted_transaction_decides_nothing() {
    let world = World::new().await;
    let transaction = Transaction::begin(&world.client, "/tx", &["a", "b", "c"]).await.unwrap();
    transaction.vote("a", Vote::Abort).await.unwrap();
    for site in ["b", "c"] {
        transaction.vote(site, Vote::Commit).await.unwrap();
    }
    assert_eq!(transaction.decision().await.unwrap(), Vote::Abort);
    for site in ["a", "b", "c"] {
        world.client.delete(&format!("/tx/{site}")).await.unwrap();
        let decision = within(transaction.decision()).await;
        assert!(decision.as_ref().is_err_and(Error::is_no_node), "{decision:?} without {site}");
        let decision = within(transaction.abort_undecided()).await;
        assert!(decision.as_ref().is_err_and(Error::is_no_node), "{decision:?} without {site}");
    }
    transaction.end().await.unwrap();
    within(world.end()).await;
}

/// At each message of its end, others see all of it or nothing.
#[tokio::test]
async fn a_transaction_ends_as_a_whole() {
    let server = server().await;
    let begun = async |number: usize| {
        let world = World::on(server.clone(), &format!("/end-{number}"), None).await;
        let transaction = Transaction::begin(&world.client, "/tx", &["a", "b"]).await.unwrap();
        world.proxy.reset();
        (world, transaction)
    };
    let undisturbed = async |number: usize| {
        let (world, transaction) = begun(number).await;
        within(transaction.end()).await.unwrap();
        let requests = world.proxy.requests();
        within(world.end()).await;
        (requests, 0)
    };
    let cut_at = async |number: usize, point: &CutPoint| {
        let (world, transaction) = begun(number).await;
        let look = async { world.other.get_children("/tx").await.map(|sites| sites.len()) };
        let (ended, seen) = within(struck_at(&world, *point, transaction.end(), look)).await;
        ended.unwrap();
        if let Some(Ok(sites)) = &seen {
            assert_eq!(*sites, 2, "{point}");
        }
        within(world.end()).await;
        seen.is_some()
    };
    let (requests, _) = faults::count(undisturbed).await;
    let points = CutPoint::all(requests, 0).filter(|point| !matches!(point, CutPoint::AfterReply(_)));
    faults::at_each(points, cut_at).await;
}

#[tokio::test]
async fn a_transaction_with_more_below_it_ends_too() {
    let world = World::new().await;
    let transaction = Transaction::begin(&world.client, "/tx", &["a", "b"]).await.unwrap();
    world.client.create("/tx/a/note", b"").await.unwrap();
    transaction.end().await.unwrap();
    assert!(world.client.exists("/tx").await.unwrap().is_none());
    within(world.end()).await;
}

/// A znode below another member would count as a member, and own partitions that nobody takes.
#[tokio::test]
async fn an_id_is_one_name() {
    let world = World::new().await;
    let is_bad_path = |member: &ostler_recipes::Result<SetPartitioner>| {
        member.as_ref().is_err_and(|error| matches!(error.client(), Some(Error::BadPath { .. })))
    };
    for id in ["a/b", "", "."] {
        let settle = Duration::from_millis(4);
        let member = SetPartitioner::start(&world.client, "/set", id, ["1".to_owned()], settle);
        assert!(is_bad_path(&member), "{id}: {member:?}");
        let member = GroupMember::start(&world.client, "/group", id, b"");
        assert!(matches!(member, Err(Error::BadPath { .. })), "{id}: {member:?}");
    }
    let items = ["1/2".to_owned()];
    let member = SetPartitioner::start(&world.client, "/set", "a", items, Duration::from_millis(4));
    assert!(is_bad_path(&member), "{member:?}");
    within(world.end()).await;
}

/// Nobody has decided, and nobody has closed anything.
#[tokio::test]
async fn wait_for_a_decision_survives_a_removed_watch() {
    let world = World::new().await;
    let transaction = Transaction::begin(&world.client, "/tx", &["a"]).await.unwrap();
    let mut waiting = tokio::spawn({
        let transaction = transaction.clone();
        async move { transaction.decision().await }
    });
    within(world.until(|counts| counts.watches == 1)).await;
    world.client.remove_watches("/tx/a", WatcherType::Any).await.unwrap();
    tokio::select! {
        ended = &mut waiting => panic!("it must wait: {ended:?}"),
        () = within(world.until(|counts| counts.watches == 1)) => {}
    }
    transaction.vote("a", Vote::Commit).await.unwrap();
    assert_eq!(within(waiting).await.unwrap().unwrap(), Vote::Commit);
    within(world.end()).await;
}

/// Only members that are not there are looked for again.
#[tokio::test]
async fn members_that_may_not_be_read_are_an_error() {
    let world = World::new().await;
    let settle = Duration::from_millis(4);
    let mut member = SetPartitioner::start(&world.client, "/s", "a", ["1".to_owned()], settle).unwrap();
    drop(patiently("acquired", member.acquire()).await.unwrap());
    world.other.set_acl("/s/party", &all_but(Perms::READ)[..]).await.unwrap();
    let refused = patiently("refused", member.acquire()).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("/s/party"), "{refused}");
    drop(member);
    within(world.end()).await;
}
