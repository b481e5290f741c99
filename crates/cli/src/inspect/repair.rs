//! `ostler inspect repair`.

use super::{Form, LogsOption, Output, Verdict, zxid};
use clap::Args;
use ostler_inspect::{
    InspectError,
    repair::{self, Applied, Drops, Plan, RepairOptions, Start},
    source,
};
use ostler_proto::id::Zxid;
use ostler_storage::{folders::DataFolders, lock::FolderLock};
use serde::Serialize;
use std::path::PathBuf;

/// Find what is wrong with a data folder, and repair it
///
/// By default nothing is changed: it prints what is wrong and what a repair would do. With --apply it does that. A
/// transaction that can be read is never dropped, except by --drop-after, which names the last one that is kept. Each
/// file that is changed or taken away is kept in the folder before-repair-N beside version-2. No server may use the
/// folder. In an ensemble it is safer to empty the folder and let the server copy from another one.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler inspect repair /var/lib/zookeeper")]
pub(super) struct RepairArgs {
    /// The data folder (dataDir).
    folder: PathBuf,
    #[command(flatten)]
    logs: LogsOption,
    /// Do what is needed, not only print it.
    #[arg(long)]
    apply: bool,
    /// Drop all transactions after this one, also acknowledged ones.
    #[arg(long, value_name = "ZXID", value_parser = zxid)]
    drop_after: Option<Zxid>,
    #[command(flatten)]
    form: Form,
}

/// The object of JSON.
#[derive(Serialize)]
struct Report<'a> {
    kind: &'static str,
    folder: &'a PathBuf,
    #[serde(flatten)]
    plan: &'a Plan,
    applied: bool,
    /// The folders with the files as they were before.
    kept: &'a [PathBuf],
}

pub(super) fn run(args: &RepairArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let folders = source::folders(&args.folder, args.logs.log_folder.as_deref())?;
    let lock = lock(&folders, args.apply)?;
    let plan = repair::plan(&folders, RepairOptions { drop_after: args.drop_after })?;
    let applied = match &lock {
        Some(lock) if args.apply && !plan.actions.is_empty() => Some(repair::apply(&folders, &plan, lock)?),
        _ => None,
    };
    let does = applied.is_some();
    if args.form.json {
        let kept = applied.as_ref().map_or(&[][..], |applied| &applied.kept);
        let report = Report { kind: "repair", folder: &args.folder, plan: &plan, applied: does, kept };
        output.json(&report)?;
    } else {
        print(args, &folders, (&plan, applied.as_ref()), output)?;
    }
    let starts = !matches!(plan.after, Start::Refused { .. });
    Ok(Verdict::found_if(if does { !starts } else { !plan.is_clean() }))
}

/// Refuses folders that are in use. A dry run makes no lock file where there is none: it changes nothing.
fn lock(folders: &DataFolders, apply: bool) -> Result<Option<FolderLock>, InspectError> {
    let lock = match apply || FolderLock::has_file(folders) {
        true => Some(FolderLock::take(folders)?),
        false => None,
    };
    match repair::users(&[&folders.snapshots, &folders.logs]).first() {
        Some(pid) => Err(InspectError::Refused(format!(
            "process {pid} has files of {} open. Nothing was changed. Stop this server first",
            folders.data_dir.display()
        ))),
        None => Ok(lock),
    }
}

fn print(
    args: &RepairArgs,
    folders: &DataFolders,
    (plan, applied): (&Plan, Option<&Applied>),
    output: &mut Output,
) -> Result<(), InspectError> {
    output.text(format_args!("{}: {}", args.folder.display(), plan.before))?;
    for problem in &plan.problems {
        output.text(format_args!("wrong: {problem}"))?;
    }
    if plan.is_clean() {
        output.text("nothing is wrong")?;
        return Ok(());
    }
    if let Some(drops) = &plan.drops {
        output.text(format_args!(
            "{} {}",
            if applied.is_some() { "dropped:" } else { "drops:" },
            lost(drops)
        ))?;
    }
    for action in &plan.actions {
        output.text(format_args!("{} {action}", if applied.is_some() { "done:" } else { "would" }))?;
    }
    if let Some(applied) = applied {
        for kept in &applied.kept {
            output.text(format_args!("the files as they were before are in {}", kept.display()))?;
        }
        output.text(format_args!("now {}", applied.start))?;
        return Ok(());
    }
    if plan.actions.is_empty() {
        output.text("there is nothing that a repair could do without a loss")?;
    } else {
        output.text(format_args!("then {}", plan.after))?;
        output.text("nothing was changed; --apply does it")?;
    }
    if let Some(drops) = &plan.needs_drop {
        if folders.data_dir.join("myid").exists() {
            output.text(
                "this server is one of an ensemble: to lose nothing, empty its data folders and let it copy from \
                 another \
                 server",
            )?;
        }
        output.text(format_args!("to accept a loss, add --drop-after {}: {}", drops.after, lost(drops)))?;
    } else if matches!(plan.after, Start::Refused { .. }) {
        output.text("no earlier state can be read either: restore this folder from a backup")?;
    }
    Ok(())
}

fn lost(drops: &Drops) -> String {
    format!(
        "everything after {} is lost, up to {}; the logs still have {} transactions of that",
        drops.after, drops.through, drops.readable
    )
}
