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
//! That is for a follower that works or has died. One that is cut off from its leader, and does not know it yet,
//! answers pings by itself for up to syncLimit ticks, and its reports go nowhere; a leader that has been replaced does
//! so, too. Then the session can be over for that long before it is taken for lost. Pings cannot show it; a write can,
//! as its answer takes a quorum: what the follower reported before went the same way before it, and no later leader had
//! begun to count. So while something is held by the session, s is when the last write was sent that was answered, and
//! there is one after each quarter of T: a transaction that only checks.
//!
//! A server that says of itself that it is cut off, and serves reads alone, shows nothing of a session of the ensemble:
//! it is lost when it would have been without that connection.
//!
//! A ping after an eighth of T keeps that moment near. So that there is time for another server, a connection is
//! given up when it was silent for half of T. While something is held s may be older: then it is given up after three
//! eighths, and also when such a write has no answer for so long, whatever else is answered.

use crate::time::Mono;
use alloc::collections::VecDeque;
use core::time::Duration;
use ostler_planted::{self as planted, Bug};

/// The servers' tick, if nothing else is known.
const TICK: Duration = Duration::from_secs(2);

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
    /// When the latest of all writes was sent that were done.
    written: Mono,
    /// When the last request was sent.
    sent: Mono,
    /// When the last bytes came.
    heard: Mono,
    /// When the ping was sent that has no answer yet.
    ping: Option<Mono>,
    /// When the first write was sent for its answer's sake after the last one that was done.
    doubted: Option<Mono>,
    /// What a quorum has shown.
    proof: Proof,
    /// At a server that shows nothing: when the session would be lost by what was known before.
    at_most: Option<Mono>,
}

/// What is known of a session by writes alone, whichever connections they went by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof {
    /// The leader has surely heard of the session since then.
    base: Mono,
    /// The session's timeout then. Another server may grant another one.
    timeout: Duration,
    /// When the last write was sent on this connection that was done, or was sent for its answer's sake.
    asked: Option<Mono>,
    /// How many things are held by the session.
    holds: u64,
    /// Nothing else counts.
    alone: bool,
}

impl Proof {
    /// A quorum has agreed on the session that was asked for at `asked`.
    fn of_new_session(asked: Mono, timeout: Duration) -> Proof {
        Proof { base: asked, timeout, asked: None, holds: 0, alone: false }
    }
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    sent: Mono,
    /// `None` for the handshake: the leader has heard of it as soon as it was sent, as it were.
    answer: Option<Mono>,
}

impl Answered {
    /// Whether a follower that reports so often, and lived at `moment`, has told the leader.
    fn is_reported_by(&self, moment: Mono, report: Duration) -> bool {
        self.answer.is_none_or(|answer| answer + report <= moment)
    }
}

impl Liveness {
    /// A handshake asked for at `asked` is answered at `now`. `tick` is the servers' tick or longer; if it is not
    /// known, the session has at least two of them. `proof` is of the session's earlier connections.
    pub(crate) fn new(
        timeout: Duration,
        tick: Option<Duration>,
        asked: Mono,
        now: Mono,
        proof: Option<Proof>,
    ) -> Liveness {
        let handshake = Answered { sent: asked, answer: None };
        let proof =
            proof.map_or(Proof::of_new_session(asked, timeout), |known| Proof { asked: None, ..known });
        Liveness {
            timeout,
            report: tick.map_or(TICK.min(timeout / 2) / 2, |tick| (tick / 2).min(timeout * 3 / 4)),
            answered: VecDeque::from([handshake]),
            newest: asked,
            written: asked,
            sent: now,
            heard: now,
            ping: None,
            doubted: None,
            proof,
            at_most: None,
        }
    }

    /// The same at a server that is cut off from the session's leader and says so. `known` is when the session is lost
    /// by what others have answered.
    pub(crate) fn at_most(self, known: Mono) -> Liveness {
        Liveness { at_most: Some(known), ..self }
    }

    pub(crate) fn proof(&self) -> Proof {
        self.proof
    }

    /// The leader has heard of the session since then, if the server that answers is not cut off from it.
    fn base(&self) -> Mono {
        // There is the handshake, or what has taken its place.
        self.answered.front().map_or(Mono::START, |known| known.sent)
    }

    /// From this moment on the session may have been expired.
    pub(crate) fn lost_at(&self) -> Mono {
        let believed = self.base() + self.timeout;
        let proven = self.proof.base + self.proof.timeout;
        let lives_until = if self.proof.alone { believed.min(proven) } else { believed };
        let lost_at =
            if planted::is(Bug::SessionOutlived) { lives_until + self.timeout / 2 } else { lives_until };
        self.at_most.map_or(lost_at, |known| known.min(lost_at))
    }

