//! The end of a parent's child counter: it stays at 2,147,483,647, and whoever comes from then on has the same number.

use crate::world::{Recipe, World, patiently};
use ostler_client::Client;
use ostler_recipes::{
    leader::LeaderLatch,
    lock::{InterProcessMutex, InterProcessReadWriteLock},
};
use std::pin::pin;

const LAST: i32 = i32::MAX;

/// Where numbers are given out for a recipe at `/a`.
fn queues(recipe: Recipe) -> &'static [&'static str] {
    match recipe {
        Recipe::Multi => &["/a/a", "/a/b"],
        Recipe::SemaphoreMutex | Recipe::Semaphore => &["/a/locks", "/a/leases"],
        _ => &["/a"],
    }
}

/// The next one in each queue gets this number.
async fn world_from(number: i32, queues: &[&str]) -> World {
    let mut world = World::start().await;
    let client = world.client().await;
    for queue in queues {
        client.create(queue, b"").creating_parents().await.unwrap();
    }
    client.close().await;
    for queue in queues {
        world.server.restart_with_next_sequence(queue, number).await.unwrap();
    }
    world
}

async fn three_clients(world: &World) -> [Client; 3] {
    [world.client().await, world.client().await, world.client().await]
}

/// One holds and two stand in line, in the order in which they came.
async fn one_at_a_time(recipe: Recipe, number: i32) {
    let (ephemerals, watches) =
        if number == LAST { recipe.with_one_behind() } else { recipe.with_one_waiting() };
    let world = world_from(number, queues(recipe)).await;
    let [a, b, c] = three_clients(&world).await;
    let first = patiently(recipe, recipe.hold_first(&a, "/a")).await;
    let mut second = pin!(recipe.hold(&b, "/a"));
    tokio::select! {
        biased;
        _ = &mut second => panic!("{recipe:?}: two hold at once"),
        () = world.until("the second is in line", move |c| (c.ephemerals, c.watches) == (ephemerals, watches)) => {}
    }
    // Readers would hold together.
    let last = if recipe == Recipe::Read { Recipe::Write } else { recipe };
    let mut third = pin!(last.hold(&c, "/a"));
    tokio::select! {
        biased;
        _ = &mut third => panic!("{recipe:?}: two hold at once"),
        _ = &mut second => panic!("{recipe:?}: two hold at once, since a third one came"),
        () = world.until("two are next", move |c| c.ephemerals > ephemerals + 1) => {
            panic!("{recipe:?}: two are next")
        }
        () = world.until("the third is in line", move |c| {
            (c.ephemerals, c.watches) == (ephemerals + 1, watches + 1)
        }) => {}
    }
    let first_token = first.fence.token();
    first.release().await;
    let second = tokio::select! {
        biased;
        _ = &mut third => panic!("{recipe:?}: the third one before the second, or with it"),
        second = patiently(recipe, &mut second) => second.unwrap(),
    };
    second.fence.verify().await.unwrap();
    let second_token = second.fence.token();
    second.release().await;
    let third = patiently(recipe, third).await.unwrap();
    assert!(first_token < second_token && second_token < third.fence.token(), "{recipe:?}");
    third.release().await;
    world.until_clean(recipe).await;
}

macro_rules! at_the_last_number {
    ($($name:ident: $recipe:ident),*) => {$(
        #[tokio::test]
        async fn $name() {
            one_at_a_time(Recipe::$recipe, LAST).await;
        }
    )*};
}

at_the_last_number! {
    one_has_a_mutex_at_the_last_number: Mutex,
    one_has_a_multi_lock_at_the_last_number: Multi,
    one_has_a_semaphore_mutex_at_the_last_number: SemaphoreMutex,
    one_has_a_lease_at_the_last_number: Semaphore,
    one_writes_at_the_last_number: Write,
    nobody_reads_beside_a_writer_at_the_last_number: Read,
    one_latch_leads_at_the_last_number: Latch,
    one_selector_leads_at_the_last_number: Selector
}

#[tokio::test]
async fn on_the_way_to_the_last_number_one_holds_at_a_time() {
    for recipe in Recipe::ALL.into_iter().filter(|recipe| *recipe != Recipe::Unfair) {
        one_at_a_time(recipe, LAST - 2).await;
    }
}

/// Where three come at once, as programs do that are started together.
#[tokio::test]
async fn of_three_mutexes_at_once_one_is_held() {
    let world = world_from(LAST, &["/a"]).await;
    let clients = three_clients(&world).await;
    let (to, mut held) = tokio::sync::mpsc::unbounded_channel();
    for client in clients {
        let to = to.clone();
        tokio::spawn(async move {
            let guard = InterProcessMutex::new(&client, "/a").acquire().await.unwrap();
            let _ = to.send((guard, client));
        });
    }
    let mut tokens = Vec::new();
    for others in (0..3).rev() {
        let (guard, _client) = patiently("the next", held.recv()).await.unwrap();
        tokio::select! {
            biased;
            _ = held.recv(), if others > 0 => panic!("two hold at once"),
            () = world.until("the others wait", move |c| (c.ephemerals, c.watches) == (others + 1, others)) => {}
        }
        tokens.push(guard.token());
        guard.release().await.unwrap();
    }
    assert!(tokens.is_sorted(), "not in the order in which they came: {tokens:?}");
}

/// It has the number of all others, and came later than those who wait; but its place is that of the writer it was.
#[tokio::test]
async fn a_writer_that_becomes_a_reader_keeps_its_place_at_the_last_number() {
    let world = world_from(LAST, &["/a"]).await;
    let [a, b, _] = three_clients(&world).await;
    let (ours, others) = (InterProcessReadWriteLock::new(&a, "/a"), InterProcessReadWriteLock::new(&b, "/a"));
    let writer = ours.acquire_write().await.unwrap();
    let mut next = pin!(others.acquire_write());
    tokio::select! {
        biased;
        _ = &mut next => panic!("two write at once"),
        () = world.until("waits", |c| (c.ephemerals, c.watches) == (2, 1)) => {}
    }
    let reader = writer.downgrade().await.unwrap();
    let asked = world.server.counts().unwrap().requests;
    tokio::select! {
        biased;
        _ = &mut next => panic!("one writes while another one reads"),
        () = world.until("waits for the reader", move |c| {
            (c.ephemerals, c.watches) == (2, 1) && c.requests >= asked
        }) => {}
    }
    reader.release().await.unwrap();
    let next = patiently("the next writer", next).await.unwrap();
    next.release().await.unwrap();
    world.until_clean("both").await;
}

#[tokio::test]
async fn participants_are_listed_as_they_came_at_the_last_number() {
    let world = world_from(LAST, &["/a"]).await;
    let client = world.client().await;
    let mut latches = Vec::new();
    for number in 0..5_usize {
        let latch = LeaderLatch::new(&client, "/a", &number.to_string());
        latch.start();
        world.until("in line", move |c| c.ephemerals == number + 1).await;
        latches.push(latch);
    }
    let all = latches[0].participants().await.unwrap();
    let ids: Vec<&str> = all.iter().map(|participant| &*participant.id).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    assert_eq!(latches[0].leader().await.unwrap().unwrap().id, "0");
    let leads: Vec<bool> = latches.iter().map(LeaderLatch::has_leadership).collect();
    assert_eq!(leads, [true, false, false, false, false]);
}
