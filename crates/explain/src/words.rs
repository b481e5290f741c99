//! How numbers, times and lists are said.

use ostler_proto::{election::Candidate, id::ServerId};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

const CLOCK: &[BorrowedFormatItem<'_>] = format_description!("[hour]:[minute]:[second].[subsecond digits:3]");
const DAY: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// `12:00:01.234`, in UTC.
pub fn clock(wall_ms: i64) -> String {
    formatted(wall_ms, CLOCK)
}

/// `2026-11-21`, in UTC.
pub fn day(wall_ms: i64) -> String {
    formatted(wall_ms, DAY)
}

fn formatted(wall_ms: i64, form: &[BorrowedFormatItem<'_>]) -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(wall_ms) * 1_000_000);
    // Clocks can be wrong by more than a calendar holds.
    moment.ok().and_then(|moment| moment.format(form).ok()).unwrap_or_else(|| format!("{wall_ms} ms"))
}

/// `14 ms`, `2.5 s`.
pub(crate) fn duration(ms: i64) -> String {
    if ms < 10_000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1000.0) }
}

/// `1`, `1 and 2`, `1, 2 and 3`.
pub(crate) fn list(numbers: &[ServerId]) -> String {
    let texts: Vec<String> = numbers.iter().map(ServerId::to_string).collect();
    match texts.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// `server 1`, `servers 1 and 2`.
pub(crate) fn servers(numbers: &[ServerId]) -> String {
    format!("server{} {}", if numbers.len() == 1 { "" } else { "s" }, list(numbers))
}

/// `(epoch 1, zxid 0x100000005)`.
pub(crate) fn standing(vote: Candidate) -> String {
    format!("(epoch {}, zxid {:#x})", vote.epoch, vote.zxid.0)
}

/// A candidate and its history, as in `itself (epoch 1, zxid 0x100000005)`.
pub(crate) fn whom(voter: ServerId, vote: Candidate) -> String {
    format!("{} {}", name(voter, vote), standing(vote))
}

/// `itself`, `server 2`.
pub(crate) fn name(voter: ServerId, vote: Candidate) -> String {
    if vote.id == voter { "itself".into() } else { format!("server {}", vote.id) }
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
