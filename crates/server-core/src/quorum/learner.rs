//! The learner's side: carries out the outputs of [`Learning`]. It takes over the leader's history, then logs and
//! applies its proposals.

use super::{
    AfterPersist, EnsembleAct, Reload, Revalidation, RevalidationWaiter,
    election::has_no_history,
    election_history::SearchReason,
    observer_master::ObserverMaster,
    own_info,
    reconfig::is_reconfig,
    role::{Dialling, Follower, Learner, MemberRole},
};
use crate::{
    context::Context,
    effect::{DialTarget, Effect, PersistOp},
    input::Now,
    pipeline::Outstanding,
    server::Server,
};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, SessionId, Zxid},
    quorum_packet::Packet,
    txn::TxnRecord,
};
use ostler_tree::{Overlay, Tree};
use ostler_zab::{
    History, Record,
    leading::LinkId,
    learning::{FromLeader, HangUp, Learning, LearningOutput},
};

/// The time that a leader has to open its quorum port after its election, while its election port is connected. An
/// upstream leader still waits 200 ms for votes when this server has elected it already.
const LEADER_BEGINS_WITHIN_MS: u64 = 5_000;

impl Server {
    pub(crate) fn leader_link(&mut self, cx: &mut Context<'_>, search_id: u64, link: LinkId) {
        let durable = self.durable_state();
        let knows_secrets = !self.config.passwords.secrets.is_empty();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let MemberRole::Dialling(dialling) = ensemble.role else {
            return cx.effects.push(Effect::HangUp(link));
        };
        if ensemble.search_id != search_id {
            return cx.effects.push(Effect::HangUp(link));
        }
        let learning = Learning::new(durable, ensemble.is_observer());
        let learning =
            if core::mem::take(&mut ensemble.wants_tree) { learning.wanting_tree() } else { learning };
        let learner = Learner {
            leader: dialling.leader,
            connected_to: dialling.to,
            link,
            learning,
            heard: cx.now.mono,
            promised: cx.now.mono,
            suggested: None,
            abandoned: BTreeMap::new(),
            touched: BTreeMap::new(),
            revalidating: BTreeMap::new(),
        };
        ensemble.election_history.connected(cx.now.mono);
        learner.send(cx, own_info(ensemble, knows_secrets));
        ensemble.role = if ensemble.is_observer() {
            MemberRole::Observing(Box::new(learner))
        } else {
            MemberRole::Following(Box::new(Follower { learner, observers: None }))
        };
    }

    pub(crate) fn leader_unreachable(&mut self, cx: &mut Context<'_>, search_id: u64) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let MemberRole::Dialling(Dialling { leader, to, since }) = ensemble.role else { return };
        if ensemble.search_id != search_id {
            return;
        }
        if leader == to {
            if ensemble.pending_learners.is_linked(leader)
                && cx.now.mono < since.after(LEADER_BEGINS_WITHIN_MS)
            {
                return cx.effects.push(Effect::Dial { search_id, to: DialTarget::Leader(leader) });
            }
            ensemble.election.leader_unreachable(cx.now.mono, leader);
        }
        self.look(cx, SearchReason::LeaderUnreachable);
    }

    pub(super) fn tick_learning(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let Some(learner) = ensemble.role.learner() else { return };
        let timing = ensemble.config.timing;
        let patience = if learner.learning.is_following() { timing.sync } else { timing.init + timing.sync };
        if learner.heard.after(patience) <= cx.now.mono {
            tracing::warn!(ms = patience, "the leader is silent");
            self.look(cx, SearchReason::LeaderSilent { ms: patience });
        }
    }

