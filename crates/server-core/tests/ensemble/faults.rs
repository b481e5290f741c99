//! What goes wrong, and how it is put right.

use crate::world::World;
use ostler_proto::id::SessionId;
use ostler_server_core::{ConnId, Input};

impl World {
    pub(crate) fn start_all(&mut self) {
        for id in self.ids() {
            self.boot(id);
        }
        for client in 0..self.clients.len() {
            self.after(1, crate::world::Event::Client(client));
        }
    }

    pub(crate) fn crash(&mut self, id: i64) {
        if self.nodes[&id].server.is_none() {
            return;
        }
        self.trace(|| format!("{id} dies"));
        let process = (id, self.nodes[&id].life);
        let waiting = self.nodes[&id].disk.waiting() as u64;
        let (lucky, half) = (self.chance.below(waiting + 1) as usize, self.chance.one_in(2));
        let node = self.node(id);
        node.disk.crash(lucky, half);
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

    /// Cuts one off from all others: what it sends, what is sent to it, or both.
    pub(crate) fn isolate(&mut self, id: i64, out: bool, into: bool) {
        self.trace(|| format!("{id} is cut off, out {out}, into {into}"));
        for other in self.ids().into_iter().filter(|other| *other != id) {
            self.net.cut.extend(out.then_some((id, other)));
            self.net.cut.extend(into.then_some((other, id)));
        }
    }

    pub(crate) fn pause(&mut self, id: i64, ms: u64) {
        self.trace(|| format!("{id} pauses for {ms}"));
        self.node(id).paused_until = self.now + ms;
    }

    pub(crate) fn fault(&mut self) {
        let ids = self.ids();
        let id = self.chance.pick(&ids);
        let other = self.chance.pick(&ids);
        match self.chance.below(18) {
            0..=2 => self.crash(id),
            3 => {
                if let Some(leader) = self.leader() {
                    self.crash(leader);
                }
            }
            4..=6 => self.start_all_that_are_down(id, other),
            7 => {
                self.trace(|| format!("{id} to {other} is cut"));
                self.net.cut.insert((id, other));
            }
            8 => self.isolate(id, true, true),
            9 => {
                let out = self.chance.one_in(2);
                let id = self.leader().unwrap_or(id);
                self.isolate(id, out, !out);
            }
            10..=11 => self.net.cut.clear(),
            12 => {
                let ms = self.chance.between(50, 1500);
                self.pause(id, ms);
            }
            13 => self.node(id).sync_ms = 300,
            16..=17 => self.leave_a_tail(),
            14 => ids.iter().for_each(|id| self.node(*id).sync_ms = 10),
            _ => match self.chance.below(4) {
                0 => ids.into_iter().for_each(|id| self.crash(id)),
                1 => self.meddle(id),
                _ => self.lose_clients(),
            },
        }
    }

    fn start_all_that_are_down(&mut self, id: i64, other: i64) {
        for id in [id, other] {
            if self.nodes[&id].server.is_none() {
                self.boot(id);
            }
        }
    }

    /// A leader logs what nobody else gets, and comes back, as it is or anew, to one that knows nothing of it.
    fn leave_a_tail(&mut self) {
        let Some(leader) = self.leader() else { return };
        self.isolate(leader, true, true);
        let burst = self.chance.between(20, 300);
        self.run(burst);
        let (lull, next) = (self.chance.between(1000, 3000), self.chance.between(800, 1600));
        self.quiet_until = self.now + lull + next;
        if self.chance.one_in(2) {
            self.crash(leader);
        }
        self.run(next);
        self.net.cut.clear();
        if self.nodes[&leader].server.is_none() {
            self.boot(leader);
        }
        let pause = self.chance.below(lull);
        self.run(pause);
    }

    /// Whoever runs the servers ends a session, wherever that is tried, and the connections of one server.
    fn meddle(&mut self, id: i64) {
        let Some(server) = &self.nodes[&id].server else { return };
        let sessions: Vec<SessionId> = server.tree().sessions().map(|(session, _)| session).collect();
        let conns: Vec<ConnId> = server.connections().into_iter().map(|report| report.conn).collect();
        if !sessions.is_empty() {
            let session = self.chance.pick(&sessions);
            self.trace(|| format!("{id} is to end session {session}"));
            for id in self.ids().into_iter().filter(|id| self.nodes[id].server.is_some()).collect::<Vec<_>>()
            {
                self.step(id, Input::ExpireSession(session));
            }
        }
        for conn in conns {
            self.step(id, Input::CloseConnection(conn));
        }
    }

    /// Some clients' connections die without a word.
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
        for id in self.ids() {
            let now = self.now;
            let node = self.node(id);
            (node.paused_until, node.sync_ms) = (node.paused_until.min(now + 1), 10);
            if node.server.is_none() {
                self.boot(id);
            }
        }
    }
}
