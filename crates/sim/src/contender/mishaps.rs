//! Faults of contenders: pauses, deaths, and cut connections.

use super::{Contender, TIMEOUT_MS};
use crate::{chance::Chance, network::Parcel, world::World};
use ostler_server_core::ConnId;

/// A random duration in ms. Some are longer than a session's timeout.
fn some_time(chance: &mut Chance) -> u64 {
    let ms = [100, 1_000, 3_000, 6_000][chance.below(4) as usize];
    chance.between(ms / 4, ms)
}

impl World {
    /// Pauses a process. When it runs again it gets everything that has arrived.
    pub(crate) fn pause_contender(&mut self, chance: &mut Chance) {
        let Some(contender) = self.some_contender(chance) else { return };
        let ms = some_time(chance);
        self.trace(|| format!("contender {contender} does not run for {ms} ms"));
        let now = self.now;
        let of = &mut self.contenders[contender];
        (of.paused, of.idle_until) = (of.process.is_some(), now + ms);
    }

    /// Ends a process: together with its machine, so its connections are not closed, or alone.
    pub(crate) fn end_contender(&mut self, chance: &mut Chance) {
        let Some(contender) = self.some_contender(chance) else { return };
        let (silent, ms) = (chance.one_in(2), chance.between(100, 5_000));
        self.trace(|| format!("contender {contender} dies, silent {silent}"));
        self.drop_process(contender, silent);
        self.contenders[contender].idle_until = self.now + ms;
    }

    /// Cuts a process off from all servers for a while, and its connections die without a close. Or cuts it off
    /// together with the server that it is connected to.
    pub(crate) fn cut_contender(&mut self, chance: &mut Chance) {
        let Some(contender) = self.some_contender(chance) else { return };
        if chance.one_in(3)
            && let Some(id) = self.server_of(contender)
        {
            return self.cut_with_server(contender, id);
        }
        let ms = some_time(chance);
        self.trace(|| format!("contender {contender} is cut off for {ms} ms"));
        let of = &mut self.contenders[contender];
        (of.cut_until, of.reaches) = (self.now + ms, None);
        let conns: Vec<ConnId> =
            of.process.iter().flat_map(|process| process.connections.keys().copied()).collect();
        for conn in conns {
            let (up, down) = (self.net.conns[&conn].up, self.net.conns[&conn].down);
            self.net.kill(up);
            self.net.kill(down);
        }
    }

    /// Cuts a process and its server off from all other servers, until the session has ended there.
    fn cut_with_server(&mut self, contender: usize, id: i64) {
        self.trace(|| format!("contender {contender} reaches only server {id}"));
        let until = self.now + 2 * TIMEOUT_MS;
        let of = &mut self.contenders[contender];
        (of.cut_until, of.reaches) = (until, Some(id));
        self.isolate(id, true, true);
    }

    /// Cuts a holder that is connected to a follower off, together with that follower. False if there is none.
    pub(crate) fn cut_a_holder_with_its_follower(&mut self) -> bool {
        let leader = self.leader();
        let holds =
            |of: &Contender| of.process.as_ref().is_some_and(|process| !process.held_now().is_empty());
        let holder = (0..self.contenders.len()).find_map(|contender| {
            let id = self.server_of(contender).filter(|id| leader.is_some_and(|leader| leader != *id))?;
            holds(&self.contenders[contender]).then_some((contender, id))
        });
        if let Some((contender, id)) = holder {
            self.cut_with_server(contender, id);
        }
        holder.is_some()
    }

    /// The server of a process's newest connection.
    fn server_of(&self, contender: usize) -> Option<i64> {
        let process = self.contenders[contender].process.as_ref()?;
        process.connections.keys().next_back().map(|conn| self.net.conns[conn].member.0)
    }

    /// A random contender, mostly one that holds something.
    fn some_contender(&self, chance: &mut Chance) -> Option<usize> {
        let holds = |number: &usize| {
            let of = &self.contenders[*number];
            !of.paused && of.process.as_ref().is_some_and(|process| !process.held_now().is_empty())
        };
        let all: Vec<usize> = (0..self.contenders.len()).collect();
        let holders: Vec<usize> = all.iter().copied().filter(holds).collect();
        let of = if holders.is_empty() || chance.one_in(4) { all } else { holders };
        (!of.is_empty()).then(|| chance.pick(&of))
    }

    fn drop_process(&mut self, contender: usize, silent: bool) {
        let of = &mut self.contenders[contender];
        of.paused = false;
        of.missed.clear();
        let Some(process) = of.process.take() else { return };
        for conn in process.connections.keys() {
            let up = self.net.conns[conn].up;
            if silent {
                self.net.kill(up);
            } else {
                self.send(up, Parcel::End);
            }
        }
    }
}
