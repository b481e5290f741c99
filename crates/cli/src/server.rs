//! `ostler server`: one node, with a zoo.cfg or without.

use crate::systemd;
use clap::Args;
use ostler_server::{
    AuditError, Overrides, RunningServer, ServerError,
    config::{self, AdminSettings, EMBEDDED_DATA_DIR, JVM_FLAG_VARIABLES, Loaded, NoteLevel, ServerConfig},
    logging, raise_limit_of_open_files,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::{
    hint::black_box,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZero,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Builder,
    signal::unix::{self, SignalKind, signal},
};

/// Run a server: standalone, or a member of an ensemble.
///
/// The server runs until SIGTERM or SIGINT. Exit codes: 0 ended by a signal, 1 stopped by an error, for example of the
/// disk, 2 not started.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler server conf/zoo.cfg")]
pub(crate) struct ServerArgs {
    /// ZooKeeper configuration file (zoo.cfg) [default: a standalone server on 127.0.0.1:2181 with its data in
    /// ./ostler-data].
    #[arg(value_name = "ZOO_CFG")]
    zoo_cfg: Option<PathBuf>,
    /// Write the log as JSON, one object on each line.
    #[arg(long)]
    log_json: bool,
    /// Process id of the parent; the server is killed when the parent ends.
    #[arg(long, hide = true, value_name = "PID")]
    end_with: Option<i32>,
}

/// The exit code of a server that could not be started.
const EXIT_NOT_STARTED: u8 = 2;

/// The interval at which free memory is given back, and the size of a buffer that the allocator does not keep.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(2);
const LARGE_BUFFER: usize = 32 << 20;

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &ServerArgs) -> ExitCode {
    let begun = Instant::now();
    logging::start(args.log_json);
    if let Some(parent) = args.end_with
        && let Err(error) = end_with(parent)
    {
        return not_started(&error);
    }
    raise_limit();
    let config = match &args.zoo_cfg {
        None => ServerConfig {
            admin: Some(AdminSettings::loopback()),
            ..ServerConfig::embedded(EMBEDDED_DATA_DIR)
        },
        Some(path) => match load_patiently(path) {
            Ok(config) => config,
            Err(error) => return not_started(&error),
        },
    };
    if let Err(error) = keep_giving_memory_back() {
        return not_started(&ServerError::Thread(error));
    }
    let threads = runtime_threads(thread::available_parallelism().map_or(1, NonZero::get));
    let runtime = match Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return not_started(&ServerError::Thread(error)),
    };
    let code = runtime.block_on(async {
        // Before the greeting: a program that reads the greeting may send a signal at once.
        let mut terminated = match Termination::listen() {
            Ok(terminated) => terminated,
            Err(error) => return not_started(&format!("cannot listen for signals: {error}")),
        };
        systemd::starting();
        let started = tokio::select! {
            started = RunningServer::start_with(&config, with_console(&config)) => started,
            // The start may wait long for a name or a port.
            () = terminated.received() => return ExitCode::SUCCESS,
        };
        let server = match started {
            Ok(server) => server,
            Err(error) => return not_started(&located(error, args)),
        };
        greet(&server, &config, begun);
        systemd::ready(&format!("takes connections at {}", server.address));
        drop(tokio::spawn(systemd::feed_watchdog(server.handle())));
        let ended = async {
            terminated.received().await;
            systemd::stopping();
        };
        match server.run_until(ended).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("ostler: stopped, nothing more was acknowledged: {error}");
                ExitCode::FAILURE
            }
        }
    });
    // Tasks that are left wait in the operating system, for example for a name, and change no file.
    runtime.shutdown_background();
    code
}

fn raise_limit() {
    if let Err(error) = raise_limit_of_open_files() {
        eprintln!(
            "ostler: warning: the limit of open files cannot be raised: {error}; clients get what there is"
        );
    }
}

/// Lets the kernel kill this process when its parent ends, also while this process is paused. All that was
/// acknowledged is on disk.
fn end_with(parent: i32) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot be made to end with process {parent}: {error}"))?;
    // The parent may have ended before that.
    match getppid().map(Pid::as_raw_pid) {
        Some(now) if now == parent => Ok(()),
        _ => Err(format!("process {parent}, which it should end with, did not start it or is gone")),
    }
}

/// Gives free memory back to the system. The allocator does that for memory that was free for a second, but only when
/// a large buffer is freed. So a large buffer is freed at intervals. It is never written to, and so takes no memory.
/// This has a thread of its own, because giving back much memory takes a while.
fn keep_giving_memory_back() -> io::Result<()> {
    let forever = || loop {
        thread::sleep(GIVE_BACK_EVERY);
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BUFFER)));
    };
    thread::Builder::new().name("memory".into()).spawn(forever).map(drop)
}

