//! The features of each lock beside holding.

use crate::world::{PATIENCE, Recipe, World, patiently};
use futures_util::FutureExt;
use ostler_client::{WatcherType, paths};
use ostler_recipes::{
    Error,
    counter::SharedCount,
    lock::{
        AnyLock, InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore,
        InterProcessSemaphoreMutex, Owner, WriteGuard, attempt_revoke,
    },
};
use ostler_testkit::{Counts, CutPoint, Direction, Op, SeenFrame};
use std::{pin::pin, time::Duration};
use tokio::{sync::watch, time::timeout};

const BRIEFLY: Duration = Duration::from_millis(60);

#[tokio::test]
async fn acquiring_within_a_limit_leaves_the_queue_when_it_is_over() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let (first, second) = (InterProcessMutex::new(&a, "/a"), InterProcessMutex::new(&b, "/a"));
    let guard = first.acquire_within(PATIENCE).await.unwrap().unwrap();
    assert!(second.acquire_within(BRIEFLY).await.unwrap().is_none());
    world.until("left the queue", |c| (c.ephemerals, c.watches) == (1, 0)).await;
    guard.release().await.unwrap();
    let guard = second.acquire_within(PATIENCE).await.unwrap().unwrap();
    guard.release().await.unwrap();
    world.until_clean("limits").await;
}

/// A free lock costs one round trip.
#[tokio::test]
async fn the_queue_is_read_without_waiting_for_the_create() {
    let world = World::start().await;
    let other = world.client().await;
    other.create("/a", b"").await.unwrap();
    let (proxy, ours) = world.proxied().await;
    let before = world.server.counts().unwrap().requests;
    proxy.silence(Direction::ToClient);
    let waiting = tokio::spawn(async move { InterProcessMutex::new(&ours, "/a").acquire().await });
    world.until("two requests", move |c| c.requests >= before + 2).await;
    let asked = proxy.seen();
    let [SeenFrame::Request { op: Some(made), .. }, SeenFrame::Request { op: Some(list), .. }] = &asked[..]
    else {
        panic!("a create, a list, and nothing that waits for a ping: {asked:?}")
    };
    assert_eq!((*made, *list), (Op::Create2, Op::GetChildren));
    proxy.heal();
    let guard = patiently("our turn", waiting).await.unwrap().unwrap();
    guard.release().await.unwrap();
}

/// The queue is asked for right behind the create. Here that is refused, as there is no parent, and then somebody else
/// makes the parent and holds: the list has the other one in it, and not us, who come later.
#[tokio::test]
async fn a_list_from_before_we_came_is_not_taken_for_the_loss_of_our_znode() {
    let world = World::start().await;
    let other = world.client().await;
    let (proxy, ours) = world.proxied().await;
    let mut list = proxy.hold_at(CutPoint::BeforeRequest(2));
    let before = world.server.counts().unwrap().requests;
    let waiting = tokio::spawn(async move { InterProcessMutex::new(&ours, "/a").acquire().await });
    patiently("the list is asked for", list.reached()).await.unwrap();
    world.until("the create is refused", move |c| c.requests > before).await;
    let first = InterProcessMutex::new(&other, "/a").acquire().await.unwrap();
    list.pass();
    world.until("waits", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    first.release().await.unwrap();
    let second = patiently("our turn", waiting).await.unwrap().unwrap();
    second.release().await.unwrap();
    world.until_clean("both").await;
}

#[tokio::test]
async fn participants_are_listed_in_their_order_with_their_data() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let first = InterProcessMutex::new(&a, "/a").node_data("first");
    let guard = first.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { InterProcessMutex::new(&b, "/a").acquire().await });
    world.until("waits", |c| c.watches == 2).await;
    let nodes = first.participant_nodes().await.unwrap();
    assert_eq!((nodes.len(), &*nodes[0]), (2, guard.node()));
    assert_eq!(a.get_data(guard.node()).await.unwrap().0, "first");
    drop(guard);
    patiently("the next", waiting).await.unwrap().unwrap().release().await.unwrap();
    assert!(InterProcessMutex::new(&a, "/none").participant_nodes().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_holder_is_asked_to_give_the_lock_up() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let lock = InterProcessMutex::new(&a, "/a");
    let guard = lock.acquire().await.unwrap();
    let holder = tokio::spawn(async move {
        guard.revocation_requested().await.unwrap();
        guard.fence().verify().await.unwrap();
        guard.release().await.unwrap();
    });
    world.until("the holder watches", |c| c.watches == 1).await;
    let nodes = InterProcessMutex::new(&b, "/a").participant_nodes().await.unwrap();
    b.set_data(&nodes[0], "anything else").await.unwrap();
    attempt_revoke(&b, &nodes[0]).await.unwrap();
    let guard = patiently("revoked", InterProcessMutex::new(&b, "/a").acquire()).await.unwrap();
    patiently("released", holder).await.unwrap();
    attempt_revoke(&b, &nodes[0]).await.unwrap();

    let asked = async { guard.revocation_requested().await };
    let (asked, ()) = tokio::join!(asked, async {
        world.until("the holder watches", |c| c.watches == 1).await;
        a.delete(guard.node()).await.unwrap();
    });
    assert!(asked.unwrap_err().is_not_held());
    drop(guard);
    world.until_clean("revocation").await;
}

