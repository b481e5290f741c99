//! The simulated network. Each direction of a connection is a lane: parcels arrive in order, and a lane can stall, die
//! without a close, or end.

use crate::{
    chance::Chance,
    history::History,
    world::{Event, World},
};
use ostler_data_dir::recovery;
use ostler_proto::{
    connect::ConnectResponse,
    election::Notification,
    event::EventType,
    id::Zxid,
    quorum_packet::{PacketSplit, split},
    reply::Reply,
    stat::ExtendedTypes,
};
use ostler_server_core::{ConnId, Input};
use ostler_zab::leading::LinkId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The largest packet that is accepted, bytes.
pub(crate) const PACKET_MAX: usize = 1 << 26;

/// How long the kernels of a learner and its leader take to notice a dead connection (keepalive).
const KERNEL_ASKS_MS: u64 = 2_000;

/// How often a part of a tree that is being sent arrives, ms.
const TREE_MOVES_MS: u64 = 100;

/// A process: the member's id, and the number of its start.
pub(crate) type MemberProcess = (i64, u64);

/// A message on its way.
#[derive(Debug)]
pub(crate) enum Parcel {
    Vote(Notification),
    Packet(Vec<u8>),
    /// The first message on a connection to the port for observers.
    Call,
    /// A whole tree, and the transactions in it.
    Tree {
        zxid: Zxid,
        digest: u64,
        bytes: Vec<u8>,
        history: History,
    },
    Connect(Vec<u8>),
    Request(Vec<u8>),
    Connected(ConnectResponse),
    Reply(Reply),
    Event {
        zxid: Option<Zxid>,
        kind: EventType,
        path: String,
    },
    /// The first bytes of a packet or a tree whose rest never comes.
    Part(CutMessage, Vec<u8>),
    /// The other side has closed.
    End,
}

/// The kind of a message that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutMessage {
    Packet,
    Tree(Zxid),
}

impl CutMessage {
    /// Whether a server takes these bytes for an incomplete message.
    pub(crate) fn is_incomplete(self, bytes: &[u8], to_leader: bool) -> bool {
        match self {
            CutMessage::Packet => split(bytes, PACKET_MAX, to_leader) == PacketSplit::Incomplete,
            CutMessage::Tree(zxid) => recovery::read_stream(bytes, zxid, ExtendedTypes::default()).is_err(),
        }
    }
}

impl Parcel {
    /// The first bytes of a packet or a tree; `None` for other parcels.
    fn cut_off(self, chance: &mut Chance) -> Option<Parcel> {
        let (of, mut bytes) = match self {
            Parcel::Packet(bytes) => (CutMessage::Packet, bytes),
            Parcel::Tree { zxid, bytes, .. } => (CutMessage::Tree(zxid), bytes),
            _ => return None,
        };
        bytes.truncate(chance.below(bytes.len() as u64) as usize);
        Some(Parcel::Part(of, bytes))
    }
}

/// The two ends of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Vote { from: i64 },
    Peer { link: LinkId, to_leader: bool },
    ToServer(ConnId),
    ToClient(ConnId),
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) route: Route,
    from: Option<MemberProcess>,
    pub(crate) to: Option<MemberProcess>,
    /// Parcels on their way, with the times of their arrival.
    parcels: VecDeque<(u64, Parcel)>,
    /// When the last parcel arrives: no later parcel arrives before it.
    last: u64,
    /// Whether an event for the first parcel is scheduled.
    scheduled: bool,
    /// No parcel arrives any more, and neither side is notified.
    dead: bool,
    /// The lane was stalled by a cut and goes on after it.
    stalled: bool,
    /// Parcels wait until the receiver has reloaded its tree.
    pub(crate) held: bool,
    /// No parcel arrives before this time.
    pub(crate) held_until: u64,
}

/// A learner's connection to its leader.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) learner: MemberProcess,
    pub(crate) leader: MemberProcess,
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// Whether the side sends no more: learner, leader.
    pub(crate) closed: [bool; 2],
    /// Whether the side knows that the link has ended: learner, leader.
    pub(crate) gone: [bool; 2],
    /// For each sync that the leader has not answered: the last zxid proposed when the sync arrived.
    pub(crate) syncs: VecDeque<Zxid>,
}

impl Link {
    /// 0 for the learner, 1 for the leader.
    pub(crate) fn side(&self, id: i64) -> usize {
        usize::from(self.leader.0 == id)
    }

    pub(crate) fn lane_from(&self, side: usize) -> u64 {
        [self.up, self.down][side]
    }
}

