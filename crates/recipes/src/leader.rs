//! Elections.
//!
//! | Curator | here |
//! |---|---|
//! | `LeaderLatch` | [`LeaderLatch`]: leads until it is closed |
//! | `LeaderLatchListener` | [`LeaderLatch::changes`], a stream of [`LeaderChange`]s |
//! | `LeaderSelector`, `LeaderSelectorListener` | [`LeaderSelector`], [`TakeLeadership`]: leads until a function returns |
//! | `CancelLeadershipException` | the function is cancelled by itself when leadership is lost or in doubt |
//! | `Participant` | [`Participant`] |
//! | - | [`UnfairElection`]: one znode, and whoever is first has it |
//! | - | [`Acknowledgement`]: the leader has run its procedure |
//!
//! In the first two, which are fair, everybody has a place in a queue and watches the one before: one event for each
//! change of leader, however many contend. In the unfair one everybody watches the leader.
//!
//! # Leading and knowing it
//! A leader can only say of itself that it led a moment ago. What it may do because it leads goes through
//! [`Fence::multi`](crate::fencing::Fence::multi), or takes the [`Token`](crate::fencing::Token) along.

mod acknowledgement;
mod latch;
mod participant;
mod selector;
mod unfair;

pub use acknowledgement::{Acknowledged, Acknowledgement};
pub use latch::{CloseMode, LatchState, LeaderChange, LeaderChanges, LeaderLatch};
pub use participant::Participant;
pub use selector::{LeaderSelector, LeaderSelectorBuilder, Leadership, SelectorState, TakeLeadership};
pub use unfair::{UnfairElection, UnfairLeadership};
