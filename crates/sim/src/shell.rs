//! The simulated shell around each server's core: passes inputs to it, carries out its effects, and checks them.

use crate::{
    certificates::Refusal,
    client::Intent,
    disk::{DiskReport, Ending},
    network::{Caller, Election, Link, Parcel, Route},
    words,
    world::{Event, World},
};
use ostler_data_dir::recovery;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    op::Op,
    quorum_packet::Packet,
};
use ostler_server_core::{
    CloseReason, ConnId, DialTarget, Effect, Input, PeerMessage, PersistOp, audit::AuditResult,
    quorum::MemberMode,
};
use ostler_zab::leading::LinkId;
use std::{borrow::Cow, collections::VecDeque};

/// How long a refused connection to a leader is retried, ms.
const REFUSED_FOR: u64 = 300;
const CONNECT_TIMEOUT: u64 = 400;
/// In runs with slow readers: the number of events that a client may leave unread, and how long the server then takes
/// to end the connection.
const UNREAD_MAX: usize = 3;
const DROPPED_MS: u64 = 30;

impl World {
    pub(crate) fn step(&mut self, id: i64, input: Input<'_>) {
        let now = self.time_of(id);
        let mut effects = Vec::new();
        let thief = self.session_thief_of(&input);
        let server = self.node(id).server.as_mut().unwrap();
        let before = server.mode();
        server.step(now, input, &mut effects);
        if let Some(thief) = thief {
            self.assert_nobody_else_notices(id, thief, &effects);
        }
        let server = self.node(id).server.as_mut().unwrap();
        server.invariants();
        assert_eq!(
            server.tree().digest_mismatches(),
            0,
            "[digest] the tree of {id} differs from its leader's digest"
        );
        let mode = server.mode();
        if before != mode {
            self.trace(|| match mode {
                Some(mode) => format!("server {id} is {mode:?}"),
                None => format!("server {id} is gone"),
            });
            self.new_role(id);
        }
        for effect in &effects {
            if let Effect::Persist { op, .. } = effect {
                self.note_log(id, op);
            }
        }
        let serves = self.serves(id);
        // The step that ends an epoch may commit first. A step in which a follower stops serving is not checked: it may
        // begin an epoch of its own, and applies everything that is logged.
        if serves || before == Some(MemberMode::Leader) {
            self.observe(id);
        }
        if !serves {
            self.node(id).checked = Zxid::ZERO;
        }
        for effect in effects {
            self.carry_out(id, effect);
        }
        self.schedule_deadline(id);
    }

    fn note_log(&mut self, id: i64, op: &PersistOp) {
        self.trace(|| format!("server {id} {}", words::act(op)));
        match op {
            PersistOp::Truncate { reload: Some(_), .. } => self.count("cut and reload"),
            PersistOp::Truncate { .. } => self.count("cut"),
            PersistOp::Install(_) => self.count("install"),
            PersistOp::SaveCurrent(_) if self.mode(id) == Some(MemberMode::Leader) => {
                self.count("moved on in place");
            }
            _ => {}
        }
        if let PersistOp::Append { zxid, record } = op {
            self.reference.propose(*zxid, record);
            if self.mode(id) == Some(MemberMode::Leader) {
                self.check_session_end(id, record);
            }
        }
        let node = self.node(id);
        match op {
            PersistOp::Append { zxid, .. } => node.history.push(*zxid),
            PersistOp::Truncate { to, .. } => node.history.cut(*to),
            PersistOp::Install(_) => node.history = node.incoming.take().unwrap(),
            PersistOp::RollLog
            | PersistOp::MarkIncomplete
            | PersistOp::SaveAccepted(_)
            | PersistOp::SaveCurrent(_)
            | PersistOp::SaveConfig { .. } => {}
        }
    }

