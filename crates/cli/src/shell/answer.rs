//! The answers of commands, in three styles: as zkCli.sh prints them, with notes for people, and as JSON.

use super::{
    acl_text,
    stat_text::{self, Context},
    value_text::{self, Form},
};
use crossterm::style::Stylize;
use ostler_client::{Acl, Bytes, EventKind, Stat, Zxid};
use serde_json::{Value, json};

/// The style in which answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStyle {
    /// As zkCli.sh prints them.
    Plain,
    /// For people at a terminal: with notes, in colour if wanted.
    Notes { colour: bool },
    /// A JSON object in a line.
    Json,
}

/// The answer of a command. Some commands give several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Children {
        path: String,
        names: Vec<String>,
        stat: Option<Stat>,
    },
    Path {
        path: String,
    },
    Data {
        path: String,
        data: Bytes,
        form: Form,
        stat: Option<Stat>,
    },
    Stat {
        path: String,
        stat: Stat,
    },
    Acl {
        path: String,
        acl: Vec<Acl>,
        stat: Option<Stat>,
    },
    Count {
        path: String,
        count: u32,
    },
    Ephemerals {
        paths: Vec<String>,
    },
    /// A line of a drawn tree. JSON has the path.
    Branch {
        drawing: String,
        path: String,
        stat: Stat,
        sizes: bool,
    },
    Usage {
        path: String,
        bytes: u64,
        znodes: u64,
    },
    Created {
        path: String,
    },
    /// A change was made. Only the Stat is shown, if it is wanted.
    Changed {
        path: String,
        stat: Option<Stat>,
    },
    /// Znodes were deleted. The number is known only if they were listed before.
    Deleted {
        path: String,
        znodes: Option<usize>,
    },
    Committed {
        operations: Vec<Answer>,
    },
    Event {
        at_ms: i64,
        kind: EventKind,
        path: String,
        zxid: Option<Zxid>,
    },
    Quota {
        path: String,
        limits: String,
        usage: String,
    },
    Config {
        text: String,
        stat: Option<Stat>,
    },
    Identities {
        identities: Vec<(String, String)>,
    },
    /// A text. In JSON it is the field `name`.
    Said {
        name: &'static str,
        text: String,
    },
}

impl Answer {
    pub(crate) fn said(name: &'static str, text: impl Into<String>) -> Answer {
        Answer::Said { name, text: text.into() }
    }

    /// The bytes to print.
    pub(crate) fn shown(&self, style: OutputStyle, context: Context) -> Vec<u8> {
        match style {
            OutputStyle::Json => format!("{}\n", self.json()).into(),
            OutputStyle::Plain => self.text(Paint { notes: false, colour: false }, context),
            OutputStyle::Notes { colour } => self.text(Paint { notes: true, colour }, context),
        }
    }

    fn text(&self, paint: Paint, context: Context) -> Vec<u8> {
        let mut text = match self {
            // Only this answer may be something other than text.
            Answer::Data { data, form, .. } => value_text::shown(data, *form),
            Answer::Children { names, .. } => listed(names).into(),
            Answer::Path { path } => format!("{path}\n").into(),
            Answer::Acl { acl, .. } => paint.acl(acl).into(),
            Answer::Count { count, .. } => format!("{count}\n").into(),
            Answer::Ephemerals { paths } => listed(paths).into(),
            Answer::Branch { drawing, stat, sizes, .. } => paint.branch(drawing, stat, *sizes).into(),
            Answer::Usage { path, bytes, znodes } => format!("{bytes:>12} {znodes:>9}  {path}\n").into(),
            Answer::Created { path } => format!("Created {path}\n").into(),
            Answer::Deleted { path, znodes: Some(znodes) } if paint.notes => {
                format!("Deleted {path}, {znodes} znode{}\n", if *znodes == 1 { "" } else { "s" }).into()
            }
            Answer::Committed { operations } => {
                operations.iter().flat_map(|answer| answer.text(paint, context)).collect()
            }
            Answer::Event { at_ms, kind, path, zxid } => paint.event(*at_ms, *kind, path, *zxid).into(),
            Answer::Quota { path, limits, usage } => {
                let (limits, usage) = (value_text::escaped(limits), value_text::escaped(usage));
                format!("Output quota for {path} {limits}\nOutput stat for {path} {usage}\n").into()
            }
            Answer::Config { text, .. } => format!("{text}\n").into(),
            Answer::Identities { identities } => {
                let lines = identities.iter().map(|(scheme, user)| format!("{scheme}: {user}\n"));
                ["Auth scheme: User\n".to_owned()].into_iter().chain(lines).collect::<String>().into()
            }
            Answer::Said { text, .. } => format!("{}\n", text.trim_end()).into(),
            Answer::Stat { .. } | Answer::Changed { .. } | Answer::Deleted { .. } => Vec::new(),
        };
        if let Some(stat) = self.stat() {
            text.extend(paint.stat(stat, context).into_bytes());
        }
        text
    }

