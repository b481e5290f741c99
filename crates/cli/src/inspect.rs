//! `ostler inspect`: reads logs, snapshots and data folders of Ostler and of Java ZooKeeper, and repairs a folder.

mod folder;
mod logs;
mod output;
mod repair;
mod snapshot;

use clap::{Args, Subcommand, ValueEnum};
use ostler_inspect::{InspectError, view::DataForm};
use ostler_proto::id::Zxid;
use output::Output;
use std::{path::PathBuf, process::ExitCode};

/// Read logs, snapshots and data folders, and repair a folder.
///
/// The files can be of Ostler or of Java ZooKeeper. Only `repair --apply` changes a file. Exit codes: 0 nothing was
/// found, 1 damage or a difference was found, 2 the files could not be read.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler inspect log /var/lib/zookeeper --from 0x100000000")]
pub(crate) struct InspectArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Log(logs::LogArgs),
    Snapshot(snapshot::SnapshotArgs),
    History(logs::HistoryArgs),
    Sizes(folder::SizesArgs),
    Compare(folder::CompareArgs),
    Repair(repair::RepairArgs),
}

/// How the result is printed.
#[derive(Debug, Clone, Copy, Args)]
struct Form {
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// How the data of znodes are printed.
#[derive(Debug, Clone, Copy, Args)]
struct DataOption {
    /// Print the data of znodes too [default: only their size].
    #[arg(long, value_name = "FORM")]
    data: Option<DataChoice>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DataChoice {
    /// As text, or as base64 if the data are no UTF-8.
    Text,
    /// As base64.
    Base64,
}

impl DataOption {
    fn form(self) -> DataForm {
        match self.data {
            None => DataForm::Size,
            Some(DataChoice::Text) => DataForm::Text,
            Some(DataChoice::Base64) => DataForm::Base64,
        }
    }
}

/// A data folder.
#[derive(Debug, Clone, Args)]
struct LogsOption {
    /// The folder of the logs, if it is another one (dataLogDir).
    #[arg(long, value_name = "FOLDER")]
    log_folder: Option<PathBuf>,
}

/// Reads a zxid as logs show it: `0x100000002`, or without `0x`.
fn zxid(text: &str) -> Result<Zxid, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|value| i64::try_from(*value).is_ok())
        .map(Zxid)
        .ok_or_else(|| format!("{text} is no zxid: it is a number in hex, as in 0x100000002"))
}

/// The result of a task that went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Clean,
    Found,
}

impl Verdict {
    fn found_if(found: bool) -> Verdict {
        if found { Verdict::Found } else { Verdict::Clean }
    }
}

/// The exit code if the files could not be read.
const CANNOT_READ: u8 = 2;

/// Runs the task and prints what it finds.
pub(crate) fn run(args: &InspectArgs) -> ExitCode {
    // A reader that has seen enough, as `head`, ends this quietly.
    sigpipe::reset();
    let mut output = Output::new();
    let done = match &args.task {
        Task::Log(args) => logs::log(args, &mut output),
        Task::Snapshot(args) => snapshot::run(args, &mut output),
        Task::History(args) => logs::history(args, &mut output),
        Task::Sizes(args) => folder::sizes(args, &mut output),
        Task::Compare(args) => folder::compare(args, &mut output),
        Task::Repair(args) => repair::run(args, &mut output),
    };
    match done.and_then(|verdict| output.finish().map(|()| verdict).map_err(InspectError::from)) {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Found) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ostler inspect: {error}");
            ExitCode::from(CANNOT_READ)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zxids_are_hex_with_or_without_their_prefix() {
        assert_eq!(zxid("0x100000002"), Ok(Zxid(0x1_0000_0002)));
        assert_eq!(zxid("1a"), Ok(Zxid(0x1a)));
        for wrong in ["", "0x", "g", "ffffffffffffffff", "-1"] {
            assert!(zxid(wrong).is_err(), "{wrong}");
        }
    }
}
