//! Runs the program in tests, and reads its output.

use crate::ended::ends_within;
use rustix::process::Pid;
use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// `ostler shell`, without the variables of this machine, and with SIGINT not ignored: the tests may be a background
/// job
/// of a shell, and those ignore it.
pub(crate) fn shell() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_ostler"), "shell"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "RUST_LOG", "XDG_STATE_HOME", "OSTLER_TOKEN", "OSTLER_NODE"] {
        command.env_remove(variable);
    }
    command.env("OSTLER_HISTORY", "");
    command
}

/// The output and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn said(Output { status, stdout, stderr }: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { out: text(stdout), err: text(stderr), code: status.code() }
}

/// Runs one command.
pub(crate) fn once(server: &str, words: &[&str]) -> Said {
    said(shell().arg(server).args(words).output().unwrap())
}

/// Runs lines from the standard input.
pub(crate) fn script(server: &str, options: &[&str], lines: &str) -> Said {
    let mut child = shell().args(options).arg(server).stdin(Stdio::piped()).spawn().unwrap();
    feed(&mut child, lines.as_bytes());
    said(child.wait_with_output().unwrap())
}

pub(crate) fn feed(child: &mut Child, bytes: &[u8]) {
    // The shell may have ended before it read everything.
    let _ = child.stdin.take().unwrap().write_all(bytes);
}

/// The output without the times of Stats and events, which differ from run to run.
pub(crate) fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some((name @ ("ctime" | "mtime"), _)) => format!("{name} = ...\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Waits for the end, and returns the output and the exit code.
#[track_caller]
pub(crate) fn ends(child: &mut Child) -> Option<i32> {
    if !ends_within(PATIENCE, Pid::from_child(child)) {
        let _ = child.kill();
        panic!("it does not end");
    }
    child.wait().unwrap().code()
}
