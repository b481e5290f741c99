//! Elections as a file for programs: the console draws it, and `ostler explain election --json` prints it.
//!
//! All `*_ms` of an election count from its `began_ms`, the first time of which a band tells. So none is negative.

use crate::{
    ballots::BoxedVote,
    moments::{self, cause},
    occasion::{Kind, Occasion, Part},
    records::Search,
    summary::{counts_from, summary},
    timeline::{DecidedBy, Line, LineKind, merge},
    witness::Witness,
    words::capitalised,
};
use ostler_proto::id::{Epoch, ServerId};
use serde::Serialize;
use std::collections::BTreeSet;

/// The name of this format.
pub const FORMAT: &str = "ostler-elections-1";
/// Moments of one election in a file. Of more, the first and the last halves are kept.
const MOMENTS_MAX: usize = 1_000;

/// The last elections of an ensemble, the newest first.
#[derive(Debug, Clone, Serialize)]
pub struct ElectionsFile {
    /// [`FORMAT`].
    pub format: &'static str,
    /// When the servers were asked.
    pub as_of_ms: i64,
    /// The servers that were asked.
    pub servers: Vec<AskedServer>,
    /// The voters.
    pub voters: Vec<ServerId>,
    /// The newest first.
    pub elections: Vec<ElectionEntry>,
    /// Remarks about servers and clocks.
    pub remarks: Vec<String>,
}

/// A server that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedServer {
    /// Its number, if it is known.
    pub id: Option<ServerId>,
    /// Its name or address.
    pub name: String,
    /// `answered`, `silent`, `java` or `foreign`.
    pub state: &'static str,
    /// Why it did not answer.
    pub reason: Option<String>,
    /// The begin of its first record. It tells of nothing before.
    pub knows_since_ms: Option<i64>,
}

/// One election; or the return of one server to a leader; or a search that goes on.
#[derive(Debug, Clone, Serialize)]
pub struct ElectionEntry {
    /// Its place among all that the servers know of, the oldest is 1.
    pub number: usize,
    /// `formed`: a quorum made a leader. `joined`: a server came to a leader that was there. `open`: there is none yet.
    pub kind: &'static str,
    /// The epoch that it led to.
    pub epoch: Option<Epoch>,
    /// The leader.
    pub winner: Option<ServerId>,
    /// It goes on.
    pub under_way: bool,
    /// Wall clock; all other times of the entry count from here.
    pub began_ms: i64,
    /// From the loss of the leader, or the start of the last server that was needed, until the epoch had begun.
    pub total_for_ms: Option<i64>,
    /// Why it began.
    pub cause: String,
    /// It in a sentence or two.
    pub summary: Vec<String>,
    /// The phases of the whole.
    pub phases: Vec<PhaseTime>,
    /// A lane for each server.
    pub lanes: Vec<Lane>,
    /// All that happened, in order.
    pub moments: Vec<FileMoment>,
    /// A server's whole ballot box at each moment at which it changed.
    pub ballots: Vec<BallotsAt>,
    /// Moments that are not here, because there were too many.
    pub left_out: usize,
}

/// A phase of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From the old leader's last word until its loss was noticed.
    Detect,
    /// Until a leader is elected.
    Elect,
    /// Until its epoch is agreed.
    Discover,
    /// Until a quorum has its history.
    Synchronise,
    /// Until the first write of the epoch is committed.
    FirstCommit,
}

/// How long a phase took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// The phase.
    pub name: Phase,
    /// Its time; `None` if it is not over, or not known.
    pub for_ms: Option<i64>,
}

/// A server's share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// The server.
    pub server: ServerId,
    /// Whether there is a record of it.
    pub known: bool,
    /// Its phases.
    pub bands: Vec<Band>,
}

/// A phase of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The phase.
    pub phase: Phase,
    /// Its begin.
    pub from_ms: i64,
    /// Its end; `None` if it goes on.
    pub to_ms: Option<i64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileMoment {
    /// The time.
    pub at_ms: i64,
    /// The server that tells.
    pub server: ServerId,
    /// Its kind.
    pub kind: LineKind,
    /// It in words.
    pub sentence: String,
    /// The rule that decided.
    pub rule: Option<DecidedBy>,
    /// The parts of the sentence that name the rule.
    pub highlights: Vec<&'static str>,
    /// The vote that has changed.
    pub changed: Option<ChangedVote>,
}

/// A vote that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChangedVote {
    /// The voter.
    pub voter: ServerId,
    /// The server that it backs now.
    pub candidate: ServerId,
}