/// The owner of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Client(usize),
    Contender(usize),
    /// Has no session of its own, and asks for others' sessions.
    SessionThief,
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) caller: Caller,
    pub(crate) member: MemberProcess,
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// `Some` if the member has no leader: whether everything that it shows is committed.
    pub(crate) shown: Option<bool>,
    /// The handshake names an existing session.
    pub(crate) returns: bool,
    /// The member has closed it.
    pub(crate) closing: bool,
    /// An event for the client was dropped: the member sends nothing more.
    pub(crate) sealed: bool,
    /// The member knows that the connection has ended.
    pub(crate) gone: bool,
}

/// A connection between two election ports. `lanes`: from the smaller id, from the larger id.
#[derive(Debug)]
pub(crate) struct Election {
    pub(crate) lanes: (u64, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Net {
    count: u64,
    pub(crate) lanes: BTreeMap<u64, Lane>,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) elections: BTreeMap<(i64, i64), Election>,
    /// By sender and receiver: the newest vote that is not sent yet.
    pub(crate) votes: BTreeMap<(i64, i64), Notification>,
    /// Pairs (from, to) between which no parcel passes in this direction.
    pub(crate) cut: BTreeSet<(i64, i64)>,
    /// Servers whose certificates are refused, until when.
    pub(crate) refused: BTreeMap<i64, u64>,
}

impl Net {
    pub(crate) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn lane(
        &mut self,
        route: Route,
        from: Option<MemberProcess>,
        to: Option<MemberProcess>,
    ) -> u64 {
        let number = self.number();
        let lane = Lane {
            route,
            from,
            to,
            parcels: VecDeque::new(),
            last: 0,
            scheduled: false,
            dead: false,
            stalled: false,
            held: false,
            held_until: 0,
        };
        self.lanes.insert(number, lane);
        number
    }

    pub(crate) fn is_cut(&self, from: Option<MemberProcess>, to: Option<MemberProcess>) -> bool {
        from.zip(to).is_some_and(|((from, _), (to, _))| self.cut.contains(&(from, to)))
    }

    pub(crate) fn kill(&mut self, lane: u64) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.dead = true;
            lane.parcels.clear();
        }
    }
}

impl Lane {
    /// The number of watch events that have not arrived yet.
    pub(crate) fn unread(&self) -> usize {
        self.parcels.iter().filter(|(_, parcel)| matches!(parcel, Parcel::Event { .. })).count()
    }
}

impl World {
    pub(crate) fn send(&mut self, lane: u64, parcel: Parcel) {
        let slow = self.chance.one_in(30);
        let delay = self.chance.between(1, if slow { 150 } else { 5 });
        let Some(of) = self.net.lanes.get_mut(&lane).filter(|of| !of.dead) else { return };
        of.last = of.last.max(self.now + delay);
        of.parcels.push_back((of.last, parcel));
        self.schedule_lane(lane);
    }

    fn schedule_lane(&mut self, lane: u64) {
        let Some(of) = self.net.lanes.get_mut(&lane).filter(|of| !of.scheduled) else { return };
        if let Some((at, _)) = of.parcels.front() {
            of.scheduled = true;
            let delay = at.saturating_sub(self.now);
            self.after(delay, Event::Lane(lane));
        }
    }

    pub(crate) fn lane_due(&mut self, lane: u64) {
        let Some(of) = self.net.lanes.get_mut(&lane) else { return };
        of.scheduled = false;
        let (from, to) = (of.from, of.to);
        if of.dead || to.is_some_and(|to| !self.lives(to)) {
            return self.net.kill(lane);
        }
        if self.net.is_cut(from, to) && !self.outlasts_cut(lane) {
            match (self.net.lanes[&lane].route, to) {
                (Route::Vote { from }, Some((to, _))) => {
                    self.break_election((from.min(to), from.max(to)), 500);
                }
                (Route::Peer { link, .. }, _) => {
                    let of = &self.net.links[&link];
                    for (id, life) in [of.learner, of.leader] {
                        self.after(KERNEL_ASKS_MS, Event::Gone { id, life, link });
                    }
                }
                _ => {}
            }
            return self.net.kill(lane);
        }
        let waits = self.net.is_cut(from, to)
            || self.update_held(lane, to)
            || self.net.lanes[&lane].held_until > self.now;
        let Some(of) = self.net.lanes.get_mut(&lane) else { return };
        if waits || of.parcels.front().is_some_and(|(at, _)| *at > self.now) {
            let delay = if waits { 20 } else { of.parcels[0].0 - self.now };
            of.scheduled = true;
            return self.after(delay, Event::Lane(lane));
        }
        let Some((_, parcel)) = of.parcels.pop_front() else { return };
        let (route, to) = (of.route, of.to);
        self.arrived(lane, route, to, parcel);
        self.schedule_lane(lane);
    }

