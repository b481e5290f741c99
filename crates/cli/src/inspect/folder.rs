//! `ostler inspect sizes` and `ostler inspect compare`: questions about the tree of a folder.

use super::{Form, LogsOption, Output, Verdict, zxid};
use clap::Args;
use ostler_inspect::{
    InspectError,
    compare::{self as trees, Counts},
    sizes::{self as prefixes, PrefixSize},
    source,
    state::{self, State},
};
use ostler_proto::id::Zxid;
use ostler_storage::disk::OsDisk;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Count the znodes and bytes of a folder or snapshot by prefix
///
/// Reads the newest snapshot and the log after it, as a start does. The prefix with the most data comes first. A znode
/// counts for each prefix above it.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler inspect sizes /var/lib/zookeeper --prefix /app --depth 2")]
pub(super) struct SizesArgs {
    /// The data folder (dataDir), or a snapshot file.
    folder: PathBuf,
    /// Only what is at and below this path.
    #[arg(long, default_value = "/", value_name = "PATH")]
    prefix: String,
    /// How many names below the prefix are told apart.
    #[arg(long, default_value_t = 1, value_name = "N")]
    depth: usize,
    /// How many prefixes are printed at most.
    #[arg(long, default_value_t = 100, value_name = "N")]
    top: usize,
    #[command(flatten)]
    logs: LogsOption,
    #[command(flatten)]
    form: Form,
}

/// Compare two snapshots or two data folders
///
/// A line for each znode that only the first one has (-), only the second one (+), or that differs (~), and both
/// digests. Folders are read to their newest zxid, or both to that of --at. Exit code 1 if they differ.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler inspect compare /backup/zk1 /backup/zk2 --at 0x100000fff")]
pub(super) struct CompareArgs {
    /// The first snapshot file or data folder.
    first: PathBuf,
    /// The second snapshot file or data folder.
    second: PathBuf,
    /// Read both folders up to this transaction.
    #[arg(long, value_name = "ZXID", value_parser = zxid)]
    at: Option<Zxid>,
    /// Only what is at and below this path.
    #[arg(long, default_value = "/", value_name = "PATH")]
    prefix: String,
    /// The folder of the first one's logs, if it is another one.
    #[arg(long, value_name = "FOLDER")]
    first_log_folder: Option<PathBuf>,
    /// The folder of the second one's logs, if it is another one.
    #[arg(long, value_name = "FOLDER")]
    second_log_folder: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// The line of JSON that says which state was read.
#[derive(Serialize)]
struct StateLine<'a> {
    kind: &'static str,
    path: &'a Path,
    #[serde(serialize_with = "ostler_inspect::view::zxid_text")]
    zxid: Zxid,
    snapshot: Option<&'a Path>,
    digest: String,
    znodes: usize,
    sessions: usize,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Line<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    what: &'a T,
}

fn read(path: &Path, logs: Option<&Path>, at: Option<Zxid>) -> Result<State, InspectError> {
    if path.is_dir() {
        return state::of_folder(&OsDisk, &source::folders(path, logs)?, at);
    }
    if at.is_some() {
        let path = path.to_path_buf();
        return Err(InspectError::NotData {
            path,
            reason: "a snapshot is of one zxid; --at needs a folder with its log",
        });
    }
    state::of_snapshot(&OsDisk, &source::snapshot(path)?)
}

fn print_state(path: &Path, state: &State, form: Form, output: &mut Output) -> Result<(), InspectError> {
    let (tree, digest) = (&state.tree, format!("{:#x}", state.tree.digest()));
    if form.json {
        output.json(&StateLine {
            kind: "state",
            path,
            zxid: state.zxid,
            snapshot: state.snapshot.as_deref(),
            digest,
            znodes: tree.node_count(),
            sessions: tree.session_count(),
            notes: &state.notes,
        })?;
        return Ok(());
    }
    output.text(format_args!(
        "{}: at {}, digest {digest}, {} znodes, {} sessions",
        path.display(),
        state.zxid,
        tree.node_count(),
        tree.session_count()
    ))?;
    for note in &state.notes {
        output.text(format_args!("note: {note}"))?;
    }
    Ok(())
}

pub(super) fn sizes(args: &SizesArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let state = read(&args.folder, args.logs.log_folder.as_deref(), None)?;
    print_state(&args.folder, &state, args.form, output)?;
    let Some(found) = prefixes::sizes(&state.tree, &args.prefix, args.depth) else {
        let reason = format!("there is no znode {} at {}", args.prefix, state.zxid);
        return Err(InspectError::NoState { path: args.folder.clone(), reason });
    };
    if !args.form.json {
        output.text(prefixes::HEADING)?;
    }
    for size in found.iter().take(args.top) {
        print_line("prefix", size, args.form, output)?;
    }
    let left_out = found.len().saturating_sub(args.top);
    if left_out > 0 && !args.form.json {
        output.text(format_args!("{left_out} smaller prefixes are not shown (--top)"))?;
    }
    Ok(Verdict::Clean)
}

fn print_line(
    kind: &'static str,
    what: &PrefixSize,
    form: Form,
    output: &mut Output,
) -> Result<(), InspectError> {
    if form.json {
        output.json(&Line { kind, what })?
    } else {
        output.text(what)?
    }
    Ok(())
}

pub(super) fn compare(args: &CompareArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let first = read(&args.first, args.first_log_folder.as_deref(), args.at)?;
    let second = read(&args.second, args.second_log_folder.as_deref(), args.at)?;
    print_state(&args.first, &first, args.form, output)?;
    print_state(&args.second, &second, args.form, output)?;
    let json = args.form.json;
    let counts = trees::compare(&first.tree, &second.tree, &args.prefix, &mut |difference| {
        match json {
            true => output.json(&Line { kind: "difference", what: &difference })?,
            false => output.text(&difference)?,
        }
        Ok(())
    })?;
    if json {
        output.json(&Line { kind: "end", what: &counts })?;
    } else {
        let Counts { added, removed, changed, equal, sessions } = counts;
        output.text(format_args!(
            "{added} added, {removed} removed, {changed} changed, {equal} equal; {sessions} sessions differ"
        ))?;
    }
    Ok(Verdict::found_if(!counts.is_equal()))
}
