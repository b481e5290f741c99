//! Processes that want the same locks and leaderships, by the client and the recipes that others use.
//!
//! Each is a runtime of its own on a clock that the world moves, so that it can be stopped for longer than its session
//! lasts, and can die without a word. What a recipe says that it holds is judged where it says so: each holder's token is
//! above that of the one before, and nobody is said to hold anything in a session that a server has ended.

mod desk;
mod jobs;
mod mishaps;
mod pipe;
mod process;

use crate::{
    chance::Chance,
    guarded::GUARDED,
    network::{Caller, Parcel},
    world::{Event, Shape, World},
};
use desk::{Holder, Note};
use ostler_proto::{
    event,
    frame::{Split, split},
    reply::Reply,
};
use ostler_server_core::{ClientRequest, ConnId};
use ostler_zab::EpochLength;
use pipe::pipe;
use process::{Line, Make, Missed, Process};
use std::{borrow::Cow, collections::BTreeMap};

/// How often a process runs whatever comes: its timers are late for the network by less than this.
const STEP_MS: u64 = 5;
/// A machine that hears nothing asks again so soon.
const CALL_AGAIN_MS: u64 = 20;
/// A connection's frame is smaller.
const FRAME_MAX: usize = 1 << 20;
/// A session's timeout, at most.
const TIMEOUT_MS: u64 = 3_000;
/// Where servers notice so late that they are cut off, holders write nothing for so long, at most.
const LONG_LIMIT_MS: u64 = 1_000;
const REST_MS: u64 = 4_000;
/// In the calm, somebody has each thing so long after the last session that may be gone has ended.
const TURN_MS: u64 = TIMEOUT_MS + 6_000;
/// And those who are told to stop have given back all that they had.
const END_MS: u64 = 12_000;

/// What is to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Mutex,
    Latch,
    Selector,
    Semaphore,
    ReadWrite,
}

impl Thing {
    const ALL: [Thing; 5] = [Thing::Mutex, Thing::Latch, Thing::Selector, Thing::Semaphore, Thing::ReadWrite];

    /// The recipe's znode.
    fn path(self) -> &'static str {
        match self {
            Thing::Mutex => "/recipes/mutex",
            Thing::Latch => "/recipes/latch",
            Thing::Selector => "/recipes/selector",
            Thing::Semaphore => "/recipes/semaphore",
            Thing::ReadWrite => "/recipes/read-write",
        }
    }

    /// What only a holder writes.
    fn guarded(self) -> String {
        format!("{GUARDED}{}", &self.path()["/recipes/".len()..])
    }

    fn word(self) -> &'static str {
        match self {
            Thing::Mutex => "mutex held",
            Thing::Latch => "latch held",
            Thing::Selector => "selector held",
            Thing::Semaphore => "semaphore held",
            Thing::ReadWrite => "write lock held",
        }
    }
}

/// A process, or the place of one that has died.
pub(crate) struct Contender {
    make: Make,
    process: Option<Process>,
    /// It does not run before then; dead, it is not started.
    idle_until: u64,
    paused: bool,
    /// What has come for it while it did not run.
    missed: Vec<Missed>,
    /// Nothing passes between it and any server before then.
    cut_until: u64,
    /// But this one, if there is one.
    reaches: Option<i64>,
    /// Calls so far.
    calls: u64,
}

