//! `ostler restore`: an ensemble, or a subtree, as it was at one transaction.

use crate::tls_options::TlsOptions;
use clap::Args;
use ostler_backup::{
    history::{History, Target},
    part::parse_zxid,
    rebuild::{Rebuilt, rebuild},
    restore::{self, RestoredServer},
    store::Store,
    subtree::{self, PutBack, SubtreePlan},
    verify::verify,
};
use ostler_client::Client;
use ostler_proto::id::{Epoch, Zxid};
use ostler_storage::folders::DataFolders;
use std::{path::PathBuf, process::ExitCode};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Restore an ensemble or a subtree from a backup, as it was at one transaction.
///
/// With --into or --config it writes the data folders of all servers. Stop all servers of the ensemble first, and start
/// them again with these folders only. With --subtree it puts a subtree back into a running ensemble. With --verify it
/// restores in memory, checks every checksum and digest, and changes nothing. Exit codes: 0 done, 1 an error or damage
/// was found, 3 done in part (--subtree).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ostler restore --from /backup/zk1 --to-zxid 0x500000a1f --into /restored --servers 1,2,3
  ostler restore --from /backup/zk1 --to-time 2026-11-27T03:00:00Z --config zoo.cfg
  ostler restore --from /backup/zk1 --to-zxid 0x500000a1f --subtree /app --server zk1:2181 --dry-run
  ostler restore --from /backup/zk1 --verify")]
pub(crate) struct RestoreArgs {
    /// The folder of the backup, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "FOLDER|URL")]
    from: String,
    /// The last transaction to restore: hex digits behind 0x, or decimal [default: the last that is committed].
    #[arg(long, value_name = "ZXID", value_parser = zxid, conflicts_with = "to_time")]
    to_zxid: Option<Zxid>,
    /// Restore the last transaction before the first one later than this time, for example 2026-11-27T03:00:00Z, or
    /// milliseconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = time_ms)]
    to_time: Option<i64>,
    /// Allow transactions that are not known to be committed.
    #[arg(long)]
    unconfirmed: bool,
    /// Write a folder for each server below this one: FOLDER/1, FOLDER/2 and so on.
    #[arg(long, value_name = "FOLDER", requires = "servers", group = "place")]
    into: Option<PathBuf>,
    /// The server ids of the ensemble, for --into.
    #[arg(long, value_name = "ID,...", value_delimiter = ',', requires = "into")]
    servers: Vec<i64>,
    /// Write the folders that this zoo.cfg names; can be repeated. The files myid stay as they are.
    #[arg(long, value_name = "ZOO_CFG", group = "place")]
    config: Vec<PathBuf>,
    /// The epoch of the restored ensemble; it must be above any that the ensemble ever had [default: 65536 above the
    /// highest in the backup].
    #[arg(long, value_name = "N", requires = "place")]
    epoch: Option<u32>,
    /// Restore in memory, check every checksum and digest, and change nothing.
    #[arg(long, group = "place")]
    verify: bool,
    /// Put this subtree back into the running ensemble that --server names.
    #[arg(long, value_name = "PATH", requires = "server", group = "place")]
    subtree: Option<String>,
    /// Servers of the running ensemble, for --subtree.
    #[arg(long, value_name = "HOST:PORT,...", requires = "subtree")]
    server: Option<String>,
    /// With --subtree: give znodes that exist the data and ACL of the backup. Without it they are kept.
    #[arg(long, requires = "subtree")]
    overwrite: bool,
    /// With --subtree: print what would be done, and change nothing.
    #[arg(long, requires = "subtree")]
    dry_run: bool,
    /// With --subtree: file with identities to authenticate with, one on each line, for example digest:user:password.
    #[arg(long, value_name = "FILE", requires = "subtree")]
    auth_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
}

/// The exit code if a part of a subtree could not be put back.
const DONE_IN_PART: u8 = 3;

fn zxid(text: &str) -> Result<Zxid, String> {
    parse_zxid(text)
        .ok_or_else(|| "write hex digits behind 0x, such as 0x500000a1f, or a decimal number".to_owned())
}

fn time_ms(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|error| {
        format!("{error}; write a time such as 2026-11-27T03:00:00Z, or milliseconds since 1970")
    })?;
    Ok((time.unix_timestamp_nanos() / 1_000_000) as i64)
}

/// Restores, and prints what was restored.
pub(crate) fn run(args: &RestoreArgs) -> ExitCode {
    match restore(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ostler restore: {error}");
            ExitCode::FAILURE
        }
    }
}