    /// Delays a lane by the time that a tree takes to arrive. Both sides notice meanwhile that it moves.
    pub(crate) fn tree_takes_its_time(&mut self, link: LinkId, lane: u64) {
        let (least, most) = self.shape.tree_ms;
        if most == 0 {
            return;
        }
        let until = self.now + self.chance.between(least, most);
        let Some(of) = self.net.lanes.get_mut(&lane) else { return };
        of.last = of.last.max(until);
        let of = &self.net.links[&link];
        for (id, life) in [of.learner, of.leader] {
            self.after(TREE_MOVES_MS, Event::TreeMoves { id, life, link, until });
        }
    }

    /// One side has received or sent a part of a tree.
    pub(crate) fn tree_moves(&mut self, (id, life): MemberProcess, link: LinkId, until: u64) {
        let of = &self.net.links[&link];
        let side = of.side(id);
        let is_cut = self.net.is_cut(Some(of.leader), Some(of.learner));
        if of.closed[side] || of.gone[side] || self.net.lanes[&of.down].dead || self.now >= until {
            return;
        }
        if !is_cut {
            self.step(id, Input::StreamMoves { link });
        }
        self.after(TREE_MOVES_MS, Event::TreeMoves { id, life, link, until });
    }

    /// Whether a parcel has waited at the end of a lane since before this moment.
    pub(crate) fn waits_to_be_read(&self, lane: u64) -> bool {
        let of = &self.net.lanes[&lane];
        !of.dead && of.parcels.front().is_some_and(|(at, _)| *at < self.now)
    }

    /// TCP repeats what was lost for a long time: after a short cut the parcels arrive, or the connection dies without
    /// a close.
    fn outlasts_cut(&mut self, lane: u64) -> bool {
        let lucky = self.chance.one_in(2);
        let Some(of) = self.net.lanes.get_mut(&lane) else { return false };
        let first = !std::mem::replace(&mut of.stalled, true);
        !first || lucky
    }

    fn update_held(&mut self, lane: u64, to: Option<MemberProcess>) -> bool {
        let Some((id, _)) = to else { return false };
        let reloading = self.nodes[&id].server.as_ref().is_some_and(|server| server.is_reloading());
        let Some(of) = self.net.lanes.get_mut(&lane) else { return false };
        of.held &= reloading;
        of.held
    }

    /// Cuts the lane of a process that died: some parcels are on their way, perhaps the first bytes of one more, then
    /// the end.
    pub(crate) fn cut_short(&mut self, lane: u64) {
        let Some(of) = self.net.lanes.get_mut(&lane).filter(|of| !of.dead) else { return };
        let kept = self.chance.below(of.parcels.len() as u64 + 1) as usize;
        let lost = of.parcels.drain(kept..).next();
        // The place of the cut must not change later random choices.
        let mut place = Chance::new(self.now ^ lane << 32);
        let part = lost.and_then(|(at, parcel)| Some((at, parcel.cut_off(&mut place)?)));
        of.parcels.extend(part);
        self.send(lane, Parcel::End);
    }

    /// A process closes its side of a link. Parcels that it has sent still arrive.
    pub(crate) fn hang_up(&mut self, id: i64, link: LinkId) {
        let Some(of) = self.net.links.get_mut(&link) else { return };
        let side = of.side(id);
        if std::mem::replace(&mut of.closed[side], true) {
            return;
        }
        let (lane, life) = (of.lane_from(side), self.nodes[&id].life);
        self.send(lane, Parcel::End);
        let delay = self.chance.between(1, 10);
        self.after(delay, Event::Gone { id, life, link });
    }

    /// One side of a link has ended: it has closed, or it has got the other side's end.
    pub(crate) fn link_gone(&mut self, id: i64, link: LinkId) {
        let Some(of) = self.net.links.get_mut(&link) else { return };
        let side = of.side(id);
        if std::mem::replace(&mut of.gone[side], true) {
            return;
        }
        let incoming = of.lane_from(1 - side);
        self.net.kill(incoming);
        let of = &self.net.links[&link];
        if !of.closed[side] {
            let lane = of.lane_from(side);
            self.send(lane, Parcel::End);
        }
        if let Some(of) = self.net.links.get_mut(&link) {
            of.closed[side] = true;
        }
        self.step(id, Input::PeerGone { link });
    }
}
