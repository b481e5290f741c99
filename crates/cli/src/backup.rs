//! `ostler backup`: copies a server's files while it runs.

use clap::Args;
use ostler_backup::{
    BackupError,
    backup::{Backup, BackupOptions},
    store::Store,
};
use ostler_storage::folders::DataFolders;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

/// Back up a server's data to a folder or to S3, while the server runs.
///
/// Copies the newest snapshot and the log after it. It only reads the server's folder, takes no lock, and takes folders
/// of Java ZooKeeper too. With a zoo.cfg, or with --server, the server is asked how far its history is committed, and
/// only that is copied. Exit codes: 0 copied, 1 an error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ostler backup /etc/zookeeper/zoo.cfg --to /backup/zk1
  ostler backup /etc/zookeeper/zoo.cfg --to s3://bucket/zk1 --follow
S3 takes its keys, region and endpoint from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
AWS_ENDPOINT.")]
pub(crate) struct BackupArgs {
    /// The server's zoo.cfg, or its dataDir.
    #[arg(value_name = "DATA_DIR|ZOO_CFG")]
    server_files: PathBuf,
    /// The server's dataLogDir, if it differs from DATA_DIR.
    #[arg(long, value_name = "FOLDER")]
    data_log_dir: Option<PathBuf>,
    /// The folder of the backup, or s3://BUCKET/PREFIX. A backup that is there is continued.
    #[arg(long, value_name = "FOLDER|URL")]
    to: String,
    /// Go on copying the log as it grows, until the program is stopped.
    #[arg(long)]
    follow: bool,
    /// The time from one look at the log to the next with --follow, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    interval: u64,
    /// The client address of the server, to ask how far its history is committed [default: from the zoo.cfg].
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
    /// Do not ask the server. Copies all that is in the log, also what may never be committed; the backup notes that.
    #[arg(long, conflicts_with = "server")]
    offline: bool,
}

/// Copies once, or until the program is stopped.
pub(crate) fn run(args: &BackupArgs) -> ExitCode {
    match copy(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ostler backup: {error}");
            ExitCode::FAILURE
        }
    }
}

fn copy(args: &BackupArgs) -> Result<(), String> {
    let mut options = options(args)?;
    let store = Store::create(&args.to).map_err(|error| error.to_string())?;
    let interval = Duration::from_millis(args.interval);
    let mut backup = begin(&store, &mut options, args, interval)?;
    let base = &backup.part().base;
    eprintln!("base {}: {} bytes", base.zxid, base.bytes);
    let mut waits = None;
    loop {
        let report = match backup.step() {
            Ok(report) => report,
            // The stored part stays good, and the store or the network may come back.
            Err(error) if args.follow && (is_of_store(&error) || is_of_file_gone(&error)) => {
                eprintln!("ostler backup: {error}; it is tried again");
                thread::sleep(interval.max(Duration::from_secs(1)));
                backup = begin(&store, &mut options, args, interval)?;
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        report.notes.iter().for_each(|note| eprintln!("ostler backup: {note}"));
        if report.waits != waits
            && let Some(reason) = &report.waits
        {
            eprintln!("ostler backup: waits: {reason}");
        }
        waits = report.waits;
        if !args.follow {
            break;
        }
        thread::sleep(interval);
    }
    let part = backup.part();
    println!(
        "{}: transactions through {}, committed through {}",
        store.location(),
        backup.last(),
        part.confirmed_through
    );
    Ok(())
}

/// Begins the backup. With --follow it waits for a server that does not serve yet.
fn begin<'s>(
    store: &'s Store,
    options: &mut BackupOptions,
    args: &BackupArgs,
    interval: Duration,
) -> Result<Backup<'s>, String> {
    let mut said = false;
    loop {
        match Backup::begin(store, options.clone()) {
            Ok(backup) => return Ok(backup),
            Err(error @ (BackupError::NotServing { .. } | BackupError::Store { .. })) if args.follow => {
                if !said {
                    eprintln!("ostler backup: waits: {error}");
                }
                said = true;
                thread::sleep(interval.max(Duration::from_secs(1)));
            }
            // The files of a server that is stopped are copied as they are.
            Err(error @ BackupError::NotServing { .. })
                if args.server.is_none() && options.server.is_some() =>
            {
                eprintln!(
                    "ostler backup: {error}. All that is in the log is copied, and the backup notes that"
                );
                options.server = None;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn is_of_store(error: &BackupError) -> bool {
    matches!(error, BackupError::Store { .. })
}

/// A running server removes and renames files, also between a look at the folder and the opening of a file.
fn is_of_file_gone(error: &BackupError) -> bool {
    use ostler_storage::StorageError;
    let (BackupError::File { source, .. } | BackupError::Storage(StorageError::Io { source, .. })) = error
    else {
        return false;
    };
    source.kind() == std::io::ErrorKind::NotFound
}

fn options(args: &BackupArgs) -> Result<BackupOptions, String> {
    let path = std::path::absolute(&args.server_files).map_err(|error| error.to_string())?;
    let mut options = if path.is_dir() {
        let log_dir = args.data_log_dir.as_ref().map(std::path::absolute).transpose();
        let log_dir = log_dir.map_err(|error| error.to_string())?;
        BackupOptions::new(DataFolders::at(&path, log_dir.as_deref()))
    } else {
        let config = crate::server::load(&path).map_err(|error| error.to_string())?.config;
        let folders = folders(&config.folders.data_dir, &config.folders.data_log_dir)?;
        let mut options = BackupOptions::new(folders);
        options.extended_types = Some(config.tree.extended_types_enabled);
        options.server = config.clients.client_address.map(|address| reachable(address).to_string());
        if options.server.is_none() && args.server.is_none() && !args.offline {
            eprintln!(
                "ostler backup: {} has no clientPort, so the server cannot be asked how far its history is committed; \
                 all that is in the log is copied, and the backup notes that",
                path.display()
            );
        }
        options
    };
    if args.server.is_some() || args.offline {
        options.server.clone_from(&args.server);
    }
    Ok(options)
}

/// The folders of a configuration, with absolute paths.
pub(crate) fn folders(data_dir: &Path, data_log_dir: &Path) -> Result<DataFolders, String> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| error.to_string());
    let (data_dir, data_log_dir) = (absolute(data_dir)?, absolute(data_log_dir)?);
    Ok(DataFolders::at(&data_dir, (data_log_dir != data_dir).then_some(&*data_log_dir)))
}

/// An address that listens on all interfaces is reached at this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
