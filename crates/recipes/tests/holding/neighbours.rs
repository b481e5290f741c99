//! Neighbours in the queue that die, one after the other or both.

use crate::{
    servers::Servers,
    world::{Held, Recipe, World, patiently},
};
use ostler_client::Client;
use ostler_testkit::Counts;
use tokio::sync::mpsc;

const QUEUE: usize = 5;

/// The contenders for one lock, in the order of arrival. The first of them holds it.
pub(crate) type Queue = [Recipe; QUEUE];

/// Readers between writers, and next to each other.
pub(crate) const READERS_AND_WRITERS: Queue =
    [Recipe::Write, Recipe::Read, Recipe::Write, Recipe::Read, Recipe::Read];

/// Whether this number of the queue have come, by the ephemeral znodes and watches. Each but the first watches the one before
/// it; the second in the queue of a lock watches itself, too.
fn have_come(queue: &Queue, come: usize, counts: &Counts) -> bool {
    let more = |from: usize| usize::from(come >= from);
    let (ephemerals, watches) = match queue[0] {
        // The holder has both of the two, and all others wait for the first.
        Recipe::Multi => (come + 1, come - 1 + more(2)),
        // The next one has the lock and a lease that is too many; all others wait for the lock. The next one may have met
        // the holder's lock when it came, and then still watches itself.
        Recipe::SemaphoreMutex | Recipe::Semaphore => {
            let watches = come - 1 + more(3);
            return counts.ephemerals == come + more(2) && (watches..=watches + 1).contains(&counts.watches);
        }
        Recipe::Latch => (come, come),
        Recipe::Selector => (come, come + more(2)),
        Recipe::Mutex => (come, come - 1 + more(2)),
        _ => (come, come - 1),
    };
    (counts.ephemerals, counts.watches) == (ephemerals, watches)
}

/// Those of the queue who are left, in their order. Readers next to each other hold together.
fn turns(queue: &Queue, dead: [usize; 2]) -> Vec<Vec<usize>> {
    let living: Vec<usize> = (0..QUEUE).filter(|place| !dead.contains(place)).collect();
    let together = |a: &usize, b: &usize| [*a, *b].map(|place| queue[place]) == [Recipe::Read; 2];
    living.chunk_by(together).map(<[usize]>::to_vec).collect()
}

/// Of five in a queue two die, whichever, in both orders: the others hold one after the other, in their order.
pub(crate) async fn two_die<S: Servers>(world: World<S>, queue: Queue) {
    for (first, second) in (0..QUEUE).flat_map(|a| (0..QUEUE).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let path = format!("/{first}-{second}");
        let what = format!("{queue:?}: {first} and {second} die");
        let mut clients: Vec<Client> = Vec::new();
        let (to, mut holds) = mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (place, recipe) in queue.into_iter().enumerate() {
            let client = world.client().await;
            clients.push(client.clone());
            let (to, path) = (to.clone(), path.clone());
            tasks.push(tokio::spawn(async move {
                let held = recipe.hold(&client, &path).await.unwrap();
                to.send((place, held)).unwrap();
            }));
            world.until(&what, move |counts| have_come(&queue, place + 1, counts)).await;
        }
        let (place, held) = patiently(&what, holds.recv()).await.unwrap();
        assert_eq!(place, 0);
        // So that they do not come back: dead is dead.
        tasks[first].abort();
        tasks[second].abort();
        tokio::join!(world.expire(&clients[first]), world.expire(&clients[second]));
        let mut turns = turns(&queue, [first, second]);
        if turns[0] == [0] {
            assert!(held.fence.verify().await.is_ok(), "{what}");
            turns.remove(0);
        } else {
            assert!(held.fence.verify().await.unwrap_err().is_not_held(), "{what}");
        }
        let mut holders = vec![held];
        for turn in turns {
            for held in holders {
                held.release().await;
            }
            holders = all_hold(&turn, [first, second], &mut holds, &what).await;
        }
        for held in holders {
            held.release().await;
        }
        for client in clients {
            client.close().await;
        }
        world.until_clean(&what).await;
    }
}

/// Waits until all whose turn it is hold at the same time, and nobody else before that.
async fn all_hold(
    turn: &[usize],
    dead: [usize; 2],
    holds: &mut mpsc::UnboundedReceiver<(usize, Held)>,
    what: &str,
) -> Vec<Held> {
    let (mut missing, mut holders) = (turn.to_vec(), Vec::new());
    while !missing.is_empty() {
        let (place, held) = patiently(what, holds.recv()).await.unwrap();
        // Whoever died while it was about to hold does not count.
        if dead.contains(&place) {
            held.release().await;
            continue;
        }
        let found = missing.iter().position(|next| *next == place);
        missing.remove(found.unwrap_or_else(|| panic!("{what}: {place} holds before {missing:?}")));
        holders.push(held);
    }
    for held in &holders {
        assert!(held.fence.verify().await.is_ok(), "{what}: {turn:?} hold");
    }
    holders
}

#[tokio::test]
async fn any_two_of_a_mutexs_queue_die() {
    two_die(World::start().await, [Recipe::Mutex; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_multi_locks_queue_die() {
    two_die(World::start().await, [Recipe::Multi; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_semaphore_mutexs_queue_die() {
    two_die(World::start().await, [Recipe::SemaphoreMutex; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_semaphores_queue_die() {
    two_die(World::start().await, [Recipe::Semaphore; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_write_locks_queue_die() {
    two_die(World::start().await, [Recipe::Write; 5]).await;
}

#[tokio::test]
async fn any_two_of_readers_and_writers_die() {
    two_die(World::start().await, READERS_AND_WRITERS).await;
}

#[tokio::test]
async fn any_two_of_an_election_die() {
    two_die(World::start().await, [Recipe::Latch; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_selectors_queue_die() {
    two_die(World::start().await, [Recipe::Selector; 5]).await;
}
