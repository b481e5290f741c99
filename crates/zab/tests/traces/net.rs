//! The network of a trace: messages arrive only when a command delivers them.

use crate::{packets, server::Log, words};
use ostler_proto::{election::Notification, id::Zxid};
use ostler_zab::{
    leading::{FromLearner, LinkId},
    learning::FromLeader,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A message on the election port or the quorum port.
#[derive(Clone)]
pub(crate) enum Message {
    Vote(Notification),
    ToLeader(LinkId, FromLearner),
    ToLearner(LinkId, FromLeader),
    /// SNAP with the whole tree, for which the log stands here.
    Tree(LinkId, Zxid, Log),
    /// The sender has closed the connection.
    Closed(LinkId),
}

impl Message {
    pub(crate) fn text(&self) -> String {
        match self {
            Message::Vote(vote) => words::vote(vote),
            Message::ToLeader(_, packet) => packets::from_learner(*packet),
            Message::ToLearner(_, packet) => packets::from_leader(packet),
            Message::Tree(_, at, _) => packets::from_leader(&FromLeader::Snap(*at)),
            Message::Closed(_) => "closes the connection".into(),
        }
    }
}

/// From one server to another.
pub(crate) type Way = (i64, i64);

#[derive(Default)]
pub(crate) struct Net {
    /// Messages under way, in the order in which they were sent.
    pub(crate) under_way: VecDeque<(Way, Message)>,
    /// Ways on which messages wait until they are released.
    pub(crate) held: BTreeSet<Way>,
    /// Pairs of servers, the smaller id first, between which nothing passes.
    pub(crate) cut: BTreeSet<Way>,
    /// Pairs with a connection between their election ports.
    pub(crate) elections: BTreeSet<Way>,
    /// Learner and leader of each connection of the quorum port.
    pub(crate) links: BTreeMap<LinkId, (i64, i64)>,
    links_made: u64,
}

pub(crate) fn pair(a: i64, b: i64) -> Way {
    (a.min(b), a.max(b))
}

impl Net {
    pub(crate) fn link(&mut self, learner: i64, leader: i64) -> LinkId {
        self.links_made += 1;
        let link = LinkId(self.links_made);
        self.links.insert(link, (learner, leader));
        link
    }

    /// The next message that can arrive, on one way or on all.
    pub(crate) fn take(&mut self, only: Option<Way>) -> Option<(Way, Message)> {
        let arrives = |way: &Way| !self.held.contains(way) && only.is_none_or(|only| only == *way);
        let at = self.under_way.iter().position(|(way, _)| arrives(way))?;
        self.under_way.remove(at)
    }

    /// All connections between two servers break, with everything under way. Returns those of the quorum port.
    pub(crate) fn break_between(&mut self, a: i64, b: i64) -> Vec<LinkId> {
        self.elections.remove(&pair(a, b));
        self.under_way.retain(|((from, to), _)| pair(*from, *to) != pair(a, b));
        let broken = self.links.iter().filter(|(_, (learner, leader))| pair(*learner, *leader) == pair(a, b));
        let broken: Vec<LinkId> = broken.map(|(link, _)| *link).collect();
        broken.iter().for_each(|link| _ = self.links.remove(link));
        broken
    }
}
