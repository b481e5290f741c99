//! Limits the processor time of TLS handshakes.
//!
//! A handshake costs the server a signature and the check of a certificate, and the caller nearly nothing. So the steps of
//! handshakes that compute take turns: only some of the processors work on them at a time. Callers from different
//! addresses have their turns one after the other, so that one who makes handshakes without end delays another address
//! by one step. Callers wait in line; the limits of [`crate::unidentified`] and the time for a handshake bound the line.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    thread,
};
use tokio::sync::oneshot;

/// The line for the turns at one kind of port.
#[derive(Debug)]
pub(crate) struct HandshakeTurns {
    /// The limit of turns at a time.
    in_all: usize,
    /// The limit of turns at a time of one address: others find a place at once.
    of_one_address: usize,
    /// Handshakes that have begun and are not over.
    under_way: AtomicUsize,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    taken: usize,
    by_address: HashMap<IpAddr, Callers>,
    /// The addresses with callers that wait, in the order of their next turns.
    order: VecDeque<IpAddr>,
}

/// The callers from one address.
#[derive(Debug, Default)]
struct Callers {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to compute. It is given on when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    address: IpAddr,
    /// `None` once the turn is given back.
    turns: Option<Arc<HandshakeTurns>>,
}

impl Line {
    /// The next caller whose turn it can be. The turn counts as taken.
    fn next(&mut self, turns: &HandshakeTurns) -> Option<(IpAddr, oneshot::Sender<Turn>)> {
        if self.taken >= turns.in_all {
            return None;
        }
        for _ in 0..self.order.len() {
            let address = self.order.pop_front()?;
            let Some(callers) = self.by_address.get_mut(&address) else { continue };
            if callers.taken >= turns.of_one_address {
                self.order.push_back(address);
                continue;
            }
            // Callers that have gone are skipped.
            let next = std::iter::from_fn(|| callers.waiting.pop_front()).find(|caller| !caller.is_closed());
            if !callers.waiting.is_empty() {
                self.order.push_back(address);
            }
            if let Some(next) = next {
                callers.taken += 1;
                self.taken += 1;
                return Some((address, next));
            }
            self.forget_idle(address);
        }
        None
    }

    fn give_back(&mut self, address: IpAddr) {
        self.taken -= 1;
        if let Some(callers) = self.by_address.get_mut(&address) {
            callers.taken -= 1;
        }
        self.forget_idle(address);
    }

    fn forget_idle(&mut self, address: IpAddr) {
        if self
            .by_address
            .get(&address)
            .is_some_and(|callers| callers.taken == 0 && callers.waiting.is_empty())
        {
            self.by_address.remove(&address);
        }
    }
}

impl HandshakeTurns {
    /// Half of the processors at a time, and one address half of those; at least one.
    pub(crate) fn new() -> Arc<HandshakeTurns> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        HandshakeTurns::with_limits((processors / 2).max(1), (processors / 4).max(1))
    }

    /// These limits, each at least 1.
    pub(crate) fn with_limits(in_all: usize, of_one_address: usize) -> Arc<HandshakeTurns> {
        Arc::new(HandshakeTurns {
            in_all,
            of_one_address,
            under_way: AtomicUsize::new(0),
            line: Mutex::default(),
        })
    }

    /// Counts a handshake until the value is dropped.
    pub(crate) fn begin(&self) -> HandshakeUnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        HandshakeUnderWay(&self.under_way)
    }

    /// Handshakes that have begun and are not over.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. It is for computing: a caller that waits for its network has to give the turn back before.
    pub(crate) async fn turn(self: &Arc<Self>, address: IpAddr) -> Turn {
        let waits = {
            let mut line = self.lock();
            let line = &mut *line;
            let has_room = line.taken < self.in_all;
            let callers = line.by_address.entry(address).or_default();
            if has_room && callers.taken < self.of_one_address {
                callers.taken += 1;
                line.taken += 1;
                None
            } else {
                let (turn, waits) = oneshot::channel();
                let is_first = callers.waiting.is_empty();
                callers.waiting.push_back(turn);
                if is_first {
                    line.order.push_back(address);
                }
                Some(waits)
            }
        };
        match waits {
            None => Turn { address, turns: Some(self.clone()) },
            Some(waits) => {
                waits.await.expect("a caller that waits is taken out of the line by its turn only")
            }
        }
    }

    /// Runs a future so that each poll of it is a turn: for one that computes whenever it is polled.
    pub(crate) async fn in_turns<F: Future>(self: &Arc<Self>, address: IpAddr, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        loop {
            let turn = self.turn(address).await;
            let polled = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            drop(turn);
            if let Poll::Ready(output) = polled {
                return output;
            }
            // The work has noted who has to be woken, which is this task.
            next_wake().await;
        }
    }

    fn give_on(self: &Arc<Self>, address: IpAddr) {
        let mut line = self.lock();
        line.give_back(address);
        while let Some((address, caller)) = line.next(self) {
            drop(line);
            let refused = caller.send(Turn { address, turns: Some(self.clone()) });
            line = self.lock();
            if let Err(mut turn) = refused {
                // The caller has just gone. Not by drop, which would come here again.
                turn.turns = None;
                line.give_back(address);
            }
        }
    }
}

