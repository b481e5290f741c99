//! Time, network, clients and misfortune.

use crate::{
    disk::Log,
    member::{Held, Member, Role, start_epoch},
    truth::Truth,
};
use ostler_proto::{election::Notification, id::ServerId, id::Zxid};
use ostler_zab::{
    Election, ElectionOutput, Electorate, Mono, Quorum,
    leading::{FromLearner, LeadingTiming, LinkId},
    learning::FromLeader,
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const TIMING: LeadingTiming = LeadingTiming { init: 1000, sync: 400 };
const TICK: u64 = 50;
const DIAL_TRIES: u32 = 5;

/// A packet under way on a learner's connection.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    ToLeader(FromLearner),
    ToLearner(FromLeader),
    Snapshot(Zxid, Log),
    /// The other side has hung up.
    End,
}

#[derive(Debug)]
enum Event {
    Vote { from: i64, to: i64, life: u64, vote: Notification },
    Wire { link: LinkId, to_learner: bool, wire: Wire },
    Dial { id: i64, life: u64 },
    Tick { id: i64, life: u64 },
    Sync { id: i64, life: u64 },
    ElectionDeadline { id: i64, life: u64 },
    Client,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    learner: (i64, u64),
    leader: (i64, u64),
    open: bool,
}

pub(crate) struct World {
    members: BTreeMap<i64, Member>,
    pub(crate) electorate: Electorate,
    pub(crate) now: u64,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    links: BTreeMap<LinkId, Link>,
    /// No message on a connection overtakes another.
    fifo: BTreeMap<(u64, i64, i64), u64>,
    /// Pairs between which nothing passes, in this direction.
    cut: BTreeSet<(i64, i64)>,
    pub(crate) truth: Truth,
    pub(crate) values: u64,
    /// After this number of proposals a leader moves on to the next epoch in place.
    pub(crate) moves_after: Option<u32>,
    /// The number of such moves that have ended.
    pub(crate) moves: u32,
    pub(crate) hang_ups: Vec<String>,
    random: SplitMix64,
    seed: u64,
}

