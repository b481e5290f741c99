//! `ostler server`: one node, with a zoo.cfg or without.

use clap::Args;
use ostler_server::{
    RunningServer, ServerError,
    config::{self, EMBEDDED_DATA_DIR, JVM_FLAG_VARIABLES, NoteLevel, ServerConfig},
    logging, raise_limit_of_open_files,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::{
    hint::black_box,
    io,
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

/// Run a server. Without a file: one node on 127.0.0.1:2181, its data in ./ostler-data.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler server conf/zoo.cfg")]
pub(crate) struct ServerArgs {
    /// A ZooKeeper configuration file (zoo.cfg).
    zoo_cfg: Option<PathBuf>,
    /// Write the log as JSON, one object on each line.
    #[arg(long)]
    log_json: bool,
    /// The process that starts this one: the server ends with it
    #[arg(long, hide = true, value_name = "PID")]
    end_with: Option<i32>,
}

/// What could not be started, as opposed to what failed later.
const EXIT_NOT_STARTED: u8 = 2;

/// How often memory that is free is given back, and a buffer that the allocator keeps nothing of.
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
        None => ServerConfig::embedded(EMBEDDED_DATA_DIR),
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
        // Listened for from the start: whoever reads the greeting may send one at once.
        let mut terminated = match Termination::listen() {
            Ok(terminated) => terminated,
            Err(error) => return not_started(&format!("cannot listen for signals: {error}")),
        };
        let started = tokio::select! {
            started = RunningServer::start(&config) => started,
            // It may wait long for its name or its ports.
            () = terminated.received() => return ExitCode::SUCCESS,
        };
        let server = match started {
            Ok(server) => server,
            Err(error) => return not_started(&located(error, args)),
        };
        greet(&server, &config, begun);
        match server.run_until(terminated.received()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("ostler: stopped, nothing more was acknowledged: {error}");
                ExitCode::FAILURE
            }
        }
    });
    // What is left blocks in the system, as a name that is looked up does, and changes no file.
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

/// Has the kernel kill this process when its parent is gone, whichever way that ends. Even a paused one: what was
/// acknowledged is on disk anyway.
fn end_with(parent: i32) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot be made to end with process {parent}: {error}"))?;
    // It may have ended before.
    match getppid().map(Pid::as_raw_pid) {
        Some(now) if now == parent => Ok(()),
        _ => Err(format!("process {parent}, which it should end with, did not start it or is gone")),
    }
}

/// The allocator gives back to the system what has been free for a second, and looks for it whenever a large buffer is
/// freed. After a burst of large answers that may be never again, so one is freed now and then. It is not written to,
/// and takes no memory itself. On a thread of its own, for giving back a lot takes a while.
fn keep_giving_memory_back() -> io::Result<()> {
    let forever = || loop {
        thread::sleep(GIVE_BACK_EVERY);
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BUFFER)));
    };
    thread::Builder::new().name("memory".into()).spawn(forever).map(drop)
}

/// Threads that serve clients. The member itself does one thing at a time, so beyond a few they would only
/// wait for each other; and the disk and the kernel's side of the network need cores too.
fn runtime_threads(cores: usize) -> usize {
    (cores / 2).clamp(1, 4)
}

/// A name in the file may come to stand for an address only after the start, as those of a pod's do.
fn load_patiently(path: &std::path::Path) -> Result<ServerConfig, config::ConfigError> {
    const AGAIN_AFTER: Duration = Duration::from_secs(1);
    const SAID_EVERY: u32 = 60;
    let mut tried = 0;
    loop {
        match load(path) {
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

fn load(path: &std::path::Path) -> Result<ServerConfig, config::ConfigError> {
    let flags: Vec<(&str, String)> = JVM_FLAG_VARIABLES
        .into_iter()
        .filter_map(|name| std::env::var(name).ok().map(|text| (name, text)))
        .collect();
    let flags: Vec<(&str, &str)> = flags.iter().map(|(name, text)| (*name, &**text)).collect();
    let loaded = config::load_with_flags(path, &flags)?;
    for note in &loaded.notes {
        let level = if note.level == NoteLevel::Warning { "warning" } else { "note" };
        eprintln!("ostler: {level}: {note}");
    }
    Ok(loaded.config)
}

/// Says which line of the file asked for what could not be had.
fn located(error: ServerError, args: &ServerArgs) -> String {
    let key = match &error {
        ServerError::Listen { .. } => "clientPort",
        ServerError::Storage(_) | ServerError::NoDatabase { .. } => "dataDir",
        ServerError::Thread(_) | ServerError::ListenForPeers { .. } => return error.to_string(),
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
    let (address, port) = (server.address, server.address.port());
    eprintln!("listening on {address}, ready after {} ms", begun.elapsed().as_millis());
    eprintln!(
        "data in {}, {} znodes loaded in {} ms",
        data.display(),
        server.znodes,
        server.loaded_in.as_millis()
    );
    eprintln!("connect with any ZooKeeper client, for example: zkCli.sh -server 127.0.0.1:{port}");
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