/// A handshake that is under way.
pub(crate) struct HandshakeUnderWay<'a>(&'a AtomicUsize);

impl Drop for HandshakeUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.give_on(self.address);
        }
    }
}

/// Returns when the task is polled again.
async fn next_wake() {
    let mut is_woken = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    type Waits = Pin<Box<dyn Future<Output = Turn>>>;

    fn ask(turns: &Arc<HandshakeTurns>, address: IpAddr) -> Waits {
        let turns = turns.clone();
        let mut waits: Waits = Box::pin(async move { turns.turn(address).await });
        // Takes its place in the line.
        assert!(poll(&mut waits).is_none());
        waits
    }

    fn poll(waits: &mut Waits) -> Option<Turn> {
        match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    fn take(turns: &Arc<HandshakeTurns>, address: IpAddr) -> Turn {
        let turns = turns.clone();
        let mut waits: Waits = Box::pin(async move { turns.turn(address).await });
        poll(&mut waits).expect("a free turn")
    }

    #[test]
    fn a_caller_from_another_address_waits_for_one_turn_only() {
        let turns = HandshakeTurns::with_limits(1, 1);
        let first = take(&turns, ONE);
        let mut crowd: Vec<Waits> = (0..1000).map(|_| ask(&turns, ONE)).collect();
        let mut other = ask(&turns, OTHER);
        drop(first);
        let second = poll(&mut crowd[0]).expect("the first in line");
        assert!(poll(&mut other).is_none());
        drop(second);
        let third = poll(&mut other).expect("the other address is next");
        drop(third);
        // In the order in which they came.
        for waits in &mut crowd[1..] {
            drop(poll(waits).expect("the next in line"));
        }
        let line = turns.lock();
        assert!(line.taken == 0 && line.by_address.is_empty() && line.order.is_empty(), "{line:?}");
    }

    #[test]
    fn one_address_does_not_take_all_turns() {
        let turns = HandshakeTurns::with_limits(4, 2);
        let held = [take(&turns, ONE), take(&turns, ONE)];
        let mut third = ask(&turns, ONE);
        let others = [take(&turns, OTHER), take(&turns, OTHER)];
        let mut late = ask(&turns, OTHER);
        drop(others);
        assert!(poll(&mut third).is_none() && poll(&mut late).is_some());
        drop(held);
        assert!(poll(&mut third).is_some());
        assert_eq!(turns.lock().taken, 0);
    }

    #[test]
    fn callers_that_have_gone_are_skipped() {
        let turns = HandshakeTurns::with_limits(1, 1);
        let first = take(&turns, ONE);
        let gone: Vec<Waits> = (0..100).map(|_| ask(&turns, ONE)).collect();
        let mut last = ask(&turns, ONE);
        let informed = ask(&turns, OTHER);
        drop(gone);
        drop(first);
        let turn = poll(&mut last).expect("the others have gone");
        drop(turn);
        // It is its turn, and it goes without taking it.
        assert_eq!(turns.lock().taken, 1);
        drop(informed);
        let line = turns.lock();
        assert!(line.taken == 0 && line.by_address.is_empty() && line.order.is_empty(), "{line:?}");
    }

    #[tokio::test]
    async fn work_in_turns_gives_its_turn_back_while_it_waits() {
        let turns = HandshakeTurns::with_limits(1, 1);
        let (send, receive) = oneshot::channel();
        let work = tokio::spawn({
            let turns = turns.clone();
            async move { turns.in_turns(ONE, receive).await }
        });
        tokio::task::yield_now().await;
        drop(turns.turn(OTHER).await);
        send.send(7).unwrap();
        assert_eq!(work.await.unwrap(), Ok(7));
        assert_eq!(turns.lock().taken, 0);
    }
}