    /// Checks that everything that a serving member has applied is committed: a quorum has it on disk. Adds it to the
    /// history.
    fn observe(&mut self, id: i64) {
        let node = &self.nodes[&id];
        let Some(server) = &node.server else { return };
        let applied = server.tree().last_processed();
        let epoch = applied.epoch();
        let shown = self.shown(id);
        let leads = server.mode() == Some(MemberMode::Leader);
        let begins = leads && self.reference.note_leader(epoch, (id, node.life));
        if shown > self.reference.last() {
            for zxid in node.history.after(self.reference.last()).take_while(|zxid| *zxid <= shown) {
                let record = self.reference.proposal(zxid);
                let durable = |voter: i64| self.nodes[&voter].disk.has(zxid);
                assert!(
                    self.reference.decides_on(&record, durable),
                    "[quorum] {id} has applied {zxid}, which no quorum has on disk"
                );
                self.reference.commit(zxid, &record);
            }
        }
        // After the commits above: they may contain a reconfiguration that changes the quorum.
        if begins {
            let kept = |voter: i64| self.nodes[&voter].disk.current() >= epoch;
            assert!(
                self.reference.decides(kept),
                "[one leader] {id} leads in {epoch:?}, which no quorum has on disk"
            );
        }
        if applied == shown && applied != node.checked {
            self.reference.applied(id, server.tree(), &node.history);
            self.node(id).checked = applied;
        }
    }

    /// The last applied transaction that clients of a member may have seen. A server that is a quorum alone is elected
    /// again in the step in which its epoch ends, and applies everything that it has logged; only what is on its disk
    /// is committed.
    fn shown(&self, id: i64) -> Zxid {
        let node = &self.nodes[&id];
        let applied = node.server.as_ref().unwrap().tree().last_processed();
        if !self.serves(id) && self.reference.decides(|voter| voter == id) {
            return applied.min(node.disk.last_reported());
        }
        applied
    }

    /// Whether everything that a member without a leader has applied is committed. If not, asserts that it is in the
    /// member's log: that happens after a restart or an election without a result.
    fn check_read_only_tree(&mut self, id: i64) -> bool {
        let node = &self.nodes[&id];
        let applied = node.server.as_ref().unwrap().tree().last_processed();
        let shown = node.history.upto(applied);
        // The log up to there must end where the tree does. The begin of an epoch is no transaction.
        let logged = shown.last() == applied || applied.counter() == 0;
        assert!(logged, "[read-only] {id} shows {applied}, and has not logged more than {}", shown.last());
        let proven = shown.last() <= self.reference.last() && self.reference.has_all_of(&shown);
        self.count(if proven { "read-only session" } else { "read-only session, tail shown" });
        proven
    }

