//! Accepting clients, within the limits per address and in total.

use crate::{
    admin::four_letter_door::FourLetterDoor,
    client_conn::{self, ConnLimits},
    driver::Driver,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// How many may connect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnCounts {
    /// From one address; `None` is no limit.
    pub(crate) per_address: Option<u32>,
    /// In total; `None` is no limit.
    pub(crate) total: Option<u32>,
    /// Ask TCP to probe idle connections.
    pub(crate) keep_alive: bool,
}

#[derive(Debug, Default)]
struct Census {
    by_address: HashMap<IpAddr, u32>,
    total: u32,
}

/// A place among the connections, given back on drop.
struct Place {
    census: Arc<Mutex<Census>>,
    address: IpAddr,
}

impl Place {
    fn take(census: &Arc<Mutex<Census>>, address: IpAddr, counts: ConnCounts) -> Option<Place> {
        let mut all = census.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.by_address.get(&address).copied().unwrap_or(0);
        let full = counts.per_address.is_some_and(|max| here >= max)
            || counts.total.is_some_and(|max| all.total >= max);
        if full {
            return None;
        }
        all.by_address.insert(address, here + 1);
        all.total += 1;
        Some(Place { census: census.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.census.lock().unwrap_or_else(PoisonError::into_inner);
        all.total -= 1;
        if let Some(here) = all.by_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                all.by_address.remove(&self.address);
            }
        }
    }
}

/// Binds the client port. Nothing is accepted yet.
pub(crate) fn bind(address: SocketAddr, backlog: i32) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Accepts until it is dropped; the connections end with it.
pub(crate) async fn run(
    listener: TcpListener,
    driver: Arc<Driver>,
    limits: Arc<ConnLimits>,
    counts: ConnCounts,
    door: Arc<FourLetterDoor>,
) {
    let census = Arc::new(Mutex::new(Census::default()));
    let mut refused = 0_u64;
    let mut conns = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = conns.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: the ones in use go on, and some will be given back.
                tracing::error!(%error, "a connection could not be accepted; raise the limit of open files?");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let Some(place) = Place::take(&census, address, counts) else {
            refused += 1;
            // Whoever opens a million connections must not fill the log too.
            if refused.is_power_of_two() {
                tracing::warn!(%address, refused, "too many connections (maxClientCnxns, maxCnxns): closed");
            }
            continue;
        };
        prepare(&stream, counts.keep_alive);
        let (driver, limits, door) = (driver.clone(), limits.clone(), door.clone());
        conns.spawn(async move {
            client_conn::serve(stream, peer, driver, limits, door).await;
            drop(place);
        });
    }
}

fn prepare(stream: &TcpStream, keep_alive: bool) {
    // Neither matters for correctness; a socket that is gone already says so at its first read.
    let _ = stream.set_nodelay(true);
    if keep_alive {
        let _ = SockRef::from(stream).set_keepalive(true);
    }
}
