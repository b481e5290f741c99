//! The members of a trace, their clients, time and connections. Each input and each effect is written down.

use crate::{
    clients::{Client, Conn},
    member::{Member, restore},
    net::{Net, Networked, Way, pair},
    packets::{self, Names},
    words,
};
use ostler_proto::{
    election::Notification,
    id::{ServerId, Zxid},
    quorum_packet::Packet,
};
use ostler_server_core::{ConnId, DialTarget, Effect, Input, Now, PeerMessage, Record, input::Mono};
use ostler_tree::FrozenTree;
use ostler_zab::leading::LinkId;
use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

/// For this time a server tries to connect to its leader.
const DIAL_MS: u64 = 500;

pub(crate) enum Message {
    Vote(Notification),
    Packet(LinkId, Packet<'static>),
    Tree(LinkId, Box<FrozenTree>),
    Closed(LinkId),
}

impl Message {
    fn text(&self, names: &Names) -> String {
        match self {
            Message::Vote(vote) => words::vote(vote),
            Message::Packet(_, packet) => packets::packet(names, packet),
            Message::Tree(_, tree) => packets::packet(names, &Packet::Snap(tree.zxid)),
            Message::Closed(_) => "closes the connection".into(),
        }
    }
}

/// An input that follows from a step and comes after it.
pub(crate) enum Next {
    ElectionLink { at: i64, peer: i64, up: bool },
    Dial { id: i64, search_id: u64, to: i64 },
    DiskDone(i64),
    LogRead { id: i64, search_id: u64, link: LinkId, after: Zxid, through: Zxid },
    ConnEnds(ConnId),
    SnapshotDone(i64),
}

pub(crate) struct World {
    pub(crate) members: BTreeMap<i64, Member>,
    pub(crate) now: u64,
    /// Committed transactions that each server keeps in memory for learners.
    pub(crate) kept: usize,
    pub(crate) net: Net<Message>,
    /// Connections that could not be made at once: who, the search, to whom, and until when.
    dialling: Vec<(i64, u64, i64, u64)>,
    next: VecDeque<Next>,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) names: Names,
    pub(crate) trace: Vec<String>,
}

impl Default for World {
    fn default() -> World {
        World {
            members: BTreeMap::new(),
            now: 0,
            kept: 500,
            net: Net::default(),
            dialling: Vec::new(),
            next: VecDeque::new(),
            clients: BTreeMap::new(),
            conns: BTreeMap::new(),
            names: Names::new(),
            trace: Vec::new(),
        }
    }
}

impl World {
    pub(crate) fn member(&mut self, id: i64) -> &mut Member {
        self.members.get_mut(&id).unwrap_or_else(|| panic!("there is no server {id}"))
    }

    fn is_up(&self, id: i64) -> bool {
        self.members.get(&id).is_some_and(|member| member.server.is_some())
    }

    fn can_connect(&self, a: i64, b: i64) -> bool {
        self.is_up(a) && self.is_up(b) && !self.net.cut.contains(&pair(a, b))
    }

    /// Writes down an input.
    pub(crate) fn input(&mut self, text: String) {
        self.trace.push(text);
    }

    /// Writes down an effect.
    fn effect(&mut self, text: String) {
        self.trace.push(format!("  {text}"));
    }

    pub(crate) fn time(&self) -> Now {
        Now { mono: Mono(self.now), wall_ms: self.now as i64, us: 0 }
    }

    pub(crate) fn start(&mut self, id: i64) {
        let (now, kept) = (self.time(), self.kept);
        self.member(id).boot(id, now, kept);
        let data = self.member(id).disk.text();
        self.input(format!("{id} starts: {data}"));
        self.step(id, Input::Deadline);
    }

    pub(crate) fn crash(&mut self, id: i64) {
        self.member(id).server = None;
        self.input(format!("{id} crashes"));
        self.conns.values_mut().filter(|conn| conn.at == id).for_each(|conn| conn.open = false);
        for other in self.members.keys().copied().filter(|other| *other != id).collect::<Vec<_>>() {
            self.break_between(id, other);
        }
    }

    pub(crate) fn step(&mut self, id: i64, input: Input<'_>) {
        let (now, mut effects) = (self.time(), Vec::new());
        let Some(server) = &mut self.member(id).server else { return };
        server.step(now, input, &mut effects);
        server.invariants();
        assert_eq!(server.tree().digest_mismatches(), 0, "the tree of {id} differs from its leader's");
        let mut effects = effects.into_iter().peekable();
        while let Some(effect) = effects.next() {
            let Effect::SendVote { to, notification } = effect else {
                self.carry_out(id, effect);
                continue;
            };
            let mut all = vec![to.0];
            let is_same = |next: &Effect| matches!(next, Effect::SendVote { notification: of, .. } if *of == notification);
            while let Some(Effect::SendVote { to, .. }) = effects.next_if(is_same) {
                all.push(to.0);
            }
            let names: Vec<String> = all.iter().map(i64::to_string).collect();
            self.effect(format!("{id} -> {} {}", names.join(","), words::vote(&notification)));
            all.into_iter().for_each(|to| self.send_vote(id, to, notification.clone()));
        }
    }

