//! Who has connected to a port of the ensemble and has not said yet who it is.
//!
//! A server says it with its first packet, as soon as it is connected. So where there are too many, whoever has said
//! nothing for longest gives way: a crowd that says nothing keeps nobody out, whatever address it shares with a server.

use crate::{descriptors::Caller, log_throttle::LogThrottle};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    os::fd::AsRawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// The number of connections from one address. Each has a descriptor and a buffer.
const FROM_ONE_ADDRESS: usize = 64;
const FROM_ALL: usize = 512;
/// In a crowd one more is taken only after so long, so that each is there for long enough to say who it is.
const IN_A_CROWD: Duration = Duration::from_millis(1);

/// Those at one port.
#[derive(Debug)]
pub(super) struct UnidentifiedPeers {
    port: &'static str,
    there: Mutex<Crowd>,
    /// That there are too many open files is in the log.
    said_full: Mutex<LogThrottle>,
}

#[derive(Debug, Default)]
struct Crowd {
    /// By their numbers: the oldest is the first.
    all: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    from: HashMap<IpAddr, Same>,
    next: u64,
}

/// Those from one address.
#[derive(Debug, Default)]
struct Same {
    count: usize,
    /// That there are too many is in the log.
    told: bool,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct UnidentifiedPeer {
    among: Arc<UnidentifiedPeers>,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Crowd {
    /// Makes room for one more from there. True if somebody had to give way.
    fn make_room(&mut self, from: IpAddr, port: &'static str) -> bool {
        let from_there = self.from.get(&from).map_or(0, |same| same.count);
        let most = || self.from.iter().max_by_key(|(_, same)| same.count).map(|(address, _)| *address);
        let crowded = if from_there >= FROM_ONE_ADDRESS {
            Some(from)
        } else if self.all.len() >= FROM_ALL {
            most()
        } else {
            None
        };
        let Some(crowded) = crowded else { return false };
        let of_crowd = self.all.iter().find(|(_, (address, _))| *address == crowded);
        let Some(oldest) = of_crowd.map(|(number, _)| *number) else { return false };
        if let Some((_, gives_way)) = self.remove(oldest) {
            gives_way.notify_one();
        }
        if let Some(same) = self.from.get_mut(&crowded)
            && !std::mem::replace(&mut same.told, true)
        {
            let limit = FROM_ONE_ADDRESS;
            tracing::warn!(
                from = %crowded, port, limit,
                "there are too many connections from there that do not say who they are: the oldest of them are closed"
            );
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<(IpAddr, Arc<Notify>)> {
        let (from, gives_way) = self.all.remove(&number)?;
        if let Some(same) = self.from.get_mut(&from) {
            same.count -= 1;
            if same.count == 0 {
                self.from.remove(&from);
            }
        }
        Some((from, gives_way))
    }
}

impl UnidentifiedPeers {
    /// `port` is what it is called in the log.
    pub(super) fn at(port: &'static str) -> Arc<UnidentifiedPeers> {
        Arc::new(UnidentifiedPeers { port, there: Mutex::default(), said_full: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Crowd> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more has come with this socket. `None` if too many files are open.
    pub(super) async fn welcome(
        self: &Arc<Self>,
        socket: &impl AsRawFd,
        from: IpAddr,
    ) -> Option<UnidentifiedPeer> {
        if Caller::Peer.is_too_many(socket) {
            if self.said_full.lock().unwrap_or_else(PoisonError::into_inner).take_turn() {
                tracing::error!(
                    %from, port = self.port,
                    "a connection was closed: the process may open no more files, and the last are the disk's; raise its \
                     limit of open files"
                );
            }
            return None;
        }
        let (peer, is_crowded) = self.take(from);
        if is_crowded {
            tokio::time::sleep(IN_A_CROWD).await;
        }
        Some(peer)
    }

    fn take(self: &Arc<Self>, from: IpAddr) -> (UnidentifiedPeer, bool) {
        let mut there = self.lock();
        let is_crowded = there.make_room(from, self.port);
        let (number, gives_way) = (there.next, Arc::new(Notify::new()));
        there.next += 1;
        there.all.insert(number, (from, gives_way.clone()));
        there.from.entry(from).or_default().count += 1;
        (UnidentifiedPeer { among: self.clone(), number, gives_way }, is_crowded)
    }
}

impl UnidentifiedPeer {
    /// Returns when another one needs the room.
    pub(super) async fn gives_way(&self) {
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

    fn has_to_go(peer: &UnidentifiedPeer) -> bool {
        pin!(peer.gives_way()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_oldest_of_too_many_from_one_address_gives_way() {
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let unidentified = UnidentifiedPeers::at("election");
        let (elsewhere, _) = unidentified.take(other);
        let mut crowd: Vec<_> = (0..FROM_ONE_ADDRESS).map(|_| unidentified.take(one).0).collect();
        assert!(!crowd.iter().any(has_to_go));
        let (new, is_crowded) = unidentified.take(one);
        assert!(is_crowded && !has_to_go(&new) && !has_to_go(&elsewhere));
        assert!(has_to_go(&crowd[0]) && !has_to_go(&crowd[1]));
        // Who has said who it is makes room.
        crowd.pop();
        assert!(!unidentified.take(one).1);
        drop((crowd, new, elsewhere));
        let there = unidentified.lock();
        assert!(there.all.is_empty() && there.from.is_empty());
    }

    #[test]
    fn of_too_many_from_many_addresses_one_of_the_largest_crowd_gives_way() {
        let unidentified = UnidentifiedPeers::at("quorum");
        let at = |n: usize| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        let lone: Vec<_> = (0..FROM_ALL - 3).map(|n| unidentified.take(at(n)).0).collect();
        let crowd: Vec<_> = (0..3).map(|_| unidentified.take(at(60_000)).0).collect();
        let (_new, is_crowded) = unidentified.take(at(50_000));
        assert!(is_crowded && has_to_go(&crowd[0]) && !has_to_go(&crowd[1]));
        assert!(!lone.iter().any(has_to_go));
        assert_eq!(unidentified.lock().all.len(), FROM_ALL);
    }
}
