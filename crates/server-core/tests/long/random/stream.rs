//! The inputs of a random run: drawn from a seed, whatever the member answers.

use super::model::Model;
use crate::wire::{self, WireRequest};
use ostler_proto::acl::{Acl, Perms};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore, SeedableRng},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) ephemeral: bool,
    pub(super) sequential: bool,
}

/// A write with all that it says.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Create { path: String, data: Option<Vec<u8>>, mode: Mode, with_stat: bool },
    Delete { path: String, version: i32 },
    Set { path: String, data: Option<Vec<u8>>, version: i32 },
    SetAcl { path: String, version: i32 },
    Check { path: String, version: i32 },
    Multi(Vec<Write>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Exists,
    Data,
    Children,
    Children2,
}

/// A request as the client means it.
#[derive(Debug, Clone)]
pub(super) enum Intent {
    Write(Write),
    Close,
    Read { read: Read, path: String, watch: bool },
    Sync(String),
    Ping,
    AddWatch { path: String, recursive: bool },
    RemoveWatches { path: String, kind: i32 },
    SetWatches { seen: i64, data: Vec<String>, exist: Vec<String>, child: Vec<String> },
}

/// One thing that happens; clients by number.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// A new session on a new connection.
    Join {
        client: usize,
        timeout_ms: i32,
    },
    /// The old session on a new connection, whether the old one is gone or not.
    Rejoin {
        client: usize,
        right_password: bool,
    },
    HangUp {
        client: usize,
    },
    /// The seed of the request: what it says depends on the tree of the moment.
    Send {
        client: usize,
        seed: u64,
    },
    Close {
        client: usize,
    },
    Disk {
        acts: usize,
    },
    Pass {
        ms: u64,
    },
    SnapshotDone,
    Crash {
        unreported: usize,
        with_snapshot: bool,
    },
}

pub(super) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

pub(super) const CLIENTS: usize = 4;

/// How a run is: how many clients, how lazy the disk, how rare the accidents.
pub(super) fn acts(seed: u64) -> Vec<Act> {
    let mut dice = Dice::new(seed);
    let clients = 1 + dice.below(CLIENTS as u64);
    let disk_in = dice.pick(&[2, 4, 8, 20]);
    let accident_in = dice.pick(&[8, 20, 60, 1000]);
    let long_pass_in = dice.pick(&[3, 30]);
    let length = 20 + dice.below(120);
    let mut acts = Vec::new();
    for _ in 0..length {
        let client = dice.below(clients) as usize;
        acts.push(if dice.one_in(accident_in) {
            match dice.below(8) {
                0 | 1 => Act::Rejoin { client, right_password: !dice.one_in(8) },
                2 => Act::HangUp { client },
                3 => Act::Close { client },
                4 => Act::Crash { unreported: dice.below(6) as usize, with_snapshot: dice.one_in(2) },
                5 => Act::SnapshotDone,
                _ => Act::Pass { ms: if dice.one_in(long_pass_in) { 30_000 } else { dice.below(4000) } },
            }
        } else if dice.one_in(disk_in) {
            Act::Disk { acts: dice.pick(&[1, 1, 2, 5, 100]) }
        } else if dice.one_in(10) {
            Act::Join { client, timeout_ms: dice.pick(&[4000, 7000, 20_000]) }
        } else {
            Act::Send { client, seed: dice.below(u64::MAX) }
        });
    }
    acts
}

const PATHS: [&str; 9] = ["/", "/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/c", "/zookeeper"];

/// A request that makes sense more often than not, given the tree that it will meet.
pub(super) fn intent(seed: u64, model: &Model, applied: i64) -> Intent {
    let mut dice = Dice::new(seed);
    let path = path(&mut dice, model);
    match dice.below(24) {
        0..=10 => Intent::Write(write(&mut dice, model)),
        11 | 12 => {
            let length = dice.below(5);
            Intent::Write(Write::Multi((0..length).map(|_| part_of_multi(&mut dice, model)).collect()))
        }
        13..=18 => {
            let read = dice.pick(&[Read::Exists, Read::Data, Read::Children, Read::Children2]);
            Intent::Read { read, path, watch: dice.one_in(2) }
        }
        19 => Intent::Sync(path),
        20 => Intent::Ping,
        21 => Intent::AddWatch { path, recursive: dice.one_in(2) },
        22 => Intent::RemoveWatches { path, kind: dice.pick(&[1, 2, 3, 4, 5]) },
        _ => {
            let seen = dice.pick(&[-1, 0, applied - 3, applied, applied + 3]);
            let mut some = || (0..dice.below(3)).map(|_| self::path(&mut dice, model)).collect();
            Intent::SetWatches { seen, data: some(), exist: some(), child: some() }
        }
    }
}

