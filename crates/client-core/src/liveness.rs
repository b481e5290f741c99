//! How long the session can be taken to live, and when to give signs of life.
//!
//! A server expires a session when it has heard nothing for the session's timeout T. But it is the leader that
//! expires, and of what a follower answers it hears with the follower's next report, half a tick later; if the
//! follower dies before, not at all. Only the handshake reaches the leader by itself.
//!
//! Let s be when the last request was sent that was answered. The follower lived then, so its last report was less
//! than half a tick before s, or later. What had been answered by then was reported. So the leader has heard of the
//! session no earlier than the sending of the last request whose answer was there half a tick before s; and the
//! session lives at least until T after that. From then on it must be taken for lost.
//!
//! That is for a follower that works or has died. One that is cut off from its leader, and does not know it yet, answers
//! pings by itself for up to syncLimit ticks, and its reports go nowhere; a leader that has been replaced does so, too.
//! Then the session can be over for that long before it is taken for lost. Pings cannot show it; a write can, as its
//! answer takes a quorum.
//!
//! A ping after an eighth of T keeps that moment near. So that there is time for another server, a connection is
//! given up when it was silent for half of T.

use crate::time::Mono;
use alloc::collections::VecDeque;
use core::time::Duration;
use ostler_proto::planted::{self, Bug};

/// Moments of the current connection and session.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    /// Granted by the server.
    timeout: Duration,
    /// The longest time between a follower's reports.
    report: Duration,
    /// Some of the requests that were answered, oldest first. The first is the one that the leader has surely
    /// heard of.
    answered: VecDeque<Answered>,
    /// When the latest of all requests was sent that were answered.
    newest: Mono,
    /// When the last request was sent.
    sent: Mono,
    /// When the last bytes came.
    heard: Mono,
    /// When the ping was sent that has no answer yet.
    ping: Option<Mono>,
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    sent: Mono,
    answer: Mono,
}

impl Liveness {
    /// A handshake asked for at `asked` is answered at `now`. `tick` is the servers' tick or longer; with a timeout
    /// of less than two of them servers grant no session.
    pub(crate) fn new(timeout: Duration, tick: Duration, asked: Mono, now: Mono) -> Liveness {
        // The leader has heard of it as soon as it was sent, as it were.
        let handshake = Answered { sent: asked, answer: asked };
        Liveness {
            timeout,
            report: (tick / 2).min(timeout / 4),
            answered: VecDeque::from([handshake]),
            newest: asked,
            sent: now,
            heard: now,
            ping: None,
        }
    }

    /// From this moment on the session may have been expired.
    pub(crate) fn lost_at(&self) -> Mono {
        // There is the handshake, or what has taken its place.
        let timeout = if planted::is(Bug::SessionOutlived) { self.timeout * 3 / 2 } else { self.timeout };
        self.answered.front().map_or(Mono::START, |known| known.sent) + timeout
    }

    /// From this moment on the connection is given up: the rest of the session's time is for another one.
    pub(crate) fn silent_at(&self) -> Mono {
        self.heard + self.timeout / 2
    }

    /// When to send a ping.
    pub(crate) fn ping_at(&self) -> Mono {
        match self.ping {
            Some(_) => self.silent_at(),
            // A request that goes out just now is a sign of life, too; but only its answer proves it.
            None => (self.sent + self.timeout / 8).min(self.newest + self.timeout / 4),
        }
    }

    pub(crate) fn on_sent(&mut self, now: Mono) {
        self.sent = now;
    }

    pub(crate) fn on_ping(&mut self, now: Mono) {
        self.sent = now;
        self.ping = Some(now);
    }

    /// A ping on a connection that is lost has no answer.
    pub(crate) fn on_disconnected(&mut self) {
        self.ping = None;
    }

    pub(crate) fn on_heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// A request sent at `sent` is answered now.
    pub(crate) fn on_answer(&mut self, sent: Mono, now: Mono) {
        self.newest = self.newest.max(sent);
        // A few of very many do.
        if self.answered.back().is_none_or(|last| sent >= last.sent + self.timeout / 32) {
            self.answered.push_back(Answered { sent, answer: now });
        }
        while self.answered.get(1).is_some_and(|next| next.answer + self.report <= self.newest) {
            self.answered.pop_front();
        }
    }

    /// The ping is answered. False if none was sent.
    pub(crate) fn on_pong(&mut self, now: Mono) -> bool {
        match self.ping.take() {
            Some(sent) => {
                self.on_answer(sent, now);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const TIMEOUT: u64 = 8000;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// A follower answers, reports every half tick, and dies. The leader counts from the last report with the
        /// session in it. Whatever the client knew at any time, it gave the session up before the leader did.
        #[test]
        fn the_leader_never_expires_a_session_that_is_taken_to_live(
            tick in 100_u64..=TIMEOUT / 2,
            phase in 0_u64..4000,
            requests in proptest::collection::vec((0_u64..2500, 0_u64..600, 0_u64..600), 0..30),
            dies_at in 0_u64..40_000,
        ) {
            let (timeout, tick_ms) = (Duration::from_millis(TIMEOUT), Duration::from_millis(tick));
            let mut liveness = Liveness::new(timeout, tick_ms, at(0), at(1));
            let (mut sent, mut arrival, mut answer) = (0, 0, 0);
            let mut arrivals: Vec<u64> = Vec::new();
            for (gap, up, down) in requests {
                sent += gap;
                arrival = (sent + up).max(arrival);
                answer = (arrival + down).max(answer);
                if arrival > dies_at {
                    break;
                }
                arrivals.push(arrival);
                liveness.on_answer(at(sent), at(answer));
                let base = heard_by_leader(&arrivals, tick / 2, phase, dies_at);
                prop_assert!(liveness.lost_at() <= at(base) + timeout, "{arrivals:?} {base}");
            }
        }
    }

    /// The time of the last report before the follower's end that had the session in it; 0 for the handshake.
    fn heard_by_leader(arrivals: &[u64], period: u64, phase: u64, dies_at: u64) -> u64 {
        let report_after = |moment: u64| {
            (moment + period - phase % period).div_ceil(period) * period + phase % period - period
        };
        arrivals
            .iter()
            .map(|arrival| report_after(*arrival))
            .filter(|report| *report <= dies_at)
            .max()
            .unwrap_or(0)
    }
}