    /// From this moment on the connection is given up: the rest of the session's time is for another one.
    pub(crate) fn silent_at(&self) -> Mono {
        if self.proof.holds == 0 {
            return self.heard + self.timeout / 2;
        }
        self.doubted.map_or(self.heard, |doubted| doubted.min(self.heard)) + self.timeout * 3 / 8
    }

    /// One thing more is held by the session.
    pub(crate) fn on_hold(&mut self, now: Mono) {
        self.proof.holds += 1;
        self.rely_on_proof(now);
        if !self.proof.alone {
            // Whoever holds it waits for a write of its own.
            self.proof.asked = Some(now);
        }
    }

    /// One less.
    pub(crate) fn on_release(&mut self) {
        self.proof.holds = self.proof.holds.saturating_sub(1);
        self.proof.alone &= self.proof.holds > 0;
    }

    /// Whether only what a quorum has shown counts. Not so where something is held and the last write is long ago: then
    /// the next one decides.
    pub(crate) fn is_proven(&self) -> bool {
        self.proof.alone
    }

    fn rely_on_proof(&mut self, now: Mono) {
        // Until the next one is answered.
        let is_fresh = now < self.proof.base + self.proof.timeout * 3 / 4;
        self.proof.alone |= self.proof.holds > 0 && is_fresh;
    }

    /// When to send a write for its answer's sake.
    pub(crate) fn proof_at(&self) -> Option<Mono> {
        let after = |asked| asked + self.timeout / 4;
        (self.proof.holds > 0).then(|| self.proof.asked.map_or(Mono::START, after))
    }

    /// A write goes out for its answer's sake.
    pub(crate) fn on_proof(&mut self, now: Mono) {
        self.proof.asked = Some(now);
        self.doubted.get_or_insert(now);
    }

    /// A write sent at `sent` is done.
    pub(crate) fn on_written(&mut self, sent: Mono, now: Mono) {
        self.written = self.written.max(sent);
        self.proof.asked = self.proof.asked.max(Some(sent));
        self.doubted = None;
        self.on_answer(sent, now);
        // Before something was held, a ping that overtook this may have counted for more than this can show.
        if let Some(first) = self.answered.front()
            && first.is_reported_by(sent, self.report)
        {
            self.proof.base = self.proof.base.max(first.sent);
            self.proof.timeout = self.timeout;
        }
        self.rely_on_proof(now);
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
            self.answered.push_back(Answered { sent, answer: Some(now) });
        }
        let shown = if self.proof.holds > 0 { self.written } else { self.newest };
        while self.answered.get(1).is_some_and(|next| next.is_reported_by(shown, self.report)) {
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
            let mut liveness = Liveness::new(timeout, Some(tick_ms), at(0), at(1), None);
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// A follower that is cut off answers what it can answer alone, and its reports do not arrive.
        #[test]
        fn nor_one_by_which_something_is_held_where_the_follower_is_cut_off(
            tick in 100_u64..=TIMEOUT / 2,
            phase in 0_u64..4000,
            requests in
                proptest::collection::vec((0_u64..1500, 0_u64..600, 0_u64..600, any::<bool>()), 0..30),
            cut_off_at in 0_u64..25_000,
            held_at in 0_u64..25_000,
        ) {
            let (timeout, tick_ms) = (Duration::from_millis(TIMEOUT), Duration::from_millis(tick));
            let mut liveness = Liveness::new(timeout, Some(tick_ms), at(0), at(1), None);
            let (mut sent, mut arrival, mut written) = (0, 0, 0);
            let (mut arrivals, mut answers) = (Vec::new(), Vec::new());
            for (gap, up, down, write) in requests {
                sent += gap;
                arrival = (sent + up).max(arrival);
                if write && arrival > cut_off_at {
                    continue;
                }
                arrivals.push(arrival);
                // A ping can overtake a write.
                written = if write { written.max(arrival + 4 * down) } else { written };
                answers.push((if write { written } else { arrival }, sent, write));
            }
            answers.sort_unstable();
            let base = heard_by_leader(&arrivals, tick / 2, phase, cut_off_at);
            for (answer, sent, write) in answers {
                if answer >= held_at && liveness.proof.holds == 0 {
                    liveness.on_hold(at(answer));
                }
                match write {
                    true => liveness.on_written(at(sent), at(answer)),
                    false => liveness.on_answer(at(sent), at(answer)),
                }
                if liveness.is_proven() {
                    prop_assert!(liveness.lost_at() <= at(base) + timeout, "{arrivals:?} {base}");
                }
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
