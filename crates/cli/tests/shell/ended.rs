//! Waits for the end of a process that another process may have started.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::time::Duration;

/// Returns false if the process still runs after this time. If it has ended, its parent gets the exit status at once.
pub(crate) fn ends_within(patience: Duration, pid: Pid) -> bool {
    // A process that is not in /proc has ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let patience = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap() > 0
}
