//! docs/configuration.md is made from the table of keys; `UPDATE_DOCS=1 cargo test -p ostler-server` writes it.

use std::fmt::Write;
use std::path::Path;

use super::keys::{self, Fate, Form, Key};

const INTRODUCTION: &str = "\
# Configuration

<!-- Made from the table of keys in crates/server/src/config/keys by
     `UPDATE_DOCS=1 cargo test -p ostler-server documentation`; edit that table, not this file. -->

`ostler server zoo.cfg` reads the zoo.cfg of ZooKeeper 3.9, a Java properties file of lines `key=value`.
`ostler server` without a file listens on 127.0.0.1:2181, keeps its data in `./ostler-data`, ticks every 2 seconds and
has the defaults below for the rest.

- Every key can be written with or without `zookeeper.` before it. If a key is set twice, the last line counts.
- Keys marked `-D` also count as system properties in the environment variables `JAVA_TOOL_OPTIONS`,
  `SERVER_JVMFLAGS` and `JVMFLAGS`: `-Dzookeeper.<key>=<value>`, or `-D<key>=<value>` where the mark has no prefix. The
  file wins over them.
- A key that is in no table below has no effect; the server names it in its log, with the nearest known key.
- A value that a key cannot have stops the server with one sentence that names the file, the line and what is allowed.

The effect of a key:

- *Obeyed*: it sets what the text says.
- *Replaced*: it has no effect here; the text names what takes its place.
- *Absent*: it asks for a feature that is not in this build; the server warns and starts.
- *Refused*: as absent, but without the feature data could be exposed or lost, so the server does not start.

A switch that is off (`false`) is never warned about or refused.
";

fn document() -> String {
    let mut text = INTRODUCTION.to_string();
    for section in &keys::SECTIONS {
        write!(text, "\n## {}\n\n| Key | Default | Effect |\n|---|---|---|\n", section.title).unwrap();
        for key in section.keys {
            writeln!(text, "| {} | {} | {} |", spellings(key), default(key), fate(key)).unwrap();
        }
    }
    text
}

fn spellings(key: &Key) -> String {
    let spellings: Vec<String> = key.spellings().map(|spelling| format!("`{spelling}`")).collect();
    let mark = match key.form {
        Form::File => "",
        Form::Property => " (`-Dzookeeper.`)",
        Form::BareProperty => " (`-D`)",
        Form::EitherProperty => " (`-Dzookeeper.` or `-D`)",
    };
    spellings.join(", ") + mark
}

fn default(key: &Key) -> String {
    if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) }
}

fn fate(key: &Key) -> String {
    let (word, says) = match key.fate {
        Fate::Obeyed(says) => ("Obeyed", says),
        Fate::Replaced(says) => ("Replaced", says),
        Fate::Absent(says) => ("Absent", says),
        Fate::Refused(says) => ("Refused", says),
    };
    format!("*{word}*. {says}.")
}

#[test]
fn documentation_names_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some_and(|update| update == "1") {
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == document(),
        "docs/configuration.md is not what the table of keys says; \
         run UPDATE_DOCS=1 cargo test -p ostler-server documentation"
    );
}
