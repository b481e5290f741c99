//! For how long nobody holds when a holder dies without a word.

use crate::{
    servers::{Ensemble, Servers},
    world::{Recipe, World, builder, is_record, open_journal, patiently, write_journal},
};
use ostler_client::Client;
use ostler_testkit::{Change, ChangeKind, Direction, FrameProxy, SeenFrame};
use std::{
    any::type_name_of_val,
    convert::Infallible,
    time::{Duration, Instant},
};
use tokio::task::{JoinSet, LocalSet};

/// The time that a dead holder has; servers count in ticks. A busy machine stalls for less.
const SESSION: Duration = Duration::from_millis(2400);
const TICK: Duration = Duration::from_millis(200);
/// How often a bystander writes, whose longest gap says how long a round trip takes on this machine just then.
const PULSE: Duration = Duration::from_millis(20);

/// The process of the holder ends, and its connection with it.
async fn process<S: Servers>(_: &S, holder: &FrameProxy) {
    holder.block();
}

/// The machine of the holder ends: nothing more is heard.
async fn machine<S: Servers>(_: &S, holder: &FrameProxy) {
    holder.silence(Direction::ToServer);
}

/// The machine of the holder, and with it the servers' leader. The next leader gives the session its full time again.
async fn machine_and_leader(servers: &Ensemble, holder: &FrameProxy) {
    holder.silence(Direction::ToServer);
    let killed = servers.kill_leader().await;
    servers.restart(killed).await;
}

/// One holds and dies right after it wrote; another one waits, holds and writes.
async fn dies<S: Servers>(world: World<S>, recipe: Recipe, death: impl AsyncFn(&S, &FrameProxy)) {
    let what = format!("{recipe:?}, {}", type_name_of_val(&death));
    let bystander = world.client().await;
    open_journal(&bystander).await;
    let proxy = FrameProxy::start_for(&world.server.addresses()).await.unwrap();
    let dying = builder(&proxy.connect_string(), SESSION).connect().await.unwrap();
    let (next_proxy, next) = world.proxied().await;
    let held = recipe.hold_first(&dying, "/a").await;
    let waiting = tokio::spawn(async move {
        let held = recipe.hold(&next, "/a").await.unwrap();
        assert!(write_journal(&held.fence).await);
        held
    });
    let expected = recipe.with_one_waiting();
    world.until("in the queue", move |c| (c.ephemerals, c.watches) == expected).await;
    let token = held.fence.token().number();
    assert!(write_journal(&held.fence).await, "{what}");
    let mut pulse = PauseDetector { longest: Duration::ZERO, last: Instant::now() };
    let taken = async {
        death(&world.server, &proxy).await;
        patiently(&what, waiting).await.unwrap()
    };
    let taken = tokio::select! {
        taken = taken => taken,
        never = pulse.beat(&bystander) => match never {},
    };
    let gap = pulse.longest.max(pulse.last.elapsed());

    let history = world.server.history(0).await;
    let mut written = history.iter().filter(|change| is_record(&change.path));
    let (last_word, first_word) = (written.next().unwrap(), written.next().unwrap());
    let gone = history.iter().find(|change| is_end_of(&history, token, change)).unwrap();
    assert!(last_word.zxid < gone.zxid && gone.zxid < first_word.zxid, "{what}: one after the other");
    let nobody = Duration::from_millis(first_word.time_ms - last_word.time_ms);
    let after = next_proxy.seen().into_iter().skip_while(|seen| !matches!(seen, SeenFrame::Event { .. }));
    let requests = after.filter(|seen| matches!(seen, SeenFrame::Request { .. })).count();
    println!("{what}: {nobody:?}, {requests} requests from the event to the write, a pulse in {gap:?}");
    // The session's end and the event take their time too.
    let round_trips = gap * (u32::try_from(requests).unwrap() + 2);
    assert!(nobody <= SESSION + TICK + round_trips, "{what}: nobody holds for {nobody:?}");
    // One of them can be the proof that the session of whoever has waited for long lives.
    assert!((1..=5).contains(&requests), "{what}: {requests} requests from the event to the write");

    assert!(!held.fence.is_held(), "{what}: it knows by its own clock");
    drop(held);
    taken.release().await;
    world.until_clean(&what).await;
}

struct PauseDetector {
    longest: Duration,
    last: Instant,
}

impl PauseDetector {
    async fn beat(&mut self, client: &Client) -> Infallible {
        loop {
            let beat = client.create("/pulse", b"").or_set_data().await;
            tokio::time::sleep(PULSE).await;
            match beat {
                Err(error) if error.is_connection_trouble() => {}
                beat => {
                    beat.unwrap();
                    self.longest = self.longest.max(self.last.elapsed());
                    self.last = Instant::now();
                }
            }
        }
    }
}

/// Whether the znode of this token goes with it.
fn is_end_of(history: &[Change], token: u64, change: &Change) -> bool {
    let created =
        |of: &&Change| of.zxid.0 == token && matches!(of.kind, ChangeKind::Created { owner: Some(_), .. });
    let created = history.iter().find(created).unwrap();
    change.kind == ChangeKind::Deleted && change.path == created.path
}

/// All at once: each does nothing but wait for the end of a session.
async fn all_die<S: Servers>(
    start: impl AsyncFn() -> World<S>,
    death: impl AsyncFn(&S, &FrameProxy) + Copy + 'static,
) {
    let mut dying = JoinSet::new();
    let here = LocalSet::new();
    for recipe in Recipe::ALL.into_iter().chain([Recipe::Multi]) {
        dying.spawn_local_on(dies(start().await, recipe, death), &here);
    }
    here.run_until(dying.join_all()).await;
}

#[tokio::test]
async fn nobody_holds_for_no_longer_than_a_session_and_a_round_trip() {
    all_die(World::start, process).await;
    all_die(World::start, machine).await;
}

#[tokio::test]
async fn nobody_holds_for_no_longer_than_a_session_and_a_round_trip_at_an_ensemble() {
    all_die(World::ensemble, machine).await;
}

#[tokio::test]
async fn nobody_holds_for_no_longer_than_a_session_after_a_failover() {
    all_die(World::ensemble, machine_and_leader).await;
}
