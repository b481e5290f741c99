//! The cost of a hand-over does not depend on the number of contenders. `interop/recipes/herd.py` does the same with 1,000 of them.

use crate::world::{World, patiently};
use ostler_client::Client;
use ostler_recipes::leader::{LeaderLatch, UnfairElection};
use tokio::sync::mpsc;

const CLIENTS: usize = 10;

async fn clients(world: &World) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(world.client().await);
    }
    clients
}

/// Of the hand-overs among this number of contenders: events at most, and requests of the median; pings come in
/// between.
async fn fair(contenders: usize, hand_overs: usize) -> (u64, u64) {
    let world = World::start().await;
    let clients = clients(&world).await;
    let mut queue = std::collections::VecDeque::new();
    for number in 0..contenders {
        let latch = LeaderLatch::new(&clients[number % CLIENTS], "/latch", "");
        latch.start();
        world.until("queued", move |c| (c.ephemerals, c.watches) == (number + 1, number + 1)).await;
        queue.push_back(latch);
    }
    let (mut events, mut requests) = (0, Vec::new());
    for round in 0..hand_overs {
        let before = world.server.counts().unwrap();
        let leader = queue.pop_front().unwrap();
        leader.close().await;
        patiently("the next", queue[0].wait_for_leadership()).await.unwrap();
        let after = world.server.counts().unwrap();
        events = events.max(after.events - before.events);
        requests.push(after.requests - before.requests);
        // The one that has left comes back, at the end.
        let latch = LeaderLatch::new(&clients[round % CLIENTS], "/latch", "");
        latch.start();
        world.until("queued", move |c| (c.ephemerals, c.watches) == (contenders, contenders)).await;
        queue.push_back(latch);
    }
    requests.sort_unstable();
    (events, requests[hand_overs / 2])
}

async fn unfair(contenders: usize, hand_overs: usize) -> (u64, u64) {
    let world = World::start().await;
    let (to, mut won) = mpsc::unbounded_channel();
    let contend = |client: Client| {
        let to = to.clone();
        tokio::spawn(async move {
            let leadership = UnfairElection::new(&client, "/unfair", "").campaign().await.unwrap();
            let _ = to.send((leadership, client));
        });
    };
    for _ in 0..contenders {
        contend(world.client().await);
    }
    let (mut leadership, mut leader) = patiently("the first", won.recv()).await.unwrap();
    let mut most = (0, 0);
    for _ in 0..hand_overs {
        world.until("all watch", move |c| c.watches == contenders - 1 && c.outstanding == 0).await;
        let before = world.server.counts().unwrap();
        leadership.resign().await.unwrap();
        let next = patiently("the next", won.recv()).await.unwrap();
        world.until("the rest watch", move |c| c.watches == contenders - 2 && c.outstanding == 0).await;
        let after = world.server.counts().unwrap();
        most.0 = most.0.max(after.events - before.events);
        most.1 = most.1.max(after.requests - before.requests);
        contend(leader);
        (leadership, leader) = next;
    }
    most
}

#[tokio::test]
async fn a_hand_over_costs_the_same_however_many_contend() {
    for contenders in [10, 40, 160] {
        let (events, requests) = fair(contenders, 40).await;
        println!("fair, {contenders} contenders: {events} events at most, {requests} requests");
        // The leader deletes its znode and takes its watch back; the next one looks again, and watches itself.
        assert_eq!((events, requests), (1, 4), "among {contenders}");
    }
    for contenders in [10, 40] {
        let (events, requests) = unfair(contenders, 10).await;
        println!("unfair, {contenders} contenders: {events} events, {requests} requests, at most");
        assert!(events >= contenders as u64 - 1 && requests > contenders as u64);
    }
}
