//! Znodes that are kept there, and groups.

use crate::{
    servers::Servers,
    world::{World, at_every_cut, until_answered, with_expiry_after_every_request, within},
};
use futures_util::FutureExt;
use ostler_client::{Acl, CreateMode, ErrorCode, EventKind, Perms, Version};
use ostler_proto::op::Op;
use ostler_recipes::nodes::{GroupMember, PersistentNode, PersistentTtlNode};
use ostler_testkit::{CutPoint, SeenFrame};
use std::time::Duration;

/// It is created, set, deleted by somebody, is back, and goes when it is closed.
pub(crate) async fn life<S: Servers>(world: &World<S>, mode: CreateMode) {
    let node = PersistentNode::builder(&world.client, "/deep/n", b"1").mode(mode).start().unwrap();
    let path = node.created().await.unwrap();
    world.let_other_see().await;
    assert_eq!(&world.other.get_data(&path).await.unwrap().0[..], b"1");
    node.set_data(b"2").await.unwrap();
    world.let_other_see().await;
    let (data, stat) = world.other.get_data(&path).await.unwrap();
    assert_eq!(&data[..], b"2");
    assert_eq!(stat.ephemeral_owner != 0, mode.is_ephemeral());
    let mut creations = node.creations();
    // And not the one that comes after it, should the connection be lost just then.
    until_answered(|| world.other.delete(&path).version(Version::Exactly(stat.version)).quietly())
        .await
        .or_else(|error| error.is_bad_version().then_some(()).ok_or(error))
        .unwrap();
    assert_eq!(creations.next().await.as_deref(), Some(&*path), "its name stays");
    world.let_other_see().await;
    let names = world.other.get_children("/deep").await.unwrap();
    assert_eq!(names, [ostler_client::paths::name(&path)], "one, and no orphan");
    assert_eq!(&world.other.get_data(&path).await.unwrap().0[..], b"2");
    node.close().await;
    world.let_other_see().await;
    assert_eq!(world.other.get_children("/deep").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_node_survives_a_cut_at_every_message() {
    for mode in [CreateMode::Ephemeral, CreateMode::Persistent, CreateMode::EphemeralSequential] {
        at_every_cut(async |world| life(world, mode).await).await;
    }
}

/// It is there in the session that lives, with its data, and stays.
pub(crate) async fn outlive<S: Servers>(world: &World<S>) {
    let node = PersistentNode::start(&world.client, "/deep/n", b"1").unwrap();
    node.created().await.unwrap();
    node.set_data(b"2").await.unwrap();
    loop {
        let session = world.client.session().await.unwrap();
        let look = session.get_data("/deep/n").await;
        if let Ok((data, stat)) = look
            && session.is_alive()
            && stat.ephemeral_owner == session.id().0
        {
            assert_eq!(&data[..], b"2");
            break;
        }
        let (_, changed) = world.other.exists("/deep/n").watch().await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(20), changed).await;
    }
    node.close().await;
    world.let_other_see().await;
    assert_eq!(world.other.get_children("/deep").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_node_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(outlive).await;
}

#[tokio::test]
async fn a_node_outlives_its_session() {
    let world = World::new().await;
    let node = PersistentNode::start(&world.client, "/n", b"1").unwrap();
    within(node.created()).await.unwrap();
    let first = world.other.exists("/n").await.unwrap().unwrap().ephemeral_owner;
    let mut creations = node.creations();
    for _ in 0..3 {
        world.expire().await;
        within(creations.next()).await.unwrap();
    }
    let now = world.other.exists("/n").await.unwrap().unwrap().ephemeral_owner;
    assert_ne!(first, now);
    assert_eq!(now, world.client.session_id().unwrap().0);
}

/// CURATOR-297: a node that is closed before it was created is not left behind.
#[tokio::test]
async fn curator_297_closed_at_once() {
    let world = World::new().await;
    for number in 0..20 {
        let path = format!("/n-{number}");
        let node = PersistentNode::start(&world.client, &path, b"").unwrap();
        if number % 2 == 0 {
            within(node.close()).await;
            assert!(world.other.exists(&path).await.unwrap().is_none());
        } else {
            tokio::task::yield_now().await;
            drop(node);
        }
    }
    world.client.sync("/").await.unwrap();
    within(world.no_ephemerals()).await;
    within(world.no_watches()).await;
}

/// CURATOR-506: closing deletes the node and nothing above it, and nothing that is not its own.
#[tokio::test]
async fn curator_506_only_the_node_is_deleted() {
    let world = World::new().await;
    world.other.create("/a/b", b"").creating_parents().await.unwrap();
    let node = PersistentNode::start(&world.client, "/a/b/n", b"").unwrap();
    within(node.created()).await.unwrap();
    within(node.close()).await;
    assert!(world.other.exists("/a/b").await.unwrap().is_some());
    // Taken over from another session, it is left to that.
    world.other.create("/a/b/other", b"theirs").ephemeral().await.unwrap();
    let node = PersistentNode::start(&world.client, "/a/b/other", b"ours").unwrap();
    within(node.created()).await.unwrap();
    assert_eq!(&world.other.get_data("/a/b/other").await.unwrap().0[..], b"ours");
    within(node.close()).await;
    assert!(world.other.exists("/a/b/other").await.unwrap().is_some());
}

/// Somebody sets its data between the last look at it and its deletion.
#[tokio::test]
async fn a_node_that_is_changed_while_it_is_closed_goes_all_the_same() {
    for mode in [CreateMode::Ephemeral, CreateMode::Persistent] {
        let world = World::new().await;
        let start = async || {
            let node = PersistentNode::builder(&world.client, "/n", b"ours").mode(mode).start().unwrap();
            within(node.created()).await.unwrap();
            // Only then has it asked for all that it asks for before it is closed.
            within(world.until(|counts| counts.watches == 1)).await;
            node
        };
        // Undisturbed, to see which request of closing is the deletion.
        let node = start().await;
        let before = world.proxy.requests();
        within(node.close()).await;
        world.no_watches().await;
        let is_deletion = |seen: &SeenFrame| match seen {
            SeenFrame::Request { number, op: Some(Op::Delete) } => Some(number - before),
            _ => None,
        };
        let deletion = world.proxy.seen().iter().find_map(is_deletion).unwrap();
        let node = start().await;
        let mut held = world.proxy.hold_at(CutPoint::BeforeRequest(world.proxy.requests() + deletion));
        let change = async {
            held.reached().await.unwrap();
            world.other.set_data("/n", b"theirs").await.unwrap();
            held.pass();
        };
        within(async { tokio::join!(node.close(), change) }).await;
        assert!(world.other.exists("/n").await.unwrap().is_none(), "{mode:?}");
    }
}

/// CURATOR-485: data can be set before the node is there.
#[tokio::test]
async fn curator_485_data_before_the_node() {
    let world = World::new().await;
    world.proxy.block();
    let node = PersistentNode::start(&world.client, "/n", b"first").unwrap();
    let setting = node.set_data(b"second");
    world.proxy.heal();
    within(setting).await.unwrap();
    assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], b"second");
    assert_eq!(&node.data()[..], b"second");
}

