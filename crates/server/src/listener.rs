//! Accepting clients, within the limits per address and in total.

use crate::{
    client_conn::{self, Accepted, ClientService},
    descriptors::Caller,
    log_throttle::LogThrottle,
    tls_handshake::PortSecurity,
    unidentified::{LimitedPort, UnidentifiedPeers},
};
use ostler_proto::membership::{ClientAddress, Member};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    sync::watch,
    task::JoinSet,
};

/// The limits of clients' connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnCounts {
    /// Connections from one address; `None` is no limit.
    pub(crate) per_address: Option<u32>,
    /// IPv6 addresses that have this number of first bits in common count as one.
    pub(crate) ipv6_prefix: u8,
    /// Connections in total; `None` is no limit.
    pub(crate) total: Option<u32>,
    /// TCP probes idle connections.
    pub(crate) keep_alive: bool,
}

#[derive(Debug, Default)]
struct Census {
    by_address: HashMap<IpAddr, u32>,
    total: u32,
}

/// One of the connections that the limits allow. It is given back on drop.
pub(crate) struct ConnSlot {
    census: Arc<Mutex<Census>>,
    /// The address that the connection counts for.
    pub(crate) address: IpAddr,
}

/// The address that a connection counts for: the network of an IPv6 address, because one client mostly has a whole
/// network.
pub(crate) fn counted(address: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let beyond = 128_u32.saturating_sub(ipv6_prefix.into());
            let mask = u128::MAX.checked_shl(beyond).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
        address => address,
    }
}

impl ConnSlot {
    fn take(census: &Arc<Mutex<Census>>, address: IpAddr, counts: ConnCounts) -> Option<ConnSlot> {
        let address = counted(address, counts.ipv6_prefix);
        let mut all = census.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.by_address.get(&address).copied().unwrap_or(0);
        let full = counts.per_address.is_some_and(|max| here >= max)
            || counts.total.is_some_and(|max| all.total >= max);
        if full {
            return None;
        }
        all.by_address.insert(address, here + 1);
        all.total += 1;
        Some(ConnSlot { census: census.clone(), address })
    }
}

impl ConnSlot {
    /// The place of a connection that no limit counts, because the server itself has made it.
    pub(crate) fn uncounted(address: IpAddr) -> ConnSlot {
        let census = Arc::new(Mutex::new(Census { by_address: HashMap::from([(address, 1)]), total: 1 }));
        ConnSlot { census, address }
    }
}

impl Drop for ConnSlot {
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

/// This server as the configuration in force has it; `None` for one that is in no ensemble.
pub(crate) type Own = Option<watch::Receiver<Option<Member>>>;

/// The port for clients. A reconfiguration can move it.
#[derive(Debug)]
pub(crate) struct ClientPort {
    pub(crate) listener: TcpListener,
    /// The address that was bound.
    pub(crate) address: SocketAddr,
    pub(crate) backlog: i32,
}

impl ClientPort {
    /// Moves the port to another address. Connections that were made stay. If the address cannot be bound, the port stays.
    async fn follow(&mut self, to: &ClientAddress) {
        let host = to.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&to.host);
        match self.bound_anew(host, to.port).await {
            Ok(None) => {}
            Ok(Some((address, listener))) => {
                tracing::info!(from = %self.address, to = %address, "the port for clients has moved");
                (self.address, self.listener) = (address, listener);
            }
            Err(error) => tracing::error!(
                host, port = to.port, still = %self.address, %error,
                "the port for clients cannot move to where the new configuration has it, and stays; is that port in \
                 use, or not this machine's?"
            ),
        }
    }

    /// Binds the address; `None` if this port serves it already.
    async fn bound_anew(&self, host: &str, port: u16) -> io::Result<Option<(SocketAddr, TcpListener)>> {
        let found = lookup_host((host, port)).await?.next();
        let address = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let here =
            address == self.address || (port == self.address.port() && self.address.ip().is_unspecified());
        if here {
            return Ok(None);
        }
        Ok(Some((address, TcpListener::from_std(bind(address, self.backlog)?)?)))
    }
}

fn named(own: &Own) -> Option<ClientAddress> {
    own.as_ref()?.borrow().as_ref()?.client.clone()
}

/// Waits for a change of the configuration.
async fn changed(own: &mut Own) {
    let over = match own {
        Some(watched) => watched.changed().await.is_err(),
        None => true,
    };
    if over {
        std::future::pending().await
    }
}

