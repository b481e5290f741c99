//! `ostler explain session`: why a client's session or connection ended, from the records of its servers.

use super::admin_access::{AccessError, AdminAccess};
use crate::admin_http::{AdminClient, AdminError};
use clap::Args;
use ostler_explain::words::{clock, day};
use ostler_proto::id::SessionId;
use ostler_server_core::sessions::ends::{
    EndsQuery, EndsReport, session_of,
    verdict::{Verdict, judge},
};
use serde::Serialize;
use std::{collections::BTreeSet, fmt, fs, io, path::PathBuf, process::ExitCode, thread};

/// The most sessions of one address that are explained.
const SESSIONS_MAX: usize = 20;
/// The most pages that are asked of one server.
const PAGES_MAX: usize = 100;

/// Why a session ended: closed, expired, moved, refused; by the client, the network, a server or an operator
///
/// Asks the HTTP admin server of each member, as each has only what it saw itself. Servers keep the records of the last
/// few thousand ends in memory, so they know nothing from before their start.
#[derive(Args)]
#[command(
    after_help = "Example: ostler explain session 10.0.0.5 --admin http://host1:8080,http://host2:8080,http://host3:8080"
)]
pub(super) struct SessionArgs {
    /// The session's id (0x100a3f77c2d10004), or the client's address (10.0.0.5 or 10.0.0.5:41234).
    #[arg(value_name = "ID|ADDRESS")]
    subject: String,
    /// Read answers of the command session_ends from these files instead of asking servers.
    #[arg(long = "from", value_delimiter = ',', value_name = "FILE,...")]
    files: Vec<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AdminAccess,
}

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("{0} is neither a session id (0x and hexadecimal digits) nor an address")]
    Subject(String),
    #[error("cannot read {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{} has no answer of the command session_ends: {cause}", path.display())]
    NoReport { path: PathBuf, cause: serde_json::Error },
    #[error("{0}")]
    Access(#[from] AccessError),
}

/// A server that gave no answer, and why.
#[derive(Debug, Serialize)]
struct Silent {
    server: String,
    problem: String,
}

