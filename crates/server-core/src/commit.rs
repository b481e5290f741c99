//! Commits: when a quorum has a proposal on disk it is applied; then its watchers get their events, the writer its
//! reply, and the requests that waited behind it are served. Also syncs, and when the next snapshot is due.

use crate::{
    access,
    config::CoreConfig,
    context::Context,
    effect::{CloseReason, Effect, PeerMessage, PersistOp},
    ensemble::{AfterPersist, is_reconfig},
    fifo::{AnswerForm, Waiting, WriteTxn},
    input::{ClientRequest, ConnId, Now, RequestHead},
    server::{Outstanding, Phase, Server, SyncWaiter, UNANSWERED},
    work,
};
use alloc::{boxed::Box, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Perms,
    error::ErrorCode,
    event::EventType,
    id::{ServerId, SessionId, Zxid},
    path,
    quorum_packet::Packet,
    reply::{Body, OpResult},
    txn::{Txn, TxnCreateKind, TxnRecord},
};
use ostler_tree::{AclRef, Outcome, TreeEvent};
use ostler_zab::{PersistSeq, Proposals};

impl Server {
    /// The disk has reached `seq`: carries out the acts that waited for it. This server's own acknowledgement is one of
    /// them.
    pub(crate) fn persisted(&mut self, cx: &mut Context<'_>, seq: PersistSeq) {
        self.gate.reached(seq);
        let search_id = self.search_id();
        let mut own = None;
        while let Some(held) = self.gate.pop() {
            match held {
                AfterPersist::OwnAck { search_id: of, zxid, made_ms } if of == search_id => {
                    if self.ensemble.is_some() {
                        self.stats.writes.own_ack_ms.add(cx.now.since_wall(made_ms));
                    }
                    own = Some(zxid);
                }
                AfterPersist::Ensemble { search_id: of, act } if of == search_id => self.released(cx, act),
                AfterPersist::OwnAck { .. } | AfterPersist::Ensemble { .. } => {}
            }
        }
        // One of the acts may have ended the epoch.
        if let Some(durable) = own.filter(|_| self.search_id() == search_id) {
            self.acknowledged(cx, self.config.server, durable);
        }
    }

    /// A server has everything up to `zxid` on disk. Commits the proposals that a quorum has.
    pub(crate) fn acknowledged(&mut self, cx: &mut Context<'_>, from: ServerId, zxid: Zxid) {
        self.count_acknowledgement(cx.now, from, zxid);
        let Some(proposals) = &mut self.proposals else { return };
        proposals.acknowledge(from, zxid);
        self.commit_decided(cx);
    }

    /// Commits the decided proposals until the work budget is spent. The rest follows, see [`crate::backlog`].
    pub(crate) fn commit_decided(&mut self, cx: &mut Context<'_>) {
        self.backlog.commits = false;
        let Some(mut committed) = self.proposals.as_ref().map(Proposals::committed) else { return };
        while let Some(first) = self.outstanding.front().filter(|first| first.zxid <= committed) {
            if self.work.is_spent() || self.has_to_wait(first) || self.conn_in_multi_read().is_some() {
                self.backlog.commits = true;
                return;
            }
            self.backlog.commits_are_next = false;
            let Some(proposal) = self.outstanding.pop_front() else { return };
            self.tell_commit(cx, &proposal);
            self.commit(cx, &proposal);
            // From here on the new electorate decides, and may have acknowledged more.
            if is_reconfig(&proposal.record)
                && let Some(proposals) = &mut self.proposals
            {
                committed = proposals.count();
            }
            self.remember(proposal);
        }
    }

    /// Notes for one proposal in a thousand how long each server took to acknowledge it, as upstream does
    /// (`ack_latency`).
    fn count_acknowledgement(&mut self, now: Now, from: ServerId, zxid: Zxid) {
        const INTERVAL: u64 = 1000;
        let Some(proposals) = self.proposals.as_ref().filter(|_| self.ensemble.is_some()) else { return };
        let noted = Zxid(zxid.0 - zxid.0 % INTERVAL);
        if noted <= proposals.acknowledged_by(from) {
            return;
        }
        if let Ok(at) = self.outstanding.binary_search_by_key(&noted, |proposal| proposal.zxid) {
            let ms = now.since_wall(self.outstanding[at].made_ms);
            self.stats.writes.ack_ms.entry(from).or_default().add(ms);
        }
    }

