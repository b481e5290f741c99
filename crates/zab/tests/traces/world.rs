//! The servers of a trace, their time and their connections. Each input and each output is written down.

use crate::{
    message::Message,
    net::{Net, Networked, Way, pair},
    packets,
    server::{Role, Server},
    words,
};
use ostler_proto::id::ServerId;
use ostler_zab::{
    Election, ElectionOutput, Electorate, Mono, Quorum,
    leading::{FromLearner, LeadingTiming, LinkId},
    learning::Learning,
};
use std::collections::{BTreeMap, VecDeque};

pub(crate) const TIMING: LeadingTiming = LeadingTiming { init: 10_000, sync: 5_000 };
/// For this time a server tries to connect to its leader.
const DIAL_MS: u64 = 500;
/// A leader looks at its learners this often.
const TICK_MS: u64 = 1_000;

/// An input that follows from a step and comes after it.
pub(crate) enum Next {
    ElectionLink { at: i64, peer: i64, up: bool },
    Dial(i64),
    DiskDone(i64),
}

pub(crate) struct World {
    pub(crate) servers: BTreeMap<i64, Server>,
    pub(crate) electorate: Electorate,
    pub(crate) now: u64,
    pub(crate) net: Net<Message>,
    pub(crate) next: VecDeque<Next>,
    pub(crate) trace: Vec<String>,
}

impl Default for World {
    fn default() -> World {
        World {
            servers: BTreeMap::new(),
            electorate: Electorate::of(Quorum::majority([ServerId(1)])),
            now: 0,
            net: Net::default(),
            next: VecDeque::new(),
            trace: Vec::new(),
        }
    }
}

impl World {
    pub(crate) fn server(&mut self, id: i64) -> &mut Server {
        self.servers.get_mut(&id).unwrap_or_else(|| panic!("there is no server {id}"))
    }

    pub(crate) fn is_up(&self, id: i64) -> bool {
        self.servers.get(&id).is_some_and(|server| server.up)
    }

    /// Writes down an input.
    pub(crate) fn input(&mut self, text: String) {
        self.trace.push(text);
    }

    /// Writes down an output.
    pub(crate) fn output(&mut self, text: String) {
        self.trace.push(format!("  {text}"));
    }

    pub(crate) fn send(&mut self, from: i64, to: i64, message: Message) {
        self.output(format!("{from} -> {to} {}", message.text()));
        self.net.under_way.push_back(((from, to), message));
    }

    /// A message on a connection of the quorum port, if it is still open.
    pub(crate) fn send_on(&mut self, link: LinkId, from_leader: bool, message: Message) {
        let Some((learner, leader)) = self.net.links.get(&link).copied() else { return };
        let (from, to) = if from_leader { (leader, learner) } else { (learner, leader) };
        self.send(from, to, message);
    }

    pub(crate) fn start(&mut self, id: i64) {
        self.server(id).boot(ServerId(id));
        let data = self.server(id).data.durable_state();
        let (accepted, current, last) = (data.accepted.0, data.current.0, data.last);
        self.input(format!("{id} starts: acceptedEpoch {accepted}, currentEpoch {current}, last {last}"));
        self.look(id);
    }

    pub(crate) fn crash(&mut self, id: i64) {
        self.server(id).up = false;
        self.input(format!("{id} crashes"));
        for other in self.servers.keys().copied().filter(|other| *other != id).collect::<Vec<_>>() {
            self.break_between(id, other);
        }
    }

    /// A connection of the quorum port has ended, at one of its two ends.
    pub(crate) fn link_closed(&mut self, at: i64, link: LinkId, (learner, _): (i64, i64)) {
        match &mut self.server(at).role {
            Role::Learning(of, _) if *of == link && learner == at => self.look(at),
            Role::Leading(leading, _) => leading.disconnected(link),
            _ => {}
        }
    }

    /// The server looks for a leader: it leaves its role, closes its connections, and begins an election.
    pub(crate) fn look(&mut self, id: i64) {
        self.output(format!("{id} looks for a leader"));
        for (link, (learner, leader)) in self.net.links.clone() {
            if learner == id || leader == id {
                self.close(link, id);
            }
        }
        self.server(id).role = Role::Looking;
        let own = self.server(id).own_vote(ServerId(id));
        self.elect(id, |election, now, electorate, out| election.look(now, own, electorate, out));
    }

    /// One end closes a connection of the quorum port. The other end learns it when the message arrives.
    pub(crate) fn close(&mut self, link: LinkId, by: i64) {
        let Some((learner, leader)) = self.net.links.get(&link).copied() else { return };
        self.send_on(link, by == leader, Message::Closed(link));
        self.net.links.remove(&link);
        if by == leader {
            self.link_closed(leader, link, (learner, leader));
        }
    }

    pub(crate) fn elect(
        &mut self,
        id: i64,
        act: impl FnOnce(&mut Election, Mono, &Electorate, &mut Vec<ElectionOutput>),
    ) {
        let (now, electorate, mut out) = (Mono(self.now), self.electorate.clone(), Vec::new());
        act(&mut self.server(id).election, now, &electorate, &mut out);
        let mut outputs = out.into_iter().peekable();
        while let Some(output) = outputs.next() {
            match output {
                ElectionOutput::Send { to, notification } => {
                    let mut all = vec![to.0];
                    let is_same = |next: &ElectionOutput| matches!(next, ElectionOutput::Send { notification: of, .. } if *of == notification);
                    while let Some(ElectionOutput::Send { to, .. }) = outputs.next_if(is_same) {
                        all.push(to.0);
                    }
                    let names: Vec<String> = all.iter().map(i64::to_string).collect();
                    self.output(format!("{id} -> {} {}", names.join(","), words::vote(&notification)));
                    all.into_iter()
                        .for_each(|to| self.send_vote(id, to, Message::Vote(notification.clone())));
                }
                ElectionOutput::Elected { leader } => self.elected(id, leader),
                ElectionOutput::LookAgain => self.look(id),
            }
        }
    }

