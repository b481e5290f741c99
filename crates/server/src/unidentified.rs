//! Limits the callers at a port that have not shown yet who they are: servers that have not sent their id, and clients
//! in a TLS handshake.
//!
//! A real caller does that as soon as it is connected. So if there are too many unidentified peers, the connection of the
//! oldest is closed. Callers that send nothing cannot keep others out, even if they share an address.

use crate::{descriptors::Caller, log_throttle::LogThrottle};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    os::fd::AsRawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// At the limit, the time from one accepted connection to the next. It gives each caller time to send its id.
const ACCEPT_DELAY_AT_LIMIT: Duration = Duration::from_millis(1);

/// A port whose callers are limited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitedPort {
    /// Its name, for the log.
    pub(crate) name: &'static str,
    /// The kind of caller.
    pub(crate) caller: Caller,
    /// The limit of unidentified peers from one address. Each has a file descriptor and a buffer.
    pub(crate) from_one_address: usize,
    /// The limit of unidentified peers from all addresses.
    pub(crate) from_all: usize,
}

impl LimitedPort {
    /// A port for the other servers.
    pub(crate) const fn of_peers(name: &'static str) -> LimitedPort {
        LimitedPort { name, caller: Caller::Peer, from_one_address: 64, from_all: 512 }
    }

    /// A port for clients that begin with a TLS handshake. All clients of a network may come back at once. A caller that
    /// sends nothing takes some KiB; one whose connection is closed would only call again.
    pub(crate) const TLS_CLIENTS: LimitedPort = LimitedPort {
        name: "TLS for clients",
        caller: Caller::Client,
        from_one_address: 8192,
        from_all: 16_384,
    };
}

/// The unidentified peers at one port.
#[derive(Debug)]
pub(crate) struct UnidentifiedPeers {
    port: LimitedPort,
    callers: Mutex<Callers>,
    /// Limits the log lines about too many open files.
    said_full: Mutex<LogThrottle>,
}

#[derive(Debug, Default)]
struct Callers {
    /// All callers by their numbers: the oldest is the first.
    all: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    by_address: HashMap<IpAddr, CallersOfAddress>,
    next: u64,
}

/// The unidentified peers from one address.
#[derive(Debug, Default)]
struct CallersOfAddress {
    count: usize,
    /// The log has a line about too many callers from this address.
    logged: bool,
}

/// An unidentified peer. It is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct UnidentifiedPeer {
    among: Arc<UnidentifiedPeers>,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Callers {
    /// Makes room for one more caller from an address. Returns true if another one had to give way.
    fn make_room(&mut self, from: IpAddr, port: LimitedPort) -> bool {
        let from_address = self.by_address.get(&from).map_or(0, |same| same.count);
        let most_used =
            || self.by_address.iter().max_by_key(|(_, same)| same.count).map(|(address, _)| *address);
        let crowded = if from_address >= port.from_one_address {
            Some(from)
        } else if self.all.len() >= port.from_all {
            most_used()
        } else {
            None
        };
        let Some(crowded) = crowded else { return false };
        let of_crowd = self.all.iter().find(|(_, (address, _))| *address == crowded);
        let Some(oldest) = of_crowd.map(|(number, _)| *number) else { return false };
        if let Some((_, gives_way)) = self.remove(oldest) {
            gives_way.notify_one();
        }
        if let Some(same) = self.by_address.get_mut(&crowded)
            && !std::mem::replace(&mut same.logged, true)
        {
            let (port, limit) = (port.name, port.from_one_address);
            tracing::warn!(
                from = %crowded, port, limit,
                "too many connections from this address have not shown who they are, by a server id or a TLS handshake: the \
                 oldest of them are closed"
            );
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<(IpAddr, Arc<Notify>)> {
        let (from, gives_way) = self.all.remove(&number)?;
        if let Some(same) = self.by_address.get_mut(&from) {
            same.count -= 1;
            if same.count == 0 {
                self.by_address.remove(&from);
            }
        }
        Some((from, gives_way))
    }
}

impl UnidentifiedPeers {
    /// No peers yet.
    pub(crate) fn at(port: LimitedPort) -> Arc<UnidentifiedPeers> {
        Arc::new(UnidentifiedPeers { port, callers: Mutex::default(), said_full: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Callers> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a caller with this socket. Returns `None` if too many files are open.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        socket: &impl AsRawFd,
        from: IpAddr,
    ) -> Option<UnidentifiedPeer> {
        if self.port.caller.is_too_many(socket) {
            if self.said_full.lock().unwrap_or_else(PoisonError::into_inner).take_turn() {
                tracing::error!(
                    %from, port = self.port.name,
                    "a connection was closed: the process may open only a few more files, which are kept for the disk; raise \
                     its limit of open files"
                );
            }
            return None;
        }
        let (peer, is_crowded) = self.take(from);
        if is_crowded {
            tokio::time::sleep(ACCEPT_DELAY_AT_LIMIT).await;
        }
        Some(peer)
    }

    fn take(self: &Arc<Self>, from: IpAddr) -> (UnidentifiedPeer, bool) {
        let mut callers = self.lock();
        let is_crowded = callers.make_room(from, self.port);
        let (number, gives_way) = (callers.next, Arc::new(Notify::new()));
        callers.next += 1;
        callers.all.insert(number, (from, gives_way.clone()));
        callers.by_address.entry(from).or_default().count += 1;
        (UnidentifiedPeer { among: self.clone(), number, gives_way }, is_crowded)
    }
}

impl UnidentifiedPeer {
    /// Returns when this peer has to make room for another one.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for UnidentifiedPeer {
    fn drop(&mut self) {
        self.among.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    const PORT: LimitedPort = LimitedPort::of_peers("election");

    fn has_to_go(peer: &UnidentifiedPeer) -> bool {
        pin!(peer.gives_way()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_oldest_of_too_many_from_one_address_gives_way() {
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let unidentified = UnidentifiedPeers::at(PORT);
        let (elsewhere, _) = unidentified.take(other);
        let mut crowd: Vec<_> = (0..PORT.from_one_address).map(|_| unidentified.take(one).0).collect();
        assert!(!crowd.iter().any(has_to_go));
        let (new, is_crowded) = unidentified.take(one);
        assert!(is_crowded && !has_to_go(&new) && !has_to_go(&elsewhere));
        assert!(has_to_go(&crowd[0]) && !has_to_go(&crowd[1]));
        // A caller that has sent its id makes room.
        crowd.pop();
        assert!(!unidentified.take(one).1);
        drop((crowd, new, elsewhere));
        let callers = unidentified.lock();
        assert!(callers.all.is_empty() && callers.by_address.is_empty());
    }

    #[test]
    fn of_too_many_from_many_addresses_the_oldest_of_the_most_used_address_gives_way() {
        let unidentified = UnidentifiedPeers::at(PORT);
        let at = |n: usize| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        let lone: Vec<_> = (0..PORT.from_all - 3).map(|n| unidentified.take(at(n)).0).collect();
        let crowd: Vec<_> = (0..3).map(|_| unidentified.take(at(60_000)).0).collect();
        let (_new, is_crowded) = unidentified.take(at(50_000));
        assert!(is_crowded && has_to_go(&crowd[0]) && !has_to_go(&crowd[1]));
        assert!(!lone.iter().any(has_to_go));
        assert_eq!(unidentified.lock().all.len(), PORT.from_all);
    }
}
