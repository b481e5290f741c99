//! The commands of a trace file. Those about the network are in net.rs.
//!
//! - `servers 1 2 3 observers 4`: the ensemble.
//! - `start 1`, or `start 1 accepted 2 current 1 log 0x100000001-0x100000009 without-history`: a process begins, with
//!   this on its disk, or with what was there when it crashed. The epochs are the log's by default.
//! - `crash 3`: a process ends. Acts that its disk has not done are lost.
//! - `disk 3 waits`, `disk 3 done`: nothing is on disk before it is done.
//! - `time +200`: timers run for this number of ms. No message arrives meanwhile.
//! - `propose 3 a`: a client asks for a write.
//! - `state`: what each server does.
//! - `quietly` before another command leaves its trace out.

use crate::{
    net::{Networked, number},
    script::Script,
    server::{Data, Log, Server},
    world::World,
};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{Electorate, Quorum, Record};

impl Script for World {
    fn run(&mut self, command: &[&str]) -> Vec<String> {
        match command {
            ["quietly", quiet @ ..] => {
                self.run(quiet);
            }
            ["servers", ids @ ..] => self.set_up(ids),
            ["start", id, data @ ..] => {
                let id = number(id);
                if !data.is_empty() {
                    self.load(id, data);
                }
                self.start(id);
            }
            ["crash", id] => self.crash(number(id)),
            ["disk", id, "waits"] => self.server(number(id)).disk_waits = true,
            ["disk", id, "done"] => {
                self.server(number(id)).disk_waits = false;
                self.disk_done(number(id));
            }
            ["time", ms] => self.pass(number(ms.strip_prefix('+').unwrap()) as u64),
            ["propose", id, name] => self.propose(number(id), name),
            ["state"] => {
                let states = self.servers.iter().map(|(id, server)| format!("{id} {}", server.state()));
                self.trace.extend(states.collect::<Vec<_>>());
            }
            _ => assert!(self.network_command(command), "there is no command {command:?}"),
        }
        self.settle();
        std::mem::take(&mut self.trace)
    }
}

impl World {
    fn set_up(&mut self, ids: &[&str]) {
        let mut parts = ids.split(|word| *word == "observers");
        let voters: Vec<i64> = parts.next().unwrap().iter().map(|id| number(id)).collect();
        let observers = parts.next().unwrap_or_default().iter().map(|id| (number(id), true));
        self.electorate = Electorate::of(Quorum::majority(voters.iter().map(|id| ServerId(*id))));
        let all = voters.into_iter().map(|id| (id, false)).chain(observers);
        self.servers = all.map(|(id, observer)| (id, Server::new(ServerId(id), observer))).collect();
    }

    /// Sets what is on a server's disk.
    fn load(&mut self, id: i64, words: &[&str]) {
        let (mut data, mut words) = (Data::default(), words.iter().peekable());
        let (mut accepted, mut current) = (None, None);
        while let Some(word) = words.next() {
            match *word {
                "accepted" => accepted = words.next().map(|epoch| Epoch(number(epoch) as u32)),
                "current" => current = words.next().map(|epoch| Epoch(number(epoch) as u32)),
                "log" => {
                    while let Some(range) = words.next_if(|word| word.starts_with("0x")) {
                        data.log.extend(records(range));
                    }
                }
                "without-history" => self.server(id).without_history = true,
                _ => panic!("{word}?"),
            }
        }
        data.current = current.unwrap_or(data.last().epoch());
        data.accepted = accepted.unwrap_or(data.current);
        self.server(id).on_disk = data;
    }
}

/// `0x100000001`, or `0x100000001-0x100000004`. Each record is named after its zxid.
fn records(range: &str) -> Log {
    let zxid = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let all = (zxid(first)..=zxid(last)).map(Zxid);
    all.map(|zxid| (zxid, Record(format!("w{}", zxid.counter()).as_bytes().into()))).collect()
}