/// A server's whole ballot box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BallotsAt {
    /// The time.
    pub at_ms: i64,
    /// The server.
    pub server: ServerId,
    /// The index of the moment by which it changed.
    pub moment: usize,
    /// Its votes.
    pub votes: Vec<BoxedVote>,
}

impl ElectionsFile {
    /// The last `last` of all occasions. `silent` are the servers that did not answer with a record.
    pub fn new(
        occasions: &[Occasion<'_>],
        last: usize,
        (witnesses, silent): (&[Witness], Vec<AskedServer>),
        as_of_ms: i64,
    ) -> ElectionsFile {
        let voters = voters(witnesses);
        let shown = occasions.iter().enumerate().rev().take(last);
        let elections = shown.map(|(at, occasion)| ElectionEntry::new(at + 1, occasion, &voters)).collect();
        let remarks = crate::page::remarks_about(witnesses);
        let mut servers: Vec<AskedServer> = witnesses.iter().map(AskedServer::of).collect();
        servers.extend(silent);
        servers.sort_by(|a, b| (a.id.is_none(), a.id, &a.name).cmp(&(b.id.is_none(), b.id, &b.name)));
        ElectionsFile { format: FORMAT, as_of_ms, servers, voters, elections, remarks }
    }
}

/// The voters by the record of the server whose search is the newest: configurations change.
fn voters(witnesses: &[Witness]) -> Vec<ServerId> {
    let newest = |of: &&Witness| of.elections.searches.last().map(|last| last.began_ms - of.ahead_ms);
    let mut voters =
        witnesses.iter().max_by_key(newest).map(|of| of.elections.voters.clone()).unwrap_or_default();
    voters.sort_unstable();
    voters
}

impl AskedServer {
    fn of(witness: &Witness) -> AskedServer {
        let id = witness.elections.server;
        let first = witness.elections.searches.first();
        AskedServer {
            id: Some(id),
            name: if id.0 == 0 { "this server".into() } else { format!("server {id}") },
            state: "answered",
            reason: None,
            knows_since_ms: first.map(|first| first.began_ms - witness.ahead_ms),
        }
    }