    fn carry_out(&mut self, id: i64, effect: Effect) {
        let life = self.nodes[&id].life;
        match effect {
            Effect::Connected { conn, response } => {
                let read_only = self.mode(id) == Some(MemberMode::ReadOnly);
                assert_eq!(
                    response.read_only,
                    Some(read_only),
                    "[read-only] {id} reports its mode in the handshake"
                );
                if read_only {
                    let proven = self.check_read_only_tree(id);
                    self.net.conns.get_mut(&conn).unwrap().shown = Some(proven);
                }
                if response.timeout_ms > 0 && self.net.conns[&conn].returns {
                    self.session_is_back(id, response.session, response.timeout_ms);
                }
                self.tell_client(conn, Parcel::Connected(response));
            }
            Effect::Reply { conn, reply } => self.tell_client(conn, Parcel::Reply(reply)),
            Effect::Notify { conns, zxid, kind, path } => {
                for conn in conns {
                    self.notify_client(conn, Parcel::Event { zxid, kind, path: path.to_string() });
                }
            }
            Effect::Close { conn, reason } => {
                if reason == CloseReason::SessionMoved {
                    self.count("session moved");
                }
                self.net.conns.get_mut(&conn).unwrap().closing = true;
                self.tell_client(conn, Parcel::End);
                let delay = self.chance.between(1, 10);
                self.after(delay, Event::ConnGone { conn });
            }
            Effect::SaslToken { conn, xid, token } => self.work_at_token(id, conn, xid, token),
            Effect::Persist { seq, op } => {
                let history = matches!(op, PersistOp::Install(_)).then(|| self.nodes[&id].history.clone());
                self.node(id).disk.push(seq, op, history);
                self.schedule_sync(id);
            }
            Effect::Snapshot(frozen) => {
                let slow = self.chance.one_in(4);
                let delay = self.chance.between(5, if slow { 3_000 } else { 100 });
                let history = self.nodes[&id].history.upto(frozen.zxid);
                self.node(id).disk.begin_snapshot(frozen, history);
                self.after(delay, Event::SnapshotDone { id, life });
            }
            Effect::SendVote { to, notification } => {
                self.net.votes.insert((id, to.0), notification);
                self.post_vote(id, to.0);
            }
            Effect::Dial { search_id, to } => {
                let (since, delay) = (self.now, self.chance.between(1, 5));
                self.after(delay, Event::Dial { id, life, search_id, to, since });
            }
            Effect::ToPeer { link, message } => self.tell_peer(id, link, message),
            Effect::ReadLog { search_id, link, after, through } => {
                self.count("log read asked");
                let (least, most) = self.shape.log_ms;
                let delay = if self.logs_unread { 300 } else { self.chance.between(least, most) };
                self.after(delay, Event::LogRead { id, life, search_id, link, after, through });
            }
            Effect::HangUp(link) => self.hang_up(id, link),
            Effect::RefuseVotes { of, why } => unreachable!("{id} refuses the votes of {of:?}: {why}"),
            Effect::Servers(_) => {}
            // The invariants of the core compare the writes under way with those that will be recorded.
            Effect::Audit(record) => self.count(match record.result {
                AuditResult::Success => "audited",
                AuditResult::Failure => "audited failure",
                AuditResult::Invoked => "audited, outcome not known",
            }),
        }
    }

    fn tell_client(&mut self, conn: ConnId, parcel: Parcel) {
        let of = &self.net.conns[&conn];
        if !of.sealed {
            self.send(of.down, parcel);
        }
    }

    /// Sends an event. A client that leaves too many events unread gets no more, and loses its connection. It gets the
    /// missed events when it sets its watches again.
    fn notify_client(&mut self, conn: ConnId, event: Parcel) {
        let lane = &self.net.lanes[&self.net.conns[&conn].down];
        if !self.shape.slow_readers || lane.unread() < UNREAD_MAX || self.sets_watches(conn) {
            return self.tell_client(conn, event);
        }
        self.count("event dropped");
        if planted::is(Bug::AnswersAfterDroppedEvent) {
            return self.after(DROPPED_MS, Event::ConnGone { conn });
        }
        self.tell_client(conn, Parcel::End);
        let of = self.net.conns.get_mut(&conn).unwrap();
        (of.closing, of.sealed) = (true, true);
        self.after(DROPPED_MS, Event::ConnGone { conn });
    }

    /// Whether a client waits for the answer to setWatches. A server has room for all events that one setWatches brings:
    /// without it the client would lose each connection by the same events.
    fn sets_watches(&self, conn: ConnId) -> bool {
        let Caller::Client(client) = self.net.conns[&conn].caller else { return false };
        let client = &self.clients[client];
        client.conn == Some(conn) && client.sent.iter().any(|sent| matches!(sent.intent, Intent::SetWatches))
    }

    /// Tells the member that a client's connection has ended.
    pub(crate) fn conn_gone(&mut self, conn: ConnId) {
        let Some(of) = self.net.conns.get_mut(&conn) else { return };
        let (id, down, up) = (of.member.0, of.down, of.up);
        if !std::mem::replace(&mut of.gone, true) {
            self.net.kill(up);
            self.send(down, Parcel::End);
            self.step(id, Input::Disconnected { conn });
        }
    }