    /// A vote to a server without a connection opens one. Then each side sends its vote anew, so this one is dropped.
    fn send_vote(&mut self, from: i64, to: i64, vote: Message) {
        if self.net.elections.contains(&pair(from, to)) {
            return self.net.under_way.push_back(((from, to), vote));
        }
        let up = self.is_up(to) && !self.net.cut.contains(&pair(from, to));
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

    pub(crate) fn election_link(&mut self, at: i64, peer: i64, up: bool) {
        let what = if up { "is connected to" } else { "cannot reach" };
        self.input(format!("{at} {what} the election port of {peer}"));
        self.elect(at, |election, now, electorate, out| {
            election.link_changed(now, ServerId(peer), up, electorate, out);
        });
    }

    fn elected(&mut self, id: i64, leader: ServerId) {
        self.output(format!("{id} elects {}", leader.0));
        if leader.0 != id {
            self.server(id).role = Role::Dialling(leader, Mono(self.now).after(DIAL_MS));
            return self.next.push_back(Next::Dial(id));
        }
        self.begin_leading(id);
        // The followers that were elected earlier and wait.
        self.next.extend(self.servers.keys().filter(|other| **other != id).map(|other| Next::Dial(*other)));
    }

    fn dial(&mut self, id: i64) {
        let Role::Dialling(leader, _) = self.server(id).role else { return };
        let leads = matches!(self.server(leader.0).role, Role::Leading(..)) && self.is_up(leader.0);
        if !leads || self.net.cut.contains(&pair(id, leader.0)) {
            return;
        }
        let link = self.net.link(id, leader.0);
        self.input(format!("{id} is connected to the quorum port of {}", leader.0));
        let server = self.server(id);
        let (own, observer) = (server.data.durable_state(), server.observer);
        server.role = Role::Learning(link, Learning::new(own, observer));
        let info = FromLearner::Info { id: ServerId(id), observer, accepted: own.accepted, moves: false };
        self.send_on(link, false, Message::ToLeader(link, info));
    }

    /// Carries out what follows from the last step, and what follows from that.
    pub(crate) fn settle(&mut self) {
        while let Some(next) = self.next.pop_front() {
            match next {
                Next::ElectionLink { at, peer, up } if self.is_up(at) => self.election_link(at, peer, up),
                Next::Dial(id) if self.is_up(id) => self.dial(id),
                Next::DiskDone(id) if self.is_up(id) => self.disk_done(id),
                _ => {}
            }
        }
    }

    /// Time passes, and all timers that are due run. No message arrives.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            let due =
                self.servers.values().filter(|server| server.up).filter_map(|server| match server.role {
                    Role::Dialling(_, until) => Some(until.0),
                    _ => server.election.next_deadline().map(|due| due.0),
                });
            let next_tick = (self.now / TICK_MS + 1) * TICK_MS;
            self.now = due.chain([next_tick, end]).min().unwrap_or(end).max(self.now);
            self.servers.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.timers(id));
        }
    }

    fn timers(&mut self, id: i64) {
        let now = self.now;
        let server = self.server(id);
        match &server.role {
            _ if !server.up => {}
            Role::Dialling(leader, until) if until.0 <= now => {
                let leader = *leader;
                self.input(format!("{now} ms: {id} cannot connect to the quorum port of {}", leader.0));
                self.server(id).election.leader_unreachable(Mono(now), leader);
                self.look(id);
            }
            Role::Leading(..) if now.is_multiple_of(TICK_MS) => self.tick(id),
            Role::Looking if server.election.next_deadline().is_some_and(|due| due.0 <= now) => {
                self.input(format!("{now} ms: the election timer of {id} ends"));
                self.elect(id, |election, now, electorate, out| election.deadline(now, electorate, out));
            }
            _ => {}
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
        let text = format!("{to} <- {from} {}", message.text());
        match message {
            Message::Vote(vote) => {
                let at = self.trace.len();
                self.elect(to, |election, now, electorate, out| {
                    election.notified(now, ServerId(from), &vote, electorate, out);
                });
                let verdict = packets::verdict(self.server(to).election.record(), ServerId(from));
                self.trace.insert(at, format!("{text}: {verdict}"));
            }
            Message::Closed(link) => {
                self.input(text);
                let ends =
                    if matches!(self.server(to).role, Role::Learning(..)) { (to, from) } else { (from, to) };
                self.link_closed(to, link, ends);
            }
            Message::ToLeader(link, packet) => {
                self.input(text);
                self.leader_hears(to, link, packet);
            }
            Message::ToLearner(link, packet) => {
                self.input(text);
                self.learn(to, link, packet, None);
            }
            Message::Tree(link, at, log) => {
                self.input(text);
                self.learn(to, link, ostler_zab::learning::FromLeader::Snap(at), Some(log));
            }
        }
        self.settle();
        true
    }

    fn break_between(&mut self, a: i64, b: i64) {
        let had_election = self.net.elections.contains(&pair(a, b));
        let ends: BTreeMap<LinkId, (i64, i64)> = self.net.links.clone();
        let links = self.net.break_between(a, b);
        for (at, peer) in [(a, b), (b, a)] {
            if had_election && self.is_up(at) {
                self.election_link(at, peer, false);
            }
            for link in links.iter().filter(|_| self.is_up(at)).copied().collect::<Vec<_>>() {
                self.input(format!("{at} loses the connection to {peer}"));
                self.link_closed(at, link, ends[&link]);
            }
        }
        self.settle();
    }
}
