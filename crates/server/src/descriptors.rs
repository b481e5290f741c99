//! How many files and sockets this process may have open, and which of them are not for clients.
//!
//! The system gives out the lowest number that is free. So a connection's own number says how many are in use below it,
//! and nothing has to be counted: clients never have one of the last numbers, whatever else the process has open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io, os::fd::AsRawFd};

/// The most that is kept from clients: logs, snapshots, a tree that comes from the leader, and connections of some
/// dozens of servers.
const KEPT_MAX: u64 = 128;
/// Of a small limit clients get all but this part of it.
const KEPT_PART: u64 = 4;

/// Lets this process open as many files as the system allows it, as a JVM does by itself. Returns how many there may be,
/// `None` without a limit.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// Who has come, and with it which numbers it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// At the port for clients.
    Client,
    /// At a port of the ensemble: it may be one of its servers.
    Peer,
}

impl Caller {
    /// Whether too few are left for the disk and the ensemble if this connection stays.
    pub(crate) fn is_too_many(self, socket: &impl AsRawFd) -> bool {
        // Asked each time: an operator may change it while the process runs.
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
