//! A server that has answered with its record, and how its clock differs.

use crate::records::Elections;

/// A server that has answered.
#[derive(Debug, Clone)]
pub struct Witness {
    /// Its record.
    pub elections: Elections,
    /// By how much its clock is ahead of that of the first server that answered, if that can be told.
    pub ahead_ms: i64,
    /// How far its times may be off, beside that.
    pub unsure_ms: i64,
}

/// An answer, and the asker's clock around it.
#[derive(Debug, Clone)]
pub struct TimedRecord {
    /// The server's record.
    pub elections: Elections,
    /// When the asker sent the question.
    pub asked_ms: i64,
    /// When the asker had the answer.
    pub answered_ms: i64,
}

impl TimedRecord {
    fn ahead_ms(&self) -> i64 {
        self.elections.now_ms.saturating_sub(midway(self.asked_ms, self.answered_ms))
    }

    fn unsure_ms(&self) -> i64 {
        (self.answered_ms - self.asked_ms) / 2 + 1
    }
}

fn midway(from: i64, to: i64) -> i64 {
    from + (to - from) / 2
}

/// A clock counts as wrong only if the way there and back does not explain the difference. A server that has answered twice
/// counts once.
pub fn witnesses(answers: Vec<TimedRecord>) -> Vec<Witness> {
    let (first_ahead, first_unsure) =
        answers.first().map_or((0, 0), |first| (first.ahead_ms(), first.unsure_ms()));
    let mut witnesses: Vec<Witness> = Vec::new();
    for answer in answers {
        if witnesses.iter().any(|known| known.elections.server == answer.elections.server) {
            continue;
        }
        let ahead = answer.ahead_ms().saturating_sub(first_ahead);
        let unsure_ms = answer.unsure_ms() + first_unsure;
        let ahead_ms = if ahead.saturating_abs() > unsure_ms { ahead } else { 0 };
        witnesses.push(Witness { elections: answer.elections, ahead_ms, unsure_ms });
    }
    witnesses
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::ServerId;

    fn answer(server: i64, now_ms: i64) -> TimedRecord {
        let elections = Elections { server: ServerId(server), now_ms, ..Elections::default() };
        TimedRecord { elections, asked_ms: 998, answered_ms: 1_002 }
    }

    #[test]
    fn a_clock_is_corrected_only_if_it_is_surely_wrong() {
        let answers = vec![answer(1, 1_000), answer(2, 1_003), answer(3, 6_000)];
        let ahead: Vec<(i64, i64)> =
            witnesses(answers).iter().map(|one| (one.ahead_ms, one.unsure_ms)).collect();
        assert_eq!(ahead, [(0, 6), (0, 6), (5_000, 6)]);
    }

    #[test]
    fn one_server_counts_once_and_no_clock_overflows() {
        let answers = vec![answer(1, i64::MIN), answer(1, 0), answer(2, i64::MAX)];
        let servers: Vec<i64> = witnesses(answers).iter().map(|one| one.elections.server.0).collect();
        assert_eq!(servers, [1, 2]);
    }
}