    fn tell_peer(&mut self, id: i64, link: LinkId, message: PeerMessage) {
        let Some(of) = self.net.links.get(&link) else { return };
        let side = of.side(id);
        if of.closed[side] {
            return;
        }
        let lane = of.lane_from(side);
        let mut bytes = Vec::new();
        match message {
            PeerMessage::Packet(packet) => {
                self.assert_on_disk(id, &packet);
                self.check_promised_once(id, &packet);
                self.follower_answers(id, &packet);
                self.assert_sync_complete(id, link, &packet);
                packet.write(&mut bytes);
            }
            PeerMessage::Proposal(zxid, record) => {
                Packet::Proposal { zxid, record: Cow::Borrowed(&record.0) }.write(&mut bytes);
            }
            PeerMessage::Inform(zxid, record) => {
                Packet::Inform { zxid, record: Cow::Borrowed(&record.0) }.write(&mut bytes);
            }
            PeerMessage::History(records) => {
                for (zxid, record) in records {
                    self.tell_peer(id, link, PeerMessage::Proposal(zxid, record));
                    self.tell_peer(id, link, PeerMessage::Packet(Packet::Commit(zxid)));
                }
                return;
            }
            PeerMessage::Snapshot(frozen) => {
                let history = self.nodes[&id].history.upto(frozen.zxid);
                recovery::write_stream(&frozen, &mut bytes).unwrap();
                let (zxid, digest) = (frozen.zxid, frozen.digest);
                self.count("tree sent");
                self.tree_takes_its_time(link, lane);
                return self.send(lane, Parcel::Tree { zxid, digest, bytes, history });
            }
        }
        self.send(lane, Parcel::Packet(bytes));
    }

    /// Notes a sync at a leader: everything that is proposed by now must be applied before the answer.
    pub(crate) fn note_sync(&mut self, id: i64, link: LinkId, packet: &Packet<'_>) {
        let sync = matches!(packet, Packet::Request { code, .. } if *code == Op::Sync.code());
        if sync && self.mode(id) == Some(MemberMode::Leader) {
            let proposed = self.nodes[&id].history.last();
            self.net.links.get_mut(&link).unwrap().syncs.push_back(proposed);
        }
    }

    fn assert_sync_complete(&mut self, id: i64, link: LinkId, packet: &Packet<'_>) {
        if *packet == Packet::Sync && self.mode(id) == Some(MemberMode::Leader) {
            let proposed = self.net.links.get_mut(&link).unwrap().syncs.pop_front().unwrap();
            let applied = self.nodes[&id].server.as_ref().unwrap().tree().last_processed();
            assert!(
                applied >= proposed,
                "[sync] {id} answers a sync at {applied} that came after {proposed}"
            );
        }
    }

    /// Asserts that what a packet says is on disk.
    fn assert_on_disk(&self, id: i64, packet: &Packet<'_>) {
        let disk = &self.nodes[&id].disk;
        let kept = match packet {
            // An observer master passes on an epoch that has begun.
            Packet::LeaderInfo { epoch, .. } if self.mode(id) == Some(MemberMode::Follower) => {
                self.reference.decides(|voter| self.nodes[&voter].disk.accepted() >= *epoch)
            }
            Packet::LeaderInfo { epoch, .. } => disk.accepted() >= *epoch,
            // A learner that serves goes on logging after it has promised the epoch that its leader moves on to.
            Packet::AckEpoch { current, .. } if self.serves(id) => {
                current.is_none_or(|current| disk.accepted() > current)
            }
            Packet::AckEpoch { last, .. } => {
                let ends_there = last.counter() == 0 || self.nodes[&id].history.last() == *last;
                ends_there && !disk.has_epoch_waiting()
            }
            Packet::Ack(zxid) if zxid.counter() == 0 => disk.current() >= zxid.epoch(),
            Packet::Ack(zxid) => disk.has(*zxid),
            _ => true,
        };
        if let Packet::NewLeader { epoch, .. } = packet
            && self.mode(id) == Some(MemberMode::Leader)
        {
            let promised = |voter: i64| self.nodes[&voter].disk.accepted() >= *epoch;
            assert!(
                self.reference.decides(promised),
                "[promised epoch] {id} uses {epoch:?}, which no quorum has promised"
            );
        }
        // A learner that serves has promised the later epoch to the same leader, which moves on to it.
        let stale = !self.serves(id)
            && matches!(packet, Packet::Ack(zxid) if zxid.counter() == 0 && zxid.epoch() < disk.accepted());
        assert!(!stale, "[promised epoch] {id} follows {packet:?}, and has promised {:?}", disk.accepted());
        assert!(kept, "[disk first] {id} says {packet:?} before it is on disk");
    }

