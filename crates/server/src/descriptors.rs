//! The limit of open files and sockets of this process, and the part of it that clients cannot use.
//!
//! The system gives a new file the lowest free number, so the number of a connection shows how many files are open at
//! least. Clients never get one of the last numbers, whatever else the process has open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io, os::fd::AsRawFd};

/// The most file numbers that clients cannot use. They are for logs, snapshots, a tree from the leader, and connections of
/// some dozens of servers.
const KEPT_MAX: u64 = 128;
/// If the limit is small, clients cannot use this part of it: one in 4.
const KEPT_PART: u64 = 4;

/// Raises the limit of open files to the most that the system allows, as a JVM does. Returns the limit, `None` if there is
/// none.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// The kind of caller, which decides the file numbers that its connection may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A caller at the port for clients.
    Client,
    /// A caller at a port of the ensemble, which may be one of its servers.
    Peer,
}

impl Caller {
    /// Whether too few file numbers are left for the disk and the ensemble if this connection stays open.
    pub(crate) fn is_too_many(self, socket: &impl AsRawFd) -> bool {
        // The limit is read each time, because an operator may change it while the process runs.
        let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
        u64::try_from(socket.as_raw_fd()).is_ok_and(|number| number >= self.end_of_numbers(limit))
    }

    fn end_of_numbers(self, limit: u64) -> u64 {
        let kept = (limit / KEPT_PART).min(KEPT_MAX);
        match self {
            Caller::Client => limit - kept,
            // The rest is the disk's.
            Caller::Peer => limit - kept / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_less_than_peers_and_peers_less_than_all() {
        for (limit, clients, peers) in
            [(64, 48, 56), (256, 192, 224), (1024, 896, 960), (1 << 30, (1 << 30) - 128, (1 << 30) - 64)]
        {
            assert_eq!(Caller::Client.end_of_numbers(limit), clients, "{limit}");
            assert_eq!(Caller::Peer.end_of_numbers(limit), peers, "{limit}");
        }
    }
}