/// The answers, and the servers without one.
#[derive(Debug, Default)]
struct Heard {
    reports: Vec<EndsReport>,
    silent: Vec<Silent>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Explained {
    sessions: Vec<Verdict>,
    silent: Vec<Silent>,
    /// Sessions of the address that are left out.
    left_out: usize,
}

impl SessionArgs {
    pub(super) fn run(self) -> ExitCode {
        match self.explain() {
            Ok(explained) => {
                match serde_json::to_string(&explained) {
                    Ok(json) if self.json => println!("{json}"),
                    _ => print!("{explained}"),
                }
                if explained.sessions.is_empty() {
                    eprintln!("ostler explain: {}", nothing(&explained, &self.subject));
                    return ExitCode::FAILURE;
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("ostler explain: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn explain(&self) -> Result<Explained, ExplainError> {
        let query =
            EndsQuery::of(&self.subject).ok_or_else(|| ExplainError::Subject(self.subject.clone()))?;
        let files = self.read_files()?;
        let client = self.access.client()?;
        let ask = |name: &str, value: &str| match &files {
            Some(reports) => Heard { reports: reports.clone(), silent: Vec::new() },
            None => ask_all(&client, &self.access.admin, (name, value)),
        };
        if let Some(session) = query.session {
            let heard = ask("session", &session.to_string());
            let sessions = if heard.reports.is_empty() {
                Vec::new()
            } else {
                vec![judge(session, &heard.reports, &moment)]
            };
            return Ok(Explained { sessions, silent: heard.silent, left_out: 0 });
        }
        let heard = ask("address", &self.subject);
        let all = sessions_at(&heard.reports, &query);
        let left_out = all.len().saturating_sub(SESSIONS_MAX);
        // Other servers may know these sessions by other addresses, or by none.
        let verdict = |session: &SessionId| {
            let heard = ask("session", &session.to_string());
            judge(*session, &heard.reports, &moment)
        };
        let sessions = all[left_out..].iter().map(verdict).collect();
        Ok(Explained { sessions, silent: heard.silent, left_out })
    }

    /// The reports of the files; `None` if servers are asked.
    fn read_files(&self) -> Result<Option<Vec<EndsReport>>, ExplainError> {
        let report = |path: &PathBuf| {
            let text = fs::read(path).map_err(|cause| ExplainError::File { path: path.clone(), cause })?;
            serde_json::from_slice(&text)
                .map_err(|cause| ExplainError::NoReport { path: path.clone(), cause })
        };
        let reports: Result<Vec<EndsReport>, ExplainError> = self.files.iter().map(report).collect();
        Ok(if self.files.is_empty() { None } else { Some(reports?) })
    }
}

/// The sessions at an address, in the order of their last ends; those that live come last.
fn sessions_at(reports: &[EndsReport], query: &EndsQuery) -> Vec<SessionId> {
    let mut ends: Vec<(i64, SessionId)> = Vec::new();
    for report in reports {
        ends.extend(
            report.ends.iter().filter(|end| query.is_about(end)).map(|end| (end.ended_ms, end.session)),
        );
        ends.extend(report.living.iter().map(|living| (i64::MAX, living.session)));
    }
    ends.sort_unstable();
    let mut seen = BTreeSet::new();
    let mut sessions: Vec<SessionId> =
        ends.into_iter().rev().map(|(_, session)| session).filter(|session| seen.insert(*session)).collect();
    sessions.reverse();
    sessions
}

/// Asks all servers at once.
fn ask_all(client: &AdminClient, servers: &[String], about: (&str, &str)) -> Heard {
    let answers: Vec<_> = thread::scope(|scope| {
        let asked: Vec<_> =
            servers.iter().map(|server| scope.spawn(move || ask_one(client, server, about))).collect();
        asked.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let mut heard = Heard::default();
    for (server, answer) in servers.iter().zip(answers) {
        match answer {
            Ok(Ok(report)) if heard.reports.iter().any(|other| other.server == report.server) => {}
            Ok(Ok(report)) => heard.reports.push(report),
            Ok(Err(error)) => {
                heard.silent.push(Silent { server: server.clone(), problem: error.to_string() });
            }
            Err(_) => heard.silent.push(Silent { server: server.clone(), problem: "was not asked".into() }),
        }
    }
    heard
}

/// All pages of one server.
fn ask_one(client: &AdminClient, server: &str, about: (&str, &str)) -> Result<EndsReport, AdminError> {
    let mut report: EndsReport = client.get(server, "session_ends", &[about])?;
    for _ in 1..PAGES_MAX {
        let Some(after) = report.next else { break };
        let after = after.to_string();
        let page: EndsReport = client.get(server, "session_ends", &[about, ("after", &after)])?;
        report.ends.extend(page.ends);
        report.next = page.next;
    }
    Ok(report)
}

/// `2026-11-21 12:00:01.234`, in UTC.
fn moment(wall_ms: i64) -> String {
    format!("{} {}", day(wall_ms), clock(wall_ms))
}

fn nothing(explained: &Explained, subject: &str) -> String {
    if !explained.silent.is_empty() {
        return "no server answered that knows of it, so there is nothing to explain".into();
    }
    match session_of(subject) {
        Some(_) => "there is nothing to explain".into(),
        None => format!("no server that was asked has a record of a client at {subject}"),
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out > 0 {
            writeln!(f, "Earlier sessions of this address are left out: {}.\n", self.left_out)?;
        }
        for (at, verdict) in self.sessions.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            writeln!(f, "Session {}: {}.", verdict.session, verdict.headline())?;
            writeln!(f)?;
            for fact in &verdict.facts {
                writeln!(f, "  {fact}")?;
            }
        }
        for silent in &self.silent {
            writeln!(f, "Note: {} {}", silent.server, silent.problem)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: SessionArgs,
    }

    /// The answers of a follower and of its leader, after a client was stopped.
    const FOLLOWER: &str = r#"{"command": "session_ends", "error": null, "server": 2, "now_ms": 99000, "started_ms": 0,
        "pauses": [], "disk_stalls": [], "living": [], "next": null, "has_forgotten": false, "ends": [{"number": 4,
        "session": "0x200000000000007", "part": "connection", "ended_ms": 22000, "cause": {"kind": "silent",
        "timeout_ms": 10000, "silent_ms": 11000}, "led": false, "timeout_ms": 10000, "connection": {"number": 9,
        "address": "10.0.0.5:41234", "established_ms": 1000, "last_heard_ms": 11000, "gaps_ms": [3300, 3300],
        "longest_gap_ms": 3300, "requests": 3, "unanswered": 0, "host": "acknowledged"}, "earlier": null,
        "served_by": null, "server_left": false, "ephemerals": {"count": 0, "paths": [], "passed": []},
        "returns": []}]}"#;
    const LEADER: &str = r#"{"server": 1, "now_ms": 99000, "started_ms": 0, "pauses": [], "disk_stalls": [],
        "living": [], "next": null, "has_forgotten": false, "ends": [{"number": 1, "session": "0x200000000000007",
        "part": "session", "ended_ms": 22500, "cause": {"kind": "expired", "timeout_ms": 10000, "silent_ms": 10400},
        "led": true, "timeout_ms": 10000, "connection": null, "earlier": null, "served_by": 2, "server_left": false,
        "ephemerals": {"count": 1, "paths": ["/locks/a-0000000001"], "passed": [{"from": "/locks/a-0000000001",
        "to": "/locks/a-0000000002", "session": "0x100000000000002"}]}, "returns": []}]}"#;

    fn explained(subject: &str, answers: &[&str]) -> Result<Explained, ExplainError> {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<String> = answers
            .iter()
            .enumerate()
            .map(|(at, answer)| {
                let path = folder.path().join(format!("{at}.json"));
                fs::write(&path, answer).unwrap();
                path.display().to_string()
            })
            .collect();
        Cli::parse_from(["session", subject, "--from", &files.join(",")]).args.explain()
    }

    #[test]
    fn the_answers_of_follower_and_leader_are_put_together() {
        for subject in ["0x200000000000007", "10.0.0.5", "10.0.0.5:41234"] {
            let text = explained(subject, &[FOLLOWER, LEADER]).unwrap().to_string();
            assert!(text.starts_with("Session 0x200000000000007: the client was paused: "), "{text}");
            for words in
                ["3300, 3300 ms", "server 1 let the session expire", "/locks/a-0000000002 of session 0x1"]
            {
                assert!(text.contains(words), "{words} in {text}");
            }
        }
        let text = explained("0x200000000000007", &[LEADER]).unwrap().to_string();
        assert!(
            text.contains("the cause cannot be known, because the client was connected to server 2"),
            "{text}"
        );
        assert!(explained("10.0.0.6", &[FOLLOWER, LEADER]).unwrap().sessions.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert!(matches!(explained("host", &[LEADER]), Err(ExplainError::Subject(_))));
        assert!(matches!(explained("0x1", &["{}"]), Err(ExplainError::NoReport { .. })));
        let args = Cli::parse_from(["session", "0x1", "--from", "/no/such/file"]).args;
        assert!(matches!(args.explain(), Err(ExplainError::File { .. })));
    }
}