/// The number of threads that serve clients. The core does one thing at a time, so more threads would only wait for
/// each other. The disk and the kernel's network code need processors, too.
fn runtime_threads(cores: usize) -> usize {
    (cores / 2).clamp(1, 4)
}

/// Reads the configuration, and waits for names that DNS does not know yet, as those of a new pod.
fn load_patiently(path: &std::path::Path) -> Result<ServerConfig, config::ConfigError> {
    const AGAIN_AFTER: Duration = Duration::from_secs(1);
    const SAID_EVERY: u32 = 60;
    let mut tried = 0;
    loop {
        match load_and_note(path) {
            Err(config::ConfigError::NoAddress { location, key, value, reason, retries })
                if retries.is_none_or(|retries| tried < retries) =>
            {
                if tried % SAID_EVERY == 0 {
                    eprintln!(
                        "ostler: warning: {location}: {key}={value} has a name that stands for no address yet ({reason}); \
                         it is tried again each second (electionPortBindRetry)"
                    );
                }
                tried = tried.saturating_add(1);
                std::thread::sleep(AGAIN_AFTER);
            }
            done => return done,
        }
    }
}

/// Reads a zoo.cfg, and the flags in the environment.
pub(crate) fn load(path: &std::path::Path) -> Result<Loaded, config::ConfigError> {
    let flags: Vec<(&str, String)> = JVM_FLAG_VARIABLES
        .into_iter()
        .filter_map(|name| std::env::var(name).ok().map(|text| (name, text)))
        .collect();
    let flags: Vec<(&str, &str)> = flags.iter().map(|(name, text)| (*name, &**text)).collect();
    config::load_with_flags(path, &flags)
}

fn load_and_note(path: &std::path::Path) -> Result<ServerConfig, config::ConfigError> {
    let loaded = load(path)?;
    for note in &loaded.notes {
        let level = if note.level == NoteLevel::Warning { "warning" } else { "note" };
        eprintln!("ostler: {level}: {note}");
    }
    Ok(loaded.config)
}

/// The error, with the line of the configuration that it comes from.
fn located(error: ServerError, args: &ServerArgs) -> String {
    let key = match &error {
        ServerError::Listen { .. } => "clientPort",
        ServerError::Storage(_) | ServerError::NoDatabase { .. } => "dataDir",
        ServerError::Audit(AuditError::File { .. }) => "audit.log.file",
        ServerError::Audit(AuditError::NoJournal) => "audit.log.target",
        ServerError::Thread(_)
        | ServerError::ListenForPeers { .. }
        | ServerError::ListenForOperators { .. }
        | ServerError::Traces(_)
        | ServerError::Tls { .. }
        | ServerError::SaslFile { .. } => {
            return error.to_string();
        }
    };
    let place = args.zoo_cfg.as_deref().and_then(|path| config::location_of(path, key));
    place.map_or_else(|| error.to_string(), |place| format!("{place}: {key}: {error}"))
}

fn not_started(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("ostler: {error}");
    ExitCode::from(EXIT_NOT_STARTED)
}

fn greet(server: &RunningServer, config: &ServerConfig, begun: Instant) {
    let data =
        std::path::absolute(&config.folders.data_dir).unwrap_or_else(|_| config.folders.data_dir.clone());
    let address = server.address;
    eprintln!("listening on {address}, ready after {} ms", begun.elapsed().as_millis());
    eprintln!(
        "data in {}, {} znodes loaded in {} ms",
        data.display(),
        server.znodes,
        server.loaded_in.as_millis()
    );
    if let Some(admin) = server.admin {
        eprintln!("admin server: {admin}");
        let https = config.admin.as_ref().and_then(|admin| admin.https.as_deref());
        let scheme = if https.is_some() { "https" } else { "http" };
        eprintln!("console: {scheme}://{}/console/", here(admin));
    }
    if config.strict {
        config.open_doors().iter().for_each(|line| eprintln!("{line}"));
        return;
    }
    eprintln!("connect with any ZooKeeper client, for example: zkCli.sh -server {}", here(address));
}

/// An address at which a program on this machine reaches a port.
fn here(bound: SocketAddr) -> SocketAddr {
    match bound.ip() {
        ip if ip.is_unspecified() && ip.is_ipv4() => (Ipv4Addr::LOCALHOST, bound.port()).into(),
        ip if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, bound.port()).into(),
        _ => bound,
    }
}

/// The server has the console at its admin server.
fn with_console(config: &ServerConfig) -> Overrides {
    Overrides { admin_routes: Some(Box::new(ostler_console::routes)), ..Overrides::of(config) }
}

/// SIGTERM and SIGINT.
struct Termination {
    term: unix::Signal,
    interrupt: unix::Signal,
}

impl Termination {
    fn listen() -> io::Result<Self> {
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Termination { term, interrupt })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
