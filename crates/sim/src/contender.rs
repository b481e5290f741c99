//! Contenders: processes that compete for locks and leaderships with the real client and the real recipes.
//!
//! Each contender has its own runtime on a clock that the world moves. So it can be paused for longer than its session
//! lasts, and it can die without closing connections. When a recipe reports that something is held, this is checked at
//! that moment: a holder's token is above the token of the holder before, and nothing is held in a session that a
//! server has ended.

mod control;
mod jobs;
mod mishaps;
mod pipe;
mod process;

use crate::{
    chance::Chance,
    guarded::GUARDED,
    network::{Caller, Parcel},
    world::{Event, NO_END, Shape, World},
};
use control::{Holding, Note};
use ostler_proto::{
    event,
    frame::{Split, split},
    reply::Reply,
};
use ostler_server_core::{ClientRequest, ConnId};
use pipe::pipe;
use process::{Delivery, OpenConnection, Process, ProcessConfig};
use std::{borrow::Cow, collections::BTreeMap};

/// A process runs at least this often. Its timers are late by less than this.
const STEP_MS: u64 = 5;
/// Pause before a connection attempt that got no answer is repeated.
const CALL_AGAIN_MS: u64 = 20;
/// Upper limit of a frame's size, bytes.
const FRAME_MAX: usize = 1 << 20;
/// The longest session timeout.
const TIMEOUT_MS: u64 = 3_000;
/// If `sync_limit_ms` is above this, holders may pause between writes for up to `REST_MS`.
const LONG_LIMIT_MS: u64 = 1_000;
const REST_MS: u64 = 4_000;
/// After the last fault, each resource must be held by some process within this time. The last session that may be gone
/// ends before.
const TURN_MS: u64 = TIMEOUT_MS + 6_000;
/// Contenders that are asked to stop must have released everything within this time.
const END_MS: u64 = 12_000;

/// A resource that contenders compete for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    Mutex,
    Latch,
    Selector,
    Semaphore,
    ReadWrite,
}

impl Resource {
    const ALL: [Resource; 5] =
        [Resource::Mutex, Resource::Latch, Resource::Selector, Resource::Semaphore, Resource::ReadWrite];

    /// The recipe's znode.
    fn path(self) -> &'static str {
        match self {
            Resource::Mutex => "/recipes/mutex",
            Resource::Latch => "/recipes/latch",
            Resource::Selector => "/recipes/selector",
            Resource::Semaphore => "/recipes/semaphore",
            Resource::ReadWrite => "/recipes/read-write",
        }
    }

    /// The znode that only a holder writes.
    fn guarded(self) -> String {
        format!("{GUARDED}{}", &self.path()["/recipes/".len()..])
    }

    fn word(self) -> &'static str {
        match self {
            Resource::Mutex => "mutex held",
            Resource::Latch => "latch held",
            Resource::Selector => "selector held",
            Resource::Semaphore => "semaphore held",
            Resource::ReadWrite => "write lock held",
        }
    }
}

/// A contending process. It may be dead, and is then started again.
pub(crate) struct Contender {
    config: ProcessConfig,
    process: Option<Process>,
    /// The process does not run, or is not started, before this time.
    idle_until: u64,
    paused: bool,
    /// Deliveries that came while the process was paused.
    missed: Vec<Delivery>,
    /// The process reaches no server before this time, except `reaches`.
    cut_until: u64,
    /// The only server that the process reaches until `cut_until`.
    reaches: Option<i64>,
    /// The number of connection attempts so far.
    calls: u64,
}

impl Contender {
    /// All contenders of a run, with the resources that they compete for.
    pub(crate) fn all(shape: &Shape, chance: &mut Chance) -> Vec<Contender> {
        if shape.contenders == 0 {
            return Vec::new();
        }
        let mut resources = vec![chance.pick(&Resource::ALL), chance.pick(&Resource::ALL)];
        resources.sort_unstable();
        resources.dedup();
        let make = |_| Contender {
            config: ProcessConfig {
                hosts: shape.voters + shape.observers,
                resources: resources.clone(),
                timeout_ms: chance.between(8, TIMEOUT_MS / 100) * 100,
                rest_ms: if shape.sync_limit_ms > LONG_LIMIT_MS { REST_MS } else { 0 },
                seed: chance.below(1 << 30),
            },
            process: None,
            idle_until: 0,
            paused: false,
            missed: Vec::new(),
            cut_until: 0,
            reaches: None,
            calls: 0,
        };
        (0..shape.contenders).map(make).collect()
    }
}

