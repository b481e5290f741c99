//! What goes wrong, once, at a chosen message of an exchange, and where to begin: every message is enumerated.

use super::{Attach, Ensemble};
use ostler_testkit::{CutPoint, FrameProxy, Held};
use tokio::sync::Notify;

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
    /// The client's session is ended.
    Expired,
}

impl Kind {
    /// The faults of this kind in an exchange of so many messages.
    pub(crate) fn everywhere(self, requests: u64, events: u64, attach: Attach) -> Vec<Fault> {
        // What is killed or expired after a reply is killed or expired before the next request.
        let all = CutPoint::all(requests, events)
            .filter(|point| self == Kind::Cut || !matches!(point, CutPoint::AfterReply(_)));
        all.map(|point| Fault { kind: self, attach, point }).collect()
    }
}

/// Plays an exchange, and brings about the fault when it comes to its message; gives whether it came to that.
pub(crate) async fn play<T>(
    exchange: impl Future<Output = T>,
    (fault, proxy, ensemble): (Option<Fault>, &FrameProxy, &Ensemble),
    expire: impl AsyncFn(),
) -> (T, bool) {
    let Some(Fault { kind, point, .. }) = fault else { return (exchange.await, false) };
    if kind == Kind::Cut {
        proxy.cut_at(point);
        let played = exchange.await;
        return (played, !proxy.cuts().is_empty());
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
            () = over.notified() => false,
        };
        match kind {
            // Another order of messages can need fewer of them.
            _ if !reached => return false,
            Kind::LeaderKilled => {
                let killed = ensemble.kill_leader().await;
                go_on(held, point);
                ensemble.restart(killed).await;
            }
            _ => {
                expire().await;
                go_on(held, point);
            }
        }
        true
    };
    tokio::join!(exchange, strike)
}

/// A request goes to whoever is left; a reply or an event is lost.
fn go_on(held: Held, point: CutPoint) {
    match point {
        CutPoint::BeforeRequest(_) => held.pass(),
        _ => held.cut(),
    }
}
