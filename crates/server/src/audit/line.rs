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

/// The most characters of a user name in a line. The names of certificates and of Kerberos are shorter.
const USER_MAX: usize = 512;
/// The most user names in a line.
const USERS_MAX: usize = 16;
/// The mark of a cut name or list. No name contains it: backslashes in names are escaped.
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

/// Appends the line of an entry, with its end. `server_user` is the user of operations of the server itself, `now` the
/// time of a line that has no record.
pub(super) fn append(text: &mut String, entry: &AuditEntry, server_user: &str, now: OffsetDateTime) {
    let time = match entry {
        AuditEntry::Record(record) => {
            OffsetDateTime::from_unix_timestamp_nanos(i128::from(record.wall_ms) * 1_000_000).unwrap_or(now)
        }
        AuditEntry::Lost(_) => now,
    };
    // A year beyond 9999 cannot be shown.
    let time = time.format(TIME).unwrap_or_default();
    let level = Level::of(entry).name();
    let fields = |f: &mut Fields<'_>| match entry {
        AuditEntry::Record(record) => append_record(f, record, server_user),
        AuditEntry::Lost(count) => write!(f.text, "audit records lost: {count}"),
    };
    let written = write!(text, "{time} {level} {LOGGER}: ")
        .and_then(|()| fields(&mut Fields { text, first: true }))
        .and_then(|()| text.write_char('\n'));
    written.expect("a string takes all text");
}

/// The fields of a line.
struct Fields<'a> {
    text: &'a mut String,
    first: bool,
}

impl Fields<'_> {
    /// Begins a field. Its value follows.
    fn begin(&mut self, key: &str) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.text.write_char('\t')?;
        }
        write!(self.text, "{key}=")
    }

    fn add(&mut self, key: &str, value: &str) -> fmt::Result {
        self.begin(key)?;
        escape(self.text, value, false)
    }
}

fn append_record(f: &mut Fields<'_>, record: &AuditRecord, server_user: &str) -> fmt::Result {
    match &record.caller {
        AuditCaller::Client { session, users, address } => {
            f.begin("session")?;
            write!(f.text, "{session}")?;
            f.begin("user")?;
            append_users(f.text, users)?;
            f.begin("ip")?;
            write!(f.text, "{address}")?;
        }
        AuditCaller::Server { session } => {
            if let Some(session) = session {
                f.begin("session")?;
                write!(f.text, "{session}")?;
            }
            f.add("user", server_user)?;
        }
    }
    f.add("operation", record.operation.name())?;
    if let Some(znode) = &record.znode {
        f.add("znode", znode)?;
    }
    if let Some(znode_type) = record.znode_type {
        f.add("znode_type", znode_type.name())?;
    }
    if let Some(acl) = &record.acl {
        f.begin("acl")?;
        for entry in acl {
            append_entry(f.text, entry)?;
        }
    }
    f.add("result", record.result.name())
}

/// Appends user names, divided by commas. A client chooses the names of the scheme `digest`, and every write has them
/// in its line: a long name is cut, and so is a long list.
fn append_users(text: &mut String, users: &[String]) -> fmt::Result {
    for (at, user) in users.iter().enumerate() {
        if at > 0 {
            text.write_char(',')?;
        }
        if at == USERS_MAX {
            return text.write_str(CUT);
        }
        match user.char_indices().nth(USER_MAX) {
            None => escape(text, user, true)?,
            Some((end, _)) => {
                escape(text, &user[..end], true)?;
                text.write_str(CUT)?;
            }
        }
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
