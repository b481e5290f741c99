//! The end of a leader's counter: carries out the move to the next epoch in place. The steps, and why they are safe, are
//! in [`ostler_zab::leading::moving`].

use super::role::{Role, Standalone};
use crate::{
    context::Context,
    effect::{Effect, PeerMessage, PersistOp},
    server::Server,
};
use alloc::vec::Vec;
use ostler_proto::{
    id::Epoch,
    quorum_packet::{PROTOCOL_VERSION, Packet},
};
use ostler_zab::leading::LinkId;

impl Server {
    /// Begins the move to the next epoch if the counter is near its end, and all learners can move.
    pub(super) fn begin_move_if_due(&mut self, cx: &mut Context<'_>) {
        let ensemble = match &mut self.role {
            Role::Standalone(standalone) if standalone.proposals.may_move(standalone.epoch) => {
                return self.move_standalone(cx);
            }
            Role::Standalone(_) => return,
            Role::Member(ensemble) => ensemble,
        };
        let length = ensemble.config.epoch;
        let Some(leader) = ensemble.role.leader_mut() else { return };
        if !leader.proposals.as_ref().is_some_and(|proposals| proposals.may_move(length)) {
            return;
        }
        let mut out = Vec::new();
        leader.learners.leading.begin_move(&mut out);
        if !out.is_empty() {
            tracing::info!(
                "the counter of this epoch ends: moving on to the next epoch, without an election"
            );
            self.carry_out_leading(cx, out);
        }
    }

    /// A standalone server is a quorum of one, and its disk does everything in order. So nothing has to be waited for:
    /// both epochs are on disk before the first record of the new epoch is.
    fn move_standalone(&mut self, cx: &mut Context<'_>) {
        let Role::Standalone(Standalone { proposals, accepted, .. }) = &mut self.role else { return };
        // After the last epoch the zxids are used up, as before.
        let Some(epoch) = (*accepted).max(proposals.proposed().epoch()).next() else { return };
        *accepted = epoch;
        proposals.move_to(epoch);
        for op in [PersistOp::SaveAccepted(epoch), PersistOp::SaveCurrent(epoch)] {
            self.pipeline.persist(cx, op);
        }
        tracing::info!(epoch = epoch.0, "the counter of the epoch has ended: a new epoch has begun");
    }

    /// A quorum has promised the next epoch: sends the border, and numbers proposals in it.
    pub(super) fn move_on(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        self.save_current(cx, epoch);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let config = Self::config_to_follow(&ensemble.config, true);
        let Some(leader) = ensemble.role.leader_mut() else { return };
        let border = || Packet::NewLeader { epoch, config: config.clone().into() };
        let messages = leader
            .learners
            .leading
            .active_followers()
            .map(|link| Effect::ToPeer { link, message: PeerMessage::Packet(border()) });
        cx.effects.extend(messages);
        if let Some(proposals) = &mut leader.proposals {
            proposals.move_to(epoch);
        }
    }

    /// At a leader: ends the move once a quorum has the border on disk, and everything before it is committed.
    pub(crate) fn end_move_if_committed(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let epoch = ensemble.current;
        let Some(leader) = ensemble.role.leader_mut() else { return };
        let leading = &mut leader.learners.leading;
        let is_before = |first: &crate::pipeline::Outstanding| first.zxid.epoch() < epoch;
        if !leading.is_border_on_disk() || self.pipeline.outstanding.front().is_some_and(is_before) {
            return;
        }
        let mut out = Vec::new();
        leading.border_committed(cx.now.mono, &mut out);
        ensemble.begun = epoch;
        ensemble.election.established(epoch);
        tracing::info!(epoch = epoch.0, "leading in the next epoch, without an election");
        self.carry_out_leading(cx, out);
    }

    /// At a learner: the leader has moved on, and everything before is committed here.
    pub(super) fn moved_with_leader(&mut self, cx: &mut Context<'_>, epoch: Epoch) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.begun = epoch;
        ensemble.election.established(epoch);
        let mut out = Vec::new();
        if let Some(master) = ensemble.role.observer_master_mut() {
            master.observers.leading.relay_move(epoch, &mut out);
        }
        tracing::info!(epoch = epoch.0, "following into the next epoch, without an election");
        self.carry_out_leading(cx, out);
    }

    /// Sends an observer the whole move, between the last commit before the border and the first after it.
    pub(super) fn move_observer(&mut self, cx: &mut Context<'_>, link: LinkId, epoch: Epoch) {
        let Some(ensemble) = self.role.ensemble() else { return };
        let config = Self::config_to_follow(&ensemble.config, true).into();
        let packets = [
            Packet::LeaderInfo { epoch, protocol: PROTOCOL_VERSION },
            Packet::NewLeader { epoch, config },
            Packet::UpToDate,
        ];
        let message = |packet| Effect::ToPeer { link, message: PeerMessage::Packet(packet) };
        cx.effects.extend(packets.into_iter().map(message));
    }
}
