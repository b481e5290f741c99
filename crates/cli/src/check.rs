//! `ostler check`: reads a zoo.cfg as the server does, and names its mistakes and weaknesses.

use clap::Args;
use ostler_server::config::NoteLevel;
use std::{path::PathBuf, process::ExitCode};

/// Check a zoo.cfg: its mistakes, the keys without effect, and what it leaves open to whom.
///
/// Nothing is started or changed. Exit codes: 0 nothing was found, 1 something was, 2 the server would not start.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler check /etc/zookeeper/zoo.cfg")]
pub(crate) struct CheckArgs {
    /// ZooKeeper configuration file.
    #[arg(value_name = "ZOO_CFG")]
    zoo_cfg: PathBuf,
}

/// The exit code if the server would not start.
const WOULD_NOT_START: u8 = 2;

/// Prints a line for each finding.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let loaded = match crate::server::load(&args.zoo_cfg) {
        Ok(loaded) => loaded,
        Err(error) => {
            println!("error: {error}");
            return ExitCode::from(WOULD_NOT_START);
        }
    };
    for note in &loaded.notes {
        let level = if note.level == NoteLevel::Warning { "warning" } else { "note" };
        println!("{level}: {note}");
    }
    let weaknesses = loaded.config.weaknesses();
    for weakness in &weaknesses {
        println!("weakness: {weakness}");
    }
    if loaded.notes.is_empty() && weaknesses.is_empty() {
        println!("{}: nothing was found", args.zoo_cfg.display());
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
