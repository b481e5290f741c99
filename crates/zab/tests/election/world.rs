//! Servers that do nothing but elect, and the network between them.

use ostler_proto::{
    election::{Candidate, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::{
    Election, ElectionOutput, ElectionTiming, Electorate, Mono, Quorum, election::ElectionEvent,
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const CONFIG: &str = "version=0";

/// One server.
pub(crate) struct Peer {
    pub(crate) election: Election,
    pub(crate) own: Option<Candidate>,
    /// The leader that it elected last.
    pub(crate) leader: Option<i64>,
    pub(crate) state: PeerState,
}

impl Peer {
    /// Whether its record has what it has just sent.
    fn has_on_record(&self, now: u64, output: &ElectionOutput) -> bool {
        let ElectionOutput::Send { to, notification } = output else { return true };
        let entries = self.election.record().entries.iter().rev();
        entries.take_while(|entry| entry.at == Mono(now)).any(|entry| match &entry.event {
            ElectionEvent::SentToAll { candidate, round } => {
                (*candidate, *round) == (notification.candidate, notification.round)
            }
            ElectionEvent::SentToOne { to: of, state, candidate, round } => {
                let told = (*of, *state, *candidate, *round);
                told == (*to, notification.state, notification.candidate, notification.round)
            }
            _ => false,
        })
    }

    /// Whether its record has a vote that has just come.
    fn has_heard(&self, now: u64, of: i64, vote: &Notification) -> bool {
        let entries = self.election.record().entries.iter().rev();
        entries.take_while(|entry| entry.at == Mono(now)).any(|entry| match &entry.event {
            ElectionEvent::Received { from, state, candidate, round, .. } => {
                (from.0, *state, *candidate, *round) == (of, vote.state, vote.candidate, vote.round)
            }
            _ => false,
        })
    }
}

/// Time jumps from one event to the next.
pub(crate) struct World {
    pub(crate) peers: BTreeMap<i64, Peer>,
    pub(crate) electorate: Electorate,
    pub(crate) now: u64,
    /// The votes under way: the time of arrival, and a number that keeps the order.
    wire: BTreeMap<(u64, u64), (i64, i64, Notification)>,
    /// No message on a link overtakes another.
    link_free: BTreeMap<(i64, i64), u64>,
    /// Links that carry nothing.
    pub(crate) cut: BTreeSet<(i64, i64)>,
    sent: u64,
    random: SplitMix64,
    /// The longest that a message is under way.
    pub(crate) delay_max: u64,
}

pub(crate) fn candidate(epoch: u32, counter: u32, id: i64) -> Candidate {
    let epoch = Epoch(epoch);
    Candidate { epoch, zxid: Zxid::new(epoch, counter), id: ServerId(id) }
}

impl World {
    pub(crate) fn new(voters: &[i64], seed: u64) -> World {
        World {
            peers: BTreeMap::new(),
            electorate: Electorate::of(Quorum::majority(voters.iter().copied().map(ServerId))),
            now: 1000,
            wire: BTreeMap::new(),
            link_free: BTreeMap::new(),
            cut: BTreeSet::new(),
            sent: 0,
            random: SplitMix64::seed_from_u64(seed),
            delay_max: 3,
        }
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    /// A process starts and looks for a leader.
    pub(crate) fn start(&mut self, id: i64, own: Option<Candidate>) {
        let observer = !self.electorate.votes(ServerId(id));
        let timing = ElectionTiming::default();
        let election = Election::new(ServerId(id), observer, timing, CONFIG.into());
        self.peers.insert(id, Peer { election, own, leader: None, state: PeerState::Looking });
        for other in self.others(id) {
            self.link(id, other);
            self.link(other, id);
        }
        for absent in self.electorate.voters() {
            if !self.peers.contains_key(&absent.0) {
                self.act(id, |peer, now, electorate, out| {
                    peer.election.link_changed(now, absent, false, electorate, out)
                });
            }
        }
        self.look(id);
    }

    /// A process dies; its connections close.
    pub(crate) fn stop(&mut self, id: i64) {
        self.peers.remove(&id);
        self.wire.retain(|_, (from, to, _)| *from != id && *to != id);
        for other in self.others(id) {
            self.act(other, |peer, now, electorate, out| {
                peer.election.link_changed(now, ServerId(id), false, electorate, out);
            });
        }
    }

    /// A vote comes from a caller with the id of another server.
    pub(crate) fn hear(&mut self, id: i64, from: i64, candidate: Option<Candidate>, round: u64) {
        let (state, version, config) = (PeerState::Looking, 2, CONFIG.into());
        let vote = Notification { state, candidate, round, version, config };
        self.act(id, |peer, now, electorate, out| {
            peer.election.notified(now, ServerId(from), &vote, electorate, out);
        });
    }

    pub(crate) fn loses(&mut self, id: i64, other: i64) {
        self.act(id, |peer, now, electorate, out| {
            peer.election.link_changed(now, ServerId(other), false, electorate, out);
        });
    }

    pub(crate) fn finds(&mut self, id: i64, other: i64) {
        self.link(id, other);
    }

    /// The elected server cannot be reached.
    pub(crate) fn fails(&mut self, id: i64, leader: i64) {
        let now = Mono(self.now);
        self.peers.get_mut(&id).unwrap().election.leader_unreachable(now, ServerId(leader));
        self.look(id);
    }

    /// A server has no leader any more.
    pub(crate) fn look(&mut self, id: i64) {
        self.act(id, |peer, now, electorate, out| {
            (peer.leader, peer.state) = (None, PeerState::Looking);
            peer.election.look(now, peer.own, electorate, out);
        });
    }

    fn others(&self, id: i64) -> Vec<i64> {
        self.peers.keys().copied().filter(|other| *other != id).collect()
    }

    fn link(&mut self, at: i64, to: i64) {
        self.act(at, |peer, now, electorate, out| {
            peer.election.link_changed(now, ServerId(to), true, electorate, out)
        });
    }

    fn act(&mut self, id: i64, act: impl FnOnce(&mut Peer, Mono, &Electorate, &mut Vec<ElectionOutput>)) {
        let mut out = Vec::new();
        let peer = self.peers.get_mut(&id).unwrap();
        act(peer, Mono(self.now), &self.electorate, &mut out);
        for output in &out {
            assert!(
                peer.has_on_record(self.now, output),
                "{id} has sent what is not on its record: {output:?}"
            );
        }
        for output in out {
            match output {
                ElectionOutput::Send { to, notification } => self.send(id, to.0, notification),
                ElectionOutput::LookAgain => self.look(id),
                ElectionOutput::Elected { leader } => {
                    let peer = self.peers.get_mut(&id).unwrap();
                    peer.leader = Some(leader.0);
                    peer.state = if leader.0 == id {
                        PeerState::Leading
                    } else if self.electorate.votes(ServerId(id)) {
                        PeerState::Following
                    } else {
                        PeerState::Observing
                    };
                }
            }
        }
    }

    fn send(&mut self, from: i64, to: i64, notification: Notification) {
        if !self.peers.contains_key(&to) || self.cut.contains(&(from, to)) {
            return;
        }
        let delay = self.random(self.delay_max) + 1;
        let free = self.link_free.entry((from, to)).or_default();
        *free = (*free).max(self.now + delay);
        self.sent += 1;
        self.wire.insert((*free, self.sent), (from, to, notification));
    }

    /// The next thing that happens; `false` when nothing is left to happen before `until`.
    fn turn(&mut self, until: u64) -> bool {
        let arrival = self.wire.keys().next().map(|(at, _)| *at);
        let deadlines = self.peers.iter();
        let deadline =
            deadlines.filter_map(|(id, peer)| peer.election.next_deadline().map(|at| (at.0, *id))).min();
        let next = [arrival, deadline.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, (from, to, vote)) = self.wire.pop_first().unwrap();
            self.act(to, |peer, now, electorate, out| {
                peer.election.notified(now, ServerId(from), &vote, electorate, out);
                assert!(
                    peer.has_heard(now.0, from, &vote),
                    "{to} has heard what is not on its record: {vote:?}"
                );
            });
        } else if let Some((_, id)) = deadline {
            self.act(id, |peer, now, electorate, out| peer.election.deadline(now, electorate, out));
        }
        true
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, ms: u64) {
        let until = self.now + ms;
        while self.turn(until) {}
        self.now = until;
    }

    /// The leader that each server has elected.
    pub(crate) fn leaders(&self) -> Vec<(i64, Option<i64>)> {
        self.peers.iter().map(|(id, peer)| (*id, peer.leader)).collect()
    }

    /// The leader that all servers have elected.
    pub(crate) fn leader(&self) -> Option<i64> {
        let leaders: BTreeSet<Option<i64>> = self.peers.values().map(|peer| peer.leader).collect();
        if leaders.len() == 1 { leaders.into_iter().next().flatten() } else { None }
    }
}