/// A parcel in a few words, for the trace.
fn said(parcel: &Parcel) -> String {
    match parcel {
        Parcel::Request(payload) => match ClientRequest::decode(payload) {
            Ok(request) => format!("{request:?}").chars().take(200).collect(),
            Err(error) => error.to_string(),
        },
        Parcel::Connect(_) => "its session".into(),
        Parcel::End => "its end".into(),
        other => format!("{other:?}").chars().take(200).collect(),
    }
}

/// The last token and the number of holders of each resource.
#[derive(Debug, Default)]
pub(crate) struct HoldingCounts {
    /// By resource: the last holder's token, and the number of holders so far.
    last: BTreeMap<Resource, (u64, u64)>,
}

impl HoldingCounts {
    fn token(&self, resource: Resource) -> u64 {
        self.last.get(&resource).map_or(0, |(token, _)| *token)
    }

    fn count(&self, resource: Resource) -> u64 {
        self.last.get(&resource).map_or(0, |(_, count)| *count)
    }
}

impl World {
    /// A contender's regular step: starts it, resumes it, or lets its timers run.
    pub(crate) fn contender_acts(&mut self, contender: usize) {
        let (now, quiet) = (self.now, self.quiet_until > self.now);
        if contender >= self.contenders.len() {
            return;
        }
        let resumes = self.contenders[contender].paused && self.contenders[contender].idle_until <= now;
        // A resumed process may run its timers or read its connections first.
        let late = resumes && self.chance.one_in(2);
        self.after(STEP_MS, Event::Contender(contender));
        let of = &mut self.contenders[contender];
        if of.idle_until > now {
            return;
        }
        match &of.process {
            None => {
                of.config.seed = of.config.seed.wrapping_add(1 << 32);
                let process = Process::start(of.config.clone(), now);
                of.process = Some(process);
            }
            Some(process) if std::mem::take(&mut of.paused) => {
                process.resume(now, std::mem::take(&mut of.missed), late);
                self.trace(|| format!("contender {contender} runs again"));
            }
            Some(process) => process.control.set_quiet(quiet),
        }
        self.contender_learns(contender, |_| {});
    }

    /// Runs a process until now, passes it a delivery, and carries out what it does.
    fn contender_learns(&mut self, contender: usize, learns: impl FnOnce(&Process) + 'static) {
        let now = self.now;
        let of = &mut self.contenders[contender];
        let Some(process) = &of.process else { return };
        if of.paused {
            // The kernel buffers it.
            return of.missed.push(Box::new(learns));
        }
        process.run(now, learns);
        for call in process.pending_calls.take() {
            let delay = self.chance.between(1, 5);
            let of = &mut self.contenders[contender];
            of.calls += 1;
            let (number, member) = (of.calls, call.member);
            if let Some(process) = &mut of.process {
                process.calls.insert(number, call.answer);
            }
            self.after(delay, Event::ContenderCalls { contender, call: number, member });
        }
        self.contender_sends(contender);
        self.check_notes(contender);
    }

    fn contender_sends(&mut self, contender: usize) {
        let mut parcels = Vec::new();
        let Some(process) = &mut self.contenders[contender].process else { return };
        for (conn, connection) in &mut process.connections {
            connection.rest.extend(connection.network_end.take());
            let mut used = 0;
            while let Split::Frame { payload, used: size } = split(&connection.rest[used..], FRAME_MAX) {
                let first = !std::mem::replace(&mut connection.greeted, true);
                let payload = payload.to_vec();
                parcels
                    .push((*conn, if first { Parcel::Connect(payload) } else { Parcel::Request(payload) }));
                used += size;
            }
            connection.rest.drain(..used);
            if connection.network_end.is_closed_by_client() {
                parcels.push((*conn, Parcel::End));
            }
        }
        process.connections.retain(|_, connection| !connection.network_end.is_closed_by_client());
        for (conn, parcel) in parcels {
            self.trace(|| format!("contender {contender} sends on {conn:?}: {}", said(&parcel)));
            let lane = self.net.conns[&conn].up;
            self.send(lane, parcel);
        }
    }