#[tokio::test]
async fn readers_and_writers_are_asked_to_give_their_locks_up() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let [ours, other] = [&a, &b].map(|client| InterProcessReadWriteLock::new(client, "/rw"));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let guard = ours.acquire_read().await.unwrap();
        readers.spawn(async move {
            guard.revocation_requested().await.unwrap();
            guard.fence().verify().await.unwrap();
            guard.release().await.unwrap();
        });
    }
    world.until("the readers watch", |c| c.watches == 2).await;
    for node in other.reader_nodes().await.unwrap() {
        attempt_revoke(&b, &node).await.unwrap();
    }
    patiently("released", readers.join_all()).await;

    let writer = ours.acquire_write().await.unwrap();
    let writing = tokio::spawn(async move {
        writer.revocation_requested().await.unwrap();
        writer.downgrade().await.unwrap()
    });
    world.until("the writer watches", |c| c.watches == 1).await;
    attempt_revoke(&b, &other.writer_nodes().await.unwrap()[0]).await.unwrap();
    // A reader now, who was not asked yet.
    let reader = patiently("downgraded", writing).await.unwrap();
    let (asked, ()) = tokio::join!(reader.revocation_requested(), async {
        world.until("the reader watches", |c| c.watches == 1).await;
        attempt_revoke(&b, &other.reader_nodes().await.unwrap()[0]).await.unwrap();
    });
    asked.unwrap();
    reader.release().await.unwrap();

    let writer = patiently("free", ours.acquire_write()).await.unwrap();
    let (asked, ()) = tokio::join!(writer.revocation_requested(), async {
        world.until("the writer watches", |c| c.watches == 1).await;
        b.delete(writer.fence().node()).await.unwrap();
    });
    assert!(asked.unwrap_err().is_not_held());
    drop(writer);
    world.until_clean("revocation").await;
}

/// Neither way from the write lock to the read lock is open to an owner that has lost it. Returns the guard that is left.
async fn become_no_readers([one, two]: [WriteGuard; 2]) -> WriteGuard {
    let read = [patiently("read", one.acquire_read()).await, patiently("downgraded", two.downgrade()).await];
    for reading in read {
        assert!(reading.as_ref().is_err_and(Error::is_not_held), "{reading:?}");
    }
    one
}