impl Contender {
    /// All who contend for some things.
    pub(crate) fn all(shape: &Shape, chance: &mut Chance) -> Vec<Contender> {
        if shape.contenders == 0 {
            return Vec::new();
        }
        let mut things = vec![chance.pick(&Thing::ALL), chance.pick(&Thing::ALL)];
        things.sort_unstable();
        things.dedup();
        let make = |_| Contender {
            make: Make {
                hosts: shape.voters + shape.observers,
                things: things.clone(),
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

/// A parcel in a few words.
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

/// Who has had what.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The token of the last that held each thing, and how many have.
    last: BTreeMap<Thing, (u64, u64)>,
}

impl Turns {
    fn token(&self, thing: Thing) -> u64 {
        self.last.get(&thing).map_or(0, |(token, _)| *token)
    }

    fn count(&self, thing: Thing) -> u64 {
        self.last.get(&thing).map_or(0, |(_, count)| *count)
    }
}

impl World {
    /// Time has come for something.
    pub(crate) fn contender_acts(&mut self, contender: usize) {
        let (now, quiet) = (self.now, self.quiet_until > self.now);
        if contender >= self.contenders.len() {
            return;
        }
        let resumes = self.contenders[contender].paused && self.contenders[contender].idle_until <= now;
        // What has come, or that time has passed: either can be noticed first.
        let late = resumes && self.chance.one_in(2);
        self.after(STEP_MS, Event::Contender(contender));
        let of = &mut self.contenders[contender];
        if of.idle_until > now {
            return;
        }
        match &of.process {
            None => {
                of.make.seed = of.make.seed.wrapping_add(1 << 32);
                let process = Process::start(of.make.clone(), now);
                of.process = Some(process);
            }
            Some(process) if std::mem::take(&mut of.paused) => {
                process.resume(now, std::mem::take(&mut of.missed), late);
                self.trace(|| format!("contender {contender} runs again"));
            }
            Some(process) => process.desk.hush(quiet),
        }
        self.contender_learns(contender, |_| {});
    }

    /// A process lives until now, learns of something, and what it has done is carried out.
    fn contender_learns(&mut self, contender: usize, learns: impl FnOnce(&Process) + 'static) {
        let now = self.now;
        let of = &mut self.contenders[contender];
        let Some(process) = &of.process else { return };
        if of.paused {
            // The kernel keeps it.
            return of.missed.push(Box::new(learns));
        }
        process.run(now, learns);
        for call in process.board.take() {
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
        self.judge(contender);
    }

    fn contender_sends(&mut self, contender: usize) {
        let mut parcels = Vec::new();
        let Some(process) = &mut self.contenders[contender].process else { return };
        for (conn, line) in &mut process.lines {
            line.rest.extend(line.far.take());
            let mut used = 0;
            while let Split::Frame { payload, used: size } = split(&line.rest[used..], FRAME_MAX) {
                let first = !std::mem::replace(&mut line.greeted, true);
                let payload = payload.to_vec();
                parcels
                    .push((*conn, if first { Parcel::Connect(payload) } else { Parcel::Request(payload) }));
                used += size;
            }
            line.rest.drain(..used);
            if line.far.is_left() {
                parcels.push((*conn, Parcel::End));
            }
        }
        process.lines.retain(|_, line| !line.far.is_left());
        for (conn, parcel) in parcels {
            self.trace(|| format!("contender {contender} sends on {conn:?}: {}", said(&parcel)));
            let lane = self.net.conns[&conn].up;
            self.send(lane, parcel);
        }
    }

    /// A call has reached a port, or a machine on which nobody listens.
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
        let (near, far) = pipe();
        let answer_of = opened.map(|_| near).ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into());
        if let (Some((conn, _)), Some(process)) = (opened, &mut self.contenders[contender].process) {
            process.lines.insert(conn, Line { far, greeted: false, rest: Vec::new() });
        }
        self.contender_learns(contender, move |_| drop(answer.send(answer_of)));
    }

    /// Something has come on a contender's connection.
    pub(crate) fn contender_gets(&mut self, contender: usize, conn: ConnId, parcel: Parcel) {
        let process = self.contenders.get(contender).and_then(|of| of.process.as_ref());
        if !process.is_some_and(|process| process.lines.contains_key(&conn)) {
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
            // In the middle of a frame, maybe.
            _ => {
                let lost = [0, 0, 0, 20, 0, 0, 0, 1];
                frame.extend_from_slice(&lost[..self.chance.below(lost.len() as u64 + 1) as usize]);
                true
            }
        };
        self.contender_learns(contender, move |process| {
            if let Some(line) = process.lines.get(&conn) {
                line.far.feed(&frame);
                if ends {
                    line.far.end();
                }
            }
        });
    }

    /// What a process says, and what its recipes would say.
    fn judge(&mut self, contender: usize) {
        let Some(process) = &self.contenders[contender].process else { return };
        let notes = process.desk.take_notes();
        for note in notes {
            match note {
                Note::Holds(holder) => self.take_hold(contender, holder),
                Note::StillHolds(holder) => drop(self.check_holder(contender, holder)),
                Note::TooLate => self.count("held too late"),
                Note::Wrote(holder) => {
                    let written = self.truth.guarded.has(&holder.thing.guarded(), holder.token);
                    assert!(
                        written,
                        "[linearizable] contender {contender} was told that {holder:x?} has written"
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
        for holder in process.believed() {
            self.check_holder(contender, holder);
        }
    }

    /// A recipe says that a contender holds something from now on.
    fn take_hold(&mut self, contender: usize, holder: Holder) {
        self.trace(|| format!("contender {contender} holds {holder:x?}"));
        if self.check_holder(contender, holder) {
            let (_, count) = self.turns.last.entry(holder.thing).or_default();
            let next = (holder.token, *count + 1);
            self.turns.last.insert(holder.thing, next);
            self.count(holder.thing.word());
        }
    }

    /// False for one whose session was ended while it must believe to have time: what is guarded refuses it.
    fn check_holder(&mut self, contender: usize, holder: Holder) -> bool {
        let Holder { thing, token, session } = holder;
        if self.condemned.contains(&session) {
            return token > self.turns.token(thing);
        }
        assert!(
            !self.truth.ended.contains_key(&session),
            "[lost first] contender {contender} is told that it holds {thing:?} with {token:#x}, and {session:?} was ended"
        );
        let last = self.turns.token(thing);
        assert!(
            token >= last,
            "[one holder] contender {contender} is told that it holds {thing:?} with {token:#x}, after {last:#x}"
        );
        true
    }

    /// In the calm everybody runs, and everything that is wanted is had by somebody.
    pub(crate) fn contenders_have_their_turn(&mut self) {
        for of in &mut self.contenders {
            (of.idle_until, of.cut_until) = (0, 0);
        }
        // The others only keep their sessions from now on.
        self.quiet = true;
        // A new leader gives every session its whole time again, so of short epochs no dead holder's session ends.
        if self.shape.epoch != EpochLength::default() {
            return;
        }
        let Some(first) = self.contenders.first() else { return };
        let things = first.make.things.clone();
        let before: Vec<u64> = things.iter().map(|thing| self.turns.count(*thing)).collect();
        let waits = |world: &World| {
            let counts = things.iter().zip(&before);
            counts.filter(|(thing, before)| world.turns.count(**thing) == **before).count()
        };
        let all = self.run_until(TURN_MS, |world| waits(world) == 0);
        assert!(
            all,
            "[liveness] nobody gets one of {things:?}, which were had {before:?} times, in {TURN_MS} ms"
        );
    }

    /// Nobody wants anything any more: nothing of theirs is left, though their sessions live. Then those end.
    pub(crate) fn contenders_leave(&mut self) {
        let processes = |world: &World| {
            let of = world.contenders.iter().filter_map(|of| of.process.as_ref());
            of.map(|process| (process.done, process.closed)).collect::<Vec<_>>()
        };
        let desks = |world: &World| {
            let of = world.contenders.iter().filter_map(|of| of.process.as_ref());
            of.map(|process| process.desk.clone()).collect::<Vec<_>>()
        };
        // Who has died stays dead.
        for of in self.contenders.iter_mut().filter(|of| of.process.is_none()) {
            of.idle_until = u64::MAX;
        }
        desks(self).iter().for_each(|desk| desk.stop());
        let done = self.run_until(END_MS, |world| processes(world).iter().all(|(done, _)| *done));
        assert!(done, "[liveness] a contender that is told to stop does not come to an end");
        self.run_until(TIMEOUT_MS + 2_000, |world| world.left_behind().is_empty());
        let left = self.left_behind();
        assert!(left.is_empty(), "[orphans] nobody holds anything or waits for it, and there are {left:?}");
        desks(self).iter().for_each(|desk| desk.close());
        let closed = self.run_until(END_MS, |world| processes(world).iter().all(|(_, closed)| *closed));
        assert!(closed, "[liveness] a contender's client is not closed");
        self.contenders.clear();
    }

    /// What is in the recipes' queues.
    fn left_behind(&self) -> Vec<String> {
        let all = self.truth.tree().ephemerals_by_session().flat_map(|(_, paths)| paths.iter());
        all.filter(|path| path.starts_with("/recipes/")).map(Cow::into_owned).collect()
    }
}
