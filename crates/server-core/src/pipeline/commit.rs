//! Commits: when a quorum has a proposal on disk it is applied; then its watchers get their events, the writer its
//! reply, and the requests that waited behind it are served. Then syncs that
//! waited are released, and a snapshot may begin.

use crate::{
    context::Context,
    effect::{CloseReason, Effect},
    input::{ConnId, Now},
    pipeline::Outstanding,
    quorum::{AfterPersist, EnsembleAct, is_reconfig},
    server::Server,
    sessions::ends::EndedEphemerals,
    work,
};
use alloc::vec::Vec;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    event::EventType,
    id::{ServerId, SessionId, Zxid},
    txn::{Txn, TxnRecord},
};
use ostler_tree::TreeEvent;
use ostler_zab::{PersistSeq, Proposals};

impl Server {
    /// The disk has reached `seq`: carries out the acts that waited for it. This server's own acknowledgement is one of
    /// them.
    pub(crate) fn persisted(&mut self, cx: &mut Context<'_>, seq: PersistSeq) {
        self.pipeline.gate.reached(seq);
        let search_id = self.search_id();
        let (mut own, mut logged) = (None, None);
        while let Some(held) = self.pipeline.gate.pop() {
            match held {
                AfterPersist::OwnAck { search_id: of, zxid, made_ms } if of == search_id => {
                    if !self.role.is_standalone() {
                        self.stats.writes.own_ack_ms.add(cx.now.since_wall(made_ms));
                    }
                    own = Some(zxid);
                    logged = own;
                }
                AfterPersist::Ensemble { search_id: of, act } if of == search_id => {
                    if let EnsembleAct::Acknowledge { zxid, .. } = act {
                        logged = Some(zxid);
                    }
                    self.carry_out(cx, act);
                }
                AfterPersist::Restored { search_id: of } if of == search_id => self.note_restored(),
                // Of a search that is over.
                AfterPersist::OwnAck { .. }
                | AfterPersist::Ensemble { .. }
                | AfterPersist::Restored { .. } => {}
            }
        }
        if let Some(zxid) = logged {
            self.note_logged(cx.now, zxid);
        }
        // One of the acts may have ended the epoch.
        if let Some(durable) = own.filter(|_| self.search_id() == search_id) {
            self.acknowledged(cx, self.config.server, durable);
        }
    }

    /// A server has everything up to `zxid` on disk. Commits the proposals that a quorum has.
    pub(crate) fn acknowledged(&mut self, cx: &mut Context<'_>, from: ServerId, zxid: Zxid) {
        self.count_acknowledgement(cx.now, from, zxid);
        let Some(proposals) = self.role.proposals_mut() else { return };
        proposals.acknowledge(from, zxid);
        let committed = proposals.committed();
        self.pipeline.marks.on_quorum(committed, cx.now.mono_us());
        self.commit_decided(cx);
    }

    /// Commits the decided proposals until the work budget is spent. The rest follows, see [`crate::connections::backlog`].
    pub(crate) fn commit_decided(&mut self, cx: &mut Context<'_>) {
        self.backlog.commits = false;
        let Some(mut committed) = self.role.proposals().map(Proposals::committed) else { return };
        while let Some(first) = self.pipeline.outstanding.front().filter(|first| first.zxid <= committed) {
            if self.work.is_spent() || self.has_to_wait(first) || self.conn_in_multi_read().is_some() {
                self.backlog.commits = true;
                return;
            }
            self.backlog.commits_are_next = false;
            self.end_move_if_committed(cx);
            let Some(proposal) = self.pipeline.outstanding.pop_front() else { return };
            self.send_commit(cx, &proposal);
            self.commit(cx, &proposal);
            // From here on the new electorate decides, and may have acknowledged more.
            if is_reconfig(&proposal.record)
                && let Some(proposals) = self.role.proposals_mut()
            {
                committed = proposals.count();
            }
            self.remember(proposal);
        }
        self.end_move_if_committed(cx);
    }

    /// Notes for one proposal in a thousand how long each server took to acknowledge it, as upstream does
    /// (`ack_latency`).
    fn count_acknowledgement(&mut self, now: Now, from: ServerId, zxid: Zxid) {
        const INTERVAL: u64 = 1000;
        let Some(proposals) = self.role.proposals().filter(|_| !self.role.is_standalone()) else { return };
        let noted = Zxid(zxid.0 - zxid.0 % INTERVAL);
        if noted <= proposals.acknowledged_by(from) {
            return;
        }
        if let Ok(at) = self.pipeline.outstanding.binary_search_by_key(&noted, |proposal| proposal.zxid) {
            let ms = now.since_wall(self.pipeline.outstanding[at].made_ms);
            self.stats.writes.ack_ms.entry(from).or_default().add(ms);
        }
    }

