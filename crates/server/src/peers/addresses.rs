//! Where the others are. Names are looked up at every attempt: a server that moves keeps its name.

use ostler_proto::membership::{Member, PeerAddress};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    time::timeout,
};

/// Which of a server's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Quorum,
    Election,
}

impl Port {
    fn of(self, address: &PeerAddress) -> u16 {
        match self {
            Port::Quorum => address.quorum_port,
            Port::Election => address.election_port,
        }
    }
}

/// Connects to the first address of a server that answers.
pub(super) async fn connect(server: &Member, port: Port, within: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in &server.addresses {
        match connect_to(bare(&address.host), port.of(address), within).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn connect_to(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let attempt = async {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name stands for no address");
        for address in lookup_host((host, port)).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    };
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let stream = timeout(within, attempt).await.map_err(late).flatten()?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Listens at each address of this server.
pub(super) async fn listen(
    server: &Member,
    port: Port,
    on_all: bool,
) -> Result<Vec<TcpListener>, (String, io::Error)> {
    let mut listeners = Vec::new();
    for address in &server.addresses {
        let (host, port) = (if on_all { "0.0.0.0" } else { bare(&address.host) }, port.of(address));
        let failed = |error| (format!("{host}:{port}"), error);
        let resolved: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(failed)?.collect();
        let first = resolved.first().copied().ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::NotFound, "the name stands for no address"))
        })?;
        listeners
            .push(TcpListener::from_std(crate::listener::bind(first, 128).map_err(failed)?).map_err(failed)?);
    }
    Ok(listeners)
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}
