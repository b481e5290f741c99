//! Who has connected to a port of the ensemble and has not said yet who it is.

use crate::{descriptors::Caller, said::Said};
use std::{
    collections::HashMap,
    net::IpAddr,
    os::fd::AsRawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// So many may be there from one address; each has a descriptor and a buffer.
const FROM_ONE_ADDRESS: usize = 64;

/// Those at one port.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    port: &'static str,
    there: Mutex<HashMap<IpAddr, There>>,
    /// That there are too many open files is in the log.
    said_full: Mutex<Said>,
}

#[derive(Debug, Default)]
struct There {
    count: usize,
    /// That there are too many is in the log.
    told: bool,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Stranger {
    among: Arc<Strangers>,
    from: IpAddr,
}

impl Strangers {
    /// `port` is what it is called in the log.
    pub(super) fn at(port: &'static str) -> Arc<Strangers> {
        Arc::new(Strangers { port, there: Mutex::default(), said_full: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, There>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more has come with this socket. `None` if there are too many from there, or too many files are open.
    pub(super) fn welcome(self: &Arc<Self>, socket: &impl AsRawFd, from: IpAddr) -> Option<Stranger> {
        if Caller::Peer.is_too_many(socket) {
            if self.said_full.lock().unwrap_or_else(PoisonError::into_inner).is_due() {
                tracing::error!(
                    %from, port = self.port,
                    "a connection was closed: the process may open no more files, and the last are the disk's; raise its \
                     limit of open files"
                );
            }
            return None;
        }
        let mut there = self.lock();
        let same = there.entry(from).or_default();
        if same.count < FROM_ONE_ADDRESS {
            same.count += 1;
            return Some(Stranger { among: self.clone(), from });
        }
        if !std::mem::replace(&mut same.told, true) {
            let (port, limit) = (self.port, FROM_ONE_ADDRESS);
            tracing::warn!(%from, port, limit, "more connections from there that do not say who they are are closed");
        }
        None
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut there = self.among.lock();
        if let Some(same) = there.get_mut(&self.from) {
            same.count -= 1;
            if same.count == 0 {
                there.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_from_one_address_do_not_keep_others_out() {
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let strangers = Strangers::at("election");
        let welcome = |from| strangers.welcome(&std::io::stdout(), from);
        let mut crowd: Vec<_> = (0..FROM_ONE_ADDRESS).map(|_| welcome(one).unwrap()).collect();
        assert!(welcome(one).is_none());
        assert!(welcome(other).is_some());
        crowd.pop();
        assert!(welcome(one).is_some());
        crowd.clear();
        assert!(strangers.lock().is_empty());
    }
}
