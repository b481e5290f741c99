//! The leader's side: carries out the outputs of [`Leading`], sends learners the history, then proposals and commits.
//! An observer master uses parts of it, too.

use super::{
    AfterPersist, EnsembleAct,
    election_history::SearchReason,
    learner_packet,
    pending_learners::PendingLearner,
    reconfig::{has_needed_config, is_reconfig},
};
use crate::{
    context::Context,
    effect::{Effect, PeerMessage, PersistOp},
    input::Now,
    pipeline::Outstanding,
    quorum::{
        MemberMode,
        role::{Leader, Learners, MemberRole},
    },
    server::Server,
    sessions::passwords::NewPasswords,
};
use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, SessionId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
};
use ostler_tree::Overlay;
use ostler_zab::{
    Proposals,
    leading::{FromLearner, Leading, LeadingOutput, LinkId},
};

impl Server {
    pub(super) fn begin_leading(&mut self, cx: &mut Context<'_>) {
        // A leader's log is the history: everything in it counts as committed, and its followers get what they lack.
        if planted::is(Bug::TailDropped) {
            self.pipeline.outstanding.clear();
        }
        self.apply_logged(Zxid(u64::MAX));
        let durable = self.durable_state();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
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
        ensemble.role =
            MemberRole::Leading(Box::new(Leader { learners: Learners::new(leading), proposals: None }));
        self.carry_out_leading(cx, out);
    }

    pub(super) fn tick_leading(&mut self, cx: &mut Context<'_>) {
        let mut out = Vec::new();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(leader) = ensemble.role.leader_mut() else { return };
        leader.learners.leading.tick(cx.now.mono, &mut out);
        self.send_trees_for_logs(cx);
        self.ping_learners(cx);
        self.carry_out_leading(cx, out);
    }

    pub(super) fn ping_learners(&mut self, cx: &mut Context<'_>) {
        let zxid = self.proposed();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(Learners { leading, delayed, pings, .. }) = ensemble.role.learners_mut() else { return };
        // The first packet after the epoch has to be DIFF, TRUNC or SNAP, which may have to wait for the log.
        for (link, _) in leading.forwarding().filter(|(link, _)| !delayed.contains_key(link)) {
            pings.sent(link, cx.now);
            let message = PeerMessage::Packet(Packet::Ping { zxid, touched: None });
            cx.effects.push(Effect::ToPeer { link, message });
        }
    }

