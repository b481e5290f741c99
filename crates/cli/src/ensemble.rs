//! `ostler ensemble`: several servers in one terminal, for trying things out.

mod error;
mod folders;
mod frame;
mod group;
mod inquiry;
mod journal;
mod lines;
mod member;
mod process;
mod screen;

use clap::Args;
use error::{EnsembleError, While};
use folders::ServerSetup;
use frame::{Heading, frame};
use group::Group;
use lines::Lines;
use screen::{Key, Screen, ScreenEvent};
use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

/// Run an ensemble of several servers in this terminal, to try things out.
///
/// Each server is a process with its own zoo.cfg, data and log. Keys kill, start and pause servers, and the screen
/// shows which server leads. The console shows them in a browser. If the output is not a terminal, a line is printed at each change of a server's state. When
/// this command ends, all servers end.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler ensemble 5 --folder /tmp/trial --port 3181")]
pub(crate) struct EnsembleArgs {
    /// Number of servers, 1 to 9 [default: as in the folder, or 3].
    #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(folders::SERVERS_MAX)))]
    servers: Option<u16>,
    /// Folder for the servers' folders (server-1 and so on); existing data is kept and used again.
    #[arg(long, default_value = "ostler-ensemble", value_name = "DIR")]
    folder: PathBuf,
    /// Client port of the first server, the other servers use the next ports; quorum ports are 100 higher, election
    /// ports 200 higher [default: as in the folder, or 2181].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

/// The exit code if the servers could not be started.
const EXIT_NOT_STARTED: u8 = 2;
const LOOKED_AT_EVERY: Duration = Duration::from_millis(200);

/// Runs until SIGTERM, SIGINT, SIGHUP or the key that ends all servers.
pub(crate) fn run(args: &EnsembleArgs) -> ExitCode {
    let places = match folders::prepare(&args.folder, args.servers, args.port) {
        Ok(places) => places,
        Err(error) => return failed(&error, ExitCode::from(EXIT_NOT_STARTED)),
    };
    // Only this thread: a server ends when the thread that started it ends.
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => {
            let what = "cannot start".into();
            return failed(&EnsembleError::Io { what, cause }, ExitCode::from(EXIT_NOT_STARTED));
        }
    };
    match runtime.block_on(all(args, places)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, ExitCode::FAILURE),
    }
}

fn failed(error: &EnsembleError, code: ExitCode) -> ExitCode {
    // The reader may be gone.
    let _ = writeln!(io::stderr(), "ostler ensemble: {error}");
    code
}

async fn all(args: &EnsembleArgs, places: Vec<ServerSetup>) -> Result<(), EnsembleError> {
    let mut signals = Signals::listen().during(|| "cannot listen for signals".into())?;
    let live = io::stdout().is_terminal() && io::stdin().is_terminal();
    let heading = Heading { greeting: greeting(&args.folder, &places, live), pausing: false };
    let mut group = Group::start(places)?;
    let watched = watch(&mut group, heading, live, &mut signals).await;
    let ended = if watched.is_ok() && live { say(&["ending all servers…".into()]) } else { Ok(()) };
    // Another signal kills them at once.
    tokio::select! {
        () = group.end() => {}
        () = signals.received() => {}
    }
    watched.and(ended)
}

/// The lines at the top: where the data is, how to connect, the console, how to end the servers.
fn greeting(folder: &Path, places: &[ServerSetup], live: bool) -> Vec<String> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let addresses: Vec<String> = places.iter().map(|place| place.clients.to_string()).collect();
    let console = places.iter().find_map(|place| place.admin);
    let end = if live { "q or Ctrl-C ends" } else { "SIGTERM or SIGINT ends" };
    let mut lines = vec![
        format!("data and logs in {}", folder.display()),
        format!("connect with zkCli.sh -server {}", addresses.join(",")),
    ];
    lines.extend(console.map(|admin| format!("console at http://{admin}/console/")));
    lines.push(format!("{end} all servers; their data stays"));
    lines
}

fn say(lines: &[String]) -> Result<(), EnsembleError> {
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).during(cannot_show)
}

fn cannot_show() -> String {
    "cannot write to the output".into()
}

/// The form in which the state of the servers is shown.
enum Display {
    Screen(Screen, Heading),
    Lines(Lines),
}

impl Display {
    fn show(&mut self, group: &Group) -> io::Result<()> {
        match self {
            Display::Screen(screen, heading) => {
                let size = screen.size()?;
                screen.paint(size, frame(group, heading, (size.0.into(), size.1.into())))
            }
            Display::Lines(lines) => lines.show(group, &mut io::stdout().lock()),
        }
    }

    /// Does what a key asks for. Returns false if all servers shall end.
    fn obey(&mut self, key: Key, group: &mut Group) -> bool {
        let Display::Screen(_, heading) = self else { return true };
        let pausing = std::mem::take(&mut heading.pausing);
        match key {
            Key::End => return false,
            Key::Server(id) if pausing => group.pause_or_continue(id),
            Key::Server(id) => group.kill_or_start(id),
            Key::Leader if !pausing => group.kill_leader(),
            Key::Pause if !pausing => heading.pausing = true,
            Key::Leader | Key::Pause | Key::Other => {}
        }
        true
    }
}

/// Shows the servers and obeys the keys, until a key or a signal ends it.
async fn watch(
    group: &mut Group,
    heading: Heading,
    live: bool,
    signals: &mut Signals,
) -> Result<(), EnsembleError> {
    say(&heading.greeting)?;
    let (mut face, mut keys) = if live {
        let screen = Screen::take().during(|| "cannot use the terminal".into())?;
        (Display::Screen(screen, heading), Some(screen::keys().during(|| "cannot read keys".into())?))
    } else {
        (Display::Lines(Lines::default()), None)
    };
    let mut ticks = interval(LOOKED_AT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = signals.received() => return Ok(()),
            said = next(&mut keys) => match said {
                Some(Some(key)) if face.obey(key, group) => {}
                Some(None) => {}
                // The key that ends all, or the terminal is gone.
                Some(Some(_)) | None => return Ok(()),
            },
            answered = group.answer() => group.take(answered),
            _ = ticks.tick() => group.look(),
        }
        face.show(group).during(cannot_show)?;
        if !live && group.all_down() {
            return Err(EnsembleError::AllEnded(group.logs()));
        }
    }
}

/// The next event of the terminal. Without a terminal this never returns.
async fn next(keys: &mut Option<mpsc::UnboundedReceiver<ScreenEvent>>) -> Option<ScreenEvent> {
    match keys {
        Some(keys) => keys.recv().await,
        None => std::future::pending().await,
    }
}

/// The signals that end this program.
struct Signals {
    all: [Signal; 3],
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        let [term, interrupt, hangup] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
        Ok(Signals { all: [term?, interrupt?, hangup?] })
    }

    async fn received(&mut self) {
        let [term, interrupt, hangup] = &mut self.all;
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
