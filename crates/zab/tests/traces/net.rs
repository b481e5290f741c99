//! The network of a trace, and the commands about it. The tests of the core use this file, too.
//!
//! - `deliver`: all messages arrive, and all that follow from them. `deliver 1->2`: those that are under way now, on
//!   this way. `deliver 1->2 once`: the first of them.
//! - `hold 3->1 3->2`, `release 3->1 3->2`: messages on these ways wait.
//! - `cut 1-3 2-3`, `heal`: connections break, and none can be made.

use ostler_zab::leading::LinkId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// More messages than any trace has.
const MESSAGES_MAX: usize = 1_000;

/// From one server to another.
pub(crate) type Way = (i64, i64);

pub(crate) struct Net<M> {
    /// Messages under way, in the order in which they were sent.
    pub(crate) under_way: VecDeque<(Way, M)>,
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

/// Reads a way, such as `1->2`.
pub(crate) fn parse_way(text: &str) -> Way {
    let (from, to) = text.split_once("->").unwrap_or_else(|| panic!("{text} is not a way, such as 1->2"));
    (number(from), number(to))
}

/// Reads a pair of servers, such as `1-2`.
pub(crate) fn parse_pair(text: &str) -> Way {
    let (a, b) = text.split_once('-').unwrap_or_else(|| panic!("{text} is not a pair, such as 1-2"));
    pair(number(a), number(b))
}

pub(crate) fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

pub(crate) fn pair(a: i64, b: i64) -> Way {
    (a.min(b), a.max(b))
}

impl<M> Default for Net<M> {
    fn default() -> Net<M> {
        Net {
            under_way: VecDeque::new(),
            held: BTreeSet::new(),
            cut: BTreeSet::new(),
            elections: BTreeSet::new(),
            links: BTreeMap::new(),
            links_made: 0,
        }
    }
}

impl<M> Net<M> {
    pub(crate) fn link(&mut self, learner: i64, leader: i64) -> LinkId {
        self.links_made += 1;
        let link = LinkId(self.links_made);
        self.links.insert(link, (learner, leader));
        link
    }

    /// The next message that can arrive, on one way or on all.
    pub(crate) fn take(&mut self, only: Option<Way>) -> Option<(Way, M)> {
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

/// Servers with a network between them.
pub(crate) trait Networked {
    type Message;

    fn net(&mut self) -> &mut Net<Self::Message>;

    /// Lets the next message arrive, on one way or on all. `false` if there is none.
    fn deliver(&mut self, only: Option<Way>) -> bool;

    /// Breaks all connections between two servers. Both notice, if they are up.
    fn break_between(&mut self, a: i64, b: i64);

    /// Carries out a command about the network. `false` if it is none.
    fn network_command(&mut self, command: &[&str]) -> bool {
        match command {
            ["deliver"] => {
                let count = (0..MESSAGES_MAX).take_while(|_| self.deliver(None)).count();
                assert!(count < MESSAGES_MAX, "messages go to and fro without end");
            }
            ["deliver", way] => {
                let way = parse_way(way);
                let count = self.net().under_way.iter().filter(|(of, _)| *of == way).count();
                (0..count).for_each(|_| _ = self.deliver(Some(way)));
            }
            ["deliver", way, "once"] => assert!(self.deliver(Some(parse_way(way))), "nothing is under way"),
            ["hold", ways @ ..] => self.net().held.extend(ways.iter().map(|way| parse_way(way))),
            ["release", ways @ ..] => {
                ways.iter()
                    .for_each(|way| assert!(self.net().held.remove(&parse_way(way)), "{way} is not held"));
            }
            ["cut", pairs @ ..] => {
                for (a, b) in pairs.iter().map(|text| parse_pair(text)) {
                    self.net().cut.insert((a, b));
                    self.break_between(a, b);
                }
            }
            ["heal"] => self.net().cut.clear(),
            _ => return false,
        }
        true
    }
}
