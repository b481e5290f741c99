//! The latest events of all servers: important lines of their logs, and actions of the user.

use std::{
    collections::VecDeque,
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

const ENTRIES_MAX: usize = 100;
/// A complaint that is among this number of last entries is counted, not repeated.
const REPEATED_WITHIN: usize = 8;

/// The beginnings of the INFO lines that are shown. All lines of WARN and ERROR are shown.
const SHOWN: [&str; 6] =
    ["looking for a leader", "elected", "leading", "following", "the log was cut back", "the leader's tree"];

const STARTED: &str = "started";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Info,
    Warning,
    Error,
    /// An action of this program or its user.
    Deed,
}

/// A time of day in UTC, in milliseconds since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOfDay(u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time: TimeOfDay,
    pub(super) server: u16,
    pub(super) weight: Weight,
    pub(super) text: String,
    pub(super) count: u32,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
}

impl Journal {
    pub(super) fn started(&mut self, server: u16, pid: u32) {
        self.deed(server, format!("{STARTED}, pid {pid}"));
    }

    pub(super) fn deed(&mut self, server: u16, text: impl Into<String>) {
        let entry =
            Entry { time: TimeOfDay::now(), server, weight: Weight::Deed, text: text.into(), count: 1 };
        self.push(entry);
    }

    /// Adds a line of a server's log, if it is important.
    pub(super) fn log_line(&mut self, server: u16, line: &str) {
        let Some((time, weight, text)) = notable(line) else { return };
        let time = time.unwrap_or_else(TimeOfDay::now);
        self.push(Entry { time, server, weight, text, count: 1 });
    }

    fn push(&mut self, mut entry: Entry) {
        if matches!(entry.weight, Weight::Warning | Weight::Error) {
            let recent = self.entries.len().saturating_sub(REPEATED_WITHIN);
            let same = |earlier: &Entry| {
                earlier.server == entry.server && message(&earlier.text) == message(&entry.text)
            };
            if let Some(at) = self.entries.iter().skip(recent).position(same)
                && let Some(earlier) = self.entries.remove(recent + at)
            {
                entry.count += earlier.count;
            }
        }
        // Logs are read one after the other, so a line that is read later may be older.
        let later = self.entries.iter().rev().take_while(|other| other.time.is_after(entry.time)).count();
        self.entries.insert(self.entries.len() - later, entry);
        if self.entries.len() > ENTRIES_MAX {
            self.entries.pop_front();
        }
    }

    /// The newest entries, the oldest of them first.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(self.entries.len().saturating_sub(count))
    }

    /// The last error of a server since it was started.
    pub(super) fn complaint(&self, server: u16) -> Option<&str> {
        let of_it = self.entries.iter().rev().filter(|entry| entry.server == server);
        let mut of_this_run = of_it.take_while(|entry| !entry.text.starts_with(STARTED));
        of_this_run.find(|entry| entry.weight == Weight::Error).map(|entry| &*entry.text)
    }
}

/// The message of a line, without its fields.
fn message(text: &str) -> &str {
    let Some((before, _)) = text.split_once('=') else { return text };
    before.rsplit_once(' ').map_or("", |(message, _)| message)
}

/// Time of day, weight and text of a line, if it is to be shown.
fn notable(line: &str) -> Option<(Option<TimeOfDay>, Weight, String)> {
    if let Some(text) = line.strip_prefix("ostler: ") {
        let aside = ["note: ", "warning: "].iter().any(|start| text.starts_with(start));
        return (!aside).then(|| (None, Weight::Error, text.to_owned()));
    }
    if line.starts_with("thread '") && line.contains("panicked at") {
        return Some((None, Weight::Error, line.to_owned()));
    }
    let (stamp, rest) = line.split_once(' ')?;
    let time = TimeOfDay::of_stamp(stamp)?;
    let (level, text) = rest.trim_start().split_once(' ')?;
    let weight = match level {
        "INFO" if SHOWN.iter().any(|start| text.starts_with(start)) => Weight::Info,
        "WARN" => Weight::Warning,
        "ERROR" => Weight::Error,
        _ => return None,
    };
    Some((Some(time), weight, text.trim_end().to_owned()))
}

impl TimeOfDay {
    const SECOND: u32 = 1000;
    const DAY: u32 = 86_400 * TimeOfDay::SECOND;

    fn now() -> TimeOfDay {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TimeOfDay((now.as_millis() % u128::from(TimeOfDay::DAY)) as u32)
    }

    /// Reads a log's `2026-11-22T06:39:47.123456Z`.
    fn of_stamp(stamp: &str) -> Option<TimeOfDay> {
        let (_, time) = stamp.strip_suffix('Z')?.split_once('T')?;
        let (seconds, fraction) = time.split_once('.')?;
        let mut parts = seconds.split(':').map(|part| part.parse::<u32>().ok());
        let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
        let ms: u32 = fraction.get(..3)?.parse().ok()?;
        Some(TimeOfDay(((hours * 60 + minutes) * 60 + seconds) * TimeOfDay::SECOND + ms))
    }

