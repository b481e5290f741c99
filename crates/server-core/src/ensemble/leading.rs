//! The leader's side: carries out the outputs of [`Leading`], sends learners the history, then proposals and commits.
//! An observer master uses parts of it, too.

use super::{
    AfterPersist, Delayed, EnsembleAct, Role,
    election_history::SearchReason,
    peer_says,
    pending_learners::PendingLearner,
    reconfig::{has_needed_config, is_reconfig},
};
use crate::{
    context::Context,
    effect::{Effect, PeerMessage, PersistOp},
    input::{LogPart, Now},
    passwords::NewPasswords,
    server::{Outstanding, Server},
};
use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, SessionId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
};
use ostler_tree::Overlay;
use ostler_zab::{
    Proposals, Record,
    leading::{FromLearner, Leading, LeadingOutput, LinkId},
    sync::{Reach, SyncPlan, plan, plan_from_log},
};

impl Server {
    pub(super) fn begin_leading(&mut self, cx: &mut Context<'_>) {
        // A leader's log is the history: everything in it counts as committed, and its followers get what they lack.
        if planted::is(Bug::TailDropped) {
            self.outstanding.clear();
        }
        self.apply_logged(Zxid(u64::MAX));
        let durable = self.durable_state();
        let Some(ensemble) = &mut self.ensemble else { return };
        let (electorate, timing) = (ensemble.electorate.clone(), ensemble.config.timing);
        let mut out = Vec::new();
        let mut leading = Leading::new(cx.now.mono, ensemble.me, durable, electorate, timing, &mut out);
        leading.set_servers_with_data(ensemble.servers_with_data.clone());
        for PendingLearner { link, info, origin, config_version } in ensemble.pending_learners.take_early() {
            if has_needed_config(config_version, &ensemble.config, false) {
                leading.heard_from(cx.now.mono, link, origin, info, &mut out);
            } else {
                cx.effects.push(Effect::HangUp(link));
            }
        }
        ensemble.role = Role::Leading(Box::new(leading));
        self.lead(cx, out);
    }

    pub(super) fn tick_leading(&mut self, cx: &mut Context<'_>) {
        let mut out = Vec::new();
        let Some(ensemble) = &mut self.ensemble else { return };
        let Role::Leading(leading) = &mut ensemble.role else { return };
        leading.tick(cx.now.mono, &mut out);
        self.send_trees_for_logs(cx);
        self.ping_learners(cx);
        self.lead(cx, out);
    }

    /// While the log is read for a learner, it gets no packet: the first one has to be DIFF, TRUNC or SNAP. If the log
    /// takes too long, it gets a whole tree, before its own timeout.
    pub(super) fn send_trees_for_logs(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let is_due = |_: &LinkId, of: &mut Delayed| of.tree_at.is_some_and(|due| due <= cx.now.mono);
        for (link, delayed) in ensemble.delayed.extract_if(.., is_due).collect::<Vec<_>>() {
            tracing::warn!(
                link = link.0,
                "reading the log for a learner takes too long: it gets a whole tree instead"
            );
            self.stream_moves(cx.now, link);
            self.snapshot_late(cx, link, delayed.then);
        }
    }

    pub(super) fn ping_learners(&mut self, cx: &mut Context<'_>) {
        let zxid = self.proposed();
        let Some(ensemble) = &self.ensemble else { return };
        let Some(learners) = ensemble.learners() else { return };
        // The first packet after the epoch has to be DIFF, TRUNC or SNAP, which may have to wait for the log.
        for (link, _) in learners.forwarding().filter(|(link, _)| !ensemble.delayed.contains_key(link)) {
            let message = PeerMessage::Packet(Packet::Ping { zxid, touched: None });
            cx.effects.push(Effect::ToPeer { link, message });
        }
    }

