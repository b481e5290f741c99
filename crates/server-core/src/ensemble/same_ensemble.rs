//! Votes of another ensemble's servers. One of them can come by a name that stands for another address since, or by a
//! list with a wrong line; it may have an id that is known here, and a log that goes further than all others'.

use crate::{effect::Effect, input::Now, server::Server};
use alloc::vec::Vec;
use ostler_proto::{
    election::Notification,
    id::ServerId,
    membership::{Membership, OtherEnsemble},
};

impl Server {
    /// Refuses a vote of another ensemble's server: records it, and closes its connection without an answer. Returns
    /// false if the vote belongs to this ensemble.
    pub(super) fn refuse_other_ensemble(
        &mut self,
        now: Now,
        from: ServerId,
        vote: &Notification,
        config: &Membership,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(why) = self.other_ensemble(config) else { return false };
        let Some(ensemble) = &mut self.ensemble else { return false };
        ensemble.election.refused_other_ensemble(now.mono, from, vote);
        effects.push(Effect::RefuseVotes { of: from, why });
        true
    }

    fn other_ensemble(&self, theirs: &Membership) -> Option<OtherEnsemble> {
        let config = &self.ensemble.as_ref()?.config;
        if !config.refuse_others {
            return None;
        }
        let known: Vec<&Membership> = [&config.membership].into_iter().chain(&config.pending).collect();
        theirs.of_another_ensemble(&known)
    }
}
