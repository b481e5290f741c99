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
    /// Whether a vote is another ensemble's. It is noted, and the connection on which it came is to be closed; nothing
    /// else comes of it, not even an answer.
    pub(super) fn refuses(
        &mut self,
        now: Now,
        from: ServerId,
        vote: &Notification,
        config: &Membership,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(why) = self.other_ensemble(config) else { return false };
        let Some(ensemble) = &mut self.ensemble else { return false };
        ensemble.election.refused(now.mono, from, vote);
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
