//! A server's process.

use super::folders::ServerSetup;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// A server's process. It is killed when this value is dropped, or by the kernel when the thread that started it ends.
/// So it must be started by a thread that lives to the end.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
}

impl ServerProcess {
    /// Starts `ostler server` with the place's zoo.cfg, out of reach of this terminal's signals.
    pub(super) fn start(ostler: &Path, place: &ServerSetup) -> io::Result<ServerProcess> {
        let log = File::options().create(true).append(true).open(&place.log)?;
        let mut command = Command::new(ostler);
        command.arg("server").arg(&place.zoo_cfg).arg("--end-with").arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        Ok(ServerProcess { child: command.spawn()? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the process has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal. A process that has just ended does not get it.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Whether the process is stopped by a signal.
    pub(super) fn is_paused(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        is_stopped(&stat)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a line of `/proc/PID/stat` is of a stopped process. Before the state stands the program's name in
/// parentheses, which may contain anything.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_distinguished_from_a_running_one() {
        for (stat, stopped) in [
            ("7 (ostler) S 1 7 7 0 -1", false),
            ("7 (ostler) R 1 7 7 0 -1", false),
            ("7 (ostler) T 1 7 7 0 -1", true),
            ("7 (a) T b) S 1 7 7 0 -1", false),
            ("", false),
        ] {
            assert_eq!(is_stopped(stat), stopped, "{stat}");
        }
    }
}