/// CURATOR-190: with a number or an id in its name it is created again by the same name.
#[tokio::test]
async fn curator_190_the_name_stays() {
    let world = World::new().await;
    world.other.create("/n", b"").await.unwrap();
    for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
        let builder = PersistentNode::builder(&world.client, "/n/x-", b"").mode(mode).protected();
        let node = builder.start().unwrap();
        let path = within(node.created()).await.unwrap();
        let mut creations = node.creations();
        world.expire().await;
        assert_eq!(within(creations.next()).await, Some(path.clone()));
        assert_eq!(world.other.get_children("/n").await.unwrap(), [ostler_client::paths::name(&path)]);
        within(node.close()).await;
    }
}

/// CURATOR-590: without the znodes above it is refused, and comes with them.
#[tokio::test]
async fn curator_590_without_parents() {
    let world = World::new().await;
    let node = PersistentNode::builder(&world.client, "/p/n", b"").without_parents().start().unwrap();
    assert!(within(node.created()).await.unwrap_err().is_no_node());
    let mut creations = node.creations();
    world.other.create("/p", b"").await.unwrap();
    assert_eq!(within(creations.next()).await.as_deref(), Some("/p/n"));
    world.other.delete("/p").deleting_children().await.unwrap();
    assert!(world.other.exists("/p").await.unwrap().is_none());
    within(node.close()).await;
}

/// It is created, touched, set, deleted by somebody with its child, is back, and stays when it is dropped.
pub(crate) async fn touched<S: Servers>(world: &World<S>) {
    let node = PersistentTtlNode::start(&world.client, "/deep/n", TTL, b"1").unwrap();
    node.created().await.unwrap();
    until_touched(world).await;
    node.set_data(b"2").await.unwrap();
    world.let_other_see().await;
    let (data, stat) = world.other.get_data("/deep/n").await.unwrap();
    assert_eq!((&data[..], stat.ephemeral_owner), (&b"2"[..], 0), "of no session");
    let mut creations = node.creations();
    // Both at once: a touch could come in between. Or they are gone by a try whose reply was lost.
    let delete = || world.other.multi().delete("/deep/n/touch").delete("/deep/n").send();
    while let Err(error) = until_answered(delete).await {
        assert!(error.is_no_node(), "{error}");
    }
    creations.next().await.unwrap();
    until_touched(world).await;
    drop(node);
    world.let_other_see().await;
    assert_eq!(&world.other.get_data("/deep/n").await.unwrap().0[..], b"2");
}

