//! Carries out faults and repairs.

use crate::{
    chance::Chance,
    client::Intent,
    disk::Ending,
    fault::FaultKind,
    files::{DiskFault, DiskFaultKind},
    plan::PlannedFault,
    wire,
    world::{Event, World, line},
};
use ostler_proto::{
    id::{ServerId, SessionId},
    membership::Membership,
};
use ostler_server_core::{ConnId, Input};

const CLOCK_JUMP_MS: i64 = 3_600_000;
/// The largest error of a clock's rate, in millionths.
const DRIFT: u64 = 5_000;
/// About the number of disk calls of a start.
const START_CALLS: u64 = 40;

impl World {
    pub(crate) fn start_all(&mut self) {
        for id in self.ids() {
            self.boot(id);
        }
        for client in 0..self.clients.len() {
            self.after(1, Event::Client(client));
        }
        for contender in 0..self.contenders.len() {
            self.after(1, Event::Contender(contender));
        }
        if self.shape.session_thieves {
            self.after(1, Event::SessionThief);
        }
    }

    /// Ends a server: its process is killed, or its machine loses power.
    pub(crate) fn take_down(&mut self, id: i64) {
        let ending = if self.chance.one_in(2) { Ending::Killed } else { Ending::PowerLost };
        self.crash(id, ending);
    }

    pub(crate) fn crash(&mut self, id: i64, ending: Ending) {
        if self.nodes[&id].server.is_none() {
            return;
        }
        self.trace(|| format!("server {id} dies: {ending:?}"));
        let process = (id, self.nodes[&id].life);
        let disk = &self.nodes[&id].disk;
        if self.serves(id) && disk.accepted() > disk.current() {
            self.count("died in a move");
        }
        let World { chance, nodes, .. } = self;
        let node = nodes.get_mut(&id).unwrap();
        node.disk.end(ending, chance);
        node.server = None;
        let links = self.net.links.iter_mut().filter(|(_, of)| of.learner == process || of.leader == process);
        let mut ends = Vec::new();
        for (_, of) in links {
            let side = of.side(id);
            if !of.gone[side] {
                (of.gone[side], of.closed[side]) = (true, true);
                ends.push((of.lane_from(side), of.lane_from(1 - side)));
            }
        }
        for of in self.net.conns.values_mut().filter(|of| of.member == process && !of.gone) {
            of.gone = true;
            ends.push((of.down, of.up));
        }
        for (out, into) in ends {
            self.net.kill(into);
            self.cut_short(out);
        }
        for other in self.ids() {
            self.break_election((id.min(other), id.max(other)), 20);
        }
    }

    /// Cuts a server off from all others: what it sends (`out`), what is sent to it (`into`), or both.
    pub(crate) fn isolate(&mut self, id: i64, out: bool, into: bool) {
        self.trace(|| format!("server {id} is cut off, out {out}, into {into}"));
        for other in self.ids().into_iter().filter(|other| *other != id) {
            self.net.cut.extend(out.then_some((id, other)));
            self.net.cut.extend(into.then_some((other, id)));
        }
    }

    pub(crate) fn pause(&mut self, id: i64, ms: u64) {
        self.trace(|| format!("server {id} does not run for {ms} ms"));
        self.node(id).paused_until = self.now + ms;
        let life = self.nodes[&id].life;
        self.after(ms, Event::Resume { id, life });
    }