impl World {
    pub(crate) fn new(servers: i64, seed: u64) -> World {
        let ids = 1..=servers;
        World {
            members: ids.clone().map(|id| (id, Member::new(id))).collect(),
            electorate: Electorate::of(Quorum::majority(ids.map(ServerId))),
            now: 0,
            events: BTreeMap::new(),
            count: 0,
            links: BTreeMap::new(),
            fifo: BTreeMap::new(),
            cut: BTreeSet::new(),
            truth: Truth::default(),
            values: 0,
            moves_after: None,
            moves: 0,
            hang_ups: Vec::new(),
            random: SplitMix64::seed_from_u64(seed),
            seed,
        }
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    pub(crate) fn member(&mut self, id: i64) -> &mut Member {
        self.members.get_mut(&id).unwrap()
    }

    fn ids(&self) -> Vec<i64> {
        self.members.keys().copied().collect()
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.count += 1;
        self.events.insert((self.now + delay, self.count), event);
    }

    pub(crate) fn start_all(&mut self) {
        self.ids().into_iter().for_each(|id| self.boot(id));
        self.at(1, Event::Client);
    }

    fn boot(&mut self, id: i64) {
        self.member(id).boot();
        let life = self.member(id).life;
        self.at(TICK, Event::Tick { id, life });
        self.links_of_elections_changed();
        self.look(id);
    }

    pub(crate) fn crash(&mut self, id: i64) {
        let waiting = self.member(id).disk.waiting() as u64;
        let lucky = self.random(waiting + 1) as usize;
        self.member(id).die(lucky);
        for link in self.links.clone().into_keys() {
            let of = self.links[&link];
            if of.open && (of.learner.0 == id || of.leader.0 == id) {
                self.close(link);
            }
        }
        self.links_of_elections_changed();
    }

    /// Cuts one off from all others, both ways.
    pub(crate) fn isolate(&mut self, id: i64) {
        for other in self.ids().into_iter().filter(|other| *other != id) {
            self.cut.extend([(id, other), (other, id)]);
        }
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
        for id in self.ids() {
            if !self.member(id).up {
                self.boot(id);
            }
        }
    }

    /// Something bad, or good, happens.
    pub(crate) fn fault(&mut self) {
        let servers = self.members.len() as u64;
        let id = self.random(servers) as i64 + 1;
        let other = self.random(servers) as i64 + 1;
        match self.random(10) {
            8..=9 => self.mislead(),
            0..=2 if self.member(id).up => self.crash(id),
            0..=3 => {
                if !self.member(id).up {
                    self.boot(id);
                }
            }
            4 => drop(self.cut.insert((id, other))),
            5 => self.isolate(id),
            6 => self.cut.clear(),
            _ => self.ids().into_iter().filter(|id| *id % 2 == other % 2).for_each(|id| self.crash(id)),
        }
    }

    /// An election errs: some servers follow the server that it names, whatever that one has, and that one leads. Committed
    /// transactions may not depend on elections.
    fn mislead(&mut self) {
        let leader = self.random(self.members.len() as u64) as i64 + 1;
        for id in self.ids() {
            let believes = id == leader || self.random(3) != 0;
            if believes && self.members[&id].up {
                self.look(id);
                if matches!(self.members[&id].role, Role::Looking) {
                    self.elected(id, leader);
                }
            }
        }
    }

    /// Every election hears which voters can be reached at all.
    fn links_of_elections_changed(&mut self) {
        let up: BTreeMap<i64, bool> = self.members.iter().map(|(id, member)| (*id, member.up)).collect();
        for id in self.ids().into_iter().filter(|id| up[id]) {
            for (other, other_up) in up.iter().filter(|(other, _)| **other != id) {
                self.elect(id, |election, now, electorate, out| {
                    election.link_changed(now, ServerId(*other), *other_up, electorate, out);
                });
            }
        }
    }

    fn elect(
        &mut self,
        id: i64,
        act: impl FnOnce(&mut Election, Mono, &Electorate, &mut Vec<ElectionOutput>),
    ) {
        let (now, mut out) = (Mono(self.now), Vec::new());
        let electorate = self.electorate.clone();
        act(&mut self.member(id).election, now, &electorate, &mut out);
        for output in out {
            match output {
                ElectionOutput::Send { to, notification } => self.send_vote(id, to.0, notification),
                ElectionOutput::LookAgain => self.look(id),
                ElectionOutput::Elected { leader } => {
                    // One that was misled has a leader.
                    self.leave_role(id);
                    self.elected(id, leader.0);
                }
            }
        }
        if let Some(due) = self.member(id).election.next_deadline() {
            let life = self.member(id).life;
            self.at(due.0.saturating_sub(self.now).max(1), Event::ElectionDeadline { id, life });
        }
    }

    fn send_vote(&mut self, from: i64, to: i64, vote: Notification) {
        if self.cut.contains(&(from, to)) || !self.members[&to].up {
            return;
        }
        let at = self.arrival((0, from, to));
        let life = self.members[&to].life;
        self.count += 1;
        self.events.insert((at, self.count), Event::Vote { from, to, life, vote });
    }

    fn arrival(&mut self, lane: (u64, i64, i64)) -> u64 {
        let slow = self.random(20) == 0;
        let delay = 1 + self.random(if slow { 150 } else { 5 });
        let at = self.fifo.entry(lane).or_default();
        *at = (*at).max(self.now + delay);
        *at
    }

    fn elected(&mut self, id: i64, leader: i64) {
        let life = self.member(id).life;
        if leader == id {
            let (now, mut out) = (self.now, Vec::new());
            let electorate = self.electorate.clone();
            let leading = start_epoch(now, self.member(id), &electorate, &mut out);
            self.member(id).role = Role::Leading { leading: Box::new(leading), broadcast: None };
            self.lead(id, out);
        } else {
            let heard = self.now;
            self.member(id).role = Role::Learning { leader, link: None, tries: 0, heard };
            let delay = 1 + self.random(5);
            self.at(delay, Event::Dial { id, life });
        }
        self.schedule_sync(id);
    }

    /// No leader any more: connections are closed, and a new one is sought.
    pub(crate) fn look(&mut self, id: i64) {
        self.leave_role(id);
        let own = self.member(id).own_vote();
        self.elect(id, |election, now, electorate, out| election.look(now, Some(own), electorate, out));
    }

    fn leave_role(&mut self, id: i64) {
        for (link, of) in self.links.clone() {
            if of.open && (of.learner.0 == id || of.leader.0 == id) {
                self.close(link);
            }
        }
        let member = self.member(id);
        member.role = Role::Looking;
        // Packets that were held back for those connections are dropped.
        member.held.clear();
    }

    fn dial(&mut self, id: i64) {
        let life = self.member(id).life;
        let Role::Learning { leader, link: None, tries, .. } = &mut self.member(id).role else { return };
        let leader = *leader;
        *tries += 1;
        let exhausted = *tries > DIAL_TRIES;
        let there = self.members[&leader].up && matches!(self.members[&leader].role, Role::Leading { .. });
        let cut = self.cut.contains(&(id, leader)) || self.cut.contains(&(leader, id));
        if there && !cut {
            let link = LinkId(self.links.len() as u64 + 1);
            let leader = (leader, self.members[&leader].life);
            self.links.insert(link, Link { learner: (id, life), leader, open: true });
            return self.greet(id, link);
        }
        if exhausted { self.look(id) } else { self.at(60, Event::Dial { id, life }) }
    }

    pub(crate) fn tell(&mut self, link: LinkId, packet: FromLeader) {
        self.send(link, true, Wire::ToLearner(packet));
    }

    pub(crate) fn answer(&mut self, link: LinkId, packet: FromLearner) {
        self.send(link, false, Wire::ToLeader(packet));
    }

    pub(crate) fn send(&mut self, link: LinkId, to_learner: bool, wire: Wire) {
        let Some(of) = self.links.get(&link).copied().filter(|of| of.open) else { return };
        let (from, to) = if to_learner { (of.leader.0, of.learner.0) } else { (of.learner.0, of.leader.0) };
        if self.cut.contains(&(from, to)) {
            // TCP sends a lost packet again until one side gives up: nothing after it arrives either.
            return self.break_silently(link);
        }
        let at = self.arrival((link.0, from, to));
        self.count += 1;
        self.events.insert((at, self.count), Event::Wire { link, to_learner, wire });
    }

    fn break_silently(&mut self, link: LinkId) {
        self.links.get_mut(&link).unwrap().open = false;
    }

    /// Either side hangs up: the other hears of it, unless the line is cut.
    pub(crate) fn close(&mut self, link: LinkId) {
        self.send(link, true, Wire::End);
        self.send(link, false, Wire::End);
        self.break_silently(link);
        let leader = self.links[&link].leader.0;
        if let Some(leading) = self.member(leader).leading() {
            leading.disconnected(link);
        }
    }

    fn schedule_sync(&mut self, id: i64) {
        if self.member(id).disk.is_idle() {
            return self.release(id);
        }
        let life = self.member(id).life;
        let took = 1 + self.random(12);
        self.at(took, Event::Sync { id, life });
    }

    /// Lets go what the disk has been waited for.
    pub(crate) fn release(&mut self, id: i64) {
        while let Some(held) = self.member(id).released() {
            let (now, mut out) = (Mono(self.now), Vec::new());
            match held {
                Held::AckEpoch { link, last, counts } => {
                    self.answer(link, FromLearner::AckEpoch { last, current: counts });
                }
                Held::Ack { link, zxid } => {
                    let accepted = self.members[&id].disk.stored.accepted;
                    // The acknowledgement of a border may be late, when the same leader moves on again.
                    let current = self.members[&id].disk.stored.current;
                    let is_late = self.moves_after.is_some() && current >= zxid.epoch();
                    let keeps = zxid.counter() > 0 || zxid.epoch() >= accepted || is_late;
                    assert!(keeps, "{id} goes along with {zxid} and has promised {accepted:?} to another");
                    self.answer(link, FromLearner::Ack(zxid));
                }
                Held::AcceptedSaved => {
                    if let Some(leading) = self.member(id).leading() {
                        leading.accepted_saved(now, &mut out);
                    }
                }
                Held::CurrentSaved => {
                    if let Some(leading) = self.member(id).leading() {
                        leading.current_saved(now, &mut out);
                    }
                }
                Held::Own(zxid) => self.acknowledged(id, id, zxid),
            }
            self.lead(id, out);
        }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let until = self.now + ms;
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.happen(event);
        }
        self.now = until;
    }

