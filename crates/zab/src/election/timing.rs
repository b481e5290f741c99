//! The waiting times of an election.

/// The waiting times of an election, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElectionTiming {
    /// From the first sending of a vote to its repetition (`minNotificationInterval`). It doubles with each repetition.
    pub resend_min: u64,
    /// The longest time between two repetitions (`maxNotificationInterval`).
    pub resend_max: u64,
    /// The longest time between two repetitions while a voter cannot be reached: sending a vote opens the connection
    /// again. Upstream waits for up to `resend_max` after a network has healed.
    pub recall: u64,
    /// From the agreement of a quorum to the election: a better vote may still come (`finalizeWait`).
    pub settle: u64,
}

impl Default for ElectionTiming {
    fn default() -> Self {
        ElectionTiming { resend_min: 200, resend_max: 60_000, recall: 1_000, settle: 200 }
    }
}
