//! The page for people, as a text.

use crate::{
    moments,
    occasion::{Occasion, Part},
    records::Search,
    summary::summary,
    timeline::{Line, merge},
    witness::Witness,
    words::{clock, day, duration, list, standing},
};
use ostler_proto::{election::Candidate, id::ServerId};
use ostler_zab::election::ElectionEvent;
use std::fmt::{self, Display};

/// Columns of text beside time and server.
const WIDTH: usize = 92;

/// Elections as a text, one after the other.
#[derive(Debug)]
pub struct Page {
    elections: Vec<Section>,
    /// The servers that were asked, and those that did not answer.
    remarks: Vec<String>,
}

/// One occasion.
#[derive(Debug)]
struct Section {
    summary: String,
    timeline: Vec<Told>,
    phases_ms: Vec<Phases>,
    ballots: Vec<Ballots>,
}

#[derive(Debug)]
struct Told {
    wall_ms: i64,
    server: ServerId,
    text: String,
}

/// How long each phase took one server, in milliseconds.
#[derive(Debug, Default)]
struct Phases {
    server: ServerId,
    /// From the leader's last word until its loss was noticed.
    detect: Option<u64>,
    /// Searches that came to nothing.
    attempts: Option<u64>,
    elect: Option<u64>,
    discover: Option<u64>,
    synchronise: Option<u64>,
    first_commit: Option<u64>,
}

/// The votes that one server had counted in the end.
#[derive(Debug)]
struct Ballots {
    server: ServerId,
    round: u64,
    /// Voter, and whom it backs.
    votes: Vec<(ServerId, String)>,
}

impl Page {
    /// These occasions. `silent` are servers that did not answer, each with the reason.
    pub fn new(occasions: &[Occasion<'_>], witnesses: &[Witness], silent: &[(String, String)]) -> Page {
        Page { elections: occasions.iter().map(Section::new).collect(), remarks: remarks(witnesses, silent) }
    }
}

fn remarks(witnesses: &[Witness], silent: &[(String, String)]) -> Vec<String> {
    let silent = silent.iter().map(|(server, why)| format!("{server} {why}"));
    silent.chain(remarks_about(witnesses)).collect()
}

/// Remarks about servers that have answered.
pub(crate) fn remarks_about(witnesses: &[Witness]) -> Vec<String> {
    let mut remarks = Vec::new();
    for witness in witnesses {
        let server = witness.elections.server;
        if witness.elections.voters.is_empty() {
            remarks.push(format!("server {server} is standalone and takes part in no election"));
        }
        if witness.ahead_ms != 0 {
            let (by, way) =
                (witness.ahead_ms.abs(), if witness.ahead_ms > 0 { "ahead of" } else { "behind" });
            remarks.push(format!(
                "the clock of server {server} is {} {way} that of the first server; its times are corrected",
                duration(by)
            ));
        }
    }
    remarks
}

impl Section {
    fn new(occasion: &Occasion<'_>) -> Section {
        let lines = merge(occasion.parts.iter().map(moments::lines).collect(), occasion.slack_ms());
        Section {
            summary: summary(occasion).join(" "),
            timeline: lines
                .into_iter()
                .map(|Line { at, server, text, .. }| Told { wall_ms: at, server, text })
                .collect(),
            phases_ms: occasion.parts.iter().map(Phases::of).collect(),
            ballots: occasion.parts.iter().filter_map(Ballots::of).collect(),
        }
    }
}

impl Phases {
    fn of(part: &Part<'_>) -> Phases {
        let search = part.decisive();
        let between = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
        let elected = search.elected.map(|elected| elected.ms);
        let discovered = search.discovered.map(|discovered| discovered.ms);
        let commit = search.first_commit.map(|commit| commit.ms);
        let failed = part.searches.len() > 1;
        Phases {
            server: part.server(),
            detect: part.first().silent_ms,
            attempts: failed.then(|| (part.wall(search, 0) - part.began()).max(0) as u64),
            elect: elected,
            discover: between(elected, discovered),
            synchronise: between(discovered, search.synchronised_ms),
            first_commit: between(search.synchronised_ms, commit),
        }
    }

    fn rows(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("detect", self.detect),
            ("failed attempts", self.attempts),
            ("elect", self.elect),
            ("discover", self.discover),
            ("synchronise", self.synchronise),
            ("first commit", self.first_commit),
        ]
    }
}