    pub(super) fn lead(&mut self, cx: &mut Context<'_>, outputs: Vec<LeadingOutput>) {
        let send = |link, packet| Effect::ToPeer { link, message: PeerMessage::Packet(packet) };
        for output in outputs {
            self.note_leading(cx.now, &output);
            match output {
                LeadingOutput::SaveAccepted(epoch) => self.save_accepted(cx, epoch),
                LeadingOutput::SaveCurrent(epoch) => self.save_current(cx, epoch),
                LeadingOutput::LeaderInfo { link, epoch } => {
                    cx.effects.push(send(link, Packet::LeaderInfo { epoch, protocol: PROTOCOL_VERSION }));
                }
                LeadingOutput::Synchronise { link, last } => self.synchronise(cx, link, last),
                LeadingOutput::Established(epoch) => self.begin_epoch(cx, epoch),
                LeadingOutput::UpToDate(link) => {
                    self.sync_ends(link);
                    self.note_joined(link);
                    cx.effects.push(send(link, Packet::UpToDate));
                }
                LeadingOutput::Acknowledged { from, zxid } => {
                    if zxid > self.proposed() {
                        // An acknowledgement of something that was not proposed is ignored.
                        tracing::warn!(server = from.0, %zxid, "a follower has acknowledged a zxid that was not proposed");
                    } else {
                        if let Some(ensemble) = &mut self.ensemble {
                            ensemble.servers_with_data.insert(from);
                        }
                        self.acknowledged(cx, from, zxid);
                    }
                }
                LeadingOutput::DataLost(server) => tracing::warn!(
                    server = server.0,
                    "this server had data and has none now: it may have lost what it acknowledged, so it does not count \
                     before another server backs this leader. If all others are lost for good, copy this leader's data to \
                     it, or restart this leader. To copy, stop that server, put the folder `version-2` of this leader's \
                     dataDir, and of dataLogDir if that is set, in the place of its own, and start it again"
                ),
                LeadingOutput::Refuse { link, server, why } => {
                    let server = server.map(|server| server.0);
                    tracing::warn!(server, link = link.0, reason = %why, "a learner was refused");
                    cx.effects.push(Effect::HangUp(link));
                }
                LeadingOutput::StepDown(why) => {
                    tracing::warn!(?why, "this server stops leading");
                    return self.look(cx, SearchReason::SteppedDown(why));
                }
            }
        }
    }