fn restore(args: &RestoreArgs) -> Result<ExitCode, String> {
    let text = |error: ostler_backup::BackupError| error.to_string();
    let store = Store::open(&args.from).map_err(text)?;
    let history = History::read(&store).map_err(text)?;
    let target = match (args.to_zxid, args.to_time) {
        (Some(zxid), _) => Target::Zxid(zxid),
        (_, Some(time_ms)) => Target::TimeMs(time_ms),
        _ => Target::Latest,
    };
    if args.verify && target == Target::Latest {
        return check(&store, &history);
    }
    let zxid = history.find(&store, target, args.unconfirmed).map_err(text)?;
    let rebuilt = rebuild(&store, &history, zxid).map_err(text)?;
    rebuilt.notes.iter().for_each(|note| eprintln!("ostler restore: {note}"));
    println!("{}", restore::describe(&rebuilt));
    if args.verify {
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(path), Some(servers)) = (&args.subtree, &args.server) {
        let plan = subtree::plan(&rebuilt.tree, path, zxid).map_err(text)?;
        drop(rebuilt);
        return put_back(args, servers, &plan);
    }
    ensemble(args, &store, &history, rebuilt)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the whole backup.
fn check(store: &Store, history: &History) -> Result<ExitCode, String> {
    let report = verify(store, history).map_err(|error| error.to_string())?;
    report.checked.iter().for_each(|line| println!("{line}"));
    report.faults.iter().for_each(|line| println!("fault: {line}"));
    println!(
        "{} bases, {} segments, {} records; transactions through {}, committed through {}, highest epoch {}; {} faults",
        report.bases,
        report.segments,
        report.records,
        history.last(),
        history.confirmed_through(),
        history.highest_epoch().0,
        report.faults.len()
    );
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn put_back(args: &RestoreArgs, servers: &str, plan: &SubtreePlan) -> Result<ExitCode, String> {
    let mut builder = Client::builder(servers);
    if let Some(file) = &args.auth_file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (scheme, secret) = line
                .split_once(':')
                .ok_or_else(|| format!("{}: a line has no scheme; write SCHEME:SECRET", file.display()))?;
            builder = builder.auth(scheme, secret);
        }
    }
    let pem = self::tls(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let done = runtime.block_on(async {
        if let Some(pem) = pem {
            builder = pem.apply(builder).map_err(|error| error.to_string())?;
        }
        let client =
            builder.connect().await.map_err(|error| format!("cannot connect to {servers}: {error}"))?;
        let done = subtree::put_back(&client, plan, args.overwrite, args.dry_run).await;
        client.close().await;
        done.map_err(|error| error.to_string())
    })?;
    Ok(print(&done, plan, args.dry_run))
}

fn tls(args: &RestoreArgs) -> Result<Option<crate::tls_options::PemContents>, String> {
    args.tls.read().map_err(|file| format!("cannot read {}: {}", file.path.display(), file.cause))
}

fn print(done: &PutBack, plan: &SubtreePlan, dry_run: bool) -> ExitCode {
    let would = if dry_run { "would be " } else { "" };
    if dry_run {
        done.created.iter().for_each(|path| println!("create {path}"));
        done.overwritten.iter().for_each(|path| println!("overwrite {path}"));
    }
    plan.left_out.iter().for_each(|(path, reason)| println!("left out {path}: {reason}"));
    done.failed.iter().for_each(|(path, reason)| println!("failed {path}: {reason}"));
    println!(
        "{} znodes {would}created, {} {would}overwritten, {} {would}kept as they are, {} left out, {} failed",
        done.created.len(),
        done.overwritten.len(),
        done.kept.len(),
        plan.left_out.len(),
        done.failed.len()
    );
    if done.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DONE_IN_PART) }
}

fn ensemble(args: &RestoreArgs, store: &Store, history: &History, rebuilt: Rebuilt) -> Result<(), String> {
    let text = |error: ostler_backup::BackupError| error.to_string();
    let servers = servers(args)?;
    if servers.is_empty() {
        return Err(
            "say where to: --into FOLDER --servers 1,2,3, or --config zoo.cfg, or --verify".to_owned()
        );
    }
    servers.iter().try_for_each(|server| restore::refuse_data(&server.folders)).map_err(text)?;
    let epoch = restore::choose_epoch(store, history, args.epoch.map(Epoch)).map_err(text)?;
    let zxid = rebuilt.zxid;
    let ended = restore::end_sessions(rebuilt.tree, epoch);
    for server in &servers {
        ended.write(server).map_err(text)?;
        println!("{}", server.folders.data_dir.display());
    }
    println!(
        "epoch {}: snapshot {} with {} znodes; {} sessions ended, with {} ephemerals; digest {:#x}",
        epoch.0,
        ended.zxid(),
        ended.znodes(),
        ended.sessions,
        ended.ephemerals.len(),
        ended.digest()
    );
    if let Err(error) = restore::note_restore(store, zxid, epoch) {
        eprintln!(
            "ostler restore: the epoch is not noted in the backup: {error}. For another restore from it say --epoch with \
             a number above {}",
            epoch.0
        );
    }
    Ok(())
}

fn servers(args: &RestoreArgs) -> Result<Vec<RestoredServer>, String> {
    let mut servers = Vec::new();
    if let Some(into) = &args.into {
        let into = std::path::absolute(into).map_err(|error| error.to_string())?;
        for id in &args.servers {
            let folders = DataFolders::at(&into.join(id.to_string()), None);
            servers.push(RestoredServer { folders, server_id: Some(*id) });
        }
    }
    for path in &args.config {
        let config = crate::server::load(path).map_err(|error| error.to_string())?.config;
        let folders = crate::backup::folders(&config.folders.data_dir, &config.folders.data_log_dir)?;
        servers.push(RestoredServer { folders, server_id: None });
    }
    Ok(servers)
}