const TTL: Duration = Duration::from_millis(20);

/// Waits until the child is there and has been touched.
async fn until_touched<S: Servers>(world: &World<S>) {
    loop {
        let (there, changed) = world.other.exists("/deep/n/touch").watch().await.unwrap();
        let changed = changed.await.unwrap().kind;
        if there.is_some() && changed == EventKind::NodeDataChanged {
            return;
        }
    }
}

#[tokio::test]
async fn a_ttl_node_survives_a_cut_at_every_message() {
    at_every_cut(touched).await;
}

#[tokio::test]
async fn a_ttl_node_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(touched).await;
}

#[tokio::test]
async fn a_ttl_node_is_touched_and_left_to_the_server() {
    let world = World::new().await;
    let (none, touched) = world.other.exists("/n/touch").watch().await.unwrap();
    assert!(none.is_none());
    let node = PersistentTtlNode::start(&world.client, "/n", Duration::from_millis(60), b"1").unwrap();
    within(node.created()).await.unwrap();
    assert_eq!(within(touched).await.unwrap().kind, EventKind::NodeCreated);
    for _ in 0..3 {
        let (_, touched) = world.other.get_data("/n/touch").watch().await.unwrap();
        assert_eq!(within(touched).await.unwrap().kind, EventKind::NodeDataChanged);
    }
    node.set_data(b"2").await.unwrap();
    for _ in 0..2 {
        within(node.close()).await;
    }
    let touched = world.other.exists("/n/touch").await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(world.other.exists("/n/touch").await.unwrap(), touched, "it is not touched any more");
    within(world.no_watches()).await;
    assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], b"2");
}

pub(crate) async fn know_each_other<S: Servers>(world: &World<S>) {
    let here = GroupMember::start(&world.client, "/group", "here", b"h").unwrap();
    assert_eq!(here.members().len(), 1, "it is always a member");
    here.joined().await.unwrap();
    let there = GroupMember::start(&world.other, "/group", "there", b"t").unwrap();
    there.joined().await.unwrap();
    let mut events = here.events();
    while here.members().len() < 2 {
        events.next().await.unwrap();
    }
    here.set_data(b"H").await.unwrap();
    let mut theirs = there.events();
    while there.members().get("here").map(|data| &data[..]) != Some(b"H") {
        theirs.next().await.unwrap();
    }
    there.close().await;
    while here.members().len() > 1 {
        events.next().await.unwrap();
    }
    here.close().await;
}

#[tokio::test]
async fn members_know_each_other() {
    at_every_cut(know_each_other).await;
}

/// A refused write is tried until it is allowed, and the znode stays the same.
#[tokio::test]
async fn data_that_is_refused_comes_when_it_is_allowed() {
    let world = World::new().await;
    let node = PersistentNode::start(&world.client, "/n", b"1").unwrap();
    within(node.created()).await.unwrap();
    let mut creations = node.creations();
    let read_only = [Acl::world(Perms(Perms::READ.0 | Perms::ADMIN.0))];
    world.other.set_acl("/n", &read_only).await.unwrap();
    let refused = within(node.set_data(b"2")).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::NoAuth), "{refused}");
    let (_, changed) = world.other.get_data("/n").watch().await.unwrap();
    world.other.set_acl("/n", &[Acl::world(Perms::ALL)]).await.unwrap();
    within(changed).await.unwrap();
    assert_eq!(world.other.get_data("/n").await.unwrap().0, "2");
    within(node.set_data(b"3")).await.unwrap();
    assert!(creations.next().now_or_never().is_none(), "it was not created anew");
    within(node.close()).await;
    within(world.end()).await;
}

/// Whoever asks is told, and not only the first.
#[tokio::test]
async fn a_refusal_to_create_is_told_to_each_caller() {
    let world = World::new().await;
    let read_only = [Acl::world(Perms(Perms::READ.0 | Perms::ADMIN.0))];
    world.other.create("/p", b"").acl(&read_only[..]).await.unwrap();
    let node = PersistentNode::start(&world.client, "/p/n", b"").unwrap();
    let mut creations = node.creations();
    for _ in 0..3 {
        let refused = within(node.created()).await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::NoAuth), "{refused}");
    }
    world.other.set_acl("/p", &[Acl::world(Perms::ALL)]).await.unwrap();
    assert_eq!(within(creations.next()).await.as_deref(), Some("/p/n"));
    assert_eq!(within(node.created()).await.unwrap(), "/p/n");
    node.close().await;
    within(world.end()).await;
}
