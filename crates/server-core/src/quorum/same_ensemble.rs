//! Refuses votes from servers of another ensemble. They can come because a host name has another address now, or
//! because a configuration has a wrong line. Such a server may have an id of this ensemble, and a later zxid than all
//! its servers.

use crate::{context::Context, effect::Effect, server::Server};
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
        cx: &mut Context<'_>,
        from: ServerId,
        vote: &Notification,
        config: &Membership,
    ) -> bool {
        let Some(why) = self.other_ensemble(config) else { return false };
        let Some(ensemble) = self.role.ensemble_mut() else { return false };
        ensemble.election.refused_other_ensemble(cx.now.mono, from, vote);
        cx.effects.push(Effect::RefuseVotes { of: from, why });
        true
    }

    fn other_ensemble(&self, theirs: &Membership) -> Option<OtherEnsemble> {
        let config = &self.role.ensemble()?.config;
        if !config.refuse_others {
            return None;
        }
        let known: Vec<&Membership> = [&config.membership].into_iter().chain(&config.pending).collect();
        theirs.of_another_ensemble(&known)
    }
}