    /// Asserts that an epoch is promised to one leader only. The answer to a second leader carries no promise.
    fn check_promised_once(&mut self, id: i64, packet: &Packet<'_>) {
        if let Packet::AckEpoch { current: Some(current), .. } = packet {
            let serves = self.serves(id);
            let disk = &mut self.node(id).disk;
            // A learner that serves promises the next epoch to a leader that moves on. It may have promised more since.
            let epoch = if serves { Epoch(current.0 + 1) } else { disk.accepted() };
            assert!(disk.note_promise(epoch), "[promised epoch] {id} promises {epoch:?} to a second leader");
        }
    }

    pub(crate) fn schedule_sync(&mut self, id: i64) {
        let node = &self.nodes[&id];
        if node.syncing || node.disk.waiting() == 0 {
            return;
        }
        // Reloading a tree may take longer than a learner waits.
        let reload_ms =
            if node.disk.reloads_next() { [100, 4_000][self.chance.below(2) as usize] } else { 0 };
        let node = &self.nodes[&id];
        let (life, longest) = (node.life, node.sync_ms.max(reload_ms));
        let delay = self.chance.between(1, longest);
        self.node(id).syncing = true;
        self.after(delay, Event::Sync { id, life });
    }

    pub(crate) fn synced(&mut self, id: i64) {
        let waiting = self.nodes[&id].disk.waiting() as u64;
        let count = self.chance.between(1, waiting) as usize;
        self.node(id).syncing = false;
        let told = match self.node(id).disk.sync(count) {
            Ok(told) => told,
            Err(error) => {
                self.count("disk failed");
                self.trace(|| format!("server {id} ends: {error}"));
                // The queue is dropped: nothing is written after an error.
                self.node(id).disk.stop();
                return self.crash(id, Ending::Killed);
            }
        };
        for told in told {
            match told {
                DiskReport::Reloaded(search_id, tree, history) => {
                    self.node(id).history = history;
                    self.step(id, Input::Reloaded { search_id, tree });
                }
                DiskReport::Persisted(seq) => self.step(id, Input::Persisted(seq)),
            }
        }
        self.schedule_sync(id);
    }

    /// Connects to a quorum port. The port is open whatever role its server has.
    pub(crate) fn dial(&mut self, id: i64, search_id: u64, to: DialTarget, since: u64) {
        let life = self.nodes[&id].life;
        let (master, refused_for) = match to {
            DialTarget::Leader(leader) => (leader.0, REFUSED_FOR),
            DialTarget::Follower(follower) => (follower.0, 0),
        };
        let cut = self.net.cut.contains(&(id, master)) || self.net.cut.contains(&(master, id));
        let patience = if cut { CONNECT_TIMEOUT } else { refused_for };
        if cut || self.nodes[&master].server.is_none() {
            if self.now >= since + patience {
                return self.step(id, Input::LeaderUnreachable { search_id });
            }
            return self.after(20, Event::Dial { id, life, search_id, to, since });
        }
        let refusal = self.refusal(id, master);
        if refusal == Some(Refusal::ByCaller) {
            return self.step(id, Input::LeaderUnreachable { search_id });
        }
        let link = LinkId(self.net.number());
        let (learner, master) = ((id, life), (master, self.nodes[&master].life));
        let up = self.net.lane(Route::Peer { link, to_leader: true }, Some(learner), Some(master));
        let down = self.net.lane(Route::Peer { link, to_leader: false }, Some(master), Some(learner));
        let of = Link {
            learner,
            leader: master,
            up,
            down,
            closed: [false; 2],
            gone: [false; 2],
            syncs: VecDeque::new(),
        };
        self.net.links.insert(link, of);
        if refusal.is_some() {
            // The learner's packets meet the end of the connection.
            [up, down].into_iter().for_each(|lane| self.net.kill(lane));
            let delay = self.chance.between(1, 20);
            self.after(delay, Event::Gone { id, life, link });
            return self.step(id, Input::LeaderLink { search_id, link });
        }
        if matches!(to, DialTarget::Follower(_)) {
            self.send(up, Parcel::Call);
        }
        self.step(id, Input::LeaderLink { search_id, link });
    }