    /// Carries out a planned fault.
    pub(crate) fn inject(&mut self, planned: &PlannedFault) {
        self.check_ailing();
        // While a server lacks what it had acknowledged, a quorum bears no other fault.
        if self.ailing.is_some() {
            return;
        }
        let mut chance = Chance::new(planned.salt);
        let ids = self.ids();
        let (id, other) = (chance.pick(&ids), chance.pick(&ids));
        self.trace(|| format!("fault {}: {}", planned.number, planned.kind.name()));
        self.count("faults");
        self.count(planned.kind.name());
        match planned.kind {
            FaultKind::Restart => self.start_all_that_are_down(id, other),
            FaultKind::Mend => {
                self.net.cut.clear();
                self.net.refused.clear();
                ids.iter().for_each(|id| self.node(*id).sync_ms = 10);
            }
            FaultKind::BadCertificate => self.spoil_certificates(id, &mut chance),
            FaultKind::Kill => self.end(id, Ending::Killed, &mut chance),
            FaultKind::PowerLoss => self.end(id, Ending::PowerLost, &mut chance),
            FaultKind::KillLeader => {
                if let Some(leader) = self.leader() {
                    self.take_down(leader);
                }
            }
            FaultKind::Blackout => ids.into_iter().for_each(|id| self.take_down(id)),
            FaultKind::Cut => {
                self.trace(|| format!("nothing passes from server {id} to {other}"));
                self.net.cut.insert((id, other));
            }
            FaultKind::Isolate => self.isolate(id, true, true),
            FaultKind::IsolateOneWay => {
                let out = chance.one_in(2);
                let id = self.leader().unwrap_or(id);
                self.isolate(id, out, !out);
            }
            FaultKind::Pause => {
                // Some are longer than a session's timeout.
                let ms = [50, 400, 1_500, 6_000][chance.below(4) as usize];
                self.pause(id, chance.between(ms / 4, ms));
            }
            FaultKind::SlowDisk => self.node(id).sync_ms = chance.between(50, 600),
            FaultKind::DiskError => self.break_disk(id, DiskFaultKind::Io, &mut chance),
            FaultKind::DiskFull => self.break_disk(id, DiskFaultKind::Full, &mut chance),
            FaultKind::ClockJump => {
                let jump = chance.between(0, 2 * CLOCK_JUMP_MS as u64) as i64 - CLOCK_JUMP_MS;
                self.node(id).clock.ahead_ms += jump;
            }
            FaultKind::ClockDrift => {
                let (now, rate) = (self.now, chance.between(1_000_000 - DRIFT, 1_000_000 + DRIFT));
                self.node(id).clock.drift(now, rate);
                self.schedule_deadline(id);
            }
            FaultKind::Tail => self.leave_a_tail(&mut chance),
            FaultKind::Meddle => self.meddle(id),
            FaultKind::LostClients => self.lose_clients(),
            kind @ (FaultKind::Wipe | FaultKind::OldDisk | FaultKind::BitRot | FaultKind::LostSyncs) => {
                self.spoil(id, kind, &mut chance);
            }
            FaultKind::Reconfigure => self.reconfigure(&mut chance),
            FaultKind::ContenderPause => self.pause_contender(&mut chance),
            FaultKind::ContenderDeath => self.end_contender(&mut chance),
            FaultKind::ContenderCut => self.cut_contender(&mut chance),
            FaultKind::Idle => self.idle_through_epochs(&mut chance),
        }
    }

    /// Ends a server. A server that is down is started first, and dies while it reads its disk.
    fn end(&mut self, id: i64, ending: Ending, chance: &mut Chance) {
        if self.nodes[&id].server.is_some() {
            return self.crash(id, ending);
        }
        self.give_current_configuration(id);
        let dead = DiskFault { at: chance.below(START_CALLS), kind: DiskFaultKind::Dead };
        self.node(id).disk.files.set_fault(Some(dead));
        if self.boot(id) {
            return self.crash(id, ending);
        }
        self.count("start cut short");
        if ending == Ending::PowerLost {
            self.node(id).disk.files.lose_power(chance);
        }
    }

    /// Makes one of a disk's next calls fail.
    fn break_disk(&mut self, id: i64, kind: DiskFaultKind, chance: &mut Chance) {
        let fault = DiskFault { at: chance.below(START_CALLS), kind };
        self.node(id).disk.files.set_fault(Some(fault));
    }

    fn start_all_that_are_down(&mut self, id: i64, other: i64) {
        for id in [id, other] {
            self.start_if_down(id);
        }
    }

    pub(crate) fn start_if_down(&mut self, id: i64) {
        if self.nodes[&id].server.is_none() {
            self.give_current_configuration(id);
            self.boot(id);
        }
    }

    /// A server that was removed, and added again while it was down, has a configuration that does not name it, and
    /// does not start with that. The operator gives it the current configuration.
    fn give_current_configuration(&mut self, id: i64) {
        if self.is_forgotten(id) {
            let today = self.reference.membership().clone();
            self.trace(|| format!("server {id} is given the current configuration"));
            self.node(id).disk.reconfigure(&today);
        }
    }

    fn is_forgotten(&self, id: i64) -> bool {
        let lacks = |of: &Membership| !of.servers.contains_key(&ServerId(id));
        !lacks(self.reference.membership())
            && self.nodes[&id].disk.configuration().is_some_and(|(active, _)| lacks(&active))
    }

    /// Starts servers that are members again but could not be started with their own configuration.
    pub(crate) fn start_the_forgotten(&mut self) {
        for id in self.members() {
            if self.nodes[&id].server.is_none() && self.is_forgotten(id) {
                self.start_if_down(id);
            }
        }
    }

