//! The state of an ensemble: what its servers report, what is wrong, and the way out.

pub mod findings;
pub mod four_letter;
pub mod state;
pub mod verdict;

pub use findings::{Finding, Gravity, MissingLink, findings};
pub use state::{DigestAt, DiskSpace, Observed, ServerKind, ServerState};
pub use verdict::{Level, QuorumCount, Verdict, quorum_count, verdict};

#[cfg(test)]
mod tests;
