//! The election of a leader: this server looks for one, votes, and takes its role when a leader is elected. The rules of
//! the votes are in [`ostler_zab::Election`].

use super::{
    election_history::SearchReason,
    pending_learners::PendingLearner,
    read_only::ReadOnly,
    role::{Looking, MemberRole},
};
use crate::{
    context::Context,
    effect::{CloseReason, Effect},
    input::Now,
    quorum::observer_master::ObserverMaster,
    server::Server,
    sessions::Sessions,
};
use alloc::vec::Vec;
use ostler_proto::{
    election::{Candidate, Notification},
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
};
use ostler_tree::Overlay;
use ostler_zab::{ElectionOutput, leading::DurableState};

impl Server {
    /// Looks for a leader: closes the clients' connections, leaves the present role, and begins an election.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>, why: SearchReason) {
        self.look_to(cx, why, None);
    }

    /// The same; `next` is the leader that the last one named, if it did.
    pub(super) fn look_to(&mut self, cx: &mut Context<'_>, why: SearchReason, next: Option<ServerId>) {
        self.note_search(cx.now, why);
        self.leave_role(cx);
        self.end_service(cx);
        self.pipeline.overlay = Overlay::new(&self.tree);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.search_id += 1;
        ensemble.unserved_since.get_or_insert(cx.now.mono);
        self.stats.elections.searches += 1;
        ensemble.next_tick = cx.now.mono.after(ensemble.tick_ms / 2);
        if let Some(reload) = &mut ensemble.reloading {
            reload.look = true;
            return;
        }
        match next.filter(|next| ensemble.config.membership.votes(*next)) {
            Some(next) => self.accept_suggested(cx, next),
            None if ensemble.delay_election(cx.now) => {}
            None => self.begin_election(cx),
        }
    }

    fn accept_suggested(&mut self, cx: &mut Context<'_>, leader: ServerId) {
        let durable = self.durable_state();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let candidate = Candidate { epoch: durable.current, zxid: durable.last, id: leader };
        let mut out = Vec::new();
        ensemble.election_history.votes_begin();
        ensemble.election.accept_suggested(cx.now.mono, candidate, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    pub(super) fn begin_election(&mut self, cx: &mut Context<'_>) {
        let durable = self.durable_state();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.election.set_without_history(has_no_history(durable) && !ensemble.config.may_start_empty);
        let candidate = Candidate { epoch: durable.current, zxid: durable.last, id: ensemble.me };
        let own = (ensemble.votes() && !ensemble.incomplete).then_some(candidate);
        if ensemble.incomplete {
            tracing::warn!(
                last = %durable.last,
                "the data folder was empty, and this server was stopped before it had copied all of a leader's data: its \
                 vote does not count before it has. If the other servers have lost theirs for good, stop it, create an \
                 empty file named `initialize` in dataLogDir (dataDir, if that is not set), and start it again: then \
                 what it has copied counts"
            );
        }
        let read_only = ReadOnly::after(cx.now.mono, ensemble.config.read_only_after_ms);
        ensemble.role = MemberRole::Looking(Looking { began: cx.now.mono, read_only });
        tracing::info!(last = %durable.last, epoch = durable.current.0, "looking for a leader");
        let mut out = Vec::new();
        ensemble.election_history.votes_begin();
        ensemble.election.look(cx.now.mono, own, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    fn leave_role(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let looking = Looking { began: cx.now.mono, read_only: ReadOnly::No };
        match core::mem::replace(&mut ensemble.role, MemberRole::Looking(looking)) {
            MemberRole::Leading(leader) => {
                cx.effects.extend(leader.learners.leading.links().map(Effect::HangUp));
            }
            MemberRole::Following(follower) => {
                cx.effects.push(Effect::HangUp(follower.learner.link));
                let master = follower.observers.iter();
                cx.effects.extend(master.flat_map(ObserverMaster::links).map(Effect::HangUp));
            }
            MemberRole::Observing(learner) => cx.effects.push(Effect::HangUp(learner.link)),
            MemberRole::Looking(_) | MemberRole::Dialling(_) => {}
        }
        ensemble.master_retry.stop_waiting();
    }

    /// Closes the clients' connections, and forgets all that only this server knew of their sessions.
    pub(super) fn end_service(&mut self, cx: &mut Context<'_>) {
        self.close_clients(cx);
        self.sessions = Sessions::new(self.config.tick_time_ms.max(1));
    }

    fn close_clients(&mut self, cx: &mut Context<'_>) {
        for conn in self.connections.numbers() {
            self.close(cx, conn, CloseReason::NotServing);
        }
        if self.config.audit {
            self.give_up_audits(cx);
        }
        self.pipeline.syncs.clear();
        self.pipeline.last_revalidations.clear();
        for proposal in &mut self.pipeline.outstanding {
            proposal.conn = None;
        }
    }

    /// All sessions begin with a full timeout and without an owner.
    pub(super) fn restart_sessions(&mut self, now: Now) {
        self.sessions = Sessions::new(self.config.tick_time_ms.max(1));
        for (id, timeout_ms) in self.tree.sessions() {
            self.sessions.insert(now.mono, id, timeout_ms, None);
        }
    }

    pub(crate) fn handle_vote(&mut self, cx: &mut Context<'_>, from: ServerId, vote: &Notification) {
        // Votes of older formats have no configuration. A text that does not parse is ignored.
        if let Ok(config) = Membership::parse(&vote.config)
            && (self.refuse_other_ensemble(cx, from, vote, &config) || self.adopt_newer(cx, from, config))
        {
            return;
        }
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let mut out = Vec::new();
        let is_own = |own: Candidate| own.id == from && (own.epoch, own.zxid) > (Epoch(0), Zxid::ZERO);
        if vote.candidate.is_some_and(is_own) && ensemble.electorate.votes(from) {
            ensemble.servers_with_data.insert(from);
        }
        let had_voice = !ensemble.election.has_no_vote();
        ensemble.election.notified(cx.now.mono, from, vote, &ensemble.electorate, &mut out);
        // Their connections are closed, so that they look again at once. Java servers learn it in no other way.
        let waits_in_vain = |early: &PendingLearner| {
            early.server().is_some_and(|id| ensemble.election.has_elected_me_before(id))
        };
        cx.effects
            .extend(ensemble.pending_learners.drop_early(waits_in_vain).into_iter().map(Effect::HangUp));
        if had_voice && ensemble.election.has_no_vote() {
            tracing::warn!(
                server = from.0,
                "the data folder is empty, but another server of the ensemble has data: this server's vote does not \
                 count before it has copied them from a leader. If it is new here, stop it, create an empty file \
                 named `initialize` in dataLogDir (dataDir, if that is not set), and start it again"
            );
        }
        self.elect(cx, out);
    }

    pub(crate) fn election_link(&mut self, cx: &mut Context<'_>, peer: ServerId, up: bool) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let mut out = Vec::new();
        ensemble.pending_learners.election_link(peer, up);
        ensemble.election.link_changed(cx.now.mono, peer, up, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    pub(super) fn elect(&mut self, cx: &mut Context<'_>, outputs: Vec<ElectionOutput>) {
        for output in outputs {
            match output {
                ElectionOutput::Send { to, notification } => {
                    cx.effects.push(Effect::SendVote { to, notification });
                }
                ElectionOutput::Elected { leader } => self.elected(cx, leader),
                // Else this server looks for a leader already.
                ElectionOutput::LookAgain if self.has_elected() => {
                    self.look(cx, SearchReason::ElectionVoid);
                }
                ElectionOutput::LookAgain => {}
            }
        }
    }

    fn has_elected(&self) -> bool {
        self.role.ensemble().is_some_and(|ensemble| !matches!(ensemble.role, MemberRole::Looking(_)))
    }

    fn elected(&mut self, cx: &mut Context<'_>, leader: ServerId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        tracing::info!(leader = leader.0, round = ensemble.election.round(), "elected");
        if let MemberRole::Looking(looking) = &ensemble.role
            && ensemble.votes()
        {
            self.stats.elections.election_ms.add(cx.now.mono.0.saturating_sub(looking.began.0));
        }
        ensemble.note_elected(cx.now.mono, leader);
        ensemble.master_retry.stop_waiting();
        self.end_service(cx);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if leader == ensemble.me {
            return self.begin_leading(cx);
        }
        // They took this server for the leader.
        cx.effects.extend(ensemble.pending_learners.drop_early(|_| true).into_iter().map(Effect::HangUp));
        self.dial(cx, leader);
    }

    /// Ends an epoch before its counter is full. The next begins at 0, in place if that is possible: see
    /// [`super::epoch_move`]. Otherwise an election follows, if possible while no proposal is outstanding; upstream
    /// begins it during a write.
    pub(crate) fn end_full_epoch(&mut self, cx: &mut Context<'_>) {
        self.begin_move_if_due(cx);
        let (Some(proposals), Some(ensemble)) = (self.role.proposals(), self.role.ensemble()) else { return };
        if proposals.is_over(ensemble.config.epoch) {
            let proposed = proposals.proposed();
            tracing::warn!(%proposed, "this epoch has counted nearly as far as it can: a new one is to begin");
            self.look(cx, SearchReason::CounterFull);
        }
    }

    /// Notes that clients are served from now on. Returns for how many ms they were not.
    pub(super) fn note_service_begins(&mut self, now: Now) -> u64 {
        let since = self.role.ensemble_mut().and_then(|ensemble| ensemble.unserved_since.take());
        let ms = since.map_or(0, |since| now.mono.0.saturating_sub(since.0));
        self.stats.elections.unavailable_ms.add(ms);
        ms
    }
}

/// Whether the disk has nothing of any leader's history. The accepted epoch does not matter: a server that has lost its
/// disk accepts an epoch before it gets any data back.
pub(super) fn has_no_history(durable: DurableState) -> bool {
    durable.current == Epoch(0) && durable.last == Zxid::ZERO
}