    /// Makes a disk lose what it has reported as durable. An ensemble bears that only while all other servers are well,
    /// and no second such loss before the server has its data again.
    fn spoil(&mut self, id: i64, kind: FaultKind, chance: &mut Chance) {
        if !self.all_serve() || !self.net.cut.is_empty() || !self.bears_the_loss_of(id) {
            return;
        }
        self.ailing = Some(id);
        match kind {
            FaultKind::OldDisk => {
                let copy = self.nodes[&id].disk.files.copy();
                self.run(chance.between(100, 1_500));
                if !self.until_it_bears_the_loss_of(id) {
                    return;
                }
                self.crash(id, Ending::Killed);
                self.node(id).disk.put_back(&copy);
            }
            FaultKind::LostSyncs => {
                self.node(id).disk.files.lie(true);
                self.run(chance.between(100, 1_500));
                if !self.until_it_bears_the_loss_of(id) {
                    self.node(id).disk.files.lie(false);
                    return self.node(id).disk.files.sync_all();
                }
                self.crash(id, Ending::PowerLost);
                self.node(id).disk.files.lie(false);
                self.node(id).disk.spoil();
            }
            FaultKind::BitRot => {
                self.crash(id, Ending::Killed);
                let rotten = self.node(id).disk.rot(chance);
                self.trace(|| format!("bits flip in {rotten:?} of server {id}"));
            }
            _ => {
                self.crash(id, Ending::Killed);
                self.wipe(id);
            }
        }
        self.run(chance.between(1, 500));
        self.start_spoilt(id);
        self.die_while_brought_back(id, chance);
    }

    /// The server dies several times while its leader sends it the data that it lost.
    fn die_while_brought_back(&mut self, id: i64, chance: &mut Chance) {
        let times = if self.shape.wide { chance.below(4) } else { 0 };
        for _ in 0..times {
            self.run(chance.below(400));
            self.count("died while brought back");
            self.crash(id, [Ending::Killed, Ending::PowerLost][chance.below(2) as usize]);
            self.run(chance.below(300));
            self.start_spoilt(id);
        }
    }

    /// Clients do not write for a while, and leaders are ended meanwhile, so epochs begin and end without a write.
    fn idle_through_epochs(&mut self, chance: &mut Chance) {
        self.idle_until = self.now + chance.between(2_000, 8_000);
        for _ in 0..chance.between(1, 3) {
            self.run(chance.between(100, 1_500));
            if let Some(leader) = self.leader() {
                self.take_down(leader);
                self.run(chance.between(50, 800));
                self.start_if_down(leader);
            }
        }
    }

    /// Whether this server may lose its disk: every quorum of the others must have a disk with everything that is
    /// committed and everything that this server has acknowledged, epochs too. Not while the ensemble changes: there
    /// may be too few servers for both quorums, because a leader does not count a server that has lost its data.
    fn bears_the_loss_of(&self, id: i64) -> bool {
        let lost = &self.nodes[&id].disk;
        let last = self.reference.last().max(lost.last_reported());
        let lacks = |other: i64| {
            let disk = &self.nodes[&other].disk;
            let is_behind = disk.accepted() < lost.accepted() || disk.current() < lost.current();
            other == id || is_behind || !disk.has(last)
        };
        self.reference.decides(|other| other != id) && !self.reference.decides(lacks) && !self.may_change()
    }

    /// Whether a reconfiguration is logged at some server and not committed yet.
    fn may_change(&self) -> bool {
        let now = self.reference.membership().version;
        let pending = |id: &i64| self.nodes[id].disk.configuration().and_then(|(_, pending)| pending);
        self.ids().iter().filter_map(pending).any(|pending| pending.version > now)
    }

    fn until_it_bears_the_loss_of(&mut self, id: i64) -> bool {
        self.run_until(5_000, |world| world.bears_the_loss_of(id))
    }

    /// Starts a server whose disk was spoilt. If it refuses, the disk is emptied first, as the error message advises.
    fn start_spoilt(&mut self, id: i64) {
        if self.nodes[&id].server.is_none() && !self.boot(id) {
            self.wipe(id);
            self.boot(id);
        }
    }

    fn wipe(&mut self, id: i64) {
        let membership = self.reference.membership().clone();
        self.node(id).disk.wipe(&membership);
        self.trace(|| format!("the disk of server {id} is emptied"));
    }

    /// Checks whether the server whose disk was spoilt has everything again that is committed; then it is well.
    fn check_ailing(&mut self) {
        let Some(id) = self.ailing else { return };
        self.start_spoilt(id);
        let well = self.all_serve()
            && self.nodes[&id].history.has(self.reference.last())
            && self.nodes[&id].disk.waiting() == 0;
        if well {
            self.node(id).disk.set_whole();
            self.ailing = None;
        }
    }

    /// Cuts the leader off while it logs proposals that no other server gets, may end it, and reconnects it to its
    /// successor.
    fn leave_a_tail(&mut self, chance: &mut Chance) {
        let Some(leader) = self.leader() else { return };
        self.isolate(leader, true, true);
        self.run(chance.between(20, 300));
        let (lull, next) = (chance.between(1000, 3000), chance.between(800, 1600));
        self.quiet_until = self.now + lull + next;
        if chance.one_in(2) {
            self.take_down(leader);
        }
        self.run(next);
        self.net.cut.clear();
        self.net.refused.clear();
        self.start_if_down(leader);
        self.run(chance.below(lull));
    }