    /// Applies a transaction, notifies its watchers, and answers the writer if it is connected here.
    pub(crate) fn commit(&mut self, cx: &mut Context<'_>, proposal: &Outstanding) {
        let record = TxnRecord::read(&proposal.record.0).expect("a record is checked before it is logged");
        self.finish_multi_read(cx);
        self.answer_what_came_before(cx, proposal, record.header.session);
        let mut events = core::mem::take(&mut self.events);
        let outcome = self.tree.apply(&record, &mut events);
        self.stats.writes.changes_made += self.overlay.retire(proposal.zxid);
        self.work.add(work::COMMIT + work::CHANGE * events.len() + proposal.record.0.len() / work::BYTES);
        self.stats.commits += 1;
        self.count_commit(cx.now.since_wall(record.header.time_ms), is_reconfig(&proposal.record));
        self.note_commit(cx.now, proposal.zxid);
        for event in &events {
            self.stats.namespaces.count_write(&event.path, event.data_len);
        }
        let mut late = Vec::new();
        if planted::is(Bug::WatchAfterReply) {
            late.append(&mut events);
        }
        for event in events.drain(..) {
            self.notify(cx, &event);
        }
        self.events = events;
        let session = record.header.session;
        let conn = proposal.conn.or_else(|| self.conn_of_forwarded(cx.now, &record));
        let closed = matches!(record.txn, Txn::CloseSession(_));
        let expired_conn = if closed { self.sessions.remove(session).and_then(|s| s.conn) } else { None };
        if closed {
            self.note_ended(cx.now, session);
        }
        if let Some(conn) = conn {
            self.answer(cx, conn, proposal.zxid, session, outcome);
        } else if let Some(conn) = expired_conn {
            self.close(cx, conn, CloseReason::SessionExpired);
        }
        for event in late {
            self.notify(cx, &event);
        }
        if !self.syncs.is_empty() {
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
    fn answer_what_came_before(&mut self, cx: &mut Context<'_>, proposal: &Outstanding, session: SessionId) {
        let conn = match self.proposals {
            Some(_) => proposal.conn,
            None => self.sessions.get(session).and_then(|state| state.conn),
        };
        if let Some(conn) = conn {
            self.catch_up_with(cx, conn);
        }
    }

    /// Counts a commit. `ms` have passed since the proposal was made.
    fn count_commit(&mut self, ms: u64, is_reconfig: bool) {
        let writes = &mut self.stats.writes;
        writes.propagation_ms.add(ms);
        let Some(ensemble) = &self.ensemble else { return };
        if self.proposals.is_some() && !is_reconfig {
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
                .filter(|conn| !some_are_gone || self.is_connected(*conn))
                .filter(|conn| self.may_read(*conn, acl))
                .collect();
            self.count_notifications(notification.kind, &conns);
            if !conns.is_empty() {
                let (kind, path) = (notification.kind, notification.path);
                cx.effects.push(Effect::Notify { conns, zxid: Some(event.zxid), kind, path });
                if planted::is(Bug::EventsSwapped) {
                    let mut told =
                        cx.effects.iter_mut().rev().filter(|of| matches!(of, Effect::Notify { .. }));
                    if let (Some(last), Some(before)) = (told.next(), told.next()) {
                        core::mem::swap(last, before);
                    }
                }
            }
        }
    }

    /// Whether a connection exists and is not closed.
    fn is_connected(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|state| !matches!(state.phase, Phase::Closed { .. }))
    }

    pub(crate) fn may_read(&self, conn: ConnId, acl: &AclRef) -> bool {
        if acl.is_none() {
            return true;
        }
        let ids = self.conns.get(&conn).map_or(&self.nobody, |state| &state.ids);
        access::allows(&self.config, acl, Perms::READ, ids, &self.work)
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

    /// Answers the write at the head of a connection's fifo, then what waited behind it.
    fn answer(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        committed: Zxid,
        session: SessionId,
        outcome: Outcome,
    ) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        if matches!(state.phase, Phase::Closed { .. }) {
            return;
        }
        let Some(Waiting::Write { head, txn, form }) = state.fifo.pop_front() else {
            panic!("{committed} committed for {conn:?}, which waits for no write");
        };
        if let WriteTxn::Proposed(zxid) = txn {
            assert_eq!(zxid, committed, "writes of {conn:?} commit out of order");
        }
        let phase = state.phase;
        let moved = matches!(outcome, Outcome::Failed(code) if code == ErrorCode::SessionMoved.code());
        if moved && matches!(txn, WriteTxn::Forwarded { .. }) {
            // It may have been a late write from another server, with the same session and xid as this one.
            return self.close(cx, conn, CloseReason::SessionMoved);
        }
        match form {
            AnswerForm::Connected => {
                if let Phase::Opening { answer_read_only, .. } = phase {
                    self.stats.update_latency_ms.add(head.age_ms(cx.now.mono));
                    self.count_session(cx.now, conn, head);
                    self.connected(cx, conn, session, answer_read_only);
                }
            }
            AnswerForm::Upgraded => {}
            AnswerForm::Refused(error) => {
                self.reply_write(cx, conn, head, Err(error.code()));
            }
            AnswerForm::Close => {
                self.reply_write(cx, conn, head, Ok(Body::None));
                self.close(cx, conn, CloseReason::ClosedByClient);
            }
            AnswerForm::Reconfig => {
                let config = self.tree.get(path::CONFIG).and_then(|node| node.data.clone());
                let result = match outcome {
                    Outcome::DataSet(stat) => Ok(Body::Data(config, stat)),
                    Outcome::Failed(code) => Err(code),
                    _ => Ok(Body::None),
                };
                self.reply_write(cx, conn, head, result);
            }
            _ => {
                self.reply_write(cx, conn, head, body(outcome, form));
                if moved {
                    self.close(cx, conn, CloseReason::SessionMoved);
                }
            }
        }
        self.drain(cx, conn);
    }

    fn reply_write(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        head: RequestHead,
        result: Result<Body, i32>,
    ) {
        self.stats.update_latency_ms.add(head.age_ms(cx.now.mono));
        let result = result.map_err(|code| ErrorCode::from_code(code).unwrap_or(ErrorCode::MarshallingError));
        let refused = result.is_err();
        self.reply(cx, conn, head, result);
        // As in upstream's `cons`: a refused write does not count as the last operation.
        if refused && let Some(state) = self.conns.get_mut(&conn) {
            state.stats.last_op = None;
        }
    }

    /// Serves the requests at the head of a fifo up to the next outstanding write, until the work budget is spent.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        loop {
            let applied = self.tree.last_processed();
            let Some(state) = self.conns.get_mut(&conn) else { return };
            if state.behind {
                // The connection has its turn later.
                return;
            }
            match state.fifo.front() {
                Some(Waiting::Parked { .. } | Waiting::Watching { .. } | Waiting::Reading(_))
                    if self.work.is_spent() =>
                {
                    return self.leave_for_later(conn);
                }
                Some(Waiting::Reading(_)) => {
                    let Some(Waiting::Reading(left)) = state.fifo.pop_front() else { return };
                    self.read_many(cx, conn, left);
                }
                Some(Waiting::Watching { .. }) => {
                    let Some(Waiting::Watching { head, payload, left }) = state.fifo.pop_front() else {
                        return;
                    };
                    let rest = (payload.into_vec().into(), left);
                    self.set_watches(cx, conn, head, rest);
                }
                Some(Waiting::Parked { .. }) => {
                    let Some(Waiting::Parked { payload, arrived, reserved }) = state.fifo.pop_front() else {
                        return;
                    };
                    self.work.add(work::REQUEST + payload.len() / work::BYTES);
                    self.release_reserved(conn, reserved);
                    let request =
                        ClientRequest::decode(&payload).expect("a parked request was decoded before");
                    self.serve(cx, conn, &request, arrived);
                }
                Some(Waiting::UnderWay { until }) if *until <= applied => drop(state.fifo.pop_front()),
                Some(Waiting::Sync { after, .. }) if *after <= applied => {
                    let Some(Waiting::Sync { head, path, .. }) = state.fifo.pop_front() else {
                        return;
                    };
                    self.reply(cx, conn, head, Ok(crate::read::sync_body(path.as_deref())));
                }
                _ => return,
            }
        }
    }

    fn release_syncs(&mut self, cx: &mut Context<'_>) {
        let applied = self.tree.last_processed();
        while self.syncs.front().is_some_and(|(after, _)| *after <= applied) {
            match self.syncs.pop_front() {
                Some((_, SyncWaiter::Client(conn) | SyncWaiter::ComeBack(conn))) => self.drain(cx, conn),
                Some((_, SyncWaiter::Learner(link))) => {
                    cx.effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(Packet::Sync) });
                }
                Some((_, SyncWaiter::Session { learner, session, valid })) => {
                    let lives = self.sessions.get(session).is_some_and(|state| !state.closing);
                    let packet = Packet::Revalidated { session, valid: valid && lives };
                    cx.effects.push(Effect::ToPeer { link: learner, message: PeerMessage::Packet(packet) });
                }
                None => {}
            }
        }
    }

    /// The leader has answered the oldest forwarded sync: everything that was proposed before it has come.
    pub(crate) fn synced(&mut self, cx: &mut Context<'_>) {
        let conn = match self.syncs.pop_front() {
            Some((_, SyncWaiter::Client(conn))) => conn,
            Some((_, SyncWaiter::ComeBack(conn))) => return self.end_wait(cx, conn),
            Some((_, SyncWaiter::Learner(link))) => {
                let message = PeerMessage::Packet(Packet::Sync);
                return cx.effects.push(Effect::ToPeer { link, message });
            }
            // Only a leader answers whether a session lives.
            Some((_, SyncWaiter::Session { .. })) | None => return,
        };
        let Some(state) = self.conns.get_mut(&conn) else { return };
        for waiting in &mut state.fifo {
            if let Waiting::Sync { after, .. } = waiting
                && *after == UNANSWERED
            {
                *after = Zxid::ZERO;
                break;
            }
        }
        self.drain(cx, conn);
    }

    /// At a learner: the earlier writes of a session that came back here are decided. Its requests are served from now
    /// on.
    fn end_wait(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let is_over =
            |first: &mut Waiting| matches!(first, Waiting::UnderWay { until } if *until == UNANSWERED);
        if state.fifo.pop_front_if(is_over).is_some() {
            self.drain(cx, conn);
        }
    }

    /// At a learner: ends the wait of a session that came back, if its earlier writes are decided, even if its sync is
    /// not answered yet. A Java follower may pass on the answer of a sync and the commits in any order.
    fn end_wait_of_own(&mut self, cx: &mut Context<'_>, session: SessionId) {
        let conn = self.sessions.get(session).and_then(|state| state.conn);
        if let Some(conn) = conn
            && !self.has_undecided_writes(session)
        {
            self.end_wait(cx, conn);
        }
    }

    fn consider_snapshot(&mut self, cx: &mut Context<'_>, record_len: usize) {
        if self.snapshots.count_record(&self.config, record_len) {
            self.stats.snapshots += 1;
            let seq = self.gate.issue();
            cx.effects.push(Effect::Persist { seq, op: PersistOp::RollLog });
            cx.effects.push(Effect::Snapshot(Box::new(self.tree.freeze())));
        }
    }
}

