//! Connects to the addresses of other servers, and listens at this server's own. Names are looked up at every attempt,
//! because a server that moves to another address keeps its name.

use super::peer_security::SecurityError;
use ostler_proto::membership::{Member, PeerAddress};
use ostler_zab::leading::AddressMatch;
use socket2::{SockRef, TcpKeepalive};
use std::{collections::BTreeSet, io, net::IpAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};

/// How long the name of a caller is looked up.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);

/// One of a server's ports for other servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Quorum,
    Election,
    /// The port at which a follower serves observers. It has the same number at all servers.
    Observers(u16),
}

impl Port {
    fn of(self, address: &PeerAddress) -> u16 {
        match self {
            Port::Quorum => address.quorum_port,
            Port::Election => address.election_port,
            Port::Observers(port) => port,
        }
    }
}

/// Why another server cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the server is not in the configuration")]
    NotConfigured,
    #[error("the server has no address in the configuration")]
    NoAddress,
    #[error("its name {host} stands for no address: {source}")]
    UnknownName { host: String, source: io::Error },
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectError {
    /// Whether there is no address to connect to. An operator or a DNS server has to add one.
    pub(super) fn is_without_address(&self) -> bool {
        matches!(
            self,
            ConnectError::NotConfigured | ConnectError::NoAddress | ConnectError::UnknownName { .. }
        )
    }
}

/// Connects to all addresses of a server at once. Returns the connection that is made first.
pub(super) async fn connect(
    server: &Member,
    port: Port,
    within: Duration,
) -> Result<TcpStream, ConnectError> {
    let mut attempts = JoinSet::new();
    for address in &server.addresses {
        let (host, port) = (bare(&address.host).to_owned(), port.of(address));
        attempts.spawn(async move {
            timeout(within, connect_to(&host, port)).await.map_err(|_| ConnectError::Late(within)).flatten()
        });
    }
    let stream = first_of(attempts).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Ends the connection when the peer's machine is silent for `limit`. Without this the loss of the network would stay
/// unnoticed: the kernel would repeat the last packets after longer and longer pauses.
pub(super) fn notice_silence(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    probe_when_idle(stream, limit)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(limit))
}