    /// Applies a transaction, notifies its watchers, and answers the writer if it is connected here.
    pub(crate) fn commit(&mut self, cx: &mut Context<'_>, proposal: &Outstanding) {
        let record = TxnRecord::read(&proposal.record.0).expect("a record is checked before it is logged");
        self.finish_multi_read(cx);
        self.serve_earlier_requests(cx, proposal, record.header.session);
        let mut events = core::mem::take(&mut self.pipeline.events);
        let outcome = self.tree.apply(&record, &mut events);
        self.stats.writes.changes_made += self.pipeline.overlay.retire(proposal.zxid);
        self.work.add(work::COMMIT + work::CHANGE * events.len() + proposal.record.0.len() / work::BYTES);
        self.stats.commits += 1;
        self.count_commit(cx.now.since_wall(record.header.time_ms), is_reconfig(&proposal.record));
        self.note_commit(cx.now, proposal.zxid);
        for event in &events {
            self.stats.namespaces.count_write(&event.path, event.data_len);
        }
        if self.config.audit {
            self.audit_ephemerals(cx, &record, &events);
        }
        let closed = matches!(record.txn, Txn::CloseSession(_));
        let ended = if closed { self.ended_ephemerals(&events) } else { EndedEphemerals::default() };
        let mut late = Vec::new();
        if planted::is(Bug::WatchAfterReply) {
            late.append(&mut events);
        }
        for event in events.drain(..) {
            self.notify(cx, &event);
        }
        self.pipeline.events = events;
        let session = record.header.session;
        let conn = proposal.conn.or_else(|| self.conn_of_forwarded(cx.now, &record));
        if self.config.audit {
            self.audit_outcome(cx, &record, conn, &outcome);
        }
        if closed {
            let ending = self.ending_session(session);
            // A server that ends a session gives the transaction no xid.
            let is_by_client = conn.is_some() || record.header.cxid != 0;
            self.record_session_end(cx.now, &ending, is_by_client, ended);
        }
        let expired_conn = if closed { self.sessions.remove(session).and_then(|s| s.conn) } else { None };
        if closed {
            self.note_ended(cx.now, session);
        }
        if let Some(conn) = conn {
            self.note_slow_write(cx, conn, proposal, &record);
            self.answer(cx, conn, proposal.zxid, session, outcome);
        } else if let Some(conn) = expired_conn {
            self.close(cx, conn, CloseReason::SessionExpired);
        } else if self.traces.tracing.is_on() {
            self.note_forwarded(cx, proposal, &record);
        }
        for event in late {
            self.notify(cx, &event);
        }
        if !self.pipeline.syncs.is_empty() {
            self.end_wait_of_own(cx, session);
        }
        self.release_syncs(cx);
        self.consider_snapshot(cx, proposal.record.0.len());
        if let Txn::SetData { reconfig: true, data, .. } = &record.txn {
            self.reconfigured(cx, data.unwrap_or_default());
        }
    }

    /// Serves the writer's earlier requests that still wait for their turn: they must not see this write. A leader has
    /// waited for them before the commit.
    fn serve_earlier_requests(&mut self, cx: &mut Context<'_>, proposal: &Outstanding, session: SessionId) {
        let conn = if self.leads() {
            proposal.conn
        } else {
            self.sessions.get(session).and_then(|state| state.conn)
        };
        if let Some(conn) = conn {
            self.catch_up_with(cx, conn);
        }
    }

    /// Counts a commit. `ms` have passed since the proposal was made.
    fn count_commit(&mut self, ms: u64, is_reconfig: bool) {
        let leads = self.leads();
        let writes = &mut self.stats.writes;
        writes.propagation_ms.add(ms);
        let Some(ensemble) = self.role.ensemble() else { return };
        if leads && !is_reconfig {
            writes.led_commits += 1;
            writes.quorum_ms.add(ms);
        }
        if ensemble.following().is_some() {
            writes.commits_received += 1;
            writes.commit_propagation_ms.add(ms);
        }
    }

    /// Notifies the watchers that may read the znode. The watches of the others are used up all the same, as in
    /// upstream.
    fn notify(&mut self, cx: &mut Context<'_>, event: &TreeEvent) {
        let mut notifications = Vec::new();
        self.watches.fire(event, &mut notifications);
        self.work.add(self.watches.lookups_above());
        let some_are_gone = self.watches.has_departed();
        for notification in notifications {
            let acl = if notification.by_parent_acl { &event.parent_acl } else { &event.acl };
            self.work.add(1 + notification.watchers.len());
            let conns: Vec<ConnId> = notification
                .watchers
                .into_iter()
                .map(ConnId::from)
                .filter(|conn| !some_are_gone || self.connections.is_connected(*conn))
                .filter(|conn| self.may_read(*conn, acl))
                .collect();
            self.count_notifications(notification.kind, &conns);
            if !conns.is_empty() {
                let (kind, path) = (notification.kind, notification.path);
                cx.effects.push(Effect::Notify { conns, zxid: Some(event.zxid), kind, path });
                if planted::is(Bug::EventsSwapped) {
                    let mut sent =
                        cx.effects.iter_mut().rev().filter(|of| matches!(of, Effect::Notify { .. }));
                    if let (Some(last), Some(before)) = (sent.next(), sent.next()) {
                        core::mem::swap(last, before);
                    }
                }
            }
        }
    }

    fn count_notifications(&mut self, kind: EventType, conns: &[ConnId]) {
        let summary = match kind {
            EventType::NodeCreated => &mut self.stats.node_created_watches,
            EventType::NodeDeleted => &mut self.stats.node_deleted_watches,
            EventType::NodeDataChanged => &mut self.stats.node_changed_watches,
            EventType::NodeChildrenChanged => &mut self.stats.node_children_watches,
        };
        summary.add(conns.len() as u64);
        self.stats.packets_sent += conns.len() as u64;
    }
}
