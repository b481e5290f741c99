//! Shared values and numbers.

use crate::{
    servers::Servers,
    world::{World, at_every_cut, with_expiry_after_every_request, within},
};
use ostler_client::{Acl, Bytes, Error, Id, Perms, RetryPolicy, WatcherType};
use ostler_recipes::counter::{
    AtomicUpdate, CachedAtomicNumber, CounterError, DistributedAtomicInteger, DistributedAtomicLong,
    DistributedAtomicValue, LockFuture, PromotedToLock, PromotionLock, SharedCount, SharedValue,
};
use ostler_recipes::lock::InterProcessMutex;
use ostler_testkit::CutPoint;
use std::{num::NonZeroU16, sync::Arc, time::Duration};

const MS: Duration = Duration::from_millis(1);

fn is_unknown(error: &CounterError) -> bool {
    matches!(error, CounterError::Client(Error::ConnectionLoss { .. } | Error::SessionExpired { .. }))
}

/// Sets the count here, has it changed by another, and waits for that.
pub(crate) async fn share<S: Servers>(world: &World<S>) {
    let count = SharedCount::start(&world.client, "/count", 5).await.unwrap();
    assert_eq!(count.count().unwrap(), 5);
    let mut unknown = 0;
    loop {
        match count.try_set(&count.versioned_value().unwrap(), 6).await {
            Ok(true) => break,
            // The value was read again.
            Ok(false) => {}
            Err(error) if is_unknown(&error) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(unknown <= 1);
    let mut changes = count.changes();
    world.other.set_data("/count", &7_i32.to_be_bytes()).idempotent().await.unwrap();
    while count.count().unwrap() != 7 {
        changes.next().await.unwrap().unwrap();
    }
    // While nobody is there it goes and comes back.
    world.other.delete("/count").idempotent().await.unwrap();
    world.other.create("/count", &8_i32.to_be_bytes()).idempotent().await.unwrap();
    while count.count().unwrap() != 8 {
        changes.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_count_survives_a_cut_at_every_message() {
    at_every_cut(share).await;
}

#[tokio::test]
async fn a_count_that_is_set_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(share).await;
}

/// Has it changed by another, and waits for that.
pub(crate) async fn follow<S: Servers>(world: &World<S>) {
    let count = SharedCount::start(&world.client, "/count", 5).await.unwrap();
    let mut changes = count.changes();
    for number in 6..9_i32 {
        world.other.set_data("/count", &number.to_be_bytes()).await.unwrap();
        while count.count().unwrap() != number {
            changes.next().await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_count_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(follow).await;
}

/// CURATOR-329: the seed is for an absent znode only, also where the znode has version 0.
#[tokio::test]
async fn curator_329_the_seed_does_not_hide_an_existing_value() {
    let world = World::new().await;
    let first = SharedCount::start(&world.client, "/count", 10).await.unwrap();
    let second = SharedCount::start(&world.other, "/count", 20).await.unwrap();
    assert_eq!((first.count().unwrap(), second.count().unwrap()), (10, 10));
}

/// CURATOR-311: what was set while there was no connection is seen after it.
#[tokio::test]
async fn curator_311_a_value_is_not_stale_after_a_reconnect() {
    let world = World::new().await;
    let value = SharedValue::start(&world.client, "/value", b"old").await.unwrap();
    let mut changes = value.changes();
    world.proxy.block();
    world.other.set_data("/value", b"new").await.unwrap();
    world.proxy.heal();
    assert_eq!(&within(changes.next()).await.unwrap().value[..], b"new");
    assert_eq!(&value.value()[..], b"new");
    let mut stale = value.versioned_value();
    stale.stat.mzxid = ostler_client::Zxid(1);
    assert!(!value.try_set(&stale, b"x").await.unwrap());
    drop(value);
    within(world.no_watches()).await;
}

#[tokio::test]
async fn the_changes_of_a_value_end_with_the_client() {
    let world = World::new().await;
    let count = SharedCount::start(&world.client, "/count", 5).await.unwrap();
    let mut changes = count.changes();
    count.set(6).await.unwrap();
    world.client.close().await;
    assert_eq!(within(changes.next()).await.unwrap().unwrap().value, 6);
    for _ in 0..2 {
        assert!(within(changes.next()).await.is_none());
    }
    assert!(within(count.changes().next()).await.is_none());
    assert_eq!(count.count().unwrap(), 6);
}

#[tokio::test]
async fn the_changes_of_a_value_end_when_it_is_closed() {
    let world = World::new().await;
    let value = SharedValue::start(&world.client, "/value", b"1").await.unwrap();
    let mut changes = value.changes();
    for _ in 0..2 {
        within(value.close()).await;
    }
    within(world.no_watches()).await;
    assert!(within(changes.next()).await.is_none());
    assert_eq!(value.value(), "1");
}

/// The function that makes the new value has a reason of its own.
#[tokio::test]
async fn a_refused_change_leaves_the_value() {
    let world = World::new().await;
    let value = DistributedAtomicValue::new(&world.client, "/value", RetryPolicy::none());
    value.initialize("1").await.unwrap();
    let refuse = |_: Option<&Bytes>| Err(CounterError::refused("it is enough"));
    let refused = value.update(refuse).await.unwrap_err();
    assert_eq!(refused.to_string(), "the change is refused: it is enough");
    assert!(!refused.is_retryable() && refused.client().is_none());
    assert_eq!(value.get().await.unwrap().unwrap(), "1");
    assert_eq!(world.other.exists("/value").await.unwrap().unwrap().version, 0);
}

#[tokio::test]
async fn a_value_is_followed_on_after_a_refusal() {
    let world = World::new().await;
    let value = SharedValue::start(&world.client, "/value", b"1").await.unwrap();
    let mut changes = value.changes();
    let everybody = |perms| [Acl { perms, id: Id::new("world", "anyone") }];
    within(world.until(|counts| counts.watches == 1)).await;
    // The next read is refused, which is told before the sync behind it is answered.
    let mut read = world.proxy.hold_at(CutPoint::BeforeRequest(world.proxy.requests() + 1));
    world.other.set_data("/value", b"2").await.unwrap();
    within(read.reached()).await.unwrap();
    world.other.set_acl("/value", &everybody(Perms(Perms::WRITE.0 | Perms::ADMIN.0))).await.unwrap();
    read.pass();
    world.let_client_see().await;
    world.other.set_acl("/value", &everybody(Perms::ALL)).await.unwrap();
    assert_eq!(&within(changes.next()).await.unwrap().value[..], b"2");
    // The watch is taken away, and another one set.
    world.client.remove_watches("/value", WatcherType::Any).await.unwrap();
    within(world.until(|counts| counts.watches == 1)).await;
    world.other.set_data("/value", b"3").await.unwrap();
    assert_eq!(&within(changes.next()).await.unwrap().value[..], b"3");
    drop(value);
    within(world.end()).await;
}

/// However the connection breaks, a number is added as often as it is said to be, and once more at most for each time
/// that it is said to be unknown.
pub(crate) async fn add<S: Servers>(world: &World<S>) {
    let number = DistributedAtomicLong::new(&world.client, "/n", RetryPolicy::forever(MS));
    let (mut done, mut unknown) = (0, 0);
    for _ in 0..3 {
        match number.increment().await {
            Ok(update) => {
                assert!(update.succeeded && update.after == update.before + 1);
                done += 1;
            }
            Err(error) if is_unknown(&error) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(unknown <= 1, "one fault");
    let sum = loop {
        match number.get().await {
            Err(error) if is_unknown(&error) => {}
            sum => break sum.unwrap(),
        }
    };
    assert!((done..=done + unknown).contains(&sum), "{sum}: {done} done, {unknown} unknown");
}

#[tokio::test]
async fn every_addition_counts_once() {
    at_every_cut(add).await;
}

#[tokio::test]
async fn every_addition_counts_once_also_when_the_session_ends() {
    with_expiry_after_every_request(add).await;
}

#[tokio::test]
async fn many_add_at_once() {
    let world = World::new().await;
    let mut adding = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = world.another().await;
        adding.spawn(async move {
            let number = DistributedAtomicInteger::new(&client, "/deep/n", RetryPolicy::forever(MS));
            for _ in 0..25 {
                assert!(number.add(2).await.unwrap().succeeded);
                assert!(number.decrement().await.unwrap().succeeded);
            }
        });
    }
    within(adding.join_all()).await;
    let number = DistributedAtomicInteger::new(&world.client, "/deep/n", RetryPolicy::none());
    assert_eq!(number.get().await.unwrap(), 100);
    within(world.end()).await;
}

/// A lock for one process.
struct Local(Arc<tokio::sync::Mutex<()>>);

impl PromotionLock for Local {
    fn acquire_within(&self, limit: Duration) -> LockFuture<'_> {
        let lock = self.0.clone();
        Box::pin(async move {
            let held = tokio::time::timeout(limit, lock.lock_owned()).await.ok();
            Ok(held.map(|held| Box::new(held) as Box<dyn Send>))
        })
    }
}

#[tokio::test]
async fn writer_that_is_always_too_slow_takes_the_lock() {
    let world = World::new().await;
    let lock = Arc::new(tokio::sync::Mutex::new(()));
    let value = DistributedAtomicValue::new(&world.client, "/v", RetryPolicy::times(1, MS));
    assert!(value.initialize(b"0").await.unwrap() && !value.initialize(b"1").await.unwrap());
    let promotion = |limit| PromotedToLock::new(Local(lock.clone()), limit, RetryPolicy::none());
    let held = lock.clone().lock_owned().await;
    for (limit, succeeds) in [(MS, false), (Duration::from_secs(20), true)] {
        let value = value.clone().promoted_to_lock(promotion(limit));
        let setting = tokio::spawn(async move { value.try_set(b"mine").await });
        // A rival writes between the read and the write of both tries.
        world.proxy.reset();
        for write in [2, 4] {
            let mut write = world.proxy.hold_at(CutPoint::BeforeRequest(write));
            within(write.reached()).await.unwrap();
            world.other.set_data("/v", b"rival").await.unwrap();
            write.pass();
        }
        if succeeds {
            return finish(setting, held).await;
        }
        let update = within(setting).await.unwrap().unwrap();
        assert!(!update.succeeded);
        assert_eq!((update.stats.optimistic_tries, update.stats.promoted_tries), (2, 0));
        assert_eq!(update.after.as_deref(), Some(&b"rival"[..]));
    }
}

async fn finish(
    setting: tokio::task::JoinHandle<ostler_recipes::counter::Result<AtomicUpdate<Option<Bytes>>>>,
    held: tokio::sync::OwnedMutexGuard<()>,
) {
    drop(held);
    let update = within(setting).await.unwrap().unwrap();
    assert!(update.succeeded);
    assert_eq!((update.stats.optimistic_tries, update.stats.promoted_tries), (2, 1));
    assert_eq!(update.after.as_deref(), Some(&b"mine"[..]));
}

/// The mutex of a rival, who writes while it holds it.
#[tokio::test]
async fn writer_that_is_always_too_slow_takes_the_mutex() {
    let world = World::new().await;
    let rival = InterProcessMutex::new(&world.other, "/lock");
    world.other.create("/v", b"0").await.unwrap();
    let value = DistributedAtomicValue::new(&world.client, "/v", RetryPolicy::times(1, MS));
    for (limit, succeeds) in [(20 * MS, false), (Duration::from_secs(20), true)] {
        let held = rival.acquire().await.unwrap();
        let promotion = PromotedToLock::at(&world.client, "/lock", limit, RetryPolicy::none());
        let value = value.clone().promoted_to_lock(promotion);
        world.proxy.reset();
        let setting = tokio::spawn(async move { value.try_set(b"mine").await });
        for write in [2, 4] {
            let mut write = world.proxy.hold_at(CutPoint::BeforeRequest(write));
            within(write.reached()).await.unwrap();
            world.other.set_data("/v", b"rival").await.unwrap();
            write.pass();
        }
        if succeeds {
            within(world.until(|counts| (counts.ephemerals, counts.watches) == (2, 1))).await;
            held.multi().set_data("/v", b"rival's last").await.unwrap();
            held.release().await.unwrap();
            let update = within(setting).await.unwrap().unwrap();
            assert!(update.succeeded);
            assert_eq!((update.stats.optimistic_tries, update.stats.promoted_tries), (2, 1));
            assert_eq!(update.before.as_deref(), Some(&b"rival's last"[..]));
            assert_eq!(&world.other.get_data("/v").await.unwrap().0[..], b"mine");
        } else {
            let update = within(setting).await.unwrap().unwrap();
            assert!(!update.succeeded);
            assert_eq!((update.stats.optimistic_tries, update.stats.promoted_tries), (2, 0));
            within(world.until(|counts| (counts.ephemerals, counts.watches) == (1, 0))).await;
            held.release().await.unwrap();
        }
        within(world.no_ephemerals()).await;
    }
    within(world.end()).await;
}

/// Each has one try, and then the lock.
#[tokio::test]
async fn rivals_take_the_mutex_by_turns() {
    let world = World::new().await;
    let mut adding = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = world.another().await;
        adding.spawn(async move {
            let promotion =
                PromotedToLock::at(&client, "/lock", Duration::from_secs(60), RetryPolicy::forever(MS));
            let number = DistributedAtomicLong::new(&client, "/n", RetryPolicy::none());
            let number = number.promoted_to_lock(promotion);
            for _ in 0..10 {
                assert!(number.increment().await.unwrap().succeeded);
            }
        });
    }
    within(adding.join_all()).await;
    assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], 40_i64.to_be_bytes());
    within(world.no_ephemerals()).await;
    within(world.end()).await;
}

#[tokio::test]
async fn a_mutex_that_is_refused_changes_nothing() {
    let world = World::new().await;
    world.other.create("/v", b"0").await.unwrap();
    // It can have no children, so it is no lock.
    world.other.create("/lock", b"").ephemeral().await.unwrap();
    let promotion = PromotedToLock::at(&world.client, "/lock", Duration::from_secs(60), RetryPolicy::none());
    let value = DistributedAtomicValue::new(&world.client, "/v", RetryPolicy::none());
    let value = value.promoted_to_lock(promotion);
    world.proxy.reset();
    let setting = tokio::spawn(async move { value.try_set(b"mine").await });
    let mut write = world.proxy.hold_at(CutPoint::BeforeRequest(2));
    within(write.reached()).await.unwrap();
    world.other.set_data("/v", b"rival").await.unwrap();
    write.pass();
    let refused = within(setting).await.unwrap().unwrap_err();
    assert!(matches!(refused, CounterError::Lock(_)), "{refused}");
    assert_eq!(&world.other.get_data("/v").await.unwrap().0[..], b"rival");
    world.other.delete("/lock").await.unwrap();
    within(world.end()).await;
}

#[tokio::test]
async fn values_as_they_are() {
    let world = World::new().await;
    let number = DistributedAtomicLong::new(&world.client, "/n", RetryPolicy::none());
    assert_eq!(number.get().await.unwrap(), 0);
    assert!(!number.compare_and_set(0, 1).await.unwrap().succeeded, "there is none to compare with");
    number.force_set(41).await.unwrap();
    assert!(number.compare_and_set(41, 42).await.unwrap().succeeded);
    assert_eq!(number.subtract(50).await.unwrap().after, -8);
    let set = number.try_set(i64::MAX).await.unwrap();
    assert_eq!((set.before, set.after, set.stats.optimistic_tries), (-8, i64::MAX, 1));
    assert_eq!(number.increment().await.unwrap().after, i64::MIN);
    assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], i64::MIN.to_be_bytes());
    number.force_set(0).await.unwrap();
    let mut cached = CachedAtomicNumber::new(number, NonZeroU16::new(3).unwrap());
    let mut drawn = Vec::new();
    for _ in 0..7 {
        drawn.push(cached.next().await.unwrap());
    }
    assert_eq!(drawn, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], 9_i64.to_be_bytes());
    world.other.set_data("/n", b"text").await.unwrap();
    assert!(matches!(cached.next().await, Ok(7)));
    assert!(matches!(cached.next().await, Ok(8)));
    let corrupt = cached.next().await.unwrap_err();
    let CounterError::Corrupt { path, size: 4, expected: 8 } = corrupt else { panic!("{corrupt:?}") };
    assert_eq!(&*path, "/n");
    within(world.end()).await;
}