    /// The Stat that is shown below the answer.
    fn stat(&self) -> Option<&Stat> {
        match self {
            Answer::Stat { stat, .. } => Some(stat),
            Answer::Children { stat, .. }
            | Answer::Data { stat, .. }
            | Answer::Acl { stat, .. }
            | Answer::Changed { stat, .. }
            | Answer::Config { stat, .. } => stat.as_ref(),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let mut json = match self {
            Answer::Children { path, names, .. } => json!({ "path": path, "children": names }),
            Answer::Path { path } => json!({ "path": path }),
            Answer::Data { path, data, .. } => match std::str::from_utf8(data) {
                Ok(text) => json!({ "path": path, "data": text }),
                Err(_) => json!({ "path": path, "data_base64": value_text::to_base64(data) }),
            },
            Answer::Stat { path, .. } | Answer::Changed { path, .. } => json!({ "path": path }),
            Answer::Acl { path, acl, .. } => {
                let entry = |acl: &Acl| {
                    let perms = acl_text::letters(acl.perms);
                    json!({ "scheme": acl.id.scheme, "id": acl.id.id, "perms": perms })
                };
                json!({ "path": path, "acl": acl.iter().map(entry).collect::<Vec<_>>() })
            }
            Answer::Count { path, count } => json!({ "path": path, "count": count }),
            Answer::Ephemerals { paths } => json!({ "ephemerals": paths }),
            Answer::Branch { path, stat, .. } => json!({ "path": path, "stat": stat_text::json(stat) }),
            Answer::Usage { path, bytes, znodes } => {
                json!({ "path": path, "bytes": bytes, "znodes": znodes })
            }
            Answer::Created { path } => json!({ "created": path }),
            Answer::Deleted { path, znodes } => json!({ "deleted": path, "znodes": znodes }),
            Answer::Committed { operations } => {
                json!({ "committed": operations.iter().map(Answer::json).collect::<Vec<_>>() })
            }
            Answer::Event { at_ms, kind, path, zxid } => json!({
                "event": format!("{kind:?}"),
                "path": path,
                "zxid": zxid.map(|zxid| zxid.to_string()),
                "time": stat_text::iso_date(*at_ms),
            }),
            Answer::Quota { path, limits, usage } => {
                json!({ "path": path, "quota": limits, "usage": usage })
            }
            Answer::Config { text, .. } => json!({ "config": text }),
            Answer::Identities { identities } => {
                let one = |(scheme, user): &(String, String)| json!({ "scheme": scheme, "user": user });
                json!({ "identities": identities.iter().map(one).collect::<Vec<_>>() })
            }
            Answer::Said { name, text } => json!({ *name: text }),
        };
        if let (Some(stat), Value::Object(fields)) = (self.stat(), &mut json) {
            fields.insert("stat".into(), stat_text::json(stat));
        }
        json
    }
}

/// A list as zkCli.sh prints it.
fn listed(names: &[String]) -> String {
    format!("[{}]\n", names.join(", "))
}

/// Whether answers have notes and colours.
#[derive(Debug, Clone, Copy)]
struct Paint {
    notes: bool,
    colour: bool,
}

impl Paint {
    fn dim(self, text: &str) -> String {
        if self.colour { text.dark_grey().to_string() } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        if self.colour { text.bold().to_string() } else { text.to_owned() }
    }

    fn stat(self, stat: &Stat, context: Context) -> String {
        let line = |line: stat_text::StatLine| {
            let note = match &*line.note {
                note if self.notes && !note.is_empty() => self.dim(&format!("  ({note})")),
                _ => String::new(),
            };
            format!("{} = {}{note}\n", self.dim(line.name), self.bold(&line.value))
        };
        stat_text::lines(stat, context).into_iter().map(line).collect()
    }

