//! The facts of a case, in sentences.

use super::{ActingOperator, Case, EndCause, EndedConnection, EndedPart, EndsReport, HostState, Witness};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// The name of an operator, in brackets; nothing if it is not known.
pub(super) fn named(by: Option<&ActingOperator>) -> String {
    by.map_or_else(String::new, |by| format!(" ({by})"))
}

/// The most gaps, paths and places that a sentence names.
const NAMED_MAX: usize = 8;

/// The facts of all records, in the order of time.
pub(super) fn facts(case: &Case<'_>, clock: &dyn Fn(i64) -> String) -> Vec<String> {
    let mut facts = Vec::new();
    for witness in &case.records {
        of_record(*witness, clock, &mut facts);
    }
    for report in case.reports {
        for one in report.living.iter().filter(|one| one.session == case.session) {
            if let (Some(address), Some(since)) = (one.address, one.established_ms) {
                let server = report.server.0;
                facts.push(format!(
                    "The session lives: its client is connected from {address} to server {server} since {}, and was \
                     last heard of {} ms ago.",
                    clock(since),
                    one.silent_ms.unwrap_or(0)
                ));
            }
        }
    }
    let (first, last) = (case.records.first(), case.records.last());
    if let (Some(first), Some(last)) = (first, last) {
        let since = first.end.connection.as_ref().map_or(first.end.ended_ms, |of| of.last_heard_ms);
        for report in case.reports {
            not_working(report, (since, last.end.ended_ms), clock, &mut facts);
        }
    }
    facts
}

fn of_record(witness: Witness<'_>, clock: &dyn Fn(i64) -> String, facts: &mut Vec<String>) {
    let Witness { report, end } = witness;
    let (server, at) = (report.server.0, clock(end.ended_ms));
    match (end.part, &end.connection) {
        (EndedPart::Session, Some(of)) if end.led => {
            facts.push(format!(
                "At {at} server {server} {}. {}",
                ended(&end.cause),
                connected(of, server, clock)
            ));
        }
        (EndedPart::Session, Some(of)) => facts.push(format!(
            "At {at} server {server} saw the end of the session. {}",
            connected(of, server, clock)
        )),
        (EndedPart::Session, None) => facts.push(format!("At {at} server {server} {}.", ended(&end.cause))),
        (EndedPart::Connection, Some(of)) => {
            facts.push(format!(
                "At {at} server {server} {}. {}",
                lost(&end.cause),
                connected(of, server, clock)
            ));
        }
        (EndedPart::Connection, None) => {}
    }
    if let Some(of) = &end.connection {
        facts.extend(host(of));
    }
    let gone = &end.ephemerals;
    if gone.count > 0 && end.led {
        let named =
            gone.paths.iter().take(NAMED_MAX).map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
        let more = if gone.count as usize > NAMED_MAX { ", ..." } else { "" };
        facts.push(format!("{} went with the session: {named}{more}.", ephemerals(gone.count)));
        for passed in gone.passed.iter().take(NAMED_MAX) {
            facts.push(format!(
                "{} was first in line; {} of session {} is now.",
                passed.from, passed.to, passed.session
            ));
        }
    }
    for back in &end.returns {
        let at = clock(back.at_ms);
        facts.push(match &back.refused {
            None => format!("At {at} the client came back to server {server} from {}.", back.address),
            Some(EndCause::SessionGone) => format!(
                "At {at} the client came back to server {server} from {}, after the end of its session.",
                back.address
            ),
            Some(cause) => {
                format!("At {at} server {server} refused the client ({}): {}.", back.address, refusal(cause))
            }
        });
    }
}

fn ephemerals(count: u64) -> String {
    if count == 1 { "1 ephemeral znode".to_string() } else { format!("{count} ephemeral znodes") }
}

fn connected(of: &EndedConnection, server: i64, clock: &dyn Fn(i64) -> String) -> String {
    let gaps: Vec<String> = of.gaps_ms.iter().map(u32::to_string).collect();
    let gaps = match gaps.as_slice() {
        [] => String::new(),
        gaps => format!("; the last gaps between its requests were {} ms", gaps.join(", ")),
    };
    format!(
        "The client was connected from {} to server {server} since {}, and was last heard of at {}{gaps}.",
        of.address,
        clock(of.established_ms),
        clock(of.last_heard_ms)
    )
}