    /// A connection attempt has reached a server, or a machine without a running server.
    pub(crate) fn contender_calls(&mut self, contender: usize, call: u64, member: i64) {
        let is_cut_off = |of: &Contender| of.cut_until > self.now && of.reaches != Some(member);
        if self.contenders.get(contender).is_some_and(is_cut_off) {
            return self.after(CALL_AGAIN_MS, Event::ContenderCalls { contender, call, member });
        }
        let of = self.contenders.get_mut(contender).and_then(|of| of.process.as_mut());
        let Some(answer) = of.and_then(|process| process.calls.remove(&call)) else { return };
        if answer.is_closed() {
            return;
        }
        let opened = self.open(Caller::Contender(contender), member);
        let (client_end, network_end) = pipe();
        let answer_of =
            opened.map(|_| client_end).ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into());
        if let (Some((conn, _)), Some(process)) = (opened, &mut self.contenders[contender].process) {
            process
                .connections
                .insert(conn, OpenConnection { network_end, greeted: false, rest: Vec::new() });
        }
        self.contender_learns(contender, move |_| drop(answer.send(answer_of)));
    }

    /// A parcel has arrived on a contender's connection.
    pub(crate) fn contender_gets(&mut self, contender: usize, conn: ConnId, parcel: Parcel) {
        let process = self.contenders.get(contender).and_then(|of| of.process.as_ref());
        if !process.is_some_and(|process| process.connections.contains_key(&conn)) {
            return;
        }
        self.trace(|| format!("contender {contender} gets on {conn:?}: {}", said(&parcel)));
        let mut frame = Vec::new();
        let ends = match parcel {
            Parcel::Connected(response) => {
                response.write_frame(&mut frame);
                false
            }
            Parcel::Reply(reply) => {
                Reply::write_frame(&reply, &mut frame);
                false
            }
            Parcel::Event { zxid, kind, path } => {
                event::write_frame(&mut frame, zxid, kind, &path);
                false
            }
            // The connection may end in the middle of a frame.
            _ => {
                let lost = [0, 0, 0, 20, 0, 0, 0, 1];
                frame.extend_from_slice(&lost[..self.chance.below(lost.len() as u64 + 1) as usize]);
                true
            }
        };
        self.contender_learns(contender, move |process| {
            if let Some(connection) = process.connections.get(&conn) {
                connection.network_end.feed(&frame);
                if ends {
                    connection.network_end.end();
                }
            }
        });
    }

    /// Checks the notes of a process's tasks, and everything that its recipes report as held now.
    fn check_notes(&mut self, contender: usize) {
        let Some(process) = &self.contenders[contender].process else { return };
        let notes = process.control.take_notes();
        for note in notes {
            match note {
                Note::Holds(holder) => self.take_hold(contender, holder),
                Note::StillHolds(holder) => drop(self.check_holder(contender, holder)),
                Note::TooLate => self.count("held too late"),
                Note::Wrote(holder) => {
                    let written = self.reference.guarded.has(&holder.resource.guarded(), holder.token);
                    assert!(
                        written,
                        "[linearizable] contender {contender} got an answer to a write that never happened: {holder:x?}"
                    );
                    self.count("guarded writes");
                }
                Note::Broken(how) => panic!("contender {contender}: {how}"),
                Note::Done | Note::Closed => {
                    let Some(process) = &mut self.contenders[contender].process else { return };
                    process.closed = process.done;
                    process.done = true;
                }
            }
        }
        let Some(process) = &self.contenders[contender].process else { return };
        for holder in process.held_now() {
            self.check_holder(contender, holder);
        }
    }

    /// A recipe reports that a contender holds something from now on.
    fn take_hold(&mut self, contender: usize, holder: Holding) {
        self.trace(|| format!("contender {contender} holds {holder:x?}"));
        if self.check_holder(contender, holder) {
            let (_, count) = self.holding_counts.last.entry(holder.resource).or_default();
            let next = (holder.token, *count + 1);
            self.holding_counts.last.insert(holder.resource, next);
            self.count(holder.resource.word());
        }
    }

    /// Checks a holder. If an operator has ended its session, the holder cannot know that yet, and only the fence
    /// protects the guarded znode: then this returns false for a token that is not above the last one.
    fn check_holder(&mut self, contender: usize, holder: Holding) -> bool {
        let Holding { resource, token, session } = holder;
        if self.condemned.contains(&session) {
            return token > self.holding_counts.token(resource);
        }
        assert!(
            !self.reference.ended.contains_key(&session),
            "[lost first] contender {contender} holds {resource:?} with {token:#x}, and {session:?} has ended"
        );
        let last = self.holding_counts.token(resource);
        assert!(
            token >= last,
            "[one holder] contender {contender} holds {resource:?} with {token:#x}, after {last:#x}"
        );
        true
    }

    /// After the last fault all contenders run, and each resource must be held by some process.
    pub(crate) fn contenders_have_their_turn(&mut self) {
        for of in &mut self.contenders {
            (of.idle_until, of.cut_until) = (0, 0);
        }
        // The clients only keep their sessions from now on.
        self.quiet = true;
        // A new leader gives every session its whole timeout again. So in short epochs a dead holder's session never
        // ends.
        if self.shape.epoch != NO_END {
            return;
        }
        let Some(first) = self.contenders.first() else { return };
        let resources = first.config.resources.clone();
        let before: Vec<u64> =
            resources.iter().map(|resource| self.holding_counts.count(*resource)).collect();
        let waits = |world: &World| {
            let counts = resources.iter().zip(&before);
            counts.filter(|(resource, before)| world.holding_counts.count(**resource) == **before).count()
        };
        let all = self.run_until(TURN_MS, |world| waits(world) == 0);
        assert!(
            all,
            "[liveness] no contender gets one of {resources:?}, held {before:?} times before, in {TURN_MS} ms"
        );
    }

    /// Stops all contenders. No znode of theirs may be left, although their sessions still live. Then the sessions end.
    pub(crate) fn contenders_leave(&mut self) {
        let processes = |world: &World| {
            let of = world.contenders.iter().filter_map(|of| of.process.as_ref());
            of.map(|process| (process.done, process.closed)).collect::<Vec<_>>()
        };
        let controls = |world: &World| {
            let of = world.contenders.iter().filter_map(|of| of.process.as_ref());
            of.map(|process| process.control.clone()).collect::<Vec<_>>()
        };
        // Dead contenders are not started again.
        for of in self.contenders.iter_mut().filter(|of| of.process.is_none()) {
            of.idle_until = u64::MAX;
        }
        controls(self).iter().for_each(|control| control.stop());
        let done = self.run_until(END_MS, |world| processes(world).iter().all(|(done, _)| *done));
        assert!(done, "[liveness] a contender that is asked to stop does not stop");
        self.run_until(TIMEOUT_MS + 2_000, |world| world.left_behind().is_empty());
        let left = self.left_behind();
        assert!(left.is_empty(), "[orphans] all contenders have stopped, and {left:?} are left");
        controls(self).iter().for_each(|control| control.close());
        let closed = self.run_until(END_MS, |world| processes(world).iter().all(|(_, closed)| *closed));
        assert!(closed, "[liveness] a contender's client is not closed");
        self.contenders.clear();
    }

    /// The ephemeral znodes below the recipes' paths.
    fn left_behind(&self) -> Vec<String> {
        let all = self.reference.tree().ephemerals_by_session().flat_map(|(_, paths)| paths.iter());
        all.filter(|path| path.starts_with("/recipes/")).map(Cow::into_owned).collect()
    }
}
