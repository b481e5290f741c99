//! One fault at a chosen message of an exchange. Every message is enumerated.

use super::{Attach, Ensemble};
use ostler_testkit::{CutPoint, FrameProxy, HeldFrame};
use std::fmt::Debug;
use tokio::sync::Notify;

/// How often an exchange is played to count its messages.
const COUNTED: usize = 5;

/// How often an exchange is played at most until it comes to a point; once is enough for nearly all. Where others write
/// at the same time, or requests that go together come in one frame, it can take fewer messages than it did when they
/// were counted.
const TRIES: usize = 200;

/// One fault, and where the client was when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) attach: Attach,
    pub(crate) point: CutPoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The client's connection breaks, and it goes to another member, which is behind.
    Cut,
    /// The leader is killed; all lose their connections.
    LeaderKilled,
    /// The leader stands still until the others have another one.
    LeaderPaused,
    /// The others have another leader, and the one before does not know: it still answers its clients.
    LeaderDeserted,
    /// The client's session is ended.
    Expired,
}

impl Kind {
    /// Where the client is for it. At the leader, a cut and an expiry are what they are at a standalone server.
    pub(crate) fn attach(self) -> Attach {
        match self {
            Kind::LeaderKilled | Kind::LeaderPaused | Kind::LeaderDeserted => Attach::ToLeader,
            Kind::Cut | Kind::Expired => Attach::ToFollower,
        }
    }

    /// The faults of this kind in an exchange of this number of messages.
    pub(crate) fn everywhere(self, requests: u64, events: u64, attach: Attach) -> Vec<Fault> {
        let all = CutPoint::all(requests, events).filter(|point| match point {
            CutPoint::BeforeRequest(_) | CutPoint::BeforeEvent(_) => true,
            // Without its reply, it does not matter what becomes of the leader that gave it.
            CutPoint::BeforeReply(_) => !matches!(self, Kind::LeaderPaused | Kind::LeaderDeserted),
            // A fault after a reply comes before the next request.
            CutPoint::AfterReply(_) => self == Kind::Cut,
        });
        all.map(|point| Fault { kind: self, attach, point }).collect()
    }
}

/// The requests and events that an exchange takes as a rule. It is played with the numbers from 0 on.
pub(crate) async fn count(play: impl AsyncFn(usize) -> (u64, u64)) -> (u64, u64) {
    let (mut requests, mut events) = ([0; COUNTED], [0; COUNTED]);
    for number in 0..COUNTED {
        (requests[number], events[number]) = play(number).await;
    }
    requests.sort_unstable();
    events.sort_unstable();
    (requests[COUNTED / 2], events[COUNTED / 2])
}

/// An exchange that goes by a timer takes more messages while the machine is busy. If that was when they were counted,
/// the last of them never come again: a small part may be missed, and no more.
const MISSED_ONE_IN: usize = 20;

/// Plays an exchange for each point until it has come to that, each time with another number that
/// [`count`] has not used. Gives the number of points.
pub(crate) async fn at_each<P: Debug>(
    points: impl IntoIterator<Item = P>,
    play: impl AsyncFn(usize, &P) -> bool,
) -> usize {
    let (mut number, mut planned, mut repeated, mut missed) = (COUNTED, 0, 0, Vec::new());
    for point in points {
        let mut happened = false;
        for tries in 0..TRIES {
            happened = play(number, &point).await;
            number += 1;
            repeated += usize::from(tries > 0);
            if happened {
                break;
            }
        }
        planned += 1;
        if !happened {
            missed.push(point);
        }
    }
    println!("{planned} points, {repeated} repetitions");
    let few = planned / MISSED_ONE_IN;
    assert!(missed.len() <= few, "{} of {planned} points never come: {missed:?}", missed.len());
    planned
}

/// The tests of something, one for each kind of fault: it is called with the kind. `Leader` stands for all that can
/// befall one.
macro_rules! tests_of_faults {
    ($run:expr, [$($kind:ident),*]) => {$(
        tests_of_faults!(@$kind $run);
    )*};
    (@Cut $run:expr) => {
        #[tokio::test]
        async fn survives_a_cut_at_every_message() {
            ($run)($crate::servers::faults::Kind::Cut).await;
        }
    };
    (@Leader $run:expr) => {
        #[tokio::test]
        async fn survives_the_leaders_death_at_every_message() {
            ($run)($crate::servers::faults::Kind::LeaderKilled).await;
        }

        #[tokio::test]
        async fn survives_a_leader_that_stands_still_at_every_step() {
            ($run)($crate::servers::faults::Kind::LeaderPaused).await;
        }

        #[tokio::test]
        async fn survives_a_leader_without_followers_at_every_step() {
            ($run)($crate::servers::faults::Kind::LeaderDeserted).await;
        }
    };
    (@Expired $run:expr) => {
        #[tokio::test]
        async fn survives_the_end_of_its_session_at_every_message() {
            ($run)($crate::servers::faults::Kind::Expired).await;
        }
    };
}
pub(crate) use tests_of_faults;

/// Whether it has come to this point, or will once what is under way has arrived: an exchange can be over before that.
pub(crate) fn comes_to(proxy: &FrameProxy, point: CutPoint) -> bool {
    match point {
        CutPoint::BeforeRequest(n) | CutPoint::BeforeReply(n) | CutPoint::AfterReply(n) => {
            n <= proxy.requests()
        }
        CutPoint::BeforeEvent(n) => n <= proxy.events(),
    }
}

/// Plays an exchange, and brings about the fault when it comes to its message; gives whether it came to that. A cut can
/// come a little later, but before the client is closed.
pub(crate) async fn play<T>(
    exchange: impl Future<Output = T>,
    (fault, proxy, ensemble): (Option<Fault>, &FrameProxy, &Ensemble),
    expire: impl AsyncFn(),
) -> (T, bool) {
    let Some(Fault { kind, point, .. }) = fault else { return (exchange.await, false) };
    if kind == Kind::Cut {
        proxy.cut_at(point);
        let played = exchange.await;
        return (played, comes_to(proxy, point));
    }
    let (mut held, over) = (proxy.hold_at(point), Notify::new());
    let exchange = async {
        let played = exchange.await;
        over.notify_one();
        played
    };
    let strike = async {
        let reached = tokio::select! {
            reached = held.reached() => reached.is_ok(),
            () = over.notified() => comes_to(proxy, point) && held.reached().await.is_ok(),
        };
        match kind {
            // Another order of messages can need fewer of them.
            _ if !reached => return false,
            Kind::LeaderKilled => {
                let killed = ensemble.kill_leader().await;
                go_on(held, point);
                ensemble.restart(killed).await;
            }
            Kind::LeaderPaused => {
                let paused = ensemble.pause_leader().await;
                go_on(held, point);
                ensemble.resume(paused).await;
            }
            Kind::LeaderDeserted => {
                let deserted = ensemble.desert_leader().await;
                go_on(held, point);
                if let CutPoint::BeforeRequest(_) = point {
                    tokio::select! {
                        () = ensemble.until_asked(&deserted) => {}
                        () = over.notified() => {}
                    }
                }
                ensemble.let_all_hear().await;
            }
            Kind::Cut | Kind::Expired => {
                expire().await;
                go_on(held, point);
            }
        }
        true
    };
    tokio::join!(exchange, strike)
}

/// A request goes to whoever is left; a reply or an event is lost.
fn go_on(held: HeldFrame, point: CutPoint) {
    match point {
        CutPoint::BeforeRequest(_) => held.pass(),
        _ => held.cut(),
    }
}