/// As [`notice_silence`], for a peer that may read nothing for a long time, which the kernel would take for silence. The
/// kernel sends probes instead, and a machine that has lost the connection refuses them.
pub(super) fn probe_when_idle(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(limit * 2 / 5).with_interval(limit / 5).with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Whether a caller at address `from` calls from the host that it names as its own. Only then does this server connect
/// to that host and port: otherwise any caller could make it connect to any machine.
pub(super) async fn comes_from(host: &str, port: u16, from: IpAddr) -> bool {
    let from = from.to_canonical();
    let found = timeout(LOOK_UP_WITHIN, lookup_host((bare(host).to_owned(), port))).await;
    let Ok(Ok(mut found)) = found else { return false };
    // A machine may use any of its loopback addresses to call itself.
    found.any(|at| at.ip().to_canonical() == from || (at.ip().is_loopback() && from.is_loopback()))
}

/// Compares the address of a caller with those that a server has in the configuration.
pub(super) async fn match_address(member: &Member, from: IpAddr) -> AddressMatch {
    let from = from.to_canonical();
    let mut best = AddressMatch::Elsewhere;
    for address in &member.addresses {
        let host = (bare(&address.host).to_owned(), address.election_port);
        let found = timeout(LOOK_UP_WITHIN, lookup_host(host)).await;
        let Ok(Ok(found)) = found else {
            best = best.max(AddressMatch::Unclear);
            continue;
        };
        for at in found.map(|at| at.ip().to_canonical()) {
            // A machine may use any of its loopback addresses to call itself, and 0.0.0.0 may be any machine.
            let may_be = at.is_unspecified() || (at.is_loopback() && from.is_loopback());
            best = best.max(match at == from {
                true => AddressMatch::AtHome,
                false if may_be => AddressMatch::Unclear,
                false => AddressMatch::Elsewhere,
            });
        }
    }
    best
}

async fn connect_to(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let unknown = |source| ConnectError::UnknownName { host: host.to_owned(), source };
    let mut attempts = JoinSet::new();
    for address in lookup_host((host, port)).await.map_err(unknown)? {
        attempts.spawn(async move { Ok(TcpStream::connect(address).await?) });
    }
    first_of(attempts).await
}

/// Returns the first connection that is made; the other attempts end. Without one, returns the last error.
async fn first_of(mut attempts: JoinSet<Result<TcpStream, ConnectError>>) -> Result<TcpStream, ConnectError> {
    let mut failure = ConnectError::NoAddress;
    while let Some(done) = attempts.join_next().await {
        match done.map_err(|error| io::Error::other(error).into()).flatten() {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Listens at each address of this server. An address at which that fails is left out. If it fails at all of them, the
/// error is that of the last, with the address.
pub(super) async fn listen(
    server: &Member,
    port: Port,
    on_all: bool,
) -> Result<Vec<TcpListener>, (String, io::Error)> {
    let (mut listeners, mut failures) = (Vec::new(), Vec::new());
    for (host, port) in listen_addresses(server, port, on_all) {
        match listen_at(&host, port).await {
            Ok(listener) => listeners.push(listener),
            Err(error) => failures.push((format!("{host}:{port}"), error)),
        }
    }
    if listeners.is_empty()
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for (address, error) in failures {
        tracing::error!(%address, %error, "cannot listen for other servers at one of this server's addresses");
    }
    Ok(listeners)
}

/// The hosts and ports at which a server listens. With `on_all` several addresses of a server may become one.
pub(super) fn listen_addresses(server: &Member, port: Port, on_all: bool) -> BTreeSet<(String, u16)> {
    let listen_address = |address: &PeerAddress| {
        let host = if on_all { "0.0.0.0" } else { bare(&address.host) };
        (host.to_owned(), port.of(address))
    };
    server.addresses.iter().map(listen_address).collect()
}

async fn listen_at(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut resolved = lookup_host((host, port)).await?;
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    TcpListener::from_std(crate::listener::bind(resolved.next().ok_or_else(none)?, 128)?)
}

/// A host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn member(ports: &[(&str, u16)]) -> Member {
        let address = |(host, port): &(&str, u16)| PeerAddress {
            host: (*host).into(),
            quorum_port: *port,
            election_port: 1,
        };
        Member { addresses: ports.iter().map(address).collect(), observer: false, client: None }
    }

    #[tokio::test]
    async fn an_address_without_answer_does_not_delay_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // An address that is reserved for documentation: no answer comes, or at once the error that there is no route.
        let server = member(&[("192.0.2.1", port), ("127.0.0.1", port), ("[::1]", 1)]);
        let within = Duration::from_secs(600);
        let begun = Instant::now();
        let stream = connect(&server, Port::Quorum, within).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap().port(), port);
        assert!(begun.elapsed() < within);
        let stream = connect(&server, Port::Observers(port), within).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap().port(), port);
    }

    #[tokio::test]
    async fn keepalive_probes_end_a_silent_connection_at_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, limit) = (SockRef::from(&stream), Duration::from_secs(10));
        probe_when_idle(&stream, limit).unwrap();
        assert!(socket.keepalive().unwrap());
        let asks = socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert_eq!(socket.tcp_keepalive_time().unwrap() + asks, limit);
        assert_eq!(socket.tcp_user_timeout().unwrap(), None, "a learner may read nothing for long");
        notice_silence(&stream, limit).unwrap();
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(limit));
    }

    #[tokio::test]
    async fn each_address_is_bound_once_and_one_in_use_is_left_out() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken_port = taken.local_addr().unwrap().port();
        let (one, other) = (("127.0.0.1", 0), ("127.0.0.2", 0));
        let listen_at =
            async |ports: &[(&str, u16)], on_all| listen(&member(ports), Port::Quorum, on_all).await;
        assert_eq!(listen_at(&[one, other], false).await.unwrap().len(), 2);
        assert_eq!(listen_at(&[one, other], true).await.unwrap().len(), 1);
        assert_eq!(listen_at(&[one, ("127.0.0.1", taken_port)], false).await.unwrap().len(), 1);
        let (address, _) = listen_at(&[("127.0.0.1", taken_port)], false).await.unwrap_err();
        assert_eq!(address, format!("127.0.0.1:{taken_port}"));
    }

    #[tokio::test]
    async fn a_caller_is_compared_with_all_addresses_of_the_server() {
        let of = async |hosts: &[&str], from: &str| {
            let ports: Vec<(&str, u16)> = hosts.iter().map(|host| (*host, 1)).collect();
            match_address(&member(&ports), from.parse().unwrap()).await
        };
        assert_eq!(of(&["10.0.0.1"], "10.0.0.1").await, AddressMatch::AtHome);
        assert_eq!(of(&["10.0.0.1"], "::ffff:10.0.0.1").await, AddressMatch::AtHome);
        assert_eq!(of(&["10.0.0.1", "[fd00::1]"], "fd00::1").await, AddressMatch::AtHome);
        assert_eq!(of(&["10.0.0.1"], "10.0.0.2").await, AddressMatch::Elsewhere);
        assert_eq!(of(&["127.0.0.1"], "127.0.0.1").await, AddressMatch::AtHome);
        assert_eq!(of(&["127.0.0.41"], "127.0.0.1").await, AddressMatch::Unclear);
        assert_eq!(of(&["0.0.0.0"], "10.0.0.1").await, AddressMatch::Unclear);
        assert_eq!(of(&["no.such.name.invalid"], "10.0.0.1").await, AddressMatch::Unclear);
        assert_eq!(of(&[], "10.0.0.1").await, AddressMatch::Elsewhere);
    }

    #[tokio::test]
    async fn connect_fails_if_no_address_answers_or_there_is_none() {
        let within = Duration::from_secs(60);
        let refused = connect(&member(&[("127.0.0.1", 1), ("::1", 1)]), Port::Quorum, within).await;
        assert!(refused.is_err());
        let none = connect(&member(&[]), Port::Quorum, within).await.unwrap_err();
        assert!(matches!(none, ConnectError::NoAddress));
    }
}