/// In between others may have written, and the lost guard's owner would read on as if nobody had.
#[tokio::test]
async fn a_writer_that_has_lost_the_lock_becomes_no_reader() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let [ours, other] = [&a, &b].map(|client| InterProcessReadWriteLock::new(client, "/rw"));
    let me = Owner::new();
    let guards = [ours.acquire_write_as(&me).await.unwrap(), ours.acquire_write_as(&me).await.unwrap()];
    world.expire(&a).await;
    patiently("the client knows", guards[0].fence().session().ended()).await;
    patiently("free", other.acquire_write()).await.unwrap().release().await.unwrap();
    let again = patiently("another session", ours.acquire_read_as(&me)).await.unwrap();
    let one = become_no_readers(guards).await;
    assert!(again.is_held());
    drop((one, again));
    world.until_clean("the loss").await;
}

/// The same when another client has deleted the writer's znode: the next writer holds, and the session lives.
#[tokio::test]
async fn a_writer_whose_znode_is_gone_becomes_no_reader_beside_the_next_writer() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let [ours, other] = [&a, &b].map(|client| InterProcessReadWriteLock::new(client, "/rw"));
    let me = Owner::new();
    let guards = [ours.acquire_write_as(&me).await.unwrap(), ours.acquire_write_as(&me).await.unwrap()];
    let waiting = tokio::spawn(async move { other.acquire_write().await });
    world.until("the second writer waits", |c| c.watches == 1).await;
    b.delete(guards[0].fence().node()).await.unwrap();
    let second = patiently("the second writer", waiting).await.unwrap().unwrap();
    // The owner has to wait behind the second writer.
    assert!(ours.acquire_read_as_within(&me, BRIEFLY).await.unwrap().is_none());
    let one = become_no_readers(guards).await;
    second.fence().verify().await.unwrap();
    second.release().await.unwrap();
    patiently("our turn", ours.acquire_read_as(&me)).await.unwrap().release().await.unwrap();
    drop(one);
    world.until_clean("a deletion by hand").await;
}

/// Another client has deleted the znode of the contender that is next, so that two wait for a lease.
#[tokio::test]
async fn two_contenders_of_a_semaphore_do_not_wait_for_each_other() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let semaphores = [&a, &b].map(|client| InterProcessSemaphore::new(client, "/semaphore", 1));
    let held = semaphores[0].acquire().await.unwrap();
    let contend = |semaphore: &InterProcessSemaphore| {
        let semaphore = semaphore.clone();
        tokio::spawn(async move { semaphore.acquire().await.unwrap() })
    };
    let first = contend(&semaphores[0]);
    world.until("the first waits for a lease", |c| (c.ephemerals, c.watches) == (3, 1)).await;
    let next = a.get_children("/semaphore/locks").await.unwrap().remove(0);
    let second = contend(&semaphores[1]);
    world.until("the second waits behind it", |c| c.ephemerals == 4 && c.watches >= 2).await;
    b.delete(&format!("/semaphore/locks/{next}")).await.unwrap();
    let both_wait = async {
        loop {
            let (leases, changed) = a.get_children("/semaphore/leases").watch().await.unwrap();
            if leases.len() == 3 {
                return;
            }
            changed.await.unwrap();
        }
    };
    patiently("both wait for a lease", both_wait).await;
    held.release().await.unwrap();
    patiently("the first", first).await.unwrap().release().await.unwrap();
    patiently("the second", second).await.unwrap().release().await.unwrap();
    world.until_clean("the semaphore").await;
}

/// The deletion of the only znode before its own is enough: a hand-over costs no look at the queue.
#[tokio::test]
async fn the_next_holds_without_another_look_at_the_queue() {
    let world = World::start().await;
    let (proxy, ours) = world.proxied().await;
    let other = world.client().await;
    let held = Recipe::Mutex.hold(&other, "/a").await.unwrap();
    let waiting = tokio::spawn(async move { Recipe::Mutex.hold(&ours, "/a").await });
    world.until("it waits", |c| (c.ephemerals, c.watches) == Recipe::Mutex.with_one_waiting()).await;
    let before = proxy.requests();
    held.release().await;
    let held = patiently("its turn", waiting).await.unwrap().unwrap();
    assert_eq!(proxy.requests(), before, "{:?}", proxy.seen());
    held.release().await;
    world.until_clean("a hand-over").await;
}