/// A rival writes between the read and the write.
#[tokio::test]
async fn contended_draw_is_an_error() {
    let world = World::new().await;
    let number = DistributedAtomicLong::new(&world.client, "/n", RetryPolicy::none());
    number.force_set(0).await.unwrap();
    let mut cached = CachedAtomicNumber::new(number, NonZeroU16::new(3).unwrap());
    world.proxy.reset();
    let mut write = world.proxy.hold_at(CutPoint::BeforeRequest(2));
    let rival = async {
        write.reached().await.unwrap();
        world.other.set_data("/n", &5_i64.to_be_bytes()).await.unwrap();
        write.pass();
    };
    let (drawn, ()) = within(async { tokio::join!(cached.next(), rival) }).await;
    let error = drawn.unwrap_err();
    assert!(matches!(&error, CounterError::Contended { path } if &**path == "/n"), "{error:?}");
    assert!(error.is_retryable());
    assert_eq!(cached.next().await.unwrap(), 5);
    within(world.end()).await;
}

/// A value that is read as a number is compared as a number, whatever its bytes.
#[tokio::test]
async fn numbers_are_compared_as_numbers() {
    let world = World::new().await;
    let number = DistributedAtomicLong::new(&world.client, "/n", RetryPolicy::none());
    let seven_and_more = [&7_i64.to_be_bytes()[..], b"more"].concat();
    for (data, found) in [(&b""[..], 0), (&seven_and_more[..], 7)] {
        world.other.create("/n", data).or_set_data().await.unwrap();
        assert_eq!(number.get().await.unwrap(), found);
        let refused = number.compare_and_set(found + 1, 5).await.unwrap();
        assert_eq!((refused.succeeded, refused.before, refused.after), (false, found, found));
        let set = number.compare_and_set(found, 5).await.unwrap();
        assert_eq!((set.succeeded, set.before, set.after), (true, found, 5));
        assert_eq!(&world.other.get_data("/n").await.unwrap().0[..], 5_i64.to_be_bytes());
    }
    world.other.set_data("/n", b"text").await.unwrap();
    let corrupt = number.compare_and_set(0, 5).await;
    assert!(matches!(corrupt, Err(CounterError::Corrupt { .. })), "{corrupt:?}");
    within(world.end()).await;
}
