//! The commands of a trace file. Those about the network are in net.rs.
//!
//! - `servers 1 2 3 observers 4`: the ensemble. `server 4 of 1 2 3`: a server that is to join it.
//! - `keep 2`: servers that start from now on keep this number of transactions in memory for learners.
//! - `start 1`, `crash 1`: a process begins, with what is on its disk, or ends. Acts that are not done are lost.
//! - `disk 3 waits`, `disk 3 done`: nothing is on disk before it is done.
//! - `time +200`: timers run for this number of ms, and no message arrives. `run +200`: all messages arrive meanwhile.
//! - `client a connects 2`, `client a disconnects`, `client a create /a` and other requests: see clients.rs.
//! - `state`: what each server does, and which sessions it knows.
//! - `quietly` before another command leaves its trace out.

use crate::{
    member::Member,
    net::{Networked, number},
    packets,
    script::Script,
    world::World,
};
use ostler_proto::membership::Membership;

impl Script for World {
    fn run(&mut self, command: &[&str]) -> Vec<String> {
        match command {
            ["quietly", quiet @ ..] => drop(self.run(quiet)),
            ["servers", ids @ ..] => self.set_up(ids),
            ["server", id, "of", others @ ..] => {
                let config = configuration(&[others, &[*id]].concat(), &[]);
                self.members.insert(number(id), Member::default());
                self.member(number(id)).disk.config = config;
            }
            ["keep", count] => self.kept = number(count) as usize,
            ["start", id] => self.start(number(id)),
            ["crash", id] => self.crash(number(id)),
            ["disk", id, "waits"] => self.member(number(id)).disk.waits = true,
            ["disk", id, "done"] => {
                self.member(number(id)).disk.waits = false;
                self.disk_done(number(id));
            }
            [how @ ("time" | "run"), ms] => {
                self.pass(number(ms.strip_prefix('+').unwrap()) as u64, *how == "run");
            }
            ["client", name, "connects", at] => self.client_connects(name, number(at)),
            ["client", name, "disconnects"] => self.client_disconnects(name),
            ["client", name, request @ ..] => self.client_asks(name, request),
            ["state"] => self.describe(),
            _ => assert!(self.network_command(command), "there is no command {command:?}"),
        }
        self.settle();
        std::mem::take(&mut self.trace)
    }
}

impl World {
    fn set_up(&mut self, ids: &[&str]) {
        let mut parts = ids.split(|word| *word == "observers");
        let (voters, observers) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        for id in voters.iter().chain(observers) {
            self.members.insert(number(id), Member::default());
            self.member(number(id)).disk.config = configuration(voters, observers);
        }
    }

    fn describe(&mut self) {
        for (id, member) in &self.members {
            let Some(server) = &member.server else {
                self.trace.push(format!("{id} is down; {}", member.disk.text()));
                continue;
            };
            let tree = server.tree();
            let sessions = tree.sessions().map(|(session, _)| packets::session(&self.names, session));
            let sessions: Vec<String> = sessions.collect();
            let mode = server.mode().unwrap();
            let known = if sessions.is_empty() { "no session".into() } else { sessions.join(", ") };
            self.trace.push(format!(
                "{id} is {mode:?}, applied {}; {known}; {}",
                tree.last_processed(),
                member.disk.text()
            ));
        }
    }
}

/// A configuration of version 0, as zoo.cfg has it.
fn configuration(voters: &[&str], observers: &[&str]) -> Membership {
    let line = |id: &&str, role: &str| format!("server.{id}=h{id}:1:2:{role};h{id}:3\n");
    let voters = voters.iter().map(|id| line(id, "participant"));
    let lines = voters.chain(observers.iter().map(|id| line(id, "observer")));
    Membership::parse(&lines.collect::<String>()).unwrap()
}