/// A change of the holder's data is an event as well, and no hand-over.
#[tokio::test]
async fn the_next_does_not_hold_when_the_holder_is_asked_to_release() {
    for recipe in [Recipe::Mutex, Recipe::Selector] {
        let world = World::start().await;
        let (a, b) = (world.client().await, world.client().await);
        let held = patiently("free", recipe.hold(&a, "/a")).await.unwrap();
        let waiting = tokio::spawn(async move { recipe.hold(&b, "/a").await });
        let waits = move |c: &Counts| (c.ephemerals, c.watches) == recipe.with_one_waiting();
        world.until("it waits", waits).await;
        let before = world.server.counts().unwrap().events;
        attempt_revoke(&a, held.fence.node()).await.unwrap();
        world.until("it waits again", move |c| c.events > before && waits(c)).await;
        assert!(!waiting.is_finished());
        held.fence.verify().await.unwrap();
        held.release().await;
        patiently("its turn", waiting).await.unwrap().unwrap().release().await;
        world.until_clean(recipe).await;
    }
}

/// Its own znode is deleted after it has seen it in the queue, and before it watches it.
#[tokio::test]
async fn the_next_whose_own_znode_is_deleted_comes_again() {
    let world = World::start().await;
    let other = world.client().await;
    let held = Recipe::Mutex.hold(&other, "/a").await.unwrap();
    let (proxy, ours) = world.proxied().await;
    let contender = ours.clone();
    // A create, the list of the queue, and the look at the own znode.
    let mut look = proxy.hold_at(CutPoint::BeforeRequest(3));
    let waiting = tokio::spawn(async move { Recipe::Mutex.hold(&contender, "/a").await });
    patiently("the look", look.reached()).await.unwrap();
    let asked = proxy.seen();
    assert!(matches!(asked.last(), Some(SeenFrame::Request { op: Some(Op::GetData), .. })), "{asked:?}");
    let nodes = InterProcessMutex::new(&other, "/a").participant_nodes().await.unwrap();
    assert!(nodes.len() == 2 && nodes[0] == held.fence.node(), "{nodes:?}");
    other.delete(&nodes[1]).await.unwrap();
    look.pass();
    world.until("it waits", |c| (c.ephemerals, c.watches) == Recipe::Mutex.with_one_waiting()).await;
    held.release().await;
    patiently("its turn", waiting).await.unwrap().unwrap().release().await;
    world.until_clean("a deletion by hand").await;
}

/// The program has removed the watch of a contender, for example with all its watches.
#[tokio::test]
async fn a_contender_whose_watch_is_removed_goes_on_waiting() {
    for recipe in [Recipe::Mutex, Recipe::Latch, Recipe::Unfair, Recipe::Write, Recipe::Semaphore] {
        let world = World::start().await;
        let (a, b) = (world.client().await, world.client().await);
        let held = patiently("free", recipe.hold(&a, "/a")).await.unwrap();
        let contender = b.clone();
        let waiting = tokio::spawn(async move { recipe.hold(&contender, "/a").await });
        let waits = move |c: &Counts| (c.ephemerals, c.watches) == recipe.with_one_waiting();
        world.until("it waits", waits).await;
        let node = held.fence.node();
        // The next for a lease watches all of them.
        let watched = if recipe == Recipe::Semaphore { paths::parent(node).unwrap() } else { node };
        patiently("removed", b.remove_watches(watched, WatcherType::Any)).await.unwrap();
        world.until("it watches again", waits).await;
        held.release().await;
        let held = patiently("its turn", waiting).await.unwrap().unwrap();
        held.release().await;
        world.until_clean(recipe).await;
    }
}