    fn lives(&self, id: i64, life: u64) -> bool {
        self.members[&id].up && self.members[&id].life == life
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Vote { from, to, life, vote } if self.lives(to, life) => {
                self.elect(to, |election, now, electorate, out| {
                    election.notified(now, ServerId(from), &vote, electorate, out);
                });
            }
            Event::Wire { link, to_learner, wire } => self.arrived(link, to_learner, wire),
            Event::Dial { id, life } if self.lives(id, life) => self.dial(id),
            Event::Tick { id, life } if self.lives(id, life) => {
                self.at(TICK, Event::Tick { id, life });
                self.tick(id);
            }
            Event::Sync { id, life } if self.lives(id, life) => {
                let some = 1 + self.random(4) as usize;
                self.member(id).disk.sync(some);
                self.release(id);
            }
            Event::ElectionDeadline { id, life } if self.lives(id, life) => {
                let due = self.member(id).election.next_deadline();
                if due.is_some_and(|due| due.0 <= self.now) {
                    self.elect(id, |election, now, electorate, out| election.deadline(now, electorate, out));
                }
            }
            Event::Client => {
                let pause = 1 + self.random(60);
                self.at(pause, Event::Client);
                let id = self.random(self.members.len() as u64) as i64 + 1;
                if self.member(id).up {
                    self.propose_at(id);
                }
            }
            _ => {}
        }
        for id in self.ids() {
            if self.member(id).up && !self.member(id).disk.is_idle() && self.random(3) == 0 {
                self.schedule_sync(id);
            }
        }
    }

    fn arrived(&mut self, link: LinkId, to_learner: bool, wire: Wire) {
        let of = self.links[&link];
        let (id, life) = if to_learner { of.learner } else { of.leader };
        if !self.lives(id, life) {
            return;
        }
        let here = match &self.members[&id].role {
            Role::Learning { link: Some((at, _)), .. } => to_learner && *at == link,
            Role::Leading { .. } => !to_learner,
            _ => false,
        };
        if !here {
            return;
        }
        let (now, mut out) = (Mono(self.now), Vec::new());
        match wire {
            Wire::End if to_learner => self.look(id),
            Wire::End => {
                if let Some(leading) = self.member(id).leading() {
                    leading.disconnected(link);
                }
            }
            Wire::ToLearner(packet) => self.learn(id, link, packet, None),
            Wire::Snapshot(at, log) => self.learn(id, link, FromLeader::Snap(at), Some(log)),
            Wire::ToLeader(packet) => {
                if let Some(leading) = self.member(id).leading() {
                    leading.heard(now, link, packet, &mut out);
                }
                self.lead(id, out);
            }
        }
        if self.members[&id].up {
            self.schedule_sync(id);
        }
    }

    fn tick(&mut self, id: i64) {
        let (now, mut out) = (self.now, Vec::new());
        match &mut self.member(id).role {
            Role::Looking => {}
            Role::Leading { leading, .. } => {
                leading.tick(Mono(now), &mut out);
                let live: Vec<LinkId> = leading.forwarding().map(|(link, _)| link).collect();
                for link in live {
                    self.tell(link, FromLeader::Ping(Zxid::ZERO));
                }
                self.lead(id, out);
            }
            Role::Learning { link, heard, .. } => {
                let patience = if link.as_ref().is_some_and(|(_, learning)| learning.is_following()) {
                    TIMING.sync
                } else {
                    TIMING.init + TIMING.sync
                };
                if *heard + patience <= now {
                    self.look(id);
                }
            }
        }
    }

    /// The leader that serves, if there is one and only one.
    pub(crate) fn leader(&self) -> Option<i64> {
        let leads = |member: &&Member| {
            member.up && matches!(&member.role, Role::Leading { leading, .. } if leading.is_established())
        };
        let mut leaders = self.members.values().filter(leads);
        leaders.next().map(|member| member.id).filter(|_| leaders.next().is_none())
    }

    /// After a quiet time: one leader, all follow, all have the same.
    pub(crate) fn must_agree(&mut self) {
        let seed = self.seed;
        self.events.retain(|_, event| !matches!(event, Event::Client));
        self.run(2_000);
        let leader = self.leader();
        assert!(leader.is_some(), "seed {seed}: nobody leads, {:?}", self.hang_ups);
        let history = self.truth.history().clone();
        for member in self.members.values() {
            let follows = match &member.role {
                Role::Leading { .. } => true,
                Role::Learning { leader: of, link: Some((_, learning)), .. } => {
                    Some(*of) == leader && learning.is_following()
                }
                _ => false,
            };
            assert!(follows, "seed {seed}: {} follows nobody, {:?}", member.id, self.hang_ups);
            assert_eq!(member.log, history, "seed {seed}: {} has another history", member.id);
            assert_eq!(member.disk.stored.log, history, "seed {seed}: {} has another log on disk", member.id);
        }
        assert!(self.truth.epochs() > 0 && !history.is_empty());
    }
}
