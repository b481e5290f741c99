//! Leader elections.
//!
//! | Curator | here |
//! |---|---|
//! | `LeaderLatch` | [`LeaderLatch`]: once elected, it leads until it is closed |
//! | `LeaderLatchListener` | [`LeaderLatch::changes`], a stream of [`LeaderChange`]s |
//! | `LeaderSelector` | [`LeaderSelector`]: once elected, it leads until a function returns |
//! | `LeaderSelectorListener` | [`TakeLeadership`] |
//! | `CancelLeadershipException` | none: the function is cancelled when leadership is lost or in doubt |
//! | `Participant` | [`Participant`] |
//! | - | [`UnfairElection`]: the participant that creates the only znode first leads |
//! | - | [`Acknowledgement`]: a znode that says that the leader is ready |
//!
//! [`LeaderLatch`] and [`LeaderSelector`] are fair: each participant has a place in a queue and watches the participant
//! before it. A change of leader causes one or two events, whatever the number of participants. In an [`UnfairElection`] each
//! participant watches the leader.
//!
//! # Leadership and writes
//! A participant can only know that it led a moment ago. So a write that only the leader may do must go through
//! [`Fence::multi`](crate::fencing::Fence::multi), or carry the [`Token`](crate::fencing::Token).

mod acknowledgement;
mod latch;
mod participant;
mod selector;
mod unfair;

pub use acknowledgement::{Acknowledged, Acknowledgement};
pub use latch::{CloseMode, LatchState, LeaderChange, LeaderChanges, LeaderLatch};
pub use participant::Participant;
pub use selector::{
    LeaderSelector, LeaderSelectorBuilder, Leadership, SelectorState, SelectorStates, TakeLeadership,
};
pub use unfair::{UnfairElection, UnfairLeadership};