    pub(super) fn handle_leader_packet(&mut self, cx: &mut Context<'_>, packet: Packet<'_>) {
        let designated = match &packet {
            Packet::CommitAndActivate { leader, .. } | Packet::InformAndActivate { leader, .. } => {
                Some(*leader)
            }
            _ => None,
        };
        if let Some(learner) = self.learner_mut() {
            learner.heard = cx.now.mono;
            learner.suggested = designated;
        }
        let record = |bytes: &[u8]| Record(Arc::from(bytes));
        let said = match packet {
            Packet::LeaderInfo { epoch, .. } => FromLeader::LeaderInfo(epoch),
            Packet::Diff(_) => return self.take_diff(cx),
            Packet::Trunc(to) => FromLeader::Trunc(to),
            Packet::Proposal { zxid, record: bytes } => FromLeader::Proposal(zxid, record(&bytes)),
            Packet::Commit(zxid) | Packet::CommitAndActivate { zxid, .. } => FromLeader::Commit(zxid),
            Packet::Inform { zxid, record: bytes }
            | Packet::InformAndActivate { zxid, record: bytes, .. } => {
                FromLeader::Inform(zxid, record(&bytes))
            }
            Packet::NewLeader { epoch, config } => {
                self.handle_config(cx, &config);
                if !self.follows() {
                    self.tree.trust_digests_after(self.proposed());
                }
                FromLeader::NewLeader(epoch)
            }
            Packet::UpToDate => FromLeader::UpToDate,
            Packet::Ping { zxid, .. } => FromLeader::Ping(zxid),
            Packet::Sync => return self.synced(cx),
            Packet::Revalidated { session, valid } => {
                return self.handle_revalidation(cx, session, valid);
            }
            Packet::SessionMoved(session) => return self.session_moved_away(cx, session),
            _ => {
                tracing::warn!("the leader sent a packet that no leader sends");
                return self.look(cx, SearchReason::LeaderBroken);
            }
        };
        let search_id = self.search_id();
        self.handle_leader(cx, said);
        // A leader that may not lead any more names the next one, and its followers leave it.
        let leader = self.role.ensemble().and_then(|ensemble| ensemble.leader());
        if designated.is_some() && designated != leader && self.search_id() == search_id {
            self.look_to(cx, SearchReason::Reconfigured, designated);
        }
    }

    /// The leader has answered whether a session lives. The answer is for the oldest waiting request.
    fn handle_revalidation(&mut self, cx: &mut Context<'_>, session: SessionId, valid: bool) {
        let waiting = self.learner_mut().and_then(|learner| {
            let queue = learner.revalidating.get_mut(&session)?;
            let first = queue.pop_front();
            if queue.is_empty() {
                learner.revalidating.remove(&session);
            }
            first
        });
        match waiting {
            Some((RevalidationWaiter::Client(conn), timeout_ms)) => {
                self.revalidated(cx, conn, Revalidation { session, timeout_ms, valid });
            }
            Some((RevalidationWaiter::Observer(link), timeout_ms)) => {
                self.revalidated_at_observer(cx, link, Revalidation { session, timeout_ms, valid });
            }
            None => {}
        }
    }

    fn handle_leader(&mut self, cx: &mut Context<'_>, said: FromLeader) {
        let mut out = Vec::new();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if matches!(said, FromLeader::Diff | FromLeader::Trunc(_)) {
            ensemble.election.history_arrives();
            ensemble.leader().into_iter().for_each(|leader| ensemble.election.forgive(leader));
        }
        if let Some(learner) = ensemble.role.learner_mut() {
            learner.learning.heard(said, &mut out);
        }
        for output in out {
            self.note_learning(cx.now, &output);
            match output {
                LearningOutput::SaveAccepted(epoch) => self.save_accepted(cx, epoch),
                LearningOutput::SaveCurrent(epoch) => self.save_current(cx, epoch),
                LearningOutput::AckEpoch { last, current } => {
                    self.note_promise(cx.now);
                    self.answer_leader(Packet::AckEpoch { last, current });
                }
                LearningOutput::Ack(zxid) => self.acknowledge_to_leader(zxid),
                LearningOutput::Truncate(to) => {
                    if !self.truncate(cx, to) {
                        tracing::warn!(%to, "the leader wants this server's log cut to a zxid that the log does not reach");
                        return self.look(cx, SearchReason::LeaderBroken);
                    }
                }
                // The tree came with the packet.
                LearningOutput::Install(_) => {}
                LearningOutput::Append(zxid, record) => {
                    if !self.log_proposal(cx, zxid, record) {
                        tracing::error!(%zxid, "the leader sent a proposal that does not decode");
                        return self.look(cx, SearchReason::LeaderBroken);
                    }
                }
                LearningOutput::Commit(zxid) => self.commit_next(cx, zxid),
                LearningOutput::Serve(epoch) => self.serve_clients(cx, epoch),
                LearningOutput::Moved(epoch) => self.moved_with_leader(cx, epoch),
                LearningOutput::Pong(zxid) => self.pong(cx, zxid),
                LearningOutput::HangUp(HangUp::StaleEpoch { proposed, accepted }) => {
                    tracing::warn!(
                        proposed = proposed.0,
                        promised = accepted.0,
                        "the leader's epoch is below one that this server has promised to another server, so it cannot follow \
                         this leader. It follows again once a later epoch begins. To begin one at once, restart the \
                         server that leads; do it again if this message comes again"
                    );
                    if let Some(ensemble) = self.role.ensemble_mut() {
                        ensemble.promised_later_epoch = true;
                    }
                    return self.look(cx, SearchReason::Left(HangUp::StaleEpoch { proposed, accepted }));
                }
                LearningOutput::HangUp(why) => {
                    tracing::warn!(?why, "this server leaves its leader");
                    return self.look(cx, SearchReason::Left(why));
                }
            }
        }
        self.release_ready_acts(cx);
    }

