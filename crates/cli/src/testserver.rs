//! `ostler testserver`: servers for tests in any language, controlled by HTTP.

mod control;
mod ending;
mod ensembles;
mod error;
mod folder;
mod network;
mod request;
mod running;
mod state;
mod waiting;

use clap::Args;
use control::Control;
use ending::Ending;
use ensembles::Ensembles;
use error::StartError;
use folder::RootFolder;
use ostler_server::{logging, raise_limit_of_open_files};
use serde_json::json;
use std::{
    io::{self, Write},
    net::Ipv4Addr,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, runtime::Builder};

/// Start servers for tests in any language, and break them on request.
///
/// Programs control it by HTTP on 127.0.0.1: they start a standalone server or an ensemble, kill, stop, pause and restart
/// servers, expire sessions, cut and delay connections. When the command is ready, it prints one line of JSON with the
/// address: {"control":"http://127.0.0.1:PORT/SECRET"}. When it ends, all servers end and their folders are removed.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler testserver --end-with-stdin")]
pub(crate) struct TestserverArgs {
    /// Port of 127.0.0.1 for HTTP [default: a free one].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "PORT")]
    port: u16,
    /// The number of ensembles and standalone servers at the same time.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    ensembles_max: u16,
    /// End when standard input ends, as it does when the program that started this command ends.
    #[arg(long)]
    end_with_stdin: bool,
    /// Write the servers' logs to standard error; RUST_LOG sets the level.
    #[arg(long)]
    log: bool,
}

/// The exit code if the command could not start.
const EXIT_NOT_STARTED: u8 = 2;
/// How long the end waits for the servers.
const END_WITHIN: Duration = Duration::from_secs(20);

/// Runs until SIGTERM, SIGINT, SIGHUP, or the end of standard input if that is asked for.
pub(crate) fn run(args: &TestserverArgs) -> ExitCode {
    if args.log {
        logging::start(false);
    }
    // With fewer open files it works as well, for fewer servers.
    let _ = raise_limit_of_open_files();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return failed(&StartError::Io { what: "cannot start", cause }),
    };
    let code = match runtime.block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    };
    runtime.shutdown_background();
    code
}

fn failed(error: &StartError) -> ExitCode {
    // The reader may be gone.
    let _ = writeln!(io::stderr(), "ostler testserver: {error}");
    ExitCode::from(EXIT_NOT_STARTED)
}

async fn serve(args: &TestserverArgs) -> Result<(), StartError> {
    let mut ending = Ending::listen(args.end_with_stdin)?;
    let folder = RootFolder::create()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .await
        .map_err(|cause| StartError::Port { port: args.port, cause })?;
    let address = listener
        .local_addr()
        .map_err(|cause| StartError::Io { what: "cannot read the address of the port", cause })?;
    let ensembles = Arc::new(Ensembles::new(folder.path(), args.ensembles_max.into()));
    let control = Control::new(ensembles.clone())?;
    say(&json!({ "control": control.url(address), "pid": std::process::id() }).to_string())?;
    tokio::select! {
        () = ending.received() => {}
        result = axum::serve(listener, control.router()) => {
            result.map_err(|cause| StartError::Io { what: "the port for HTTP has failed", cause })?;
        }
    }
    tokio::select! {
        _ = tokio::time::timeout(END_WITHIN, ensembles.end()) => {}
        // Another signal ends it at once.
        () = ending.signalled() => {}
    }
    Ok(())
}

fn say(line: &str) -> Result<(), StartError> {
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|cause| StartError::Io { what: "cannot write the address to standard output", cause })
}