fn host(of: &EndedConnection) -> Option<String> {
    let what = match of.host {
        HostState::Unknown => return None,
        HostState::Closed => "acknowledged the end of the connection, and its program closed its side",
        HostState::Acknowledged => "acknowledged the end of the connection, but its program did nothing",
        HostState::Silent => "did not acknowledge the end of the connection",
    };
    Some(format!("The client's host {what}."))
}

fn ended(cause: &EndCause) -> String {
    match cause {
        EndCause::ClosedByClient => "ended the session, as its client closed it".into(),
        EndCause::Expired { timeout_ms, silent_ms } => format!(
            "let the session expire: its timeout is {timeout_ms} ms, and the server had heard nothing for {silent_ms} ms"
        ),
        EndCause::ByOperator { by } => {
            format!("ended the session on demand of an operator{}", named(by.as_ref()))
        }
        EndCause::EndedByLeader => "saw the end of the session, by the leader".into(),
        other => lost(other),
    }
}

fn lost(cause: &EndCause) -> String {
    match cause {
        EndCause::ClosedByClient => "closed the connection, as the client closed its session".into(),
        EndCause::Moved { to: Some(to) } => {
            format!("closed the connection, as the client had come back to server {}", to.0)
        }
        EndCause::Moved { to: None } => "closed the connection, as the client had come back elsewhere".into(),
        EndCause::Silent { timeout_ms, silent_ms } => format!(
            "closed the connection, as nothing had come for {silent_ms} ms (the session's timeout is {timeout_ms} ms)"
        ),
        EndCause::ConnectionClosed => "lost the connection: the client's side closed it".into(),
        EndCause::ConnectionReset => "lost the connection: it was reset".into(),
        EndCause::ConnectionTimedOut => {
            "lost the connection: the client's host acknowledged nothing any more".into()
        }
        EndCause::ConnectionFailed { error } => format!("lost the connection: {error}"),
        EndCause::Lost => "lost the connection".into(),
        EndCause::Expired { .. } | EndCause::EndedByLeader => ended(cause),
        other => format!("closed the connection: {}", refusal(other)),
    }
}

fn refusal(cause: &EndCause) -> String {
    match cause {
        EndCause::SessionGone => "its session had ended".into(),
        EndCause::PasswordUnknown => "this server cannot check the session's password".into(),
        EndCause::ClientAhead => "the client has seen a later transaction than this server has".into(),
        EndCause::ByOperator { .. } => "an operator asked for it".into(),
        other => super::closed_by_server(other, 0).map_or_else(
            || "no reason is known".into(),
            |(_, why)| if matches!(other, EndCause::LeaderLost) { "it had no leader".into() } else { why },
        ),
    }
}

/// Times in which a server did not work, while the session was on its way to its end.
fn not_working(
    report: &EndsReport,
    (from, to): (i64, i64),
    clock: &dyn Fn(i64) -> String,
    facts: &mut Vec<String>,
) {
    let server = report.server.0;
    for pause in report.pauses.iter().filter(|pause| pause.overlaps(from, to)).take(NAMED_MAX) {
        let ms = pause.to_ms - pause.from_ms;
        facts.push(format!("Server {server} did not run for {ms} ms, until {}.", clock(pause.to_ms)));
    }
    for stall in report.disk_stalls.iter().filter(|stall| stall.overlaps(from, to)).take(NAMED_MAX) {
        let ms = stall.to_ms - stall.from_ms;
        facts.push(format!(
            "The disk of server {server} took {ms} ms for a write, until {}.",
            clock(stall.to_ms)
        ));
    }
    if (from..=to).contains(&report.started_ms) {
        facts.push(format!("Server {server} started at {}.", clock(report.started_ms)));
    }
}

/// Why nothing is known at all.
pub(super) fn no_record(reports: &[EndsReport]) -> String {
    if reports.is_empty() {
        return "cannot be known, because no server answered".into();
    }
    let has_forgotten = reports.iter().any(|report| report.has_forgotten);
    let why = if has_forgotten {
        "no server that was asked has a record of it, and some have forgotten older records"
    } else {
        "no server that was asked has seen its end since it started"
    };
    format!("cannot be known, because {why}")
}
