//! A Stat as zkCli.sh prints it, and with notes for people.

use ostler_client::{SessionId, Stat, Zxid};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

/// A date in Java's format.
const JAVA_DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short] [month repr:short] [day] [hour]:[minute]:[second] UTC [year]");
const ISO_DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// The facts that notes need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now_ms: i64,
    pub(crate) own_session: Option<SessionId>,
}

/// A line of a Stat: name, value, and a note about the value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatLine {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// All lines, in the order of zkCli.sh.
pub(crate) fn lines(stat: &Stat, context: Context) -> Vec<StatLine> {
    let line = |name, value: String, note: String| StatLine { name, value, note };
    let zxid = |name, zxid: Zxid| line(name, zxid.to_string(), epoch_and_counter(zxid));
    let date = |name, ms| line(name, java_date(ms), ago(context.now_ms - ms));
    let number = |name, number: i32, note: &str| line(name, number.to_string(), note.into());
    vec![
        zxid("cZxid", stat.czxid),
        date("ctime", stat.ctime),
        zxid("mZxid", stat.mzxid),
        date("mtime", stat.mtime),
        zxid("pZxid", stat.pzxid),
        number("cversion", stat.cversion, ""),
        number("dataVersion", stat.version, ""),
        number("aclVersion", stat.aversion, ""),
        line("ephemeralOwner", owner(stat), owner_note(stat, context.own_session).into()),
        number("dataLength", stat.data_length, ""),
        number("numChildren", stat.num_children, ""),
    ]
}

/// The Stat as JSON.
pub(crate) fn json(stat: &Stat) -> Value {
    json!({
        "cZxid": stat.czxid.to_string(),
        "ctime": iso_date(stat.ctime),
        "mZxid": stat.mzxid.to_string(),
        "mtime": iso_date(stat.mtime),
        "pZxid": stat.pzxid.to_string(),
        "cversion": stat.cversion,
        "dataVersion": stat.version,
        "aclVersion": stat.aversion,
        "ephemeralOwner": owner(stat),
        "dataLength": stat.data_length,
        "numChildren": stat.num_children,
    })
}

fn owner(stat: &Stat) -> String {
    format!("0x{:x}", stat.ephemeral_owner)
}

fn owner_note(stat: &Stat, own: Option<SessionId>) -> &'static str {
    match stat.ephemeral_owner {
        0 => "",
        owner if own == Some(SessionId(owner)) => "this session",
        _ => "another session",
    }
}

/// A zxid as epoch and counter.
pub(crate) fn epoch_and_counter(zxid: Zxid) -> String {
    format!("{}:{}", zxid.epoch().0, zxid.counter())
}

fn date(ms: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).ok()
}

fn java_date(ms: i64) -> String {
    date(ms).and_then(|date| date.format(JAVA_DATE).ok()).unwrap_or_else(|| format!("{ms} ms"))
}

/// A time in UTC, with milliseconds.
pub(crate) fn iso_date(ms: i64) -> String {
    date(ms).and_then(|date| date.format(ISO_DATE).ok()).unwrap_or_else(|| format!("{ms} ms"))
}

/// The time since `ms`, in its largest unit.
fn ago(ms: i64) -> String {
    const UNITS: [(i64, &str); 5] =
        [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"), (1, "ms")];
    match UNITS.iter().find(|(length, _)| ms >= *length) {
        // A small difference between this clock and the server's is not mentioned.
        None if ms > -60_000 => "now".into(),
        None => "in the future by this machine's clock".into(),
        Some((1, unit)) => format!("{ms} {unit} ago"),
        Some((length, unit)) if ms / length == 1 => format!("1 {unit} ago"),
        Some((length, unit)) => format!("{} {unit}s ago", ms / length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn stat() -> Stat {
        Stat {
            czxid: Zxid(0x1_0000_0002),
            mzxid: Zxid(0x3_0000_0010),
            pzxid: Zxid(0x1_0000_0002),
            ctime: 1_532_765_649_123,
            mtime: 1_532_765_652_000,
            version: 4,
            cversion: 2,
            aversion: 1,
            ephemeral_owner: 0x100_0000_1234,
            data_length: 60,
            num_children: 0,
        }
    }

    fn shown(now_ms: i64, own_session: Option<SessionId>) -> String {
        let lines = lines(&stat(), Context { now_ms, own_session });
        lines.iter().map(|line| format!("{} = {}  ({})\n", line.name, line.value, line.note)).collect()
    }

    #[test]
    fn a_stat_is_shown_as_in_zkcli_with_notes() {
        expect![[r#"
            cZxid = 0x100000002  (1:2)
            ctime = Sat Jul 28 08:14:09 UTC 2018  (1 minute ago)
            mZxid = 0x300000010  (3:16)
            mtime = Sat Jul 28 08:14:12 UTC 2018  (57 seconds ago)
            pZxid = 0x100000002  (1:2)
            cversion = 2  ()
            dataVersion = 4  ()
            aclVersion = 1  ()
            ephemeralOwner = 0x10000001234  (this session)
            dataLength = 60  ()
            numChildren = 0  ()
        "#]]
        .assert_eq(&shown(1_532_765_709_999, Some(SessionId(0x100_0000_1234))));
    }

    #[test]
    fn json_has_the_field_names_of_the_text() {
        let json = json(&stat());
        assert_eq!(json["cZxid"], "0x100000002");
        assert_eq!(json["ctime"], "2018-07-28T08:14:09.123Z");
        assert_eq!(json["dataVersion"], 4);
        assert_eq!(json.as_object().map(|object| object.len()), Some(11));
    }

    #[test]
    fn times_have_their_largest_unit() {
        for (ms, text) in [
            (-61_000, "in the future by this machine's clock"),
            (-5, "now"),
            (0, "now"),
            (1, "1 ms ago"),
            (999, "999 ms ago"),
            (1_999, "1 second ago"),
            (7_300_000, "2 hours ago"),
            (86_400_000 * 400, "400 days ago"),
        ] {
            assert_eq!(ago(ms), text, "{ms}");
        }
        assert_eq!(java_date(i64::MAX), format!("{} ms", i64::MAX));
    }
}