    /// A server without a record.
    pub fn silent(id: Option<ServerId>, name: String, state: &'static str, reason: String) -> AskedServer {
        AskedServer { id, name, state, reason: Some(reason), knows_since_ms: None }
    }
}

impl ElectionEntry {
    fn new(number: usize, occasion: &Occasion<'_>, voters: &[ServerId]) -> ElectionEntry {
        let (kind, winner, epoch) = match occasion.kind {
            Kind::Formed { leader, epoch } => ("formed", Some(leader), Some(epoch)),
            Kind::Joined { leader, epoch } => ("joined", Some(leader), Some(epoch)),
            Kind::Open => ("open", None, None),
        };
        let lanes = lanes(occasion, voters);
        let bands = lanes.iter().flat_map(|lane| &lane.bands);
        let began_ms = bands.map(|band| band.from_ms).min().unwrap_or_default();
        let lines = merge(occasion.parts.iter().map(moments::lines).collect(), occasion.slack_ms());
        let first = occasion.parts.iter().min_by_key(|part| part.began());
        let (moments, ballots, cut) = moments_and_ballots(lines, began_ms);
        ElectionEntry {
            number,
            kind,
            epoch,
            winner,
            under_way: occasion.kind == Kind::Open,
            began_ms,
            total_for_ms: occasion.settled().map(|settled| settled - counts_from(occasion)),
            cause: first.map_or_else(String::new, |part| capitalised(&cause(part.first()))),
            summary: summary(occasion),
            phases: phases(occasion, &lanes),
            lanes: lanes.into_iter().map(|lane| lane.counted_from(began_ms)).collect(),
            moments,
            ballots,
            left_out: cut + left_out(occasion),
        }
    }
}

/// Entries that the servers themselves did not keep.
fn left_out(occasion: &Occasion<'_>) -> usize {
    let searches = occasion.parts.iter().flat_map(|part| part.searches);
    searches.fold(0, |sum: usize, of| sum.saturating_add(of.left_out).saturating_add(of.left_out_since))
}

/// A lane for each voter and each server that took part; of a return, that server's alone. Times on the common clock.
fn lanes(occasion: &Occasion<'_>, voters: &[ServerId]) -> Vec<Lane> {
    let mut servers: BTreeSet<ServerId> = occasion.parts.iter().map(Part::server).collect();
    if !matches!(occasion.kind, Kind::Joined { .. }) {
        servers.extend(voters);
    }
    let lane = |server: ServerId| {
        let part = occasion.parts.iter().find(|part| part.server() == server);
        Lane { server, known: part.is_some(), bands: part.map(bands).unwrap_or_default() }
    };
    servers.into_iter().map(lane).collect()
}

impl Lane {
    fn counted_from(mut self, began_ms: i64) -> Lane {
        for band in &mut self.bands {
            band.from_ms -= began_ms;
            band.to_ms = band.to_ms.map(|to| to - began_ms);
        }
        self
    }
}

/// The phases of one server, on the common clock.
fn bands(part: &Part<'_>) -> Vec<Band> {
    let mut bands = Vec::new();
    for (at, search) in part.searches.iter().enumerate() {
        let began = part.wall(search, 0);
        if let Some(silent) = search.silent_ms {
            let from_ms = began - silent as i64;
            bands.push(Band { phase: Phase::Detect, from_ms, to_ms: Some(began) });
        }
        let next = part.searches.get(at + 1).map(|next| part.wall(next, 0));
        bands.extend(bands_of(part, search, next));
    }
    bands
}

/// The phases of one search. One that failed ends where the next one begins.
fn bands_of(part: &Part<'_>, search: &Search, next: Option<i64>) -> Vec<Band> {
    let wall = |ms: u64| part.wall(search, ms);
    let ends = [
        (Phase::Elect, search.elected.map(|elected| elected.ms)),
        (Phase::Discover, search.discovered.map(|discovered| discovered.ms)),
        (Phase::Synchronise, search.synchronised_ms),
        (Phase::FirstCommit, search.first_commit.map(|commit| commit.ms)),
    ];
    let (mut bands, mut from_ms) = (Vec::new(), wall(0));
    for (phase, end) in ends {
        let to_ms = end.map(wall).or(next);
        bands.push(Band { phase, from_ms, to_ms });
        match end {
            Some(end) => from_ms = wall(end),
            None => break,
        }
    }
    bands
}

/// The phases of the whole: up to the first notice of the loss, and then those of the leader. Without the leader's record,
/// those of the server that was ready first. From `elect` to `synchronise` they are the total.
fn phases(occasion: &Occasion<'_>, lanes: &[Lane]) -> Vec<PhaseTime> {
    let ready = |part: &&Part<'_>| part.synchronised().unwrap_or(i64::MAX);
    let Some(part) = occasion.leader().or_else(|| occasion.parts.iter().min_by_key(ready)) else {
        return Vec::new();
    };
    let search = part.decisive();
    let detects = lanes.iter().flat_map(|lane| &lane.bands).filter(|band| band.phase == Phase::Detect);
    let ends = [
        (Phase::Detect, Some(counts_from(occasion))),
        (Phase::Elect, search.elected.map(|elected| part.wall(search, elected.ms))),
        (Phase::Discover, search.discovered.map(|discovered| part.wall(search, discovered.ms))),
        (Phase::Synchronise, part.synchronised()),
        (Phase::FirstCommit, search.first_commit.map(|commit| part.wall(search, commit.ms))),
    ];
    let mut from = detects.map(|band| band.from_ms).min();
    let mut phase = |(name, end): (Phase, Option<i64>)| {
        let for_ms = from.zip(end).map(|(from, end)| (end - from).max(0));
        from = end;
        PhaseTime { name, for_ms }
    };
    ends.into_iter().map(&mut phase).collect()
}

/// The lines, those of the middle left out if there are too many, with the boxes that they changed. The last is how many
/// were left out.
fn moments_and_ballots(lines: Vec<Line>, began_ms: i64) -> (Vec<FileMoment>, Vec<BallotsAt>, usize) {
    let cut = lines.len().saturating_sub(MOMENTS_MAX);
    let is_kept = |at: usize| cut == 0 || at < MOMENTS_MAX / 2 || at >= MOMENTS_MAX / 2 + cut;
    let (mut moments, mut ballots) = (Vec::new(), Vec::new());
    for (_, line) in lines.into_iter().enumerate().filter(|(at, _)| is_kept(*at)) {
        let (at_ms, server) = ((line.at - began_ms).max(0), line.server);
        if let Some(votes) = line.ballots {
            ballots.push(BallotsAt { at_ms, server, moment: moments.len(), votes });
        }
        let changed = line.about.changed.map(|(voter, candidate)| ChangedVote { voter, candidate });
        moments.push(FileMoment {
            at_ms,
            server,
            kind: line.about.kind,
            sentence: line.text,
            rule: line.about.rule,
            highlights: line.about.highlights,
            changed,
        });
    }
    (moments, ballots, cut)
}