    /// Whether this time is later, if the two are less than half a day apart: the morning is after the evening.
    fn is_after(self, other: TimeOfDay) -> bool {
        let ahead = (self.0 + TimeOfDay::DAY - other.0) % TimeOfDay::DAY;
        (1..TimeOfDay::DAY / 2).contains(&ahead)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / TimeOfDay::SECOND, self.0 % TimeOfDay::SECOND);
        write!(f, "{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// The end of a log file that another process writes.
#[derive(Debug)]
pub(super) struct LogTail {
    path: PathBuf,
    at: u64,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl LogTail {
    /// Reads the file from its present end on.
    pub(super) fn new(path: &Path) -> LogTail {
        let at = std::fs::metadata(path).map_or(0, |file| file.len());
        LogTail { path: path.to_owned(), at, begun: Vec::new() }
    }

    /// The lines that have come since the last call.
    pub(super) fn lines(&mut self) -> Vec<String> {
        const AT_ONCE: u64 = 1 << 20;
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        if file.metadata().is_ok_and(|file| file.len() < self.at) {
            // The file was emptied.
            (self.at, self.begun) = (0, Vec::new());
        }
        let mut bytes = Vec::new();
        if file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| file.take(AT_ONCE).read_to_end(&mut bytes))
            .is_err()
        {
            return Vec::new();
        }
        self.at += bytes.len() as u64;
        self.begun.extend(bytes);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn important_lines_are_recognised() {
        let time = Some(TimeOfDay(23_987_123));
        for (line, expected) in [
            (
                "2026-11-22T06:39:47.123456Z  INFO elected leader=3 round=1",
                Some((Weight::Info, "elected leader=3 round=1")),
            ),
            (
                "2026-11-22T06:39:47.123456Z  WARN the leader is silent ms=2000",
                Some((Weight::Warning, "the leader is silent ms=2000")),
            ),
            ("2026-11-22T06:39:47.123456Z ERROR it broke", Some((Weight::Error, "it broke"))),
            ("2026-11-22T06:39:47.123456Z  INFO snapshot written zxid=0x1", None),
            ("listening on 127.0.0.1:2181, ready after 3 ms", None),
            ("", None),
        ] {
            let expected = expected.map(|(weight, text)| (time, weight, text.to_owned()));
            assert_eq!(notable(line), expected, "{line}");
        }
        assert_eq!(notable("ostler: zoo.cfg:3: no"), Some((None, Weight::Error, "zoo.cfg:3: no".to_owned())));
        assert_eq!(notable("ostler: note: zoo.cfg:3: no"), None);
    }

    #[test]
    fn entries_are_in_the_order_of_their_times() {
        let mut journal = Journal::default();
        let stamps = ["T23:59:59.900", "T23:59:59.950", "T00:00:00.100", "T23:59:59.920", "T23:59:59.950"];
        for (server, stamp) in (1..).zip(stamps) {
            journal.log_line(server, &format!("2026-11-22{stamp}000Z  INFO elected leader=3"));
        }
        let servers: Vec<u16> = journal.last(9).map(|entry| entry.server).collect();
        assert_eq!(servers, [1, 4, 2, 5, 3]);
        assert_eq!(journal.last(1).next().map(|entry| entry.time.to_string()).unwrap(), "00:00:00.100");
    }

    #[test]
    fn a_complaint_that_comes_again_is_counted() {
        let mut journal = Journal::default();
        for ms in [5, 6, 7] {
            journal.log_line(1, &format!("2026-11-22T06:39:47.00{ms}Z  WARN the disk is slow ms={ms}"));
            journal.log_line(2, &format!("2026-11-22T06:39:47.00{ms}Z  INFO leading epoch={ms}"));
        }
        let texts: Vec<_> = journal.last(9).map(|entry| (entry.server, &*entry.text, entry.count)).collect();
        assert_eq!(
            texts,
            [
                (2, "leading epoch=5", 1),
                (2, "leading epoch=6", 1),
                (1, "the disk is slow ms=7", 3),
                (2, "leading epoch=7", 1)
            ]
        );
        assert_eq!(journal.last(1).count(), 1);
        assert_eq!(journal.complaint(1), None, "a warning is none");
        journal.log_line(1, "ostler: zoo.cfg:3: no");
        journal.log_line(2, "ostler: zoo.cfg:4: no");
        assert_eq!(journal.complaint(1), Some("zoo.cfg:3: no"));
        journal.started(1, 77);
        assert_eq!(journal.complaint(1), None, "that was before");
    }

    #[test]
    fn a_log_is_followed_by_whole_lines() {
        let path = std::env::temp_dir().join(format!("ostler-log-tail-{}", std::process::id()));
        std::fs::write(&path, "old\n").unwrap();
        let mut tail = LogTail::new(&path);
        let mut file = File::options().append(true).open(&path).unwrap();
        assert_eq!(tail.lines(), Vec::<String>::new());
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.lines(), ["one"]);
        file.write_all(b"o\n").unwrap();
        assert_eq!(tail.lines(), ["two"]);
        std::fs::write(&path, "x\n").unwrap();
        assert_eq!(tail.lines(), ["x"]);
        std::fs::remove_file(&path).unwrap();
    }
}