impl Ballots {
    fn of(part: &Part<'_>) -> Option<Ballots> {
        let search = part.decisive();
        let (vote, ballots) = search.moments.iter().find_map(|moment| match &moment.event {
            ElectionEvent::Elected { candidate: vote, votes: ballots } => Some((*vote, ballots)),
            _ => None,
        })?;
        let me = part.server();
        let votes = ballots.iter().map(|ballot| (ballot.voter, ballot.candidate));
        // A voter's own vote is in no box; it counts all the same.
        let own = part.witness.elections.voters.contains(&me).then_some((me, vote));
        let mut votes: Vec<_> = votes.chain(own).collect();
        votes.sort_by_key(|(voter, of)| (*voter, of.id != vote.id));
        // Whoever was heard of as a follower of somebody else first has changed its mind.
        votes.dedup_by_key(|(voter, _)| *voter);
        let said =
            |(voter, vote): (ServerId, Candidate)| (voter, format!("server {} {}", vote.id, standing(vote)));
        Some(Ballots { server: me, round: round(search), votes: votes.into_iter().map(said).collect() })
    }
}

/// The last one that the server took part in.
fn round(search: &Search) -> u64 {
    let rounds = search.moments.iter().filter_map(|moment| match moment.event {
        ElectionEvent::Began { round, .. } | ElectionEvent::SentToAll { round, .. } => Some(round),
        _ => None,
    });
    rounds.max().unwrap_or(0)
}

impl Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, section) in self.elections.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            section.fmt(f)?;
        }
        if !self.remarks.is_empty() && !self.elections.is_empty() {
            writeln!(f)?;
        }
        for remark in &self.remarks {
            writeln!(f, "Note: {remark}.")?;
        }
        Ok(())
    }
}

impl Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_wrapped(f, &self.summary, "", WIDTH + 24)?;
        writeln!(f)?;
        if let Some(first) = self.timeline.first() {
            writeln!(f, "{} UTC", day(first.wall_ms))?;
        }
        for told in &self.timeline {
            write!(f, "{}  server {:<3}", clock(told.wall_ms), told.server)?;
            write_wrapped(f, &told.text, "                        ", WIDTH)?;
        }
        self.write_phases(f)?;
        self.write_ballots(f)
    }
}

impl Section {
    fn write_phases(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:<18}", "Phases in ms")?;
        for phases in &self.phases_ms {
            write!(f, "{:>12}", format!("server {}", phases.server))?;
        }
        writeln!(f)?;
        let columns: Vec<_> = self.phases_ms.iter().map(Phases::rows).collect();
        for row in 0..columns.first().map_or(0, |column| column.len()) {
            let cells: Vec<Option<u64>> = columns.iter().map(|column| column[row].1).collect();
            let name = columns[0][row].0;
            if name == "failed attempts" && cells.iter().all(Option::is_none) {
                continue;
            }
            write!(f, "  {name:<16}")?;
            for cell in cells {
                write!(f, "{:>12}", cell.map_or_else(|| "-".into(), |ms| ms.to_string()))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_ballots(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.ballots.is_empty() {
            writeln!(f, "\nVotes at the end")?;
        }
        for ballots in &self.ballots {
            let mut by_candidate: Vec<(&str, Vec<ServerId>)> = Vec::new();
            for (voter, whom) in &ballots.votes {
                match by_candidate.iter_mut().find(|(of, _)| of == whom) {
                    Some((_, voters)) => voters.push(*voter),
                    None => by_candidate.push((whom, vec![*voter])),
                }
            }
            let said = by_candidate.iter().map(|(whom, voters)| format!("{} for {whom}", list(voters)));
            let text = said.collect::<Vec<_>>().join("; ");
            write!(f, "  {:<14}", format!("server {}", ballots.server))?;
            write_wrapped(f, &format!("round {}: {text}", ballots.round), "                ", WIDTH)?;
        }
        Ok(())
    }
}

/// Lines after the first are set behind `indent`.
fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str, indent: &str, width: usize) -> fmt::Result {
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > width {
            write!(f, "\n{indent}")?;
            column = 0;
        }
        if column > 0 {
            write!(f, " ")?;
            column += 1;
        }
        write!(f, "{word}")?;
        column += word.len();
    }
    writeln!(f)
}