    /// An operator ends a session, at every server that runs, and all connections of one server.
    fn meddle(&mut self, id: i64) {
        let Some(server) = &self.nodes[&id].server else { return };
        let sessions: Vec<SessionId> = server.tree().sessions().map(|(session, _)| session).collect();
        let conns: Vec<ConnId> = server.connections().into_iter().map(|report| report.conn).collect();
        if !sessions.is_empty() {
            let session = self.chance.pick(&sessions);
            self.trace(|| format!("{id} is to end session {session}"));
            for id in self.ids().into_iter().filter(|id| self.nodes[id].server.is_some()).collect::<Vec<_>>()
            {
                self.condemn(id, session);
            }
        }
        for conn in conns {
            self.step(id, Input::CloseConnection(conn));
        }
    }

    /// Asks for a reconfiguration through a random client.
    fn reconfigure(&mut self, chance: &mut Chance) {
        let open: Vec<usize> =
            (0..self.clients.len()).filter(|client| self.clients[*client].is_ready()).collect();
        let ids = self.ids();
        let (id, observer) = (chance.pick(&ids), chance.one_in(3));
        if !self.shape.reconfig || open.is_empty() {
            return;
        }
        let client = chance.pick(&open);
        let joins = line(id, observer);
        let membership = self.reference.membership();
        let leaves = membership.servers.contains_key(&ServerId(id)) && chance.one_in(2);
        if leaves && membership.votes(ServerId(id)) && membership.voters().count() <= 3 {
            return;
        }
        if !leaves && self.nodes[&id].server.is_none() {
            self.join_anew(id);
        }
        if self.shape.wide && chance.one_in(2) {
            return self.reconfigure_as_a_whole(client, id, (!leaves).then_some(&*joins), chance);
        }
        let (joining, leaving) = if leaves { (None, Some(id.to_string())) } else { (Some(joins), None) };
        self.trace(|| format!("client {client} asks for {joining:?} to come and {leaving:?} to go"));
        let ask = wire::reconfig(joining.as_deref(), leaving.as_deref());
        self.ask(client, Intent::Write(String::new()), ask);
    }

    /// Asks for a reconfiguration by the whole list of servers, with one added or removed, and at times with groups and
    /// weights.
    fn reconfigure_as_a_whole(&mut self, client: usize, id: i64, joins: Option<&str>, chance: &mut Chance) {
        let mut next = self.reference.membership().clone();
        match joins.and_then(|line| line.split_once('=')) {
            Some((key, spec)) => next.take(key, spec).unwrap(),
            None => drop(next.servers.remove(&ServerId(id))),
        }
        let groups = chance.between(1, 3);
        let grouped = if chance.one_in(2) { chance.one_in(2) } else { !next.groups.is_empty() };
        next.groups.clear();
        next.weights.clear();
        if grouped {
            let voters: Vec<ServerId> = next.voters().collect();
            next.groups = voters.iter().map(|id| (*id, id.0 as u64 % groups + 1)).collect();
            next.weights = voters.iter().filter(|_| chance.one_in(3)).map(|id| (*id, 2)).collect();
        }
        let list = next.lines().join(",");
        self.count("whole list");
        self.trace(|| format!("client {client} asks for {list}"));
        self.ask(client, Intent::Write(String::new()), wire::reconfig_as_a_whole(&list));
    }

    /// Starts a server that is to join, with the current configuration and itself as an observer.
    fn join_anew(&mut self, id: i64) {
        let mut membership = self.reference.membership().clone();
        if membership.servers.contains_key(&ServerId(id)) {
            return;
        }
        membership.take(&format!("server.{id}"), line(id, true).split_once('=').unwrap().1).unwrap();
        self.node(id).disk.reconfigure(&membership);
        self.start_if_down(id);
    }

    /// Some clients' connections die without a close.
    fn lose_clients(&mut self) {
        let lanes: Vec<u64> = self.net.conns.values().filter(|of| !of.gone).map(|of| of.up).collect();
        for lane in lanes {
            if self.chance.one_in(2) {
                self.net.kill(lane);
            }
        }
    }

    pub(crate) fn heal(&mut self) {
        self.trace(|| "all is healed".into());
        self.calm = true;
        self.quiet_until = 0;
        self.net.cut.clear();
        self.net.refused.clear();
        for id in self.ids() {
            self.resume(id);
            let node = self.node(id);
            node.sync_ms = 10;
            node.disk.files.set_fault(None);
            if self.ailing == Some(id) {
                self.start_spoilt(id);
            } else {
                self.start_if_down(id);
            }
        }
    }
}