/// The same when nobody has told the client yet.
#[tokio::test]
async fn a_writer_that_does_not_know_of_its_loss_becomes_no_reader() {
    let world = World::start().await;
    let (proxy, ours) = world.proxied().await;
    let writer = InterProcessReadWriteLock::new(&ours, "/rw").acquire_write().await.unwrap();
    let mut held = proxy.hold_at(CutPoint::BeforeRequest(proxy.requests() + 1));
    let expire = async {
        held.reached().await.unwrap();
        world.expire(&ours).await;
        held.pass();
    };
    let (reading, ()) = patiently("read", async { tokio::join!(writer.acquire_read(), expire) }).await;
    let reading = reading.map(|guard| guard.is_held());
    assert!(reading.as_ref().is_err_and(Error::is_not_held), "{reading:?}");
    drop(writer);
    world.until_clean("the loss").await;
}

#[tokio::test]
async fn readers_share_and_writers_do_not() {
    let world = World::start().await;
    let (a, b, c) = (world.client().await, world.client().await, world.client().await);
    let locks = [&a, &b, &c].map(|client| InterProcessReadWriteLock::new(client, "/rw"));
    let (one, two) = (locks[0].acquire_read().await.unwrap(), locks[1].acquire_read().await.unwrap());
    assert_eq!(locks[2].reader_nodes().await.unwrap().len(), 2);
    let me = Owner::new();
    assert!(locks[2].acquire_write_as_within(&me, BRIEFLY).await.unwrap().is_none());
    assert!(locks[2].acquire_write_within(BRIEFLY).await.unwrap().is_none());
    assert!(locks[2].acquire_read_within(BRIEFLY).await.unwrap().is_some());
    let writer = tokio::spawn({
        let lock = locks[2].clone();
        async move { lock.acquire_write().await.unwrap() }
    });
    world.until("waits for the last reader", |c| (c.ephemerals, c.watches) == (3, 1)).await;
    // The nearest goes first: the other one still reads.
    two.release().await.unwrap();
    world.until("waits for the other", |c| (c.ephemerals, c.watches) == (2, 1)).await;
    assert!(!writer.is_finished());
    assert!(locks[1].acquire_read_as_within(&me, BRIEFLY).await.unwrap().is_none(), "behind the writer");
    one.release().await.unwrap();
    let writer = patiently("writes", writer).await.unwrap();
    writer.multi().create("/x", b"").await.unwrap();
    writer.release().await.unwrap();
    world.until_clean("read-write").await;
}

#[tokio::test]
async fn both_sides_of_a_read_write_lock_are_reentrant() {
    let world = World::start().await;
    let client = world.client().await;
    let (lock, me) = (InterProcessReadWriteLock::new(&client, "/rw"), Owner::new());
    let writer = lock.acquire_write_as(&me).await.unwrap();
    let again = lock.acquire_write_as(&me).await.unwrap();
    let reader = patiently("at once", lock.acquire_read_as(&me)).await.unwrap();
    let nested = lock.acquire_read_as(&me).await.unwrap();
    assert_eq!(client.get_children("/rw").await.unwrap().len(), 2);
    // A writer that also reads may write again.
    let third = patiently("at once", lock.acquire_write_as(&me)).await.unwrap();
    for writer in [writer, again, third] {
        writer.release().await.unwrap();
    }
    assert_eq!(lock.writer_nodes().await.unwrap().len(), 0);
    let refused = lock.acquire_write_as(&me).await.unwrap_err();
    assert!(matches!(refused, Error::WouldWaitForItself { .. }), "{refused}");
    reader.release().await.unwrap();
    assert!(nested.is_held());
    nested.release().await.unwrap();
    patiently("free", lock.acquire_write_as(&me)).await.unwrap().release().await.unwrap();
    world.until_clean("reentrance").await;
}

