//! Two learners with one id, and learners without number.

use super::{Leading, LeadingOutput, Learner, LearnerOrigin, LearnerStage, Refusal, Stage};
use crate::time::Mono;
use alloc::vec::Vec;
use ostler_proto::id::ServerId;

/// After this time without progress, in milliseconds, a learner gives way to another one with its id. A refused learner
/// tries again before this is over.
const GIVES_WAY_AFTER: u64 = 1_000;
/// The number of learners without a vote that may be in synchronization at a time.
const UNSYNCED_MAX: usize = 256;

impl Leading {
    /// Makes way for a learner with this id, if somebody is there with it; else why not.
    ///
    /// A learner that comes back closes its old connection first, or is silent on it for long. Whoever is heard on one
    /// while another comes with the same id is a second server, or one of the two is none of this ensemble. More speaks
    /// for the one whose address the configuration has; and for one of whom nothing of that kind is known, that it has
    /// taken over the history.
    pub(super) fn replace_duplicate(
        &mut self,
        now: Mono,
        id: ServerId,
        origin: LearnerOrigin,
        out: &mut Vec<LeadingOutput>,
    ) -> Option<Refusal> {
        let (link, rival) = self.learners.iter().find(|(_, of)| of.id == id)?;
        if !gives_way(now, rival, origin) {
            return Some(Refusal::SameId);
        }
        let link = *link;
        self.learners.remove(&link);
        // What it has promised in the name of the other counts for nothing.
        if let Stage::Epoch { acks, .. } | Stage::Sync { acks, .. } = &mut self.stage {
            acks.remove(&id);
        }
        out.push(LeadingOutput::Refuse { link, server: Some(id), why: Refusal::Replaced });
        None
    }

    /// Each takes memory until it has the history, and anybody can come with any number.
    pub(super) fn too_many_unsynced(&self, id: ServerId) -> Option<Refusal> {
        use LearnerStage::{Active, Synced};
        let voters = self.electorate.voters();
        let on_their_way = self.learners.values().filter(|of| !matches!(of.stage, Active | Synced));
        let there = on_their_way.filter(|of| !voters.contains(&of.id)).count();
        (there >= UNSYNCED_MAX && !voters.contains(&id)).then_some(Refusal::TooMany(there))
    }
}

fn gives_way(now: Mono, rival: &Learner, caller: LearnerOrigin) -> bool {
    use LearnerStage::{EpochSent, Greeted, Syncing};
    // Who waits for this leader cannot come further by itself.
    let stands = matches!(rival.stage, EpochSent | Syncing | Greeted);
    caller > rival.origin
        || (caller == rival.origin && stands && rival.progressed_at.after(GIVES_WAY_AFTER) <= now)
}
