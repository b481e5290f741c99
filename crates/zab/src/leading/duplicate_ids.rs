//! Decides which of two learners with one id stays, and limits the number of learners without a vote.

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
    /// Decides between a learner that comes and the connected one with the same id, if there is one. Removes the
    /// connected one if it has to give way; else returns the refusal of the one that comes.
    ///
    /// A learner that comes back has closed its old connection, or is silent on it. So if packets come on the old
    /// connection, there are two servers with one id. The better origin wins; between equal origins the connected
    /// learner stays if it has the history or makes progress.
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
        // Promises on the closed connection may be of the wrong server, so they do not count.
        if let Stage::Epoch { acks, .. } | Stage::Sync { acks, .. } = &mut self.stage {
            acks.remove(&id);
        }
        self.forget_move_acks(id);
        out.push(LeadingOutput::Refuse { link, server: Some(id), why: Refusal::Replaced });
        None
    }

    /// Each learner takes memory until it has the history, and a connection can come with any id.
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
    // In these stages the learner cannot go on by itself: it waits for this leader, or for its history.
    let stands = matches!(rival.stage, EpochSent | Syncing | Greeted);
    caller > rival.origin
        || (caller == rival.origin && stands && rival.progressed_at.after(GIVES_WAY_AFTER) <= now)
}