#[tokio::test]
async fn a_semaphore_has_as_many_leases_as_its_size() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let (one, two) = (InterProcessSemaphore::new(&a, "/s", 3), InterProcessSemaphore::new(&b, "/s", 3));
    let mut leases = one.node_data("mine").acquire_many(2).await.unwrap();
    assert_eq!(leases[0].data().await.unwrap(), "mine");
    assert!(leases[1].token() > leases[0].token());
    // All or none.
    assert!(two.acquire_many_within(2, BRIEFLY).await.unwrap().is_none());
    world.until("returned", |c| (c.ephemerals, c.watches) == (2, 0)).await;
    let third = two.acquire().await.unwrap();
    assert!(third.node_name().contains("lease-") && third.is_held());
    assert_eq!(two.participant_nodes().await.unwrap().len(), 3);
    let waiting = tokio::spawn({
        let two = two.clone();
        async move { two.acquire().await.unwrap() }
    });
    world.until("waits", |c| (c.ephemerals, c.watches) == (5, 1)).await;
    leases.pop().unwrap().release().await.unwrap();
    let fourth = patiently("given", waiting).await.unwrap();
    fourth.multi().create("/x", b"").await.unwrap();
    drop((leases, third, fourth));
    world.until_clean("semaphore").await;
}

#[tokio::test]
async fn a_semaphores_size_can_be_counted_elsewhere() {
    let world = World::start().await;
    let client = world.client().await;
    let (count, size) = watch::channel(1);
    let semaphore = InterProcessSemaphore::new(&client, "/s", size);
    let first = semaphore.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().await.unwrap() }
    });
    world.until("waits", |c| (c.ephemerals, c.watches) == (3, 1)).await;
    // Answers come in order: the one that waits has seen that it has to.
    client.exists("/s").await.unwrap();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    count.send(2).unwrap();
    let second = patiently("more", waiting).await.unwrap();
    // Fewer take none away, and give none out until enough are returned.
    count.send(-1).unwrap();
    assert!(first.is_held() && second.is_held());
    first.release().await.unwrap();
    assert!(semaphore.acquire_within(BRIEFLY).await.unwrap().is_none());
    count.send(1).unwrap();
    drop(count);
    second.release().await.unwrap();
    patiently("the last size counts", semaphore.acquire()).await.unwrap().release().await.unwrap();
    world.until_clean("size").await;
}

/// One client changes the count, and the semaphore of another one has that size.
#[tokio::test]
async fn a_semaphores_size_can_be_a_shared_count() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let here = SharedCount::start(&a, "/size", 1).await.unwrap();
    let there = SharedCount::start(&b, "/size", 7).await.unwrap();
    let semaphore = InterProcessSemaphore::new(&a, "/s", &here);
    let other = InterProcessSemaphore::new(&b, "/s", &there);
    let first = semaphore.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.acquire().await.unwrap() }
    });
    // Each count is watched, too.
    world.until("waits", |c| (c.ephemerals, c.watches) == (3, 3)).await;
    // Answers come in order: the one that waits has seen that it has to.
    b.exists("/s").await.unwrap();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    here.set(2).await.unwrap();
    let second = patiently("more", waiting).await.unwrap();

    let mut changes = here.changes();
    there.set(1).await.unwrap();
    patiently("fewer", changes.next()).await.unwrap().unwrap();
    second.release().await.unwrap();
    assert!(semaphore.acquire_within(BRIEFLY).await.unwrap().is_none());
    // A value that is no count gives out no lease, until there is a count again.
    a.set_data("/size", "?").await.unwrap();
    assert!(patiently("no count", changes.next()).await.unwrap().is_err());
    first.release().await.unwrap();
    assert!(semaphore.acquire_within(BRIEFLY).await.unwrap().is_none());
    there.set(1).await.unwrap();
    let third = patiently("a count again", semaphore.acquire()).await.unwrap();
    third.release().await.unwrap();
    // The semaphores follow the count also when nothing else does.
    drop((here, there));
    a.set_data("/size", &2_i32.to_be_bytes()).await.unwrap();
    let two = patiently("two leases", semaphore.acquire_many(2)).await.unwrap();
    drop((two, semaphore, other));
    world.until_clean("size").await;
}

