//! Measures the time from the start of a server to its first reply.

use super::{
    error::{BenchError, Result, While},
    meter::Metered,
    process::Process,
    report::Report,
    session::{PATIENCE, Target},
    tally::Tally,
    template::{self, Path},
};
use clap::Args;
use ostler_proto::op::Op;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    fs::File,
    io,
    net::TcpStream,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The pause between two attempts while the server does not listen yet.
const RETRY: Duration = Duration::from_millis(1);
const RETRY_LISTENING: Duration = Duration::from_millis(5);
/// The time that the first attempt waits for a reply. At its start Java sometimes never answers a connection. So
/// attempts end soon, and each attempt after a silent one waits twice as long.
const FIRST_PATIENCE: Duration = Duration::from_millis(250);

/// Start a server, and measure the time until it has answered its first request.
///
/// The time begins when the command is started and ends with the reply to a getData. Then the server is stopped.
#[derive(Args)]
#[command(after_help = "Example: ostler bench first-request -- ostler server conf/zoo.cfg")]
pub(crate) struct Options {
    /// How long to wait for the reply, in seconds; then the run fails.
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS")]
    seconds: f64,
    /// Znode to read; must exist.
    #[arg(long, default_value = "/", value_name = "PATH")]
    path: String,
    /// File to append the server's output to [default: the output is discarded].
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Do not stop the server at the end; the report has its process id.
    #[arg(long)]
    leave_running: bool,
    /// Command that starts the server; must not go into the background.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(options: &Options, target: Target) -> Result<Report> {
    if TcpStream::connect(target.server).is_ok() {
        return Err(BenchError::Usage(format!(
            "something listens on {} already: stop it, or name another port with --server",
            target.server
        )));
    }
    let exec = Instant::now();
    let mut child = options.spawn()?;
    let served = wait_until_served(options, target, exec, &mut child);
    let process = Process::of_pid(child.id());
    if served.is_err() || !options.leave_running {
        end(&mut child, &options.command[0])?;
    }
    let Served { listening, first_reply } = served?;

    let mut tally = Tally::new();
    tally.count(u64::try_from(first_reply.as_nanos()).unwrap_or(u64::MAX), 0);
    let metered = Metered { seconds: first_reply.as_secs_f64(), server: None, client_cpu_us_per_op: None };
    let mut report = Report::new("first request", target.server, options.command.join(" "), &tally, metered);
    report.figure("listening_after", "ms", listening.as_secs_f64() * 1e3);
    report.figure("first_reply_after", "ms", first_reply.as_secs_f64() * 1e3);
    if options.leave_running {
        let usage = process.ok().and_then(Process::usage);
        report.figure("pid", "", f64::from(child.id()));
        report.figure("rss", "bytes", usage.map_or(0.0, |usage| usage.rss as f64));
    }
    Ok(report)
}

impl Options {
    fn spawn(&self) -> Result<Child> {
        let output = || match &self.log {
            None => Ok(Stdio::null()),
            Some(path) => File::options().create(true).append(true).open(path).map(Stdio::from),
        };
        let open = || "cannot open the file of --log";
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).process_group(0);
        command.stdout(output().during(open())?).stderr(output().during(open())?);
        command.spawn().map_err(|cause| self.failure(format!("cannot be started: {cause}")))
    }

    fn failure(&self, what: String) -> BenchError {
        BenchError::Command { command: self.command.join(" "), what }
    }
}

/// Times since the command was started.
struct Served {
    listening: Duration,
    first_reply: Duration,
}

fn wait_until_served(options: &Options, target: Target, exec: Instant, child: &mut Child) -> Result<Served> {
    let request = template::read(Op::GetData, &Path::fixed(options.path.as_str()), false);
    let mut listening = None;
    let mut attempt = Target { patience: FIRST_PATIENCE, ..target };
    loop {
        if let Some(status) = child.try_wait().during("cannot wait for the server")? {
            return Err(options.failure(describe_end(status)));
        }
        let outcome = attempt.open().and_then(|mut session| Ok((session.call(&request)?.0, session)));
        let now = exec.elapsed();
        if !matches!(outcome, Err(BenchError::Refused(_))) {
            listening.get_or_insert(now);
        }
        let pause = match outcome {
            Ok((0, session)) => {
                session.close();
                return Ok(Served { listening: listening.unwrap_or(now), first_reply: now });
            }
            Ok((code, _)) => {
                return Err(BenchError::Setup { what: "getData", path: options.path.clone(), code });
            }
            Err(BenchError::Refused(_)) => RETRY,
            Err(BenchError::Silent(_)) => {
                attempt.patience = (attempt.patience * 2).min(PATIENCE);
                RETRY
            }
            // The server listens, and closes the connection because it cannot serve yet. It may log that each time.
            Err(_) => RETRY_LISTENING,
        };
        if now.as_secs_f64() > options.seconds {
            return Err(options.failure(format!("did not serve within {} s", options.seconds)));
        }
        thread::sleep(pause);
    }
}

fn describe_end(status: ExitStatus) -> String {
    format!("ended before it served ({status}); --log FILE keeps what it said")
}

/// Ends the process group of the server: by SIGTERM, then by SIGKILL.
fn end(child: &mut Child, name: &str) -> Result<()> {
    const POLITE: Duration = Duration::from_secs(10);
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| match group.map(|group| kill_process_group(group, signal)) {
        None | Some(Ok(()) | Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(Err(cause)) => Err(io::Error::from(cause)).during(format!("cannot stop {name}")),
    };
    signal(Signal::TERM)?;
    let deadline = Instant::now() + POLITE;
    while child.try_wait().during("cannot wait for the server")?.is_none() {
        if Instant::now() > deadline {
            signal(Signal::KILL)?;
            child.wait().during("cannot wait for the server")?;
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
