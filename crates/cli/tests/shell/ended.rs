//! Waiting for the end of a process, whoever has started it.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::time::Duration;

/// False if it still runs after that time. Whoever has started it can then be told at once how it has ended.
pub(crate) fn ends_within(patience: Duration, pid: Pid) -> bool {
    // What is not there any more has ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let patience = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap() > 0
}
