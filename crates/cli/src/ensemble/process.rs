//! A server's process.

use super::folders::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// A child that is killed, at the latest, when this is dropped; and by the kernel, if this process ends
/// before. The kernel minds the thread that started it, so that must be one that lives to the end.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
}

impl ServerProcess {
    /// Starts `ostler server` with the place's zoo.cfg, out of reach of this terminal's signals.
    pub(super) fn start(ostler: &Path, place: &Place) -> io::Result<ServerProcess> {
        let log = File::options().create(true).append(true).open(&place.log)?;
        let mut command = Command::new(ostler);
        command.arg("server").arg(&place.zoo_cfg).arg("--end-with").arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        Ok(ServerProcess { child: command.spawn()? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// One that has just ended gets no signal any more.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Whether it is stopped, by whomever.
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

/// The name of the program stands before the state in parentheses and may contain anything.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_told_from_a_running_one() {
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