/// The last size of a closed count stays.
#[tokio::test]
async fn a_semaphore_keeps_the_size_of_a_closed_count() {
    let world = World::start().await;
    let client = world.client().await;
    let count = SharedCount::start(&client, "/size", 1).await.unwrap();
    let semaphore = InterProcessSemaphore::new(&client, "/s", count.clone());
    count.close().await;
    patiently("the last size counts", semaphore.acquire()).await.unwrap().release().await.unwrap();
    world.until_clean("size").await;
}

#[tokio::test]
async fn a_multi_lock_has_all_or_none() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let all = InterProcessMultiLock::of([
        InterProcessMutex::new(&a, "/m").into(),
        InterProcessSemaphoreMutex::new(&a, "/s").into(),
        AnyLock::Read(InterProcessReadWriteLock::new(&a, "/r")),
        AnyLock::Write(InterProcessReadWriteLock::new(&a, "/w")),
    ]);
    let guard = all.acquire().await.unwrap();
    assert!(guard.is_held() && guard.guards().len() == 4);
    assert!(timeout(BRIEFLY, guard.lost()).await.is_err());
    b.delete(guard.guards()[2].node()).await.unwrap();
    patiently("one is lost", guard.lost()).await;
    guard.release().await.unwrap();
    let none = InterProcessMultiLock::of([]).acquire().await.unwrap();
    assert!(timeout(BRIEFLY, none.lost()).await.is_err(), "nothing can be lost");

    let guard = all.acquire().await.unwrap();
    assert!(InterProcessMutex::new(&b, "/m").acquire_within(BRIEFLY).await.unwrap().is_none());
    let reader = InterProcessReadWriteLock::new(&b, "/r").acquire_read().await.unwrap();
    assert!(reader.is_held());
    reader.release().await.unwrap();
    guard.release().await.unwrap();
    world.until_clean("released").await;

    // The last one is taken, so none is kept.
    let taken = InterProcessReadWriteLock::new(&b, "/w").acquire_write().await.unwrap();
    assert!(all.acquire_within(BRIEFLY).await.unwrap().is_none());
    world.until("all given back", |c| (c.ephemerals, c.watches) == (1, 0)).await;
    drop(taken);

    // One that is refused gives back those that were had.
    b.create("/e", b"").ephemeral().await.unwrap();
    let refused = InterProcessMultiLock::new(&a, ["/m", "/e"]).acquire().await.unwrap_err();
    assert!(refused.to_string().contains("NoChildrenForEphemerals"), "{refused}");
    world.until("all given back", |c| (c.ephemerals, c.watches) == (1, 0)).await;
}

#[tokio::test]
async fn a_multi_lock_knows_its_owner() {
    let world = World::start().await;
    let client = world.client().await;
    let (lock, me) = (InterProcessMutex::new(&client, "/a"), Owner::new());
    let guard = lock.acquire_as(&me).await.unwrap();
    let both = InterProcessMultiLock::of([lock.clone().into(), InterProcessMutex::new(&client, "/b").into()]);
    let all = patiently("at once", both.acquire_as(&me)).await.unwrap();
    guard.release().await.unwrap();
    assert!(all.is_held());
    let nested = both.acquire_as_within(&me, PATIENCE).await.unwrap().unwrap();
    assert!(both.acquire_as_within(&Owner::new(), BRIEFLY).await.unwrap().is_none());
    nested.release().await.unwrap();
    all.release().await.unwrap();
    world.until_clean("multi").await;
}