    pub(super) fn carry_out_leading(&mut self, cx: &mut Context<'_>, outputs: Vec<LeadingOutput>) {
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
                LeadingOutput::MoveOn(epoch) => self.move_on(cx, epoch),
                LeadingOutput::BorderOnDisk(_) => self.end_move_if_committed(cx),
                LeadingOutput::MoveObserver { link, epoch } => self.move_observer(cx, link, epoch),
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
                        if let Some(ensemble) = self.role.ensemble_mut() {
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
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.accepted = epoch;
        }
        self.pipeline.persist(cx, PersistOp::SaveAccepted(epoch));
        self.pipeline.gate.hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::AcceptedSaved });
    }

    pub(super) fn save_current(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let search_id = self.search_id();
        if let Some(ensemble) = self.role.ensemble_mut() {
            // A server that serves moves on in place: see `begun`.
            if matches!(ensemble.mode(), MemberMode::Looking | MemberMode::ReadOnly) {
                ensemble.begun = epoch;
            }
            ensemble.current = epoch;
            ensemble.incomplete = false;
        }
        self.pipeline.persist(cx, PersistOp::SaveCurrent(epoch));
        self.pipeline.gate.hold(AfterPersist::Ensemble { search_id, act: EnsembleAct::CurrentSaved });
    }

    /// Carries out an act whose wait for the disk is over.
    pub(crate) fn carry_out(&mut self, cx: &mut Context<'_>, act: EnsembleAct) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let mut out = Vec::new();
        match (act, &mut ensemble.role) {
            (EnsembleAct::AcceptedSaved, MemberRole::Leading(leader)) => {
                leader.learners.leading.accepted_saved(cx.now.mono, &mut out)
            }
            (EnsembleAct::CurrentSaved, MemberRole::Leading(leader)) => {
                leader.learners.leading.current_saved(cx.now.mono, &mut out)
            }
            (EnsembleAct::Send(packet), role) => {
                if let Some(learner) = role.learner() {
                    learner.send(cx, packet);
                }
            }
            (EnsembleAct::Acknowledge { zxid, made_ms }, role) => {
                if let Some(learner) = role.learner() {
                    if let Some(made_ms) = made_ms {
                        self.stats.writes.own_ack_ms.add(cx.now.since_wall(made_ms));
                    }
                    learner.send(cx, Packet::Ack(zxid));
                }
            }
            (EnsembleAct::AcceptedSaved | EnsembleAct::CurrentSaved, _) => {}
        }
        self.carry_out_leading(cx, out);
    }

    fn begin_epoch(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let first = Zxid::new(epoch, 0);
        let unserved_ms = self.note_service_begins(cx.now);
        self.stats.elections.leader_unavailable_ms.add(unserved_ms);
        self.tree.begin_epoch(first);
        self.pipeline.overlay = Overlay::new(&self.tree);
        self.restart_sessions(cx.now);
        if planted::is(Bug::NewLeaderExpiresEarly) {
            for (id, timeout_ms) in self.tree.sessions() {
                self.sessions.insert(cx.now.mono, id, timeout_ms / 2, None);
            }
        }
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.election.established(epoch);
        if let Some(leader) = ensemble.role.leader_mut() {
            leader.proposals = Some(Proposals::new(ensemble.electorate.clone(), first));
        }
        tracing::info!(epoch = epoch.0, "leading");
        self.number_first_config();
        self.adopt_config(cx);
    }

    pub(super) fn handle_learner_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let said = learner_packet(&packet, ensemble.config.membership.version);
        let established = ensemble.has_established_epoch();
        let lacks = match &packet {
            Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. } => {
                if !self.can_judge_passwords(info) && established {
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
        if let Some(ensemble) = self.role.ensemble_mut() {
            if let FromLearner::Info { id, .. } = said {
                ensemble.election.voter_follows(id);
            }
            let origin = ensemble.origin(link, said);
            if let Some(leader) = ensemble.role.leader_mut() {
                leader.learners.leading.heard_from(cx.now.mono, link, origin, said, &mut out);
            }
        }
        self.carry_out_leading(cx, out);
        self.handle_learner_request(cx, link, packet);
    }

    /// Whether a learner can check the passwords of this server's sessions. One that cannot would tell clients that
    /// their sessions have expired. So it is refused, if the epoch has begun without it, until the passwords have
    /// changed.
    pub(super) fn can_judge_passwords(&self, learner: &LearnerInfo) -> bool {
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

    fn note_joined(&mut self, link: LinkId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if let Some(server) = ensemble.role.learners().and_then(|learners| learners.leading.server_of(link)) {
            ensemble.election.forgive(server);
        }
    }

    /// Sends a proposal to all followers.
    pub(crate) fn send_proposal(
        &mut self,
        cx: &mut Context<'_>,
        zxid: Zxid,
        message: impl Fn() -> PeerMessage,
    ) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(leader) = ensemble.role.leader_mut() else { return };
        let Learners { leading, delayed, .. } = &mut leader.learners;
        leading.proposed(cx.now.mono, zxid);
        for (link, _) in leading.forwarding().filter(|(_, observer)| !observer) {
            match delayed.get_mut(&link) {
                Some(delayed) => delayed.then.push(message()),
                None => cx.effects.push(Effect::ToPeer { link, message: message() }),
            }
        }
    }

    /// Sends a commit to all learners.
    pub(crate) fn send_commit(&mut self, cx: &mut Context<'_>, proposal: &Outstanding) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let leader = || ensemble.suggested_leader().unwrap_or_else(|| self.designated_leader());
        let activate = is_reconfig(&proposal.record).then(leader);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learners) = ensemble.role.learners_mut() else { return };
        let receivers: Vec<(LinkId, bool)> = learners.leading.forwarding().collect();
        for (link, observer) in receivers {
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
            if let Some(message) = learners.delay(link, message) {
                cx.effects.push(Effect::ToPeer { link, message });
            }
        }
    }

    /// Notes the signs of life that a learner has reported.
    pub(super) fn touch_sessions(&mut self, now: Now, touched: &[(SessionId, i32)]) {
        for (session, _) in touched {
            self.sessions.touch(now.mono, *session);
        }
    }
}
