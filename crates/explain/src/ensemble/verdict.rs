//! The state of an ensemble in one sentence.

use super::{
    findings::{Finding, Gravity, Up, up},
    state::{Observed, ServerState},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How well it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing has to be done.
    Ok,
    /// Something will be wrong soon.
    Warning,
    /// Clients are not served, or data are in danger.
    Critical,
}

impl From<Gravity> for Level {
    fn from(gravity: Gravity) -> Level {
        match gravity {
            Gravity::Grave => Level::Critical,
            Gravity::Warning => Level::Warning,
            Gravity::Note => Level::Ok,
        }
    }
}

/// The state of an ensemble in a sentence, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// How well it is.
    pub level: Level,
    /// It in words.
    pub sentence: String,
    /// The act that mends it; `None` if nothing has to be done.
    pub way_out: Option<String>,
}

/// The voters, and how far a quorum of them works together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuorumCount {
    /// All voters; 0 for a standalone server.
    pub voters: usize,
    /// The number that decides: more than half.
    pub needed: usize,
    /// The number that works together.
    pub present: usize,
    /// The number of those that may still fail.
    pub may_fail: usize,
    /// The others, with their addresses.
    #[serde(skip)]
    pub missing: Vec<(i64, String)>,
    /// The leader.
    #[serde(skip)]
    pub leader: Option<i64>,
}

/// Counts the voters.
pub fn quorum_count(all: &[Observed]) -> QuorumCount {
    count(&up(all))
}

pub(super) fn count(up: &[Up<'_>]) -> QuorumCount {
    let leader = leader(up);
    // The leader's configuration is in force; others may be behind it.
    let voters: BTreeMap<i64, String> = match leader.filter(|leader| !leader.voters.is_empty()) {
        Some(leader) => leader.voters.clone(),
        None => up.iter().flat_map(|(_, server)| server.voters.clone()).collect(),
    };
    // A leader knows its followers, also those that were not asked or did not answer.
    let mut working: BTreeSet<i64> = leader.iter().flat_map(|leader| leader.synced.iter().copied()).collect();
    working.extend(up.iter().filter(|(_, server)| server.is_in_quorum()).map(|(_, server)| server.id));
    let present = voters.keys().filter(|id| working.contains(id)).count();
    let needed = if voters.is_empty() { 0 } else { voters.len() / 2 + 1 };
    let missing = voters.iter().filter(|(id, _)| !working.contains(id));
    QuorumCount {
        voters: voters.len(),
        needed,
        present,
        may_fail: present.saturating_sub(needed),
        missing: missing.map(|(id, address)| (*id, address.clone())).collect(),
        leader: leader.map(|leader| leader.id),
    }
}

/// The server that leads: of two, the one with the later epoch. The other does not know yet that it was replaced.
pub fn leader<'a>(up: &[Up<'a>]) -> Option<&'a ServerState> {
    let leads = |server: &&ServerState| server.mode == "leader" && server.serves;
    up.iter().map(|(_, server)| *server).filter(leads).max_by_key(|server| (server.epoch, server.zxid))
}

/// The leader of these servers.
pub fn leader_of(all: &[Observed]) -> Option<&ServerState> {
    leader(&up(all))
}

/// The verdict. `found` are the findings about the same servers, the gravest first.
pub fn verdict(all: &[Observed], found: &[Finding]) -> Verdict {
    let up = up(all);
    let base = base(&up);
    let Some(worst) = found.iter().find(|finding| Level::from(finding.gravity) > base.level) else {
        return base;
    };
    let way_out = Some(worst.way_out.clone()).filter(|way_out| !way_out.is_empty()).or(base.way_out);
    Verdict {
        level: worst.gravity.into(),
        sentence: format!("{} {}", base.sentence, worst.sentence),
        way_out,
    }
}

fn base(up: &[Up<'_>]) -> Verdict {
    if up.is_empty() {
        return Verdict {
            level: Level::Critical,
            sentence: "No server answered.".into(),
            way_out: Some(
                "Look whether the servers run, and whether this machine reaches their admin ports.".into(),
            ),
        };
    }
    let count = count(up);
    if count.voters == 0 {
        return without_ensemble(up);
    }
    let of = format!("{} of {} voters", count.present, count.voters);
    if count.leader.is_none() {
        return without_leader(&count, &of);
    }
    let then = match count.may_fail {
        0 => "if one fails, nobody can write".to_owned(),
        1 => "one may fail".to_owned(),
        2 => "two may fail".to_owned(),
        more => format!("{more} may fail"),
    };
    let sentence = format!("Serving. {of}; {then}.");
    // A single voter is meant so.
    if count.missing.is_empty() {
        return Verdict { level: Level::Ok, sentence, way_out: None };
    }
    let missing: Vec<i64> = count.missing.iter().map(|(id, _)| *id).collect();
    let way_out = Some(format!("Start {}, or find out why it does not follow the leader.", names(&missing)));
    Verdict { level: Level::Warning, sentence, way_out }
}

fn without_ensemble(up: &[Up<'_>]) -> Verdict {
    if up.iter().any(|(_, server)| server.serves) {
        return Verdict {
            level: Level::Ok,
            sentence: "Serving. One server without an ensemble: if it fails, nobody is served.".into(),
            way_out: Some(
                "For an ensemble, add a server.N line for each of three servers to zoo.cfg; `ostler ensemble` shows one.".into(),
            ),
        };
    }
    let sentence = "Not serving: no server has a tree to serve.".into();
    Verdict { level: Level::Critical, sentence, way_out: Some("Read the log of the server.".into()) }
}

fn without_leader(count: &QuorumCount, of: &str) -> Verdict {
    if count.present >= count.needed {
        return Verdict {
            level: Level::Warning,
            sentence: format!("Serving. {of} follow a leader that did not answer."),
            way_out: Some("Look whether this machine reaches the admin port of the leader.".into()),
        };
    }
    let missing: Vec<i64> = count.missing.iter().map(|(id, _)| *id).collect();
    Verdict {
        level: Level::Critical,
        sentence: format!(
            "Not serving: no server leads. {of} work together, and {} are needed.",
            count.needed
        ),
        way_out: Some(format!(
            "Start {}; if they run, look whether they reach each other's quorum and election ports.",
            names(&missing)
        )),
    }
}

fn names(ids: &[i64]) -> String {
    let ids: Vec<ostler_proto::id::ServerId> = ids.iter().map(|id| ostler_proto::id::ServerId(*id)).collect();
    crate::words::servers(&ids)
}
