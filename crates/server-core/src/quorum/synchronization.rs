//! Brings a learner level with this server's history: by DIFF, TRUNC or SNAP, from memory or from the log on disk. An
//! observer master does it for its observers.

use super::role::{Delayed, Learners};
use crate::{
    context::Context,
    effect::{Effect, PeerMessage},
    input::LogPart,
    server::Server,
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::{id::Zxid, quorum_packet::Packet};
use ostler_zab::{
    Record,
    leading::LinkId,
    sync::{Reach, SyncPlan, plan, plan_from_log},
};

impl Server {
    /// While the log is read for a learner, it gets no packet: the first one has to be DIFF, TRUNC or SNAP. If the log
    /// takes too long, it gets a whole tree, before its own timeout.
    pub(super) fn send_trees_for_logs(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learners) = ensemble.role.learners_mut() else { return };
        let is_due = |_: &LinkId, of: &mut Delayed| of.tree_at.is_some_and(|due| due <= cx.now.mono);
        for (link, delayed) in learners.delayed.extract_if(.., is_due).collect::<Vec<_>>() {
            tracing::warn!(
                link = link.0,
                "reading the log for a learner takes too long: it gets a whole tree instead"
            );
            self.stream_moves(cx.now, link);
            self.snapshot_late(cx, link, delayed.then);
        }
    }

    /// Sends a learner the history that it lacks: from memory, from the log on disk, or as a whole tree. Later
    /// proposals follow by themselves.
    pub(super) fn synchronise(&mut self, cx: &mut Context<'_>, link: LinkId, peer: Zxid) {
        if self.delay_for_commits(link, peer) {
            return;
        }
        let applied = self.complete_through();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
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
            if let Some(learners) = ensemble.role.learners_mut() {
                learners.delayed.insert(link, Delayed { peer, then: Vec::new(), tree_at });
            }
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
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if ensemble.search_id != search_id {
            return;
        }
        let learners = ensemble.role.learners_mut();
        let Some(delayed) = learners.and_then(|learners| learners.delayed.remove(&link)) else { return };
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
        let Some(ensemble) = self.role.ensemble() else { return };
        let established = ensemble.has_established_epoch();
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
        // Transactions that were cut off count no longer as acknowledged.
        if let Some(leader) = self.role.ensemble_mut().and_then(|ensemble| ensemble.role.leader_mut())
            && let Some(server) = leader.learners.leading.server_of(link)
            && let Some(proposals) = &mut leader.proposals
        {
            proposals.cut_back(server, kept.unwrap_or(Zxid::ZERO));
        }
        cx.effects.push(send(match planned {
            SyncPlan::Diff { through, .. } => PeerMessage::Packet(Packet::Diff(through)),
            SyncPlan::Trunc { to } => PeerMessage::Packet(Packet::Trunc(to)),
            SyncPlan::Snap | SyncPlan::AskLog => PeerMessage::Snapshot(Box::new(self.tree.freeze())),
        }));
        let Some(from) = kept else { return };
        let Some(ensemble) = self.role.ensemble() else { return };
        // Transactions that were committed while the log was read wait in `delayed`.
        let in_memory = from_log.is_none().then(|| ensemble.history.around(from).1);
        let read = from_log.into_iter().flatten().filter(|(zxid, _)| *zxid > from);
        let records: Vec<(Zxid, Record)> = read.chain(in_memory.into_iter().flatten()).cloned().collect();
        if !records.is_empty() {
            cx.effects.push(send(PeerMessage::History(records)));
        }
    }

    fn sync_begins(&mut self, link: LinkId, by_tree: bool) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learners) = ensemble.role.learners_mut() else { return };
        learners.being_synced.insert(link, by_tree);
        let syncs = &mut self.stats.syncs;
        *(if by_tree { &mut syncs.trees } else { &mut syncs.without_tree }) += 1;
        self.count_syncs(by_tree);
    }

    pub(super) fn sync_ends(&mut self, link: LinkId) {
        let ended = self.learners_mut().and_then(|learners| learners.being_synced.remove(&link));
        if let Some(by_tree) = ended {
            self.count_syncs(by_tree);
        }
    }

    fn count_syncs(&mut self, by_tree: bool) {
        let Some(learners) = self.learners() else { return };
        let count = learners.being_synced.values().filter(|of| **of == by_tree).count() as u64;
        let syncs = &mut self.stats.syncs;
        (if by_tree { &mut syncs.trees_under_way } else { &mut syncs.without_tree_under_way }).add(count);
    }

    /// Sends the outstanding proposals, then NEWLEADER.
    fn finish_sync(&mut self, cx: &mut Context<'_>, link: LinkId) {
        self.number_first_config();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learners) = ensemble.role.learners_mut() else { return };
        let Some(epoch) = learners.leading.epoch() else { return };
        let observer = learners.leading.forwarding().any(|(of, observer)| of == link && observer);
        let outstanding = self.pipeline.outstanding.iter().filter(|_| !observer);
        let mut messages: Vec<PeerMessage> = outstanding
            .map(|proposal| PeerMessage::Proposal(proposal.zxid, proposal.record.clone()))
            .collect();
        let config = Self::config_to_follow(&ensemble.config, learners.leading.is_established()).into();
        messages.push(PeerMessage::Packet(Packet::NewLeader { epoch, config }));
        match learners.delayed.get_mut(&link) {
            Some(delayed) => delayed.then.append(&mut messages),
            None => cx.effects.extend(messages.into_iter().map(|message| Effect::ToPeer { link, message })),
        }
    }

    fn learners(&self) -> Option<&Learners> {
        self.role.ensemble()?.role.learners()
    }

    fn learners_mut(&mut self) -> Option<&mut Learners> {
        self.role.ensemble_mut()?.role.learners_mut()
    }
}
