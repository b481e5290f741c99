//! How long the session can be taken to live, and when to send signs of life.
//!
//! The leader expires a session when it has heard nothing of it for the session's timeout T. A follower answers requests
//! of its clients by itself. It reports the live sessions to the leader every half tick. If it dies before the next
//! report, the leader does not hear of them. Only the handshake reaches the leader directly.
//!
//! Let s be the time at which the client sent the last request that was answered. The follower was alive after s, so its
//! last report was sent less than half a tick before s, or later. The report contained all sessions that the follower
//! had answered by then. Take the last request whose answer had arrived half a tick before s: the leader has heard of
//! the session after that request was sent, and does not expire it within T after that. From then on the client must
//! take the session for lost.
//!
//! This holds for a follower that works or has died. A follower that is cut off from its leader and has not noticed it
//! answers pings for up to `syncLimit` ticks, but its reports do not arrive. A leader that has been replaced does the
//! same. Meanwhile the session may expire. Pings cannot show this, a write can, because its answer needs a quorum: the
//! earlier reports of the follower took the same way before the write, and no later leader had begun to count the time.
//! So while something is held in the session, s is the time at which the client sent the last write that was answered.
//! The client sends a write after each quarter of T: a transaction that only checks.
//!
//! The answers of a read-only server, which is cut off from its ensemble, prove nothing about a session of the ensemble.
//! The session is lost at the same time as without that connection.
//!
//! A ping after an eighth of T keeps s recent. A connection that was silent for half of T is given up, so that there is
//! time for another server. While something is held, s may be older: then the connection is given up after three
//! eighths of T of silence, and also if a write for proof has had no answer for that long, even if other requests are
//! answered.

use crate::time::Mono;
use alloc::collections::VecDeque;
use core::time::Duration;
use ostler_planted::{self as planted, Bug};

/// The servers' tick, if nothing else is known.
const TICK: Duration = Duration::from_secs(2);

/// The times of the current connection and session from which deadlines follow.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    /// The session timeout that the server has granted.
    timeout: Duration,
    /// The longest time between a follower's reports.
    report: Duration,
    /// Some of the answered requests, oldest first. The leader has heard of the session since the first was sent.
    answered: VecDeque<AnsweredRequest>,
    /// When the latest answered request was sent.
    newest: Mono,
    /// When the latest successful write was sent.
    written: Mono,
    /// When the last request was sent.
    sent: Mono,
    /// When the last bytes came.
    heard: Mono,
    /// When the ping without an answer was sent, if there is one.
    ping: Option<Mono>,
    /// When the first write for proof was sent after the last successful write.
    doubted: Option<Mono>,
    /// The facts that writes have proven.
    proof: Proof,
    /// At a read-only server: when the session is lost by what earlier servers have answered.
    at_most: Option<Mono>,
}

/// The facts that writes have proven about the session, over all of its connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof {
    /// The leader has heard of the session since then.
    base: Mono,
    /// The session's timeout at that time. Another server may grant another one.
    timeout: Duration,
    /// When the last write was sent on this connection that was successful, or was sent for proof.
    asked: Option<Mono>,
    /// The number of things that are held in the session.
    holds: u64,
    /// Whether only writes count as signs of life.
    decides: bool,
}

impl Proof {
    /// A quorum has agreed on a new session, which the client requested at `asked`.
    fn of_new_session(asked: Mono, timeout: Duration) -> Proof {
        Proof { base: asked, timeout, asked: None, holds: 0, decides: false }
    }
}

#[derive(Debug, Clone, Copy)]
struct AnsweredRequest {
    sent: Mono,
    /// When the answer arrived. `None` for the handshake, of which the leader hears directly.
    answer: Option<Mono>,
}

impl AnsweredRequest {
    /// Whether a follower that was alive at `moment`, and reports at this interval, has reported this request.
    fn is_reported_by(&self, moment: Mono, report: Duration) -> bool {
        self.answer.is_none_or(|answer| answer + report <= moment)
    }
}

