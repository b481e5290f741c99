//! `ostler inspect log` and `ostler inspect history`.

use super::{DataOption, Form, Output, Verdict, zxid};
use clap::Args;
use ostler_inspect::{
    InspectError, history as histories,
    logs::{self, LogItem, LogTotals, LoggedTxn, ZxidRange},
    source,
    view::TxnView,
};
use ostler_proto::id::Zxid;
use ostler_storage::disk::OsDisk;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Print the transactions of a log file, or of all logs of a folder
///
/// A line for each transaction, as TxnLogToolkit of ZooKeeper has it. Torn tails, damage and gaps are printed with file
/// and byte. After damage it goes on with the next file.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: ostler inspect log /var/lib/zookeeper/version-2/log.100000001 --json --data text"
)]
pub(super) struct LogArgs {
    /// A log file, or the folder of the logs (dataLogDir, or dataDir).
    path: PathBuf,
    /// The first transaction to print.
    #[arg(long, value_name = "ZXID", value_parser = zxid)]
    from: Option<Zxid>,
    /// The last transaction to print.
    #[arg(long, value_name = "ZXID", value_parser = zxid)]
    to: Option<Zxid>,
    #[command(flatten)]
    data: DataOption,
    #[command(flatten)]
    form: Form,
}

/// Print each transaction that touched a znode
///
/// Of a multi only the parts with this znode are printed. The end of a session counts if it deletes the znode. The log
/// has no path of a write that was refused, so these are not found. A purge has removed the oldest transactions.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler inspect history /var/lib/zookeeper /app/config --data text")]
pub(super) struct HistoryArgs {
    /// The folder of the logs (dataLogDir, or dataDir), or one log file.
    folder: PathBuf,
    /// The path of the znode.
    #[arg(value_name = "PATH")]
    znode: String,
    #[command(flatten)]
    data: DataOption,
    #[command(flatten)]
    form: Form,
}

/// A line of JSON for a transaction.
#[derive(Serialize)]
struct TxnLine<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(flatten)]
    view: &'a TxnView,
}

/// A line of JSON for a record whose bytes are no transaction.
#[derive(Serialize)]
struct UnreadableLine<'a> {
    kind: &'static str,
    file: &'a Path,
    offset: u64,
    #[serde(serialize_with = "ostler_inspect::view::zxid_text")]
    zxid: Zxid,
    reason: String,
}

#[derive(Serialize)]
struct EndLine {
    kind: &'static str,
    #[serde(flatten)]
    totals: LogTotals,
}

pub(super) fn log(args: &LogArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let files = source::logs(&OsDisk, &args.path)?;
    let all = ZxidRange::default();
    let range = ZxidRange { from: args.from.unwrap_or(all.from), through: args.to.unwrap_or(all.through) };
    let mut unreadable = 0;
    let totals = logs::walk(&OsDisk, &files, &mut |item| {
        match item {
            LogItem::Txn(logged) if !range.has(logged.zxid) => {}
            LogItem::Txn(logged) => unreadable += u64::from(!print(&logged, args, output)?),
            LogItem::Finding(finding) => output.either(args.form.json, &finding)?,
        }
        Ok(())
    })?;
    end(totals, args.form, output)?;
    Ok(Verdict::found_if(totals.damaged + unreadable > 0))
}

/// Prints a record. Returns whether it is a transaction.
fn print(logged: &LoggedTxn<'_>, args: &LogArgs, output: &mut Output) -> Result<bool, InspectError> {
    let (file, offset, zxid) = (logged.file, logged.offset, logged.zxid);
    match &logged.record {
        Ok(record) => {
            let view = &TxnView::of(record, args.data.form());
            if args.form.json {
                output.json(&TxnLine { kind: "txn", file: None, offset: Some(offset), view })?;
            } else {
                output.text(view)?;
            }
            Ok(true)
        }
        Err(error) if args.form.json => {
            let reason = error.to_string();
            output.json(&UnreadableLine { kind: "unreadable", file, offset, zxid, reason })?;
            Ok(false)
        }
        Err(error) => {
            let file = file.display();
            output.text(format_args!(
                "{file}: transaction {zxid} at byte {offset} cannot be decoded: {error}"
            ))?;
            Ok(false)
        }
    }
}

fn end(totals: LogTotals, form: Form, output: &mut Output) -> Result<(), InspectError> {
    if form.json {
        output.json(&EndLine { kind: "end", totals })?;
        return Ok(());
    }
    let LogTotals { files, transactions, damaged, .. } = totals;
    let range = totals.range.map_or(String::new(), |(first, last)| format!(", {first} to {last}"));
    let damage = if damaged > 0 { format!(", {damaged} damaged places") } else { String::new() };
    output.text(format_args!("{transactions} transactions in {files} files{range}{damage}"))?;
    Ok(())
}

pub(super) fn history(args: &HistoryArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let files = source::logs(&OsDisk, &args.folder)?;
    let (json, mut touched) = (args.form.json, 0_u64);
    let totals = histories::history(&OsDisk, &files, (&args.znode, args.data.form()), &mut |item| {
        match item {
            histories::HistoryItem::Touched(view) => {
                touched += 1;
                if json {
                    output.json(&TxnLine { kind: "txn", file: None, offset: None, view: &view })?;
                } else {
                    output.text(&view)?;
                }
            }
            histories::HistoryItem::Finding(finding) => output.either(json, &finding)?,
        }
        Ok(())
    })?;
    if json {
        output.json(&EndLine { kind: "end", totals })?;
    } else {
        let since = match totals.range {
            Some((first, last)) => format!("the logs reach from {first} to {last}"),
            None => "the logs have no transaction".to_owned(),
        };
        output.text(format_args!("{touched} transactions touched this znode; {since}"))?;
    }
    Ok(Verdict::found_if(totals.damaged > 0))
}