/// Decides when the next snapshot is due.
#[derive(Debug)]
pub(crate) struct SnapshotPlan {
    txns: u64,
    log_bytes: u64,
    /// Makes the limits random within a factor of two, so that the servers of an ensemble do not write snapshots at the
    /// same time.
    spread: u64,
    running: bool,
    random: u64,
}

impl SnapshotPlan {
    pub(crate) fn new(config: &CoreConfig, replayed: u64) -> Self {
        let random = config.seed | 1;
        SnapshotPlan { txns: replayed, log_bytes: 0, spread: random >> 11, running: false, random }
    }

    pub(crate) fn done(&mut self) {
        self.running = false;
    }

    /// Counts a record. Returns true if a snapshot has to begin now.
    fn count_record(&mut self, config: &CoreConfig, record_len: usize) -> bool {
        self.txns += 1;
        self.log_bytes += record_len as u64;
        let within = |limit: u64| limit / 2 + self.spread % (limit / 2 + 1);
        let full = self.txns > within(config.snapshot_txns)
            || config.snapshot_log_bytes.is_some_and(|limit| self.log_bytes > within(limit));
        if !full || self.running {
            return false;
        }
        (self.txns, self.log_bytes, self.running) = (0, 0, true);
        // xorshift64: its quality is enough, and the seed makes it repeatable.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.spread = self.random >> 11;
        true
    }
}

fn body(outcome: Outcome, form: AnswerForm) -> Result<Body, i32> {
    Ok(match outcome {
        Outcome::Failed(code) => return Err(code),
        Outcome::Created { path, .. } if form == AnswerForm::Path => Body::Path((*path).into()),
        Outcome::Created { path, stat, .. } => Body::PathStat((*path).into(), stat),
        Outcome::DataSet(stat) | Outcome::AclSet(stat) => Body::Stat(stat),
        Outcome::Multi(outcomes) => Body::Multi(outcomes.into_iter().map(op_result).collect()),
        Outcome::Deleted | Outcome::Checked | Outcome::Session => Body::None,
    })
}

fn op_result(outcome: Outcome) -> OpResult {
    match outcome {
        Outcome::Created { path, kind: TxnCreateKind::Create, .. } => OpResult::Create((*path).into()),
        Outcome::Created { path, stat, .. } => OpResult::Create2((*path).into(), stat),
        Outcome::Deleted => OpResult::Delete,
        Outcome::DataSet(stat) | Outcome::AclSet(stat) => OpResult::SetData(stat),
        Outcome::Checked | Outcome::Session | Outcome::Multi(_) => OpResult::Check,
        Outcome::Failed(code) => OpResult::Error(code),
    }
}