    fn note_promise(&mut self, now: Now) {
        if let Some(learner) = self.learner_mut() {
            learner.promised = now.mono;
        }
    }

    /// Notes on disk that a history begins to come to a server that has none. If it restarts before the end, it must
    /// not count as one that only lags: it may have acknowledged transactions that it does not have yet.
    fn mark_incomplete(&mut self, cx: &mut Context<'_>) {
        let durable = self.durable_state();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if has_no_history(durable) && !ensemble.config.may_start_empty && !ensemble.incomplete {
            ensemble.incomplete = true;
            self.pipeline.persist(cx, PersistOp::MarkIncomplete);
        }
    }

    fn acknowledge_to_leader(&mut self, zxid: Zxid) {
        let (search_id, last) = (self.search_id(), self.pipeline.outstanding.back());
        let made_ms = last.filter(|proposal| proposal.zxid == zxid).map(|proposal| proposal.made_ms);
        self.pipeline
            .gate
            .hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::Acknowledge { zxid, made_ms } });
    }

    /// Sends a packet to the leader when everything so far is on disk.
    fn answer_leader(&mut self, packet: Packet<'static>) {
        let search_id = self.search_id();
        self.pipeline.gate.hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::Send(packet) });
    }

    /// Carries out the acts whose wait is over already.
    fn release_ready_acts(&mut self, cx: &mut Context<'_>) {
        let search_id = self.search_id();
        while let Some(held) = self.pipeline.gate.pop() {
            if let AfterPersist::Ensemble { search_id: of, act } = held
                && of == search_id
            {
                self.carry_out(cx, act);
            }
        }
    }

    fn log_proposal(&mut self, cx: &mut Context<'_>, zxid: Zxid, record: Record) -> bool {
        let made_ms = match TxnRecord::read(&record.0) {
            Ok(read) if read.header.zxid == zxid => read.header.time_ms,
            _ => return false,
        };
        self.mark_incomplete(cx);
        if is_reconfig(&record) {
            self.handle_reconfig_proposal(cx, &record);
        }
        let op = PersistOp::Append { zxid, record: record.clone() };
        let serves = self.follows();
        let observes = self.role.ensemble().is_some_and(|ensemble| ensemble.is_observer());
        if serves && !observes {
            self.stats.writes.proposals_received += 1;
            self.stats.writes.proposal_ms.add(cx.now.since_wall(made_ms));
        }
        if !planted::is(Bug::DiffNotLogged) || serves {
            self.pipeline.persist(cx, op);
        }
        self.pipeline.outstanding.push_back(Outstanding {
            zxid,
            record,
            made_ms,
            came_us: cx.now.mono_us(),
            conn: None,
        });
        true
    }

    fn commit_next(&mut self, cx: &mut Context<'_>, zxid: Zxid) {
        let Some(proposal) = self.pipeline.outstanding.pop_front() else { return };
        assert_eq!(proposal.zxid, zxid, "what is committed is what was logged first");
        self.send_commit(cx, &proposal);
        self.commit(cx, &proposal);
        self.remember(proposal);
        self.catch_up_with_observers(cx);
    }

    /// With DIFF this server's log is the beginning of the leader's history, so all of it is committed.
    fn take_diff(&mut self, cx: &mut Context<'_>) {
        let search_id = self.search_id();
        self.handle_leader(cx, FromLeader::Diff);
        if self.search_id() == search_id {
            self.apply_logged(Zxid(u64::MAX));
        }
    }

    /// Removes everything after `to`: it was never committed. Returns false if less than `to` would be left.
    fn truncate(&mut self, cx: &mut Context<'_>, to: Zxid) -> bool {
        if planted::is(Bug::TruncSkipped) {
            return true;
        }
        while self.pipeline.outstanding.back().is_some_and(|proposal| proposal.zxid > to) {
            self.pipeline.outstanding.pop_back();
        }
        self.forget_proposed_after(to);
        self.apply_logged(to);
        // A restart applies the whole log, so the tree may have transactions that never committed.
        let last = self.tree.last_processed();
        let reload = (last > to && !planted::is(Bug::TruncInLogOnly)).then(|| self.search_id());
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.reloading = reload.map(|_| Reload { to, look: false });
        }
        if !planted::is(Bug::TruncInMemoryOnly) || reload.is_some() {
            cx.effects.push(Effect::Persist {
                seq: self.pipeline.gate.issue(),
                op: PersistOp::Truncate { to, reload },
            });
        }
        last >= to
    }

    /// A snapshot from an earlier leader may have later transactions than `to`. Then they are still in the tree.
    pub(crate) fn tree_reloaded(&mut self, cx: &mut Context<'_>, tree: Tree) {
        let Some(reload) = self.role.ensemble_mut().and_then(|ensemble| ensemble.reloading.take()) else {
            return;
        };
        let last = tree.last_processed();
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.wants_tree = last != reload.to;
        }
        self.replace_tree(tree);
        self.handle_config_of_tree(cx);
        if reload.look || last != reload.to {
            tracing::info!(
                %last,
                to = %reload.to,
                "the log was cut back, and the leader is left: it is lost, or has to send a whole tree"
            );
            self.look(cx, SearchReason::CutBack);
        }
    }

    pub(crate) fn tree_begins(&mut self, now: Now, link: LinkId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if let Some(learner) = ensemble.role.learner_mut()
            && learner.link == link
        {
            learner.heard = now.mono;
            ensemble.election.history_arrives();
            ensemble.leader().into_iter().for_each(|leader| ensemble.election.forgive(leader));
        }
    }

    /// Bytes of a long packet move, so the other side is alive. A tree may take longer than any timeout, and giving up
    /// would only begin it again.
    pub(crate) fn stream_moves(&mut self, now: Now, link: LinkId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        match &mut ensemble.role {
            MemberRole::Leading(leader) => leader.learners.leading.lives(now.mono, link),
            role => match role.learner_mut() {
                Some(learner) if learner.link == link => learner.heard = now.mono,
                Some(_) => {
                    role.observer_master_mut().into_iter().for_each(|master| master.lives(now.mono, link))
                }
                None => {}
            },
        }
    }

    pub(crate) fn install_tree(&mut self, cx: &mut Context<'_>, link: LinkId, tree: Tree) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learner) = ensemble.role.learner_mut() else { return };
        if learner.link != link {
            return;
        }
        learner.heard = cx.now.mono;
        self.mark_incomplete(cx);
        let at = tree.last_processed();
        self.pipeline.outstanding.clear();
        self.replace_tree(tree);
        // A Java leader sends its tree while it changes. The transactions that changed it come before NEWLEADER, so
        // digests before that do not match.
        self.tree.distrust_digests();
        self.handle_config_of_tree(cx);
        let op = PersistOp::Install(Box::new(self.tree.freeze()));
        if planted::is(Bug::EpochBeforeSnapshot)
            && let Some(epoch) = self.role.ensemble().map(|ensemble| ensemble.accepted)
        {
            self.save_current(cx, epoch);
        }
        if !planted::is(Bug::SnapshotNotKept) {
            self.pipeline.persist(cx, op);
        }
        self.handle_leader(cx, FromLeader::Snap(at));
    }

    pub(super) fn replace_tree(&mut self, tree: Tree) {
        self.tree = tree;
        self.pipeline.overlay = Overlay::new(&self.tree);
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.history = History::new(ensemble.config.history, self.tree.last_processed());
            ensemble.log_from = self.tree.last_processed();
        }
    }

    fn serve_clients(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        self.restart_sessions(cx.now);
        self.note_service_begins(cx.now);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if let Some(learner) = ensemble.role.learner() {
            let ms = cx.now.mono.0.saturating_sub(learner.promised.0);
            let elections = &mut self.stats.elections;
            let of = if ensemble.is_observer() {
                &mut elections.observer_sync_ms
            } else {
                &mut elections.follower_sync_ms
            };
            of.add(ms);
        }
        ensemble.election.established(epoch);
        // As upstream, also a follower that has no vote yet: it may get one while it follows.
        let master = (ensemble.config.observing.masters && !ensemble.is_observer())
            .then(|| ObserverMaster::new(ensemble));
        if let MemberRole::Following(follower) = &mut ensemble.role {
            follower.observers = master;
        }
        let leader = ensemble.leader().map(|leader| leader.0);
        tracing::info!(leader, epoch = epoch.0, "following");
        self.adopt_config(cx);
    }

    fn pong(&mut self, cx: &mut Context<'_>, zxid: Zxid) {
        let Some(learner) = self.learner_mut() else { return };
        let mut touched: Vec<_> = core::mem::take(&mut learner.touched).into_iter().collect();
        if planted::is(Bug::TouchesForgotten) {
            touched.clear();
        }
        learner.send(cx, Packet::Ping { zxid, touched: Some(touched) });
    }
}
