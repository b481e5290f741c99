//! `ostler check`: reads a zoo.cfg as the server does, and names its mistakes and weaknesses. With `--preflight` it
//! also looks at the machine, the data and the other members.

mod clock;
mod data;
mod disk;
mod finding;
mod folders;
mod limits;
mod members;
mod ports;
mod words;

use clap::Args;
use finding::{Finding, Findings, Level, Topic};
use ostler_server::config::{NoteLevel, ServerConfig};
use std::{path::PathBuf, process::ExitCode};

/// Check a zoo.cfg: its mistakes, the keys without effect, and what it leaves open to whom.
///
/// Nothing is started or changed. With --preflight the machine, the data and the other members are looked at too, as
/// before a first start, an upgrade or a migration from Java ZooKeeper. Exit codes: 0 nothing was found, 1 something
/// was, 2 the server would not start.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler check /etc/zookeeper/zoo.cfg --preflight")]
pub(crate) struct CheckArgs {
    /// ZooKeeper configuration file.
    #[arg(value_name = "ZOO_CFG")]
    zoo_cfg: PathBuf,
    /// Look at addresses, ports, folders, data, the disk's sync time, limits, and the other members. Run it on the
    /// machine of the server and as its user. It connects to the other members, and writes and removes a small file in
    /// the folder of the logs.
    #[arg(long)]
    preflight: bool,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// The exit code if the server would not start.
const WOULD_NOT_START: u8 = 2;

/// Prints a line for each finding.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let mut findings = Findings::new(args.json);
    match crate::server::load(&args.zoo_cfg) {
        Err(error) => findings.add(Finding::new(Level::Error, Topic::Configuration, error.to_string())),
        Ok(loaded) => {
            for note in &loaded.notes {
                let level = if note.level == NoteLevel::Warning { Level::Warning } else { Level::Note };
                findings.add(Finding::new(level, Topic::Configuration, note.to_string()));
            }
            for weakness in loaded.config.weaknesses() {
                findings.add(Finding::new(Level::Weakness, Topic::Configuration, weakness.to_string()));
            }
            if args.preflight {
                preflight(&loaded.config, &mut findings);
            }
        }
    }
    if findings.worst().is_none() && !args.json {
        println!("{}: nothing was found", args.zoo_cfg.display());
    }
    match findings.worst() {
        None => ExitCode::SUCCESS,
        Some(Level::Error) => ExitCode::from(WOULD_NOT_START),
        Some(_) => ExitCode::FAILURE,
    }
}

/// Looks at everything beside the file. The members are asked first: their answers say whether a port that is in use
/// is held by this very server.
fn preflight(config: &ServerConfig, findings: &mut Findings) {
    let own = ports::own_server(config);
    findings.extend(ports::check(config, own.as_ref()));
    findings.extend(folders::check(config));
    findings.extend(data::check(config, own.is_some()));
    findings.extend(disk::check(config));
    findings.extend(limits::check());
    let answers = members::ask(config);
    findings.extend(members::judge(config, &answers));
    findings.extend(answers.iter().filter_map(|answer| clock::judge(answer.id, answer.clock)));
}
