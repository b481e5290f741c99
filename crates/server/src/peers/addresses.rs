//! Where the others are. Names are looked up at every attempt: a server that moves keeps its name.

use ostler_proto::membership::{Member, PeerAddress};
use ostler_zab::leading::AddressMatch;
use socket2::{SockRef, TcpKeepalive};
use std::{collections::BTreeSet, io, net::IpAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};

/// How long a name is looked up that a caller has said.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);

/// Which of a server's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Quorum,
    Election,
    /// Where a follower takes observers in: the same number at all of them.
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

/// Connects to that of a server's addresses which answers first: all are tried at once.
pub(super) async fn connect(server: &Member, port: Port, within: Duration) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for address in &server.addresses {
        let (host, port) = (bare(&address.host).to_owned(), port.of(address));
        attempts.spawn(async move {
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            timeout(within, connect_to(&host, port)).await.map_err(late).flatten()
        });
    }
    let stream = first_of(attempts, "it has no address").await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A network that loses packets tells nobody: what is said at last would be lost, and the kernel would go on sending it
/// after ever longer pauses. So the connection ends when the other side's machine is silent for so long, however little
/// there is to say.
pub(super) fn notice_silence(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    ask_for_life(stream, limit)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(limit))
}

/// The same where the other side may not read for long, which to the kernel is silence, too. A machine that has lost
/// the connection refuses what is sent.
pub(super) fn ask_for_life(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(limit * 2 / 5).with_interval(limit / 5).with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Whether a caller comes from where it says that a port of its own is, as far as names and addresses tell. What it says
/// is believed only then: whoever can greet could otherwise have this server call any place.
pub(super) async fn comes_from(host: &str, port: u16, from: IpAddr) -> bool {
    let from = from.to_canonical();
    let found = timeout(LOOK_UP_WITHIN, lookup_host((bare(host).to_owned(), port))).await;
    let Ok(Ok(mut found)) = found else { return false };
    // A machine calls itself by any of its loopback addresses.
    found.any(|at| at.ip().to_canonical() == from || (at.ip().is_loopback() && from.is_loopback()))
}

/// Where a connection comes from, beside the addresses that a server has in the configuration.
pub(super) async fn place(member: &Member, from: IpAddr) -> AddressMatch {
    let from = from.to_canonical();
    let mut place = AddressMatch::Elsewhere;
    for address in &member.addresses {
        let host = (bare(&address.host).to_owned(), address.election_port);
        let found = timeout(LOOK_UP_WITHIN, lookup_host(host)).await;
        let Ok(Ok(found)) = found else {
            place = place.max(AddressMatch::Unclear);
            continue;
        };
        for at in found.map(|at| at.ip().to_canonical()) {
            // A machine calls itself by any of its loopback addresses, and "everywhere" is any place.
            let may_be = at.is_unspecified() || (at.is_loopback() && from.is_loopback());
            place = place.max(match at == from {
                true => AddressMatch::AtHome,
                false if may_be => AddressMatch::Unclear,
                false => AddressMatch::Elsewhere,
            });
        }
    }
    place
}

async fn connect_to(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let nowhere = |error| {
        io::Error::new(io::ErrorKind::NotFound, format!("its name {host} stands for no address: {error}"))
    };
    for address in lookup_host((host, port)).await.map_err(nowhere)? {
        attempts.spawn(TcpStream::connect(address));
    }
    first_of(attempts, "its name stands for no address").await
}

/// The first that succeeds; the others are given up.
async fn first_of(mut attempts: JoinSet<io::Result<TcpStream>>, none: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, none);
    while let Some(done) = attempts.join_next().await {
        match done.map_err(io::Error::other).flatten() {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Listens at each address of this server; an error where none of them can be had.
pub(super) async fn listen(
    server: &Member,
    port: Port,
    on_all: bool,
) -> Result<Vec<TcpListener>, (String, io::Error)> {
    let (mut listeners, mut failures) = (Vec::new(), Vec::new());
    for (host, port) in places(server, port, on_all) {
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

/// Where a server listens: each place once, as several addresses may stand for all of the machine.
pub(super) fn places(server: &Member, port: Port, on_all: bool) -> BTreeSet<(String, u16)> {
    let place = |address: &PeerAddress| {
        let host = if on_all { "0.0.0.0" } else { bare(&address.host) };
        (host.to_owned(), port.of(address))
    };
    server.addresses.iter().map(place).collect()
}

async fn listen_at(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut resolved = lookup_host((host, port)).await?;
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    TcpListener::from_std(crate::listener::bind(resolved.next().ok_or_else(none)?, 128)?)
}

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
    async fn an_address_that_hangs_holds_up_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Reserved for documentation: nobody answers there, or the machine says at once that there is no way.
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
    async fn the_kernel_asks_for_life_well_before_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, limit) = (SockRef::from(&stream), Duration::from_secs(10));
        ask_for_life(&stream, limit).unwrap();
        assert!(socket.keepalive().unwrap());
        let asks = socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert_eq!(socket.tcp_keepalive_time().unwrap() + asks, limit);
        assert_eq!(socket.tcp_user_timeout().unwrap(), None, "a learner may read nothing for long");
        notice_silence(&stream, limit).unwrap();
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(limit));
    }

    #[tokio::test]
    async fn each_place_is_listened_at_once_and_one_that_cannot_be_had_is_left_out() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken_port = taken.local_addr().unwrap().port();
        let (one, other) = (("127.0.0.1", 0), ("127.0.0.2", 0));
        let here = async |ports: &[(&str, u16)], on_all| listen(&member(ports), Port::Quorum, on_all).await;
        assert_eq!(here(&[one, other], false).await.unwrap().len(), 2);
        assert_eq!(here(&[one, other], true).await.unwrap().len(), 1);
        assert_eq!(here(&[one, ("127.0.0.1", taken_port)], false).await.unwrap().len(), 1);
        let (place, _) = here(&[("127.0.0.1", taken_port)], false).await.unwrap_err();
        assert_eq!(place, format!("127.0.0.1:{taken_port}"));
    }

    #[tokio::test]
    async fn a_caller_is_where_one_of_the_addresses_is() {
        let of = async |hosts: &[&str], from: &str| {
            let ports: Vec<(&str, u16)> = hosts.iter().map(|host| (*host, 1)).collect();
            place(&member(&ports), from.parse().unwrap()).await
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
    async fn no_address_answers() {
        let within = Duration::from_secs(60);
        let refused = connect(&member(&[("127.0.0.1", 1), ("::1", 1)]), Port::Quorum, within).await;
        assert!(refused.is_err());
        let nowhere = connect(&member(&[]), Port::Quorum, within).await.unwrap_err();
        assert_eq!(nowhere.to_string(), "it has no address");
    }
}
