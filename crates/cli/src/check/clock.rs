//! The clocks of the members.

use super::finding::{Finding, Level, Topic};
use ostler_proto::id::ServerId;
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// The difference from which an operator should know it.
const TOLERATED_MS: i64 = 500;

/// A member's clock beside the one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// By how much it is ahead, in ms.
    pub(super) ahead_ms: i64,
    /// By how much that can be wrong, in ms: half of the time to ask.
    pub(super) unsure_ms: i64,
}

/// The part of the answer to the word `elec` that has the time.
#[derive(Deserialize)]
struct Now {
    now_ms: i64,
}

/// The reading from an answer to `elec`, which was asked and answered at these times. Only Ostler answers it.
pub(super) fn reading(answer: &str, (asked_ms, answered_ms): (i64, i64)) -> Option<ClockReading> {
    let now: Now = serde_json::from_str(answer).ok()?;
    let middle = asked_ms + (answered_ms - asked_ms) / 2;
    Some(ClockReading { ahead_ms: now.now_ms - middle, unsure_ms: (answered_ms - asked_ms) / 2 + 1 })
}

/// The time here, in ms since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn judge(id: ServerId, clock: Option<ClockReading>) -> Option<Finding> {
    let ClockReading { ahead_ms, unsure_ms } = clock?;
    let off = ahead_ms.unsigned_abs();
    if ahead_ms.abs() - unsure_ms <= TOLERATED_MS {
        let text = format!("the clock of server {id} differs by {off} ms, give or take {unsure_ms} ms");
        return Some(Finding::new(Level::Fact, Topic::Clock, text));
    }
    let word = if ahead_ms > 0 { "ahead of" } else { "behind" };
    Some(Finding::new(
        Level::Warning,
        Topic::Clock,
        format!(
            "the clock of server {id} is {off} ms {word} this one; let chrony or another NTP client set both: times of \
             znodes and TTLs follow the clock of the leader"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_ask_does_not_count_as_a_difference() {
        let answer = r#"{"now_ms": 1000600, "server": 1}"#;
        let clock = reading(answer, (1_000_000, 1_000_200)).unwrap();
        assert_eq!(clock, ClockReading { ahead_ms: 500, unsure_ms: 101 });
        assert_eq!(judge(ServerId(2), Some(clock)).unwrap().level, Level::Fact);
        let wrong = ClockReading { ahead_ms: -700, unsure_ms: 101 };
        let finding = judge(ServerId(2), Some(wrong)).unwrap();
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.text.contains("700 ms behind"), "{}", finding.text);
        assert_eq!(judge(ServerId(2), None), None);
        assert_eq!(reading("elec is unknown", (0, 0)), None);
    }
}
