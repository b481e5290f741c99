//! The lines of the audit log, in the form that ZooKeeper's Slf4jAuditLogger has with the pattern of its logback.xml.
//!
//! Fields are divided by TAB, and absent ones are left out. ZooKeeper writes values as they are. Here control
//! characters and backslashes are escaped, so that a path or a user name cannot look like a field or a line of its own.

use super::queue::AuditEntry;
use ostler_proto::acl::{Acl, Perms};
use ostler_server_core::audit::{AuditCaller, AuditRecord, AuditResult};
use std::fmt::{self, Write};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

/// In UTC.
const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second],[subsecond digits:3]");
/// The class of ZooKeeper's that writes such lines, as its pattern shortens it.
const LOGGER: &str = "audit.Slf4jAuditLogger";

/// The most user names in a line.
const USERS_MAX: usize = 16;
/// The mark of a cut list. No name contains it: backslashes in names are escaped.
const CUT: &str = "\\...";

/// The importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Error,
}

impl Level {
    pub(super) fn of(entry: &AuditEntry) -> Level {
        match entry {
            AuditEntry::Record(record) if record.result != AuditResult::Failure => Level::Info,
            AuditEntry::Record(_) | AuditEntry::Lost(_) => Level::Error,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Error => "ERROR",
        }
    }
}

/// The longest text of a caller that is kept for the next line, in bytes.
const KEPT_CALLER_MAX: usize = 4 << 10;

/// Makes lines. Many records have the millisecond and the caller of the one before: their text is not made again.
#[derive(Debug)]
pub(super) struct LineMaker {
    /// The user of operations of the server itself.
    server_user: String,
    /// The last time, in ms since 1970, and its text.
    time: Option<(i64, String)>,
    /// The last caller, and its fields.
    caller: Option<(AuditCaller, String)>,
}

impl LineMaker {
    pub(super) fn new(server_user: String) -> LineMaker {
        LineMaker { server_user, time: None, caller: None }
    }

    /// Appends the line of an entry, with its end. `now` is the time of a line that has no record.
    pub(super) fn append(
        &mut self,
        text: &mut String,
        entry: &AuditEntry,
        now: impl FnOnce() -> OffsetDateTime,
    ) {
        match entry {
            AuditEntry::Record(record) => self.append_time(text, record.wall_ms, now),
            AuditEntry::Lost(_) => text.push_str(&format_time(now())),
        }
        for part in [" ", Level::of(entry).name(), " ", LOGGER, ": "] {
            text.push_str(part);
        }
        let written = match entry {
            AuditEntry::Record(record) => {
                self.append_caller(text, &record.caller).and_then(|()| append_record(text, record))
            }
            AuditEntry::Lost(count) => write!(text, "audit records lost: {count}"),
        };
        written.expect("a string takes all text");
        text.push('\n');
    }

    fn append_time(&mut self, text: &mut String, wall_ms: i64, now: impl FnOnce() -> OffsetDateTime) {
        if self.time.as_ref().is_none_or(|(last, _)| *last != wall_ms) {
            let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(wall_ms) * 1_000_000);
            self.time = Some((wall_ms, format_time(time.unwrap_or_else(|_| now()))));
        }
        text.extend(self.time.iter().map(|(_, last)| last.as_str()));
    }

    fn append_caller(&mut self, text: &mut String, caller: &AuditCaller) -> fmt::Result {
        if let Some((last, fields)) = &self.caller
            && last == caller
        {
            text.push_str(fields);
            return Ok(());
        }
        let start = text.len();
        append_caller(text, caller, &self.server_user)?;
        let fields = &text[start..];
        self.caller = (fields.len() <= KEPT_CALLER_MAX).then(|| (caller.clone(), fields.to_owned()));
        Ok(())
    }
}

/// A year beyond 9999 cannot be shown.
fn format_time(time: OffsetDateTime) -> String {
    time.format(TIME).unwrap_or_default()
}

/// Appends the first fields: who has done it.
fn append_caller(text: &mut String, caller: &AuditCaller, server_user: &str) -> fmt::Result {
    match caller {
        AuditCaller::Client { session, users, address } => {
            write!(text, "session={session}	user=")?;
            append_users(text, users)?;
            write!(text, "	ip={address}")
        }
        AuditCaller::Server { session } => {
            if let Some(session) = session {
                write!(text, "session={session}\t")?;
            }
            text.push_str("user=");
            escape(text, server_user, false)
        }
    }
}

/// Appends the fields behind those of the caller.
fn append_record(text: &mut String, record: &AuditRecord) -> fmt::Result {
    text.push_str("\toperation=");
    text.push_str(record.operation.name());
    if let Some(znode) = &record.znode {
        text.push_str("\tznode=");
        escape(text, znode, false)?;
    }
    if let Some(znode_type) = record.znode_type {
        text.push_str("\tznode_type=");
        text.push_str(znode_type.name());
    }
    if let Some(acl) = &record.acl {
        text.push_str("\tacl=");
        for entry in acl {
            append_entry(text, entry)?;
        }
    }
    text.push_str("\tresult=");
    text.push_str(record.result.name());
    Ok(())
}

/// Appends user names, divided by commas. A client chooses the names of the scheme `digest`, and every write has them
/// in its line: the core has cut long names, and a long list is cut here.
fn append_users(text: &mut String, users: &[String]) -> fmt::Result {
    for (at, user) in users.iter().enumerate() {
        if at > 0 {
            text.write_char(',')?;
        }
        if at == USERS_MAX {
            return text.write_str(CUT);
        }
        escape(text, user, true)?;
    }
    Ok(())
}

/// Entries have nothing between them, as in ZooKeeper.
fn append_entry(text: &mut String, entry: &Acl) -> fmt::Result {
    escape(text, &entry.id.scheme, false)?;
    text.write_char(':')?;
    escape(text, &entry.id.id, false)?;
    text.write_char(':')?;
    let letters = [
        (Perms::CREATE, 'c'),
        (Perms::DELETE, 'd'),
        (Perms::READ, 'r'),
        (Perms::WRITE, 'w'),
        (Perms::ADMIN, 'a'),
    ];
    letters
        .iter()
        .filter(|(perm, _)| entry.perms.any_of(*perm))
        .try_for_each(|(_, letter)| text.write_char(*letter))
}

/// Appends a value. Characters that end a line somewhere, or turn the direction of text, count as control characters.
/// In a list of user names a comma is escaped, too.
fn escape(text: &mut String, value: &str, in_list: bool) -> fmt::Result {
    // Nearly all values are as they are.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'\\' && !(in_list && byte == b',');
    if value.bytes().all(is_plain) {
        text.push_str(value);
        return Ok(());
    }
    for c in value.chars() {
        match c {
            '\t' => text.write_str("\\t")?,
            '\n' => text.write_str("\\n")?,
            '\r' => text.write_str("\\r")?,
            '\\' => text.write_str("\\\\")?,
            ',' if in_list => text.write_str("\\u002c")?,
            '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                write!(text, "\\u{:04x}", u32::from(c))?;
            }
            c if c.is_control() => write!(text, "\\u{:04x}", u32::from(c))?,
            c => text.write_char(c)?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