    fn carry_out(&mut self, id: i64, effect: Effect) {
        match effect {
            Effect::Connected { conn, response } => {
                let granted = if response.timeout_ms > 0 {
                    self.session_granted(conn, response.session);
                    format!(
                        "{}, timeout {}",
                        packets::session(&self.names, response.session),
                        response.timeout_ms
                    )
                } else {
                    "session expired".into()
                };
                self.effect(format!("client {} <- {granted}", self.conns[&conn].name));
            }
            Effect::Reply { conn, reply } => {
                self.effect(format!("client {} <- {}", self.conns[&conn].name, packets::reply(&reply)));
            }
            Effect::Notify { conns, kind, path, .. } => {
                for conn in conns {
                    self.effect(format!("client {} <- event {kind:?} {path}", self.conns[&conn].name));
                }
            }
            Effect::SaslToken { .. } => unreachable!("a server without SASL asks for none"),
            Effect::Close { conn, reason } => {
                let name = &self.conns[&conn].name;
                self.effect(format!("{id} closes client {name}: {}", packets::close_reason(reason)));
                self.next.push_back(Next::ConnEnds(conn));
            }
            Effect::Persist { seq, op } => {
                self.effect(format!("{id} disk {}", packets::act(&self.names, &op)));
                let disk = &mut self.member(id).disk;
                disk.queue.push_back((seq, op));
                if !disk.waits {
                    self.next.push_back(Next::DiskDone(id));
                }
            }
            Effect::Snapshot(tree) => {
                self.effect(format!("{id} snapshot {}", tree.zxid));
                self.next.push_back(Next::SnapshotDone(id));
            }
            Effect::Servers(all) => {
                let all: Vec<String> = all.iter().map(packets::membership).collect();
                self.effect(format!("{id} needs connections to {}", all.join(" and ")));
            }
            Effect::SendVote { .. } => unreachable!("votes are sent by the step"),
            Effect::RefuseVotes { of, why } => {
                self.effect(format!("{id} refuses the votes of {}: {why}", of.0))
            }
            Effect::Dial { search_id, to } => {
                let (DialTarget::Leader(to) | DialTarget::Follower(to)) = to;
                self.effect(format!("{id} connects to {}", to.0));
                self.dialling.push((id, search_id, to.0, self.now + DIAL_MS));
                self.next.push_back(Next::Dial { id, search_id, to: to.0 });
            }
            Effect::ToPeer { link, message } => self.send_to_peer(id, link, message),
            Effect::ReadLog { search_id, link, after, through } => {
                self.effect(format!("{id} reads its log after {after} through {through}"));
                self.next.push_back(Next::LogRead { id, search_id, link, after, through });
            }
            Effect::HangUp(link) => {
                self.send(id, link, Message::Closed(link));
                self.net.links.remove(&link);
            }
            Effect::Audit(record) => self.effect(format!("{id} audits {record:?}")),
        }
    }

    fn send(&mut self, from: i64, link: LinkId, message: Message) {
        let Some((learner, leader)) = self.net.links.get(&link).copied() else { return };
        let to = if from == leader { learner } else { leader };
        self.effect(format!("{from} -> {to} {}", message.text(&self.names)));
        self.net.under_way.push_back(((from, to), message));
    }

    fn send_to_peer(&mut self, id: i64, link: LinkId, message: PeerMessage) {
        let bytes = |record: Record| Cow::Owned(record.0.to_vec());
        let packet = match message {
            PeerMessage::Packet(packet) => packet,
            PeerMessage::Proposal(zxid, record) => Packet::Proposal { zxid, record: bytes(record) },
            PeerMessage::Inform(zxid, record) => Packet::Inform { zxid, record: bytes(record) },
            PeerMessage::History(records) => {
                for (zxid, record) in records {
                    self.send_to_peer(id, link, PeerMessage::Proposal(zxid, record));
                    self.send_to_peer(id, link, PeerMessage::Packet(Packet::Commit(zxid)));
                }
                return;
            }
            PeerMessage::Snapshot(tree) => return self.send(id, link, Message::Tree(link, tree)),
        };
        self.send(id, link, Message::Packet(link, packet));
    }

    /// A vote to a server without a connection opens one. Then each side sends its vote anew, so this one is dropped.
    fn send_vote(&mut self, from: i64, to: i64, vote: Notification) {
        if self.net.elections.contains(&pair(from, to)) {
            return self.net.under_way.push_back(((from, to), Message::Vote(vote)));
        }
        let up = self.can_connect(from, to);
        if up {
            self.net.elections.insert(pair(from, to));
            self.next.push_back(Next::ElectionLink { at: to, peer: from, up });
        }
        let is_noted =
            |next: &Next| matches!(next, Next::ElectionLink { at, peer, .. } if (*at, *peer) == (from, to));
        if !self.next.iter().any(is_noted) {
            self.next.push_back(Next::ElectionLink { at: from, peer: to, up });
        }
    }