    fn acl(self, acl: &[Acl]) -> String {
        match self.notes {
            true => acl.iter().map(|entry| format!("{}\n", acl_text::entry_text(entry))).collect(),
            false => acl_text::upstream_text(acl),
        }
    }

    fn branch(self, drawing: &str, stat: &Stat, sizes: bool) -> String {
        if !sizes {
            return format!("{drawing}\n");
        }
        let note = format!("  {} bytes, version {}", stat.data_length, stat.version);
        format!("{drawing}{}\n", self.dim(&note))
    }

    fn event(self, at_ms: i64, kind: EventKind, path: &str, zxid: Option<Zxid>) -> String {
        let (time, kind) = (self.dim(&stat_text::iso_date(at_ms)), self.bold(&format!("{kind:?}")));
        let zxid = zxid.map_or_else(String::new, |zxid| match self.notes {
            true => self.dim(&format!("  zxid {zxid} ({})", stat_text::epoch_and_counter(zxid))),
            false => format!(" zxid {zxid}"),
        });
        format!("{time} {kind} {path}{zxid}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use ostler_client::Perms;

    fn stat() -> Stat {
        Stat { czxid: Zxid(0x1_0000_0002), data_length: 3, version: 1, ..Stat::default() }
    }

    #[track_caller]
    fn check(answer: &Answer, plain: &Expect, notes: &Expect, json: &Expect) {
        let context = Context { now_ms: 5_000, own_session: None };
        let shown = |style| String::from_utf8(answer.shown(style, context)).unwrap();
        plain.assert_eq(&shown(OutputStyle::Plain));
        notes.assert_eq(&shown(OutputStyle::Notes { colour: false }));
        json.assert_eq(&shown(OutputStyle::Json));
    }

    #[test]
    fn children_are_listed_in_each_style() {
        let names = vec!["a".into(), "b".into()];
        let answer = Answer::Children { path: "/".into(), names, stat: None };
        let text = expect![[r#"
            [a, b]
        "#]];
        check(
            &answer,
            &text,
            &text,
            &expect![[r#"
                {"path":"/","children":["a","b"]}
            "#]],
        );
    }

    #[test]
    fn data_is_shown_with_its_stat() {
        let data = Bytes::from_static(b"abc");
        let answer = Answer::Data { path: "/a".into(), data, form: Form::Plain, stat: Some(stat()) };
        check(
            &answer,
            &expect![[r#"
                abc
                cZxid = 0x100000002
                ctime = Thu Jan 01 00:00:00 UTC 1970
                mZxid = 0x0
                mtime = Thu Jan 01 00:00:00 UTC 1970
                pZxid = 0x0
                cversion = 0
                dataVersion = 1
                aclVersion = 0
                ephemeralOwner = 0x0
                dataLength = 3
                numChildren = 0
            "#]],
            &expect![[r#"
                abc
                cZxid = 0x100000002  (1:2)
                ctime = Thu Jan 01 00:00:00 UTC 1970  (5 seconds ago)
                mZxid = 0x0  (0:0)
                mtime = Thu Jan 01 00:00:00 UTC 1970  (5 seconds ago)
                pZxid = 0x0  (0:0)
                cversion = 0
                dataVersion = 1
                aclVersion = 0
                ephemeralOwner = 0x0
                dataLength = 3
                numChildren = 0
            "#]],
            &expect![[r#"
                {"path":"/a","data":"abc","stat":{"cZxid":"0x100000002","ctime":"1970-01-01T00:00:00.000Z","mZxid":"0x0","mtime":"1970-01-01T00:00:00.000Z","pZxid":"0x0","cversion":0,"dataVersion":1,"aclVersion":0,"ephemeralOwner":"0x0","dataLength":3,"numChildren":0}}
            "#]],
        );
    }

    #[test]
    fn names_are_dim_and_values_bold() {
        // Whatever NO_COLOR says where the tests run.
        crossterm::style::force_color_output(true);
        let context = Context { now_ms: 5_000, own_session: None };
        let style = OutputStyle::Notes { colour: true };
        let answer = Answer::Stat { path: "/a".into(), stat: stat() };
        let shown = String::from_utf8(answer.shown(style, context)).unwrap();
        let first =
            "\u{1b}[38;5;8mcZxid\u{1b}[39m = \u{1b}[1m0x100000002\u{1b}[0m\u{1b}[38;5;8m  (1:2)\u{1b}[39m";
        assert_eq!(shown.lines().next(), Some(first));
        let without: String =
            shown.split('\u{1b}').map(|part| part.split_once('m').map_or(part, |p| p.1)).collect();
        let plain = answer.shown(OutputStyle::Notes { colour: false }, context);
        assert_eq!(without, String::from_utf8(plain).unwrap(), "only colours are added");
        let data = Answer::Data { path: "/a".into(), data: "x".into(), form: Form::Plain, stat: None };
        assert_eq!(data.shown(style, context), b"x\n", "what is stored is shown as it is");
    }

    #[test]
    fn raw_bytes_are_printed_as_they_are() {
        let data = Bytes::from_static(b"\xff\x00");
        let answer = Answer::Data { path: "/a".into(), data, form: Form::Raw, stat: None };
        assert_eq!(answer.shown(OutputStyle::Plain, Context { now_ms: 0, own_session: None }), b"\xff\x00");
        assert_eq!(answer.json().to_string(), r#"{"path":"/a","data_base64":"/wA="}"#);
    }

    #[test]
    fn access_control_lists_are_shown_in_each_style() {
        let answer = Answer::Acl { path: "/a".into(), acl: vec![Acl::world(Perms::ALL)], stat: None };
        check(
            &answer,
            &expect![[r#"
                'world,'anyone
                : cdrwa
            "#]],
            &expect![[r#"
                world:anyone:cdrwa
            "#]],
            &expect![[r#"
                {"path":"/a","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}
            "#]],
        );
    }

    /// A client that may write an ACL or a quota must not be able to control the terminal of a reader, or to forge a
    /// line.
    #[test]
    fn texts_of_other_clients_are_escaped() {
        let id = ostler_client::Id::new("x", "bob\x1b[2J\n\u{9b}2Jworld:anyone");
        let acl = vec![Acl { perms: Perms::READ, id }];
        let answer = Answer::Acl { path: "/a".into(), acl, stat: None };
        let context = Context { now_ms: 5_000, own_session: None };
        let shown = |answer: &Answer, style| String::from_utf8(answer.shown(style, context)).unwrap();
        let id = r"bob\x1b[2J\n\xc2\x9b2Jworld:anyone";
        assert_eq!(shown(&answer, OutputStyle::Plain), format!("'x,'{id}\n: r\n"));
        assert_eq!(shown(&answer, OutputStyle::Notes { colour: true }), format!("x:{id}:r\n"));
        assert!(shown(&answer, OutputStyle::Json).contains(r"bob\u001b[2J\n"));
        let (limits, usage) = ("count=1\x07".into(), "\r\tgröße\0".into());
        let answer = Answer::Quota { path: "/a".into(), limits, usage };
        let text = "Output quota for /a count=1\\x07\nOutput stat for /a \\r\\tgröße\\x00\n";
        assert_eq!(shown(&answer, OutputStyle::Plain), text);
        assert_eq!(shown(&answer, OutputStyle::Notes { colour: true }), text);
    }

    #[test]
    fn events_are_shown_in_each_style() {
        let (kind, zxid) = (EventKind::NodeDataChanged, Some(Zxid(0x2_0000_0003)));
        let answer = Answer::Event { at_ms: 1_500, kind, path: "/a".into(), zxid };
        check(
            &answer,
            &expect![[r#"
                1970-01-01T00:00:01.500Z NodeDataChanged /a zxid 0x200000003
            "#]],
            &expect![[r#"
                1970-01-01T00:00:01.500Z NodeDataChanged /a  zxid 0x200000003 (2:3)
            "#]],
            &expect![[r#"
                {"event":"NodeDataChanged","path":"/a","zxid":"0x200000003","time":"1970-01-01T00:00:01.500Z"}
            "#]],
        );
    }

    #[test]
    fn a_transaction_shows_the_answers_of_its_operations() {
        let operations =
            vec![Answer::Created { path: "/a".into() }, Answer::Changed { path: "/b".into(), stat: None }];
        let text = expect![[r#"
            Created /a
        "#]];
        check(
            &Answer::Committed { operations },
            &text,
            &text,
            &expect![[r#"
            {"committed":[{"created":"/a"},{"path":"/b"}]}
        "#]],
        );
    }
}