/// Accepts clients until it is dropped. Their connections end with it.
pub(crate) async fn run(
    mut port: ClientPort,
    mut own: Own,
    service: ClientService,
    mut admission: Admission,
) {
    let counts = admission.counts;
    let unidentified = UnidentifiedPeers::at(LimitedPort::TLS_CLIENTS);
    let mut said_failed = LogThrottle::default();
    let mut conns = JoinSet::new();
    let mut address = named(&own);
    loop {
        let accepted = tokio::select! {
            accepted = port.listener.accept() => accepted,
            Some(_) = conns.join_next() => continue,
            () = changed(&mut own) => {
                let next = named(&own);
                if let Some(to) = next.clone().filter(|_| next != address) {
                    port.follow(&to).await;
                    service.door.reports.client_port_is(port.address.port());
                }
                address = next;
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(place) = admission.place_for(&stream, peer, port.address) else {
                    service.driver.traffic.count_rejected();
                    continue;
                };
                prepare(&stream, counts.keep_alive);
                let accepted = Accepted { stream, peer, place };
                match service.security {
                    PortSecurity::Plain => conns.spawn(client_conn::serve(accepted, service.clone())),
                    PortSecurity::Tls(_) | PortSecurity::Either(_) => {
                        let from = accepted.peer.ip();
                        let Some(unidentified) = unidentified.admit(&accepted.stream, from).await else {
                            service.driver.traffic.count_handshake_exceeded();
                            continue;
                        };
                        conns.spawn(client_conn::serve_secure(accepted, unidentified, service.clone()))
                    }
                };
            }
            Err(error) => {
                // Probably the process is out of descriptors. Those in use go on, and some will be given back.
                if said_failed.take_turn() {
                    tracing::error!(
                        %error, at = %port.address,
                        "connections of clients cannot be accepted, and wait; raise the limit of open files?"
                    );
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Decides whether a connection is served. Clones share the places: both ports for clients count together.
#[derive(Clone)]
pub(crate) struct Admission {
    census: Arc<Mutex<Census>>,
    counts: ConnCounts,
    /// Connections that were refused by the limits of `counts`.
    refused: u64,
    said_full: LogThrottle,
}

impl Admission {
    pub(crate) fn new(counts: ConnCounts) -> Admission {
        Admission { census: Arc::default(), counts, refused: 0, said_full: LogThrottle::default() }
    }

    /// A place for a new connection at this port; `None` if it is refused.
    fn place_for(&mut self, stream: &TcpStream, peer: SocketAddr, port: SocketAddr) -> Option<ConnSlot> {
        let address = peer.ip().to_canonical();
        if Caller::Client.is_too_many(stream) {
            if self.said_full.take_turn() {
                tracing::error!(
                    %address, at = %port,
                    "clients' connections are closed: the process may open only a few more files, and those are for the \
                     disk and the other servers; raise its limit of open files, or lower maxCnxns (connection_rejected \
                     in mntr counts them)"
                );
            }
            return None;
        }
        let place = ConnSlot::take(&self.census, address, self.counts);
        if place.is_none() {
            self.refused += 1;
            // A client that opens a million connections must not fill the log too.
            if self.refused.is_power_of_two() {
                let refused = self.refused;
                tracing::warn!(%address, refused, "too many connections (maxClientCnxns, maxCnxns): closed");
            }
        }
        place
    }
}

fn prepare(stream: &TcpStream, keep_alive: bool) {
    // Neither matters for correctness. The first read fails if the socket is gone already.
    let _ = stream.set_nodelay(true);
    if keep_alive {
        let _ = SockRef::from(stream).set_keepalive(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_addresses_counts_as_one() {
        let same = |one: &str, other: &str, prefix| {
            let of = |text: &str| counted(text.parse().unwrap(), prefix);
            of(one) == of(other)
        };
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", 64));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1", 64));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:3::1", 56));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:2::2", 128));
        assert!(same("2001:db8::", "fe80::1", 0));
        for prefix in [0, 64, 128] {
            assert!(!same("10.0.0.1", "10.0.0.2", prefix));
            assert!(same("::ffff:10.0.0.1", "10.0.0.1", prefix));
        }
    }

    fn on(port: u16) -> ClientAddress {
        ClientAddress { host: "127.0.0.1".into(), port }
    }

    async fn port() -> ClientPort {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        ClientPort { address: listener.local_addr().unwrap(), listener, backlog: 8 }
    }

    #[tokio::test]
    async fn the_port_moves_and_connected_clients_stay() {
        let mut port = port().await;
        let before = port.address;
        let client = TcpStream::connect(before).await.unwrap();
        let (served, _) = port.listener.accept().await.unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        port.follow(&on(free.port())).await;
        assert_eq!(port.address, free);
        TcpStream::connect(free).await.unwrap();
        assert!(TcpStream::connect(before).await.is_err());
        assert_eq!(client.local_addr().unwrap(), served.peer_addr().unwrap());
        assert!(client.try_write(b"x").is_ok());
    }

    #[tokio::test]
    async fn the_port_stays_if_the_new_address_cannot_be_bound() {
        let mut port = port().await;
        let before = port.address;
        let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
        port.follow(&on(holder.local_addr().unwrap().port())).await;
        // Reserved for documentation.
        port.follow(&ClientAddress { host: "192.0.2.1".into(), port: 0 }).await;
        assert_eq!(port.address, before);
        TcpStream::connect(before).await.unwrap();
        port.listener.accept().await.unwrap();
    }

    #[tokio::test]
    async fn a_port_on_all_interfaces_stays_if_one_of_them_is_the_new_address() {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let mut port = ClientPort { address: listener.local_addr().unwrap(), listener, backlog: 8 };
        let before = port.address;
        port.follow(&on(before.port())).await;
        assert_eq!(port.address, before);
        TcpStream::connect(("127.0.0.1", before.port())).await.unwrap();
    }
}