impl Liveness {
    /// For a connection whose handshake was requested at `asked` and answered at `now`. `tick` is the servers' tick or
    /// longer; if it is not known, the session's timeout is taken to be at least two ticks. `proof` comes from the
    /// session's earlier connections.
    pub(crate) fn new(
        timeout: Duration,
        tick: Option<Duration>,
        asked: Mono,
        now: Mono,
        proof: Option<Proof>,
    ) -> Liveness {
        let handshake = AnsweredRequest { sent: asked, answer: None };
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

    /// The same at a read-only server. `known` is when the session is lost by what other servers have answered.
    pub(crate) fn at_most(self, known: Mono) -> Liveness {
        Liveness { at_most: Some(known), ..self }
    }

    pub(crate) fn proof(&self) -> Proof {
        self.proof
    }

    /// The leader has heard of the session since then, if the server that answers is not cut off from it.
    fn base(&self) -> Mono {
        // The list is never empty: it begins with the handshake, and the last element is never removed.
        self.answered.front().map_or(Mono::START, |known| known.sent)
    }

    /// From this time on the leader may have expired the session.
    pub(crate) fn lost_at(&self) -> Mono {
        let believed = self.base() + self.timeout;
        let proven = self.proof.base + self.proof.timeout;
        let lives_until = if self.proof.decides { believed.min(proven) } else { believed };
        let lost_at =
            if planted::is(Bug::SessionOutlived) { lives_until + self.timeout / 2 } else { lives_until };
        self.at_most.map_or(lost_at, |known| known.min(lost_at))
    }

    /// When the connection is given up if nothing more comes. The rest of the session's time is for another connection.
    pub(crate) fn silent_at(&self) -> Mono {
        if self.proof.holds == 0 {
            return self.heard + self.timeout / 2;
        }
        self.doubted.map_or(self.heard, |doubted| doubted.min(self.heard)) + self.timeout * 3 / 8
    }

    /// One more thing is held in the session.
    pub(crate) fn on_hold(&mut self, now: Mono) {
        self.proof.holds += 1;
        self.rely_on_proof(now);
        if !self.proof.decides {
            // The holder sends a write itself and waits for it.
            self.proof.asked = Some(now);
        }
    }

    /// One thing less is held in the session.
    pub(crate) fn on_release(&mut self) {
        self.proof.holds = self.proof.holds.saturating_sub(1);
        self.proof.decides &= self.proof.holds > 0;
    }

    /// Whether only writes count as signs of life. False if nothing is held, and as long as the last write is too old:
    /// then the next one decides.
    pub(crate) fn is_proven(&self) -> bool {
        self.proof.decides
    }

    fn rely_on_proof(&mut self, now: Mono) {
        // The rest of the time is for the next write to be answered.
        let is_fresh = now < self.proof.base + self.proof.timeout * 3 / 4;
        self.proof.decides |= self.proof.holds > 0 && is_fresh;
    }

    /// When to send the next write for proof.
    pub(crate) fn proof_at(&self) -> Option<Mono> {
        let after = |asked| asked + self.timeout / 4;
        (self.proof.holds > 0).then(|| self.proof.asked.map_or(Mono::START, after))
    }

    /// A write for proof is sent.
    pub(crate) fn on_proof(&mut self, now: Mono) {
        self.proof.asked = Some(now);
        self.doubted.get_or_insert(now);
    }

    /// A write that was sent at `sent` was successful.
    pub(crate) fn on_written(&mut self, sent: Mono, now: Mono) {
        self.written = self.written.max(sent);
        self.proof.asked = self.proof.asked.max(Some(sent));
        self.doubted = None;
        self.on_answer(sent, now);
        // Before anything was held, the answer to a later ping may have arrived first and moved the first request further
        // than this write proves.
        if let Some(first) = self.answered.front().filter(|first| first.is_reported_by(sent, self.report)) {
            self.proof.base = self.proof.base.max(first.sent);
            self.proof.timeout = self.timeout;
        }
        self.rely_on_proof(now);
    }

    /// When to send a ping.
    pub(crate) fn ping_at(&self) -> Mono {
        match self.ping {
            Some(_) => self.silent_at(),
            // Each request is a sign of life as well, but only its answer proves that it arrived.
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

    /// The connection is lost, and no answer to its ping will come.
    pub(crate) fn on_disconnected(&mut self) {
        self.ping = None;
    }

    pub(crate) fn on_heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// A request sent at `sent` is answered now.
    pub(crate) fn on_answer(&mut self, sent: Mono, now: Mono) {
        self.newest = self.newest.max(sent);
        // To limit the list, not every request is kept.
        if self.answered.back().is_none_or(|last| sent >= last.sent + self.timeout / 32) {
            self.answered.push_back(AnsweredRequest { sent, answer: Some(now) });
        }
        let shown = if self.proof.holds > 0 { self.written } else { self.newest };
        while self.answered.get(1).is_some_and(|next| next.is_reported_by(shown, self.report)) {
            self.answered.pop_front();
        }
    }

    /// A ping is answered. Returns false if none was sent.
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
        /// session in it. The client gives the session up before the leader does.
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

        /// A follower that is cut off answers pings and reads, and its reports do not arrive.
        #[test]
        fn a_cut_off_followers_leader_never_expires_a_held_session_that_is_proven(
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

    /// The time of the last report with the session in it before the follower's end; 0 for the handshake.
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