    pub(super) fn save_accepted(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let search_id = self.search_id();
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.accepted = epoch;
        }
        cx.effects.push(Effect::Persist { seq: self.gate.issue(), op: PersistOp::SaveAccepted(epoch) });
        self.gate.hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::AcceptedSaved });
    }

    pub(super) fn save_current(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let search_id = self.search_id();
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.current = epoch;
            ensemble.incomplete = false;
        }
        cx.effects.push(Effect::Persist { seq: self.gate.issue(), op: PersistOp::SaveCurrent(epoch) });
        self.gate.hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::CurrentSaved });
    }

    /// Carries out an act whose wait for the disk is over.
    pub(crate) fn released(&mut self, cx: &mut Context<'_>, act: EnsembleAct) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let mut out = Vec::new();
        match (act, &mut ensemble.role) {
            (EnsembleAct::AcceptedSaved, Role::Leading(leading)) => {
                leading.accepted_saved(cx.now.mono, &mut out)
            }
            (EnsembleAct::CurrentSaved, Role::Leading(leading)) => {
                leading.current_saved(cx.now.mono, &mut out)
            }
            (EnsembleAct::Send(packet), Role::Learning(learner)) => {
                cx.effects.push(Effect::ToPeer { link: learner.link, message: PeerMessage::Packet(packet) });
            }
            (EnsembleAct::Acknowledge { zxid, made_ms }, Role::Learning(learner)) => {
                if let Some(made_ms) = made_ms {
                    self.stats.writes.own_ack_ms.add(cx.now.since_wall(made_ms));
                }
                let message = PeerMessage::Packet(Packet::Ack(zxid));
                cx.effects.push(Effect::ToPeer { link: learner.link, message });
            }
            _ => {}
        }
        self.lead(cx, out);
    }

    fn begin_epoch(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let first = Zxid::new(epoch, 0);
        let unserved_ms = self.service_begins(cx.now);
        self.stats.elections.leader_unavailable_ms.add(unserved_ms);
        self.tree.begin_epoch(first);
        self.overlay = Overlay::new(&self.tree);
        self.restart_sessions(cx.now);
        if planted::is(Bug::NewLeaderExpiresEarly) {
            for (id, timeout_ms) in self.tree.sessions() {
                self.sessions.insert(cx.now.mono, id, timeout_ms / 2, None);
            }
        }
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.election.established(epoch);
        self.proposals = Some(Proposals::new(ensemble.electorate.clone(), first));
        tracing::info!(epoch = epoch.0, "leading");
        self.number_first_config();
        self.adopt_config(cx);
    }

    pub(super) fn learner_says(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let Some(ensemble) = &self.ensemble else { return };
        let said = peer_says(&packet, ensemble.config.membership.version);
        let established = ensemble.learners().is_some_and(Leading::is_established);
        let lacks = match &packet {
            Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. } => {
                if !self.judges_passwords(info) && established {
                    return cx.effects.push(Effect::HangUp(link));
                }
                !has_needed_config(info.config_version, &ensemble.config, established)
            }
            _ => false,
        };
        let Some(said) = said.filter(|_| !lacks) else {
            // It learns the configuration in force from the others' votes, and comes again.
            tracing::info!(
                link = link.0,
                lacks,
                "a learner was refused: it did not send its id, or lacks a change of the configuration"
            );
            return cx.effects.push(Effect::HangUp(link));
        };
        let mut out = Vec::new();
        if let Some(ensemble) = &mut self.ensemble {
            if let FromLearner::Info { id, .. } = said {
                ensemble.election.voter_follows(id);
            }
            let origin = ensemble.origin(link, said);
            if let Some(leading) = ensemble.leading() {
                leading.heard_from(cx.now.mono, link, origin, said, &mut out);
            }
        }
        self.lead(cx, out);
        self.asked_by_learner(cx, link, packet);
    }

    /// Whether a learner can check the passwords of this server's sessions. One that cannot would tell clients that
    /// their sessions have expired. So it is refused, if the epoch has begun without it, until the passwords have
    /// changed.
    pub(super) fn judges_passwords(&self, learner: &LearnerInfo) -> bool {
        let judges = learner.knows_secrets || self.config.passwords.new != NewPasswords::Secret;
        if !judges {
            let server = learner.server.map(|server| server.0);
            tracing::warn!(
                server,
                "this learner cannot judge session passwords that are made with a secret, and would end the sessions of \
                 clients that come to it: set sessionSecrets there to the same file as here; or, if it is a Java \
                 server, first set sessionPasswords=leaving at all others, restart them, and wait as long as the longest \
                 session timeout"
            );
        }
        judges
    }

    /// Sends a learner the history that it lacks: from memory, from the log on disk, or as a whole tree. Later
    /// proposals follow by themselves.
    pub(super) fn synchronise(&mut self, cx: &mut Context<'_>, link: LinkId, peer: Zxid) {
        if self.delay_for_commits(link, peer) {
            return;
        }
        let applied = self.complete_through();
        let Some(ensemble) = &mut self.ensemble else { return };
        let history = &ensemble.history;
        let reach = Reach { first: history.first(), last: history.last(), applied };
        let (before, mut after) = history.around(peer);
        let next = after.next().map(|(zxid, _)| *zxid);
        drop(after);
        let planned = plan(peer, reach, before, next);
        // The log itself does not show whether transactions are missing between two epochs.
        if planned == SyncPlan::AskLog && peer >= ensemble.log_from {
            let through = history.last();
            let tree_at = Some(cx.now.mono.after(ensemble.config.timing.init / 2));
            ensemble.delayed.insert(link, Delayed { peer, then: Vec::new(), tree_at });
            cx.effects.push(Effect::ReadLog { search_id: ensemble.search_id, link, after: peer, through });
        } else {
            self.send_plan(cx, link, planned, None);
        }
        self.finish_sync(cx, link);
    }

    /// The log on disk was read for a learner; `None` if the learner has to get a tree.
    pub(crate) fn log_read(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        search_id: u64,
        read: Option<LogPart>,
    ) {
        let applied = self.tree.last_processed();
        let Some(ensemble) = &mut self.ensemble else { return };
        if ensemble.search_id != search_id {
            return;
        }
        let Some(delayed) = ensemble.delayed.remove(&link) else { return };
        match read {
            Some(part) => {
                let last = part.records.last().map_or(delayed.peer, |(zxid, _)| *zxid);
                let reach = Reach { first: ensemble.history.first(), last, applied };
                let next = part.records.first().map(|(zxid, _)| *zxid);
                let planned = plan_from_log(delayed.peer, reach, part.before, next);
                // A tree of this moment may have some of the waiting transactions already.
                if planned == SyncPlan::Snap {
                    return self.snapshot_late(cx, link, delayed.then);
                }
                self.send_plan(cx, link, planned, Some(&part.records));
                cx.effects.extend(delayed.then.into_iter().map(|message| Effect::ToPeer { link, message }));
            }
            None => self.snapshot_late(cx, link, delayed.then),
        }
    }

    /// Sends a tree of this moment. It has everything that was committed while the log was read, reconfigurations
    /// included. So of the waiting packets only NEWLEADER, with the configuration of this moment, and those about
    /// uncommitted transactions follow.
    fn snapshot_late(&mut self, cx: &mut Context<'_>, link: LinkId, then: Vec<PeerMessage>) {
        self.send_plan(cx, link, SyncPlan::Snap, None);
        let Some(ensemble) = &self.ensemble else { return };
        let established = ensemble.learners().is_some_and(Leading::is_established);
        let config = Self::config_to_follow(&ensemble.config, established);
        let applied = self.tree.last_processed();
        let follows = |message: &PeerMessage| match message {
            PeerMessage::Proposal(zxid, _) | PeerMessage::Inform(zxid, _) => *zxid > applied,
            PeerMessage::Packet(
                Packet::Commit(zxid)
                | Packet::CommitAndActivate { zxid, .. }
                | Packet::InformAndActivate { zxid, .. },
            ) => *zxid > applied,
            _ => true,
        };
        for mut message in then.into_iter().filter(follows) {
            if let PeerMessage::Packet(Packet::NewLeader { config: of_then, .. }) = &mut message {
                *of_then = config.clone().into();
            }
            cx.effects.push(Effect::ToPeer { link, message });
        }
    }

    fn send_plan(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        planned: SyncPlan,
        from_log: Option<&[(Zxid, Record)]>,
    ) {
        let send = |message| Effect::ToPeer { link, message };
        tracing::info!(?link, plan = ?planned, "synchronising a learner");
        self.sync_begins(link, matches!(planned, SyncPlan::Snap | SyncPlan::AskLog));
        let kept = match planned {
            SyncPlan::Diff { after: kept, .. } | SyncPlan::Trunc { to: kept } => Some(kept),
            SyncPlan::Snap | SyncPlan::AskLog => None,
        };
        let learners = self.ensemble.as_ref().and_then(|ensemble| ensemble.learners());
        if let Some((proposals, server)) =
            self.proposals.as_mut().zip(learners.and_then(|of| of.server_of(link)))
        {
            proposals.cut_back(server, kept.unwrap_or(Zxid::ZERO));
        }
        cx.effects.push(send(match planned {
            SyncPlan::Diff { through, .. } => PeerMessage::Packet(Packet::Diff(through)),
            SyncPlan::Trunc { to } => PeerMessage::Packet(Packet::Trunc(to)),
            SyncPlan::Snap | SyncPlan::AskLog => PeerMessage::Snapshot(Box::new(self.tree.freeze())),
        }));
        let Some(from) = kept else { return };
        let Some(ensemble) = &self.ensemble else { return };
        // Transactions that were committed while the log was read wait in `delayed`.
        let in_memory = from_log.is_none().then(|| ensemble.history.around(from).1);
        let read = from_log.into_iter().flatten().filter(|(zxid, _)| *zxid > from);
        let records: Vec<(Zxid, Record)> = read.chain(in_memory.into_iter().flatten()).cloned().collect();
        if !records.is_empty() {
            cx.effects.push(send(PeerMessage::History(records)));
        }
    }

    fn sync_begins(&mut self, link: LinkId, by_tree: bool) {
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.being_synced.insert(link, by_tree);
        let syncs = &mut self.stats.syncs;
        *(if by_tree { &mut syncs.trees } else { &mut syncs.without_tree }) += 1;
        self.count_syncs(by_tree);
    }

    fn note_joined(&mut self, link: LinkId) {
        let Some(ensemble) = &mut self.ensemble else { return };
        if let Some(server) = ensemble.learners().and_then(|learners| learners.server_of(link)) {
            ensemble.election.forgive(server);
        }
    }

    fn sync_ends(&mut self, link: LinkId) {
        let ended = self.ensemble.as_mut().and_then(|ensemble| ensemble.being_synced.remove(&link));
        if let Some(by_tree) = ended {
            self.count_syncs(by_tree);
        }
    }

    fn count_syncs(&mut self, by_tree: bool) {
        let Some(ensemble) = &self.ensemble else { return };
        let count = ensemble.being_synced.values().filter(|of| **of == by_tree).count() as u64;
        let syncs = &mut self.stats.syncs;
        (if by_tree { &mut syncs.trees_under_way } else { &mut syncs.without_tree_under_way }).add(count);
    }

    /// Sends the outstanding proposals, then NEWLEADER.
    fn finish_sync(&mut self, cx: &mut Context<'_>, link: LinkId) {
        self.number_first_config();
        let Some(ensemble) = &mut self.ensemble else { return };
        let Some(learners) = ensemble.learners() else { return };
        let Some(epoch) = learners.epoch() else { return };
        let observer = learners.forwarding().any(|(of, observer)| of == link && observer);
        let outstanding = self.outstanding.iter().filter(|_| !observer);
        let mut messages: Vec<PeerMessage> = outstanding
            .map(|proposal| PeerMessage::Proposal(proposal.zxid, proposal.record.clone()))
            .collect();
        let config = Self::config_to_follow(&ensemble.config, learners.is_established()).into();
        messages.push(PeerMessage::Packet(Packet::NewLeader { epoch, config }));
        match ensemble.delayed.get_mut(&link) {
            Some(delayed) => delayed.then.append(&mut messages),
            None => cx.effects.extend(messages.into_iter().map(|message| Effect::ToPeer { link, message })),
        }
    }

    /// Sends a proposal to all followers.
    pub(crate) fn tell_followers(
        &mut self,
        cx: &mut Context<'_>,
        zxid: Zxid,
        message: impl Fn() -> PeerMessage,
    ) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let Role::Leading(leading) = &mut ensemble.role else { return };
        leading.proposed(cx.now.mono, zxid);
        for (link, _) in leading.forwarding().filter(|(_, observer)| !observer) {
            match ensemble.delayed.get_mut(&link) {
                Some(delayed) => delayed.then.push(message()),
                None => cx.effects.push(Effect::ToPeer { link, message: message() }),
            }
        }
    }

    /// Sends a commit to all learners.
    pub(crate) fn tell_commit(&mut self, cx: &mut Context<'_>, proposal: &Outstanding) {
        let Some(ensemble) = &self.ensemble else { return };
        let leader = || ensemble.suggested_leader().unwrap_or_else(|| self.designated_leader());
        let activate = is_reconfig(&proposal.record).then(leader);
        let Some(ensemble) = &mut self.ensemble else { return };
        let Some(learners) = ensemble.learners() else { return };
        let told: Vec<(LinkId, bool)> = learners.forwarding().collect();
        for (link, observer) in told {
            let (zxid, record) = (proposal.zxid, &proposal.record);
            let message = match (activate, observer) {
                (None, true) => PeerMessage::Inform(zxid, record.clone()),
                (None, false) => PeerMessage::Packet(Packet::Commit(zxid)),
                (Some(leader), true) => {
                    let record = Cow::Owned(record.0.to_vec());
                    PeerMessage::Packet(Packet::InformAndActivate { zxid, leader, record })
                }
                (Some(leader), false) => PeerMessage::Packet(Packet::CommitAndActivate { zxid, leader }),
            };
            match ensemble.delayed.get_mut(&link) {
                Some(delayed) => delayed.then.push(message),
                None => cx.effects.push(Effect::ToPeer { link, message }),
            }
        }
    }

    /// Notes the signs of life that a learner has reported.
    pub(super) fn touched_at_learner(&mut self, now: Now, touched: &[(SessionId, i32)]) {
        for (session, _) in touched {
            self.sessions.touch(now.mono, *session);
        }
    }
}