#[tokio::test]
async fn closed_client_ends_waiting_calls() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let guard = InterProcessMutex::new(&a, "/a").acquire().await.unwrap();
    let lock = InterProcessMutex::new(&b, "/a");
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    world.until("waits", |c| c.watches == 1).await;
    b.close().await;
    let ended = patiently("ends", waiting).await.unwrap();
    assert!(matches!(ended, Err(Error::Client(ostler_client::Error::Closed))), "{ended:?}");
    assert!(matches!(lock.acquire().await, Err(Error::Client(ostler_client::Error::Closed))));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn futures_can_be_spawned_wherever_they_come_from() {
    fn is_send<T: Send>(_: &T) {}
    let world = World::start().await;
    let client = world.client().await;
    let mutex = InterProcessMutex::new(&client, "/a");
    is_send(&mutex.acquire());
    is_send(&mutex.acquire_as_within(&Owner::new(), BRIEFLY));
    let lock = InterProcessReadWriteLock::new(&client, "/a");
    is_send(&lock.acquire_read());
    is_send(&lock.acquire_write());
    is_send(&InterProcessSemaphore::new(&client, "/a", 1).acquire_many(2));
    is_send(&InterProcessMultiLock::new(&client, ["/a"]).acquire());
    is_send(&ostler_recipes::leader::UnfairElection::new(&client, "/a", "").campaign());
    is_send(&ostler_recipes::leader::LeaderLatch::new(&client, "/a", "").wait_for_leadership());
}

/// Whoever asks need not wait for what the same owner waits for: in one task that would be for ever.
#[tokio::test]
async fn is_held_by_answers_while_the_owner_waits() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let other = InterProcessMutex::new(&a, "/a").acquire().await.unwrap();
    let (lock, me) = (InterProcessMutex::new(&b, "/a"), Owner::new());
    let mut waiting = pin!(lock.acquire_as(&me));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert!(!lock.is_held_by(&me));
    other.release().await.unwrap();
    let mine = patiently("our turn", waiting).await.unwrap();
    assert!(lock.is_held_by(&me));
    mine.release().await.unwrap();
    assert!(!lock.is_held_by(&me));
    world.until_clean("asked").await;
}

/// The write lock would come after the read lock that the same owner waits for, and so after itself.
#[tokio::test]
async fn an_owner_that_waits_to_read_is_not_let_wait_to_write() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let other = InterProcessReadWriteLock::new(&a, "/a").acquire_write().await.unwrap();
    let (lock, me) = (InterProcessReadWriteLock::new(&b, "/a"), Owner::new());
    let mut reading = pin!(lock.acquire_read_as(&me));
    assert!(reading.as_mut().now_or_never().is_none());
    let writing = patiently("told at once", lock.acquire_write_as(&me)).await;
    assert!(matches!(writing, Err(Error::WouldWaitForItself { .. })), "{writing:?}");
    other.release().await.unwrap();
    patiently("our turn", reading).await.unwrap().release().await.unwrap();
    world.until_clean("told").await;
}

/// A contender that waits to write and asks to read gets both, as a writer does.
#[tokio::test]
async fn an_owner_that_waits_to_write_reads_under_its_write_lock() {
    let world = World::start().await;
    let (a, b) = (world.client().await, world.client().await);
    let other = InterProcessReadWriteLock::new(&a, "/a").acquire_write().await.unwrap();
    let (lock, me) = (InterProcessReadWriteLock::new(&b, "/a"), Owner::new());
    let both = async { tokio::join!(lock.acquire_write_as(&me), lock.acquire_read_as(&me)) };
    let release = async {
        world.until("waits", |c| c.watches == 1).await;
        other.release().await.unwrap();
    };
    let ((writing, reading), ()) = patiently("both", async { tokio::join!(both, release) }).await;
    let (writing, reading) = (writing.unwrap(), reading.unwrap());
    assert_eq!(writing.token(), reading.fence().token());
    writing.release().await.unwrap();
    reading.release().await.unwrap();
    world.until_clean("both").await;
}
