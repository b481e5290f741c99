//! How long an election waits.

/// How long things wait, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElectionTiming {
    /// After the first vote, until it is sent again (`minNotificationInterval`). Doubles each time.
    pub resend_min: u64,
    /// At most (`maxNotificationInterval`).
    pub resend_max: u64,
    /// At most while a voter cannot be reached: sending calls it. Upstream waits for up to `resend_max` after a
    /// network has healed.
    pub recall: u64,
    /// After a quorum has agreed, for better votes (`finalizeWait`).
    pub settle: u64,
}

impl Default for ElectionTiming {
    fn default() -> Self {
        ElectionTiming { resend_min: 200, resend_max: 60_000, recall: 1_000, settle: 200 }
    }
}
