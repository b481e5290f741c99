//! Neighbours in the queue that die, one after the other or both.

use crate::{
    servers::Servers,
    world::{Recipe, World, patiently},
};
use ostler_client::Client;
use tokio::sync::mpsc;

const QUEUE: usize = 5;

/// Of five in a queue two die, whichever, in both orders: the others hold one after the other, in their order.
pub(crate) async fn two_die<S: Servers>(world: World<S>, recipe: Recipe) {
    for (first, second) in (0..QUEUE).flat_map(|a| (0..QUEUE).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let path = format!("/{first}-{second}");
        let what = format!("{recipe:?}: {first} and {second} die");
        let mut clients: Vec<Client> = Vec::new();
        let (to, mut holds) = mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for place in 0..QUEUE {
            let client = world.client().await;
            clients.push(client.clone());
            let (to, path) = (to.clone(), path.clone());
            tasks.push(tokio::spawn(async move {
                let held = recipe.hold(&client, &path).await.unwrap();
                to.send((place, held)).unwrap();
            }));
            // Everybody behind the first watches the one before; leaders watch themselves.
            let watches = place + usize::from(matches!(recipe, Recipe::Latch | Recipe::Selector));
            world.until(&what, move |c| c.ephemerals == place + 1 && c.watches == watches).await;
        }
        let (place, mut held) = patiently(&what, holds.recv()).await.unwrap();
        assert_eq!(place, 0);
        // So that they do not come back: dead is dead.
        tasks[first].abort();
        tasks[second].abort();
        tokio::join!(world.expire(&clients[first]), world.expire(&clients[second]));
        let living: Vec<usize> = (0..QUEUE).filter(|place| ![first, second].contains(place)).collect();
        let mut order = vec![];
        if living.contains(&0) {
            assert!(held.fence.verify().await.is_ok(), "{what}");
            order.push(0);
        } else {
            assert!(held.fence.verify().await.unwrap_err().is_not_held(), "{what}");
        }
        while order.len() < living.len() {
            held.release().await;
            let (place, next) = patiently(&what, holds.recv()).await.unwrap();
            // Whoever died while it was about to hold does not count.
            if living.contains(&place) {
                assert!(next.fence.verify().await.is_ok(), "{what}: {place} holds");
                order.push(place);
            }
            held = next;
        }
        assert_eq!(order, living, "{what}: in the order of arrival");
        held.release().await;
        for client in clients {
            client.close().await;
        }
        world.until_clean(&what).await;
    }
}

#[tokio::test]
async fn any_two_of_a_mutexs_queue_die() {
    two_die(World::start().await, Recipe::Mutex).await;
}

#[tokio::test]
async fn any_two_of_a_write_locks_queue_die() {
    two_die(World::start().await, Recipe::Write).await;
}

#[tokio::test]
async fn any_two_of_an_election_die() {
    two_die(World::start().await, Recipe::Latch).await;
}

#[tokio::test]
async fn any_two_of_a_selectors_queue_die() {
    two_die(World::start().await, Recipe::Selector).await;
}