fn path(dice: &mut Dice, model: &Model) -> String {
    if dice.one_in(2) {
        return dice.pick(&PATHS).into();
    }
    let nth = dice.below(model.paths().len() as u64) as usize;
    model.paths().nth(nth).unwrap().to_string()
}

fn version(dice: &mut Dice, model: &Model, path: &str) -> i32 {
    match dice.below(4) {
        0 => model.version(path).unwrap_or(0),
        1 => dice.below(3) as i32,
        _ => -1,
    }
}

fn data(dice: &mut Dice) -> Option<Vec<u8>> {
    (!dice.one_in(5)).then(|| vec![b'd'; dice.below(4) as usize])
}

fn write(dice: &mut Dice, model: &Model) -> Write {
    let path = path(dice, model);
    let version = version(dice, model, &path);
    match dice.below(12) {
        0..=5 => {
            let mode = Mode { ephemeral: dice.one_in(3), sequential: dice.one_in(4) };
            let path = if mode.sequential { format!("{}/s-", path.trim_end_matches('/')) } else { path };
            Write::Create { path, data: data(dice), mode, with_stat: dice.one_in(3) }
        }
        6 | 7 => Write::Delete { path, version },
        8..=10 => Write::Set { path, data: data(dice), version },
        _ => Write::SetAcl { path, version },
    }
}

fn part_of_multi(dice: &mut Dice, model: &Model) -> Write {
    match write(dice, model) {
        // Not an operation of a multi.
        Write::SetAcl { path, version } => Write::Check { path, version },
        other => other,
    }
}

impl Write {
    fn ask(&self) -> WireRequest {
        match self {
            Write::Create { path, data, mode, with_stat } => {
                let mut create = wire::create(path);
                create = data.as_ref().map_or(create.clone().no_data(), |data| create.data(data));
                create = if mode.ephemeral { create.ephemeral() } else { create };
                create = if mode.sequential { create.sequential() } else { create };
                if *with_stat { create.with_stat().into() } else { create.into() }
            }
            Write::Delete { path, version } => wire::delete_at(path, *version),
            Write::Set { path, data, version } => wire::set_at(path, data.as_deref(), *version),
            Write::SetAcl { path, version } => wire::set_acl(path, &[Acl::world(Perms::ALL)], *version),
            Write::Check { path, version } => wire::check(path, *version),
            Write::Multi(writes) => wire::multi(&writes.iter().map(Write::ask).collect::<Vec<_>>()),
        }
    }
}

impl Intent {
    pub(super) fn ask(&self) -> WireRequest {
        fn borrowed(paths: &[String]) -> Vec<&str> {
            paths.iter().map(String::as_str).collect()
        }
        match self {
            Intent::Write(write) => write.ask(),
            Intent::Close => wire::close_session(),
            Intent::Read { read, path, watch } => match (read, watch) {
                (Read::Exists, false) => wire::exists(path),
                (Read::Exists, true) => wire::exists_and_watch(path),
                (Read::Data, false) => wire::get(path),
                (Read::Data, true) => wire::get_and_watch(path),
                (Read::Children, false) => wire::children(path),
                (Read::Children, true) => wire::children_and_watch(path),
                (Read::Children2, _) => wire::children2(path, *watch),
            },
            Intent::Sync(path) => wire::sync(path),
            Intent::Ping => wire::ping(),
            Intent::AddWatch { path, recursive } => wire::watch_always(path, *recursive),
            Intent::RemoveWatches { path, kind } => wire::remove_watches(path, *kind),
            Intent::SetWatches { seen, data, exist, child } => {
                let (data, exist, child) = (borrowed(data), borrowed(exist), borrowed(child));
                let watched =
                    wire::WatchedPaths { data: &data, exist: &exist, child: &child, ..Default::default() };
                wire::set_watches(*seen, &watched)
            }
        }
    }
}