    /// Carries out what follows from the last step, and what follows from that.
    pub(crate) fn settle(&mut self) {
        while let Some(next) = self.next.pop_front() {
            match next {
                Next::ElectionLink { at, peer, up } if self.is_up(at) => {
                    let what = if up { "is connected to" } else { "cannot reach" };
                    self.input(format!("{at} {what} the election port of {peer}"));
                    self.step(at, Input::ElectionLink { peer: ServerId(peer), up });
                }
                Next::Dial { id, search_id, to } if self.can_connect(id, to) => {
                    self.dialling.retain(|(of, search, ..)| (*of, *search) != (id, search_id));
                    let link = self.net.link(id, to);
                    self.input(format!("{id} is connected to the quorum port of {to}"));
                    self.step(id, Input::LeaderLink { search_id, link });
                }
                Next::DiskDone(id) => self.disk_done(id),
                Next::LogRead { id, search_id, link, after, through } => {
                    let read = self.member(id).disk.read_log(after, through);
                    self.input(format!(
                        "{id} has read its log{}",
                        if read.is_none() { ": not far enough" } else { "" }
                    ));
                    self.step(id, Input::LogRead { link, search_id, read });
                }
                Next::ConnEnds(conn) => self.conn_ends(conn),
                Next::SnapshotDone(id) => self.step(id, Input::SnapshotDone),
                _ => {}
            }
        }
    }

    /// Everything that was to be saved is on disk.
    pub(crate) fn disk_done(&mut self, id: i64) {
        if !self.is_up(id) {
            return;
        }
        let (last, reload) = self.member(id).disk.sync();
        if let Some(search_id) = reload {
            let tree = Box::new(self.member(id).disk.tree());
            self.input(format!("{id} has read its tree again, up to {}", tree.last_processed()));
            self.step(id, Input::Reloaded { search_id, tree });
        }
        if let Some(seq) = last {
            self.input(format!("{id} disk is done"));
            self.step(id, Input::Persisted(seq));
        }
    }

    /// Time passes, and all timers that are due run. With `delivers` all messages arrive at once, otherwise none does.
    pub(crate) fn pass(&mut self, ms: u64, delivers: bool) {
        let end = self.now + ms;
        while self.now < end {
            let servers = self.members.values().filter_map(|member| member.server.as_ref());
            let due =
                servers.map(|server| server.next_deadline().0).chain(self.dialling.iter().map(|of| of.3));
            self.now = due.filter(|due| *due > self.now).chain([end]).min().unwrap_or(end);
            self.members.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.wake(id));
            for (id, search_id, to, _) in
                self.dialling.extract_if(.., |of| of.3 <= self.now).collect::<Vec<_>>()
            {
                self.input(format!("{} ms: {id} cannot connect to the quorum port of {to}", self.now));
                self.step(id, Input::LeaderUnreachable { search_id });
            }
            self.settle();
            while delivers && self.deliver(None) {}
        }
    }

    /// A server's timer ends. It is written down only if something follows.
    fn wake(&mut self, id: i64) {
        let is_due = |server: &ostler_server_core::Server| server.next_deadline().0 <= self.now;
        if !self.members[&id].server.as_ref().is_some_and(is_due) {
            return;
        }
        let at = self.trace.len();
        self.step(id, Input::Deadline);
        if self.trace.len() > at {
            self.trace.insert(at, format!("{} ms: a timer of {id} ends", self.now));
        }
        self.settle();
    }
}

impl Networked for World {
    type Message = Message;

    fn net(&mut self) -> &mut Net<Message> {
        &mut self.net
    }

    fn deliver(&mut self, only: Option<Way>) -> bool {
        let Some(((from, to), message)) = self.net.take(only) else { return false };
        self.input(format!("{to} <- {from} {}", message.text(&self.names)));
        match message {
            Message::Vote(notification) => self.step(to, Input::Vote { from: ServerId(from), notification }),
            Message::Packet(link, packet) => self.step(to, Input::Peer { link, packet }),
            Message::Closed(link) => self.step(to, Input::PeerGone { link }),
            Message::Tree(link, tree) => {
                self.step(to, Input::SnapBegins { link });
                self.step(to, Input::Snap { link, tree: Box::new(restore(&tree)) });
            }
        }
        self.settle();
        true
    }

    fn break_between(&mut self, a: i64, b: i64) {
        let had_election = self.net.elections.contains(&pair(a, b));
        let links = self.net.break_between(a, b);
        for (at, peer) in [(a, b), (b, a)] {
            if !self.is_up(at) {
                continue;
            }
            if had_election {
                self.next.push_back(Next::ElectionLink { at, peer, up: false });
            }
            for link in &links {
                self.input(format!("{at} loses the connection to {peer}"));
                self.step(at, Input::PeerGone { link: *link });
            }
        }
        self.settle();
    }
}