    /// Sends the newest vote, over a new connection if there is none.
    fn post_vote(&mut self, from: i64, to: i64) {
        let (key, life) = ((from.min(to), from.max(to)), self.nodes[&from].life);
        let Some(of) = self.net.elections.get(&key) else {
            let delay = self.chance.between(1, 5);
            return self.after(delay, Event::DialElection { id: from, life, to });
        };
        let lane = if from < to { of.lanes.0 } else { of.lanes.1 };
        if let Some(vote) = self.net.votes.remove(&(from, to)) {
            self.trace(|| {
                let candidate = vote.candidate.map(|of| (of.id.0, of.epoch.0, of.zxid.to_string()));
                format!(
                    "server {from} ({:?}, round {}) tells {to} that it backs {candidate:?}",
                    vote.state, vote.round
                )
            });
            self.send(lane, Parcel::Vote(vote));
        }
    }

    pub(crate) fn dial_election(&mut self, id: i64, to: i64) {
        let (key, life) = ((id.min(to), id.max(to)), self.nodes[&id].life);
        if self.net.elections.contains_key(&key) {
            return self.post_vote(id, to);
        }
        let cut = self.net.cut.contains(&(id, to)) || self.net.cut.contains(&(to, id));
        if cut || self.nodes[&to].server.is_none() {
            let delay = if cut { CONNECT_TIMEOUT } else { 2 };
            return self.after(delay, Event::Election { id, life, peer: to, up: false });
        }
        if let Some(refusal) = self.refusal(id, to) {
            return self.refuse_election(id, to, refusal);
        }
        let (low, high) = ((key.0, self.nodes[&key.0].life), (key.1, self.nodes[&key.1].life));
        let there = self.net.lane(Route::Vote { from: key.0 }, Some(low), Some(high));
        let back = self.net.lane(Route::Vote { from: key.1 }, Some(high), Some(low));
        self.net.elections.insert(key, Election { lanes: (there, back) });
        self.election_link(id, to, true);
        let (peer_life, delay) = (self.nodes[&to].life, self.chance.between(1, 5));
        self.after(delay, Event::Election { id: to, life: peer_life, peer: id, up: true });
    }

    /// A connection between election ports is open, as far as this server knows.
    pub(crate) fn election_link_up(&mut self, id: i64, peer: i64) {
        self.step(id, Input::ElectionLink { peer: ServerId(peer), up: true });
    }

    pub(crate) fn election_link(&mut self, id: i64, peer: i64, up: bool) {
        self.step(id, Input::ElectionLink { peer: ServerId(peer), up });
        if up {
            self.post_vote(id, peer);
        }
    }

    /// Breaks the connection between two election ports. Both servers notice within `longest` ms.
    pub(crate) fn break_election(&mut self, (low, high): (i64, i64), longest: u64) {
        let Some(of) = self.net.elections.remove(&(low, high)) else { return };
        self.net.kill(of.lanes.0);
        self.net.kill(of.lanes.1);
        for (id, peer) in [(low, high), (high, low)] {
            let (life, delay) = (self.nodes[&id].life, self.chance.between(1, longest));
            self.after(delay, Event::Election { id, life, peer, up: false });
        }
    }
}
