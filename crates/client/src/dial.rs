//! Connects to a server: over TCP, whose names are resolved anew at every attempt, or through the application's own
//! connector.

use crate::{connect_string::HostPort, error::DialError, servers::Servers, tls};
use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// How long a probe waits for a server to say whether it can write. A slower server counts as read-only.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// How a server's name becomes addresses.
pub(crate) type Resolver = Arc<dyn Fn(HostPort) -> Resolving + Send + Sync>;

pub(crate) type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The resolver of the operating system.
pub(crate) fn system_resolver() -> Resolver {
    Arc::new(|server| {
        Box::pin(async move { Ok(lookup_host((server.host.as_str(), server.port)).await?.collect()) })
    })
}

/// A connection that the application's connector has made, or TLS over a connection.
pub(crate) trait CustomStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> CustomStream for S {}

/// Connects to a server in place of TCP ([`ClientBuilder::connector`](crate::ClientBuilder::connector)).
pub(crate) type Connector = Arc<dyn Fn(HostPort) -> Connecting + Send + Sync>;

pub(crate) type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn CustomStream>>> + Send>>;

/// How servers are reached.
#[derive(Clone)]
pub(crate) enum Transport {
    /// By TCP, to the addresses of the server's name.
    Tcp(Resolver),
    /// Through the application's connector.
    Custom(Connector),
}

/// Connects to the servers of a connect string.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) hosts: Arc<Servers>,
    pub(crate) transport: Transport,
    pub(crate) tls: Option<tls::TlsConfig>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// A connection: by TCP, by the application's connector, or TLS over either.
pub(crate) enum Conn {
    Tcp(TcpStream),
    Custom(Box<dyn CustomStream>),
}

impl Dialer {
    /// Connects to the server with the number `host`. `attempt` counts all attempts of the client from 0.
    pub(crate) async fn dial(self, host: usize, attempt: u64) -> Result<Conn, DialError> {
        let server = &self.hosts.get(host).ok_or(DialError::NotListed)?;
        let plain = match &self.transport {
            Transport::Tcp(resolver) => {
                let addresses = resolver(server.clone()).await;
                let addresses = addresses.map_err(|cause| DialError::Resolve(server.to_string(), cause))?;
                Conn::Tcp(connect(server, addresses, earlier_attempts(attempt, self.hosts.len())).await?)
            }
            Transport::Custom(connector) => {
                let stream = connector(server.clone()).await;
                Conn::Custom(stream.map_err(|cause| DialError::Connect(server.to_string(), cause))?)
            }
        };
        match self.tls {
            None => Ok(plain),
            Some(config) => {
                let tls = tls::connect(config, &server.host, plain).await;
                tls.map_err(|cause| DialError::Tls(server.to_string(), cause))
            }
        }
    }

    /// Asks a server whether it can write.
    pub(crate) async fn can_write(self, host: usize) -> bool {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let ask = async {
            let Ok(mut conn) = self.dial(host, 0).await else { return false };
            let mut answer = [0; 2];
            let asked = conn.write_all(b"isro").await.is_ok() && conn.flush().await.is_ok();
            asked && conn.read_exact(&mut answer).await.is_ok() && answer == *b"rw"
        };
        timeout(PROBE_WITHIN, ask).await.unwrap_or(false)
    }
}

/// The number of earlier attempts at the same server, as servers take turns. If a name has several addresses, each
/// attempt begins with the next one, so that an address that does not answer does not delay every attempt.
fn earlier_attempts(attempt: u64, servers: usize) -> usize {
    attempt as usize / servers.max(1)
}

async fn connect(
    server: &HostPort,
    mut addresses: Vec<SocketAddr>,
    earlier_attempts: usize,
) -> Result<TcpStream, DialError> {
    if addresses.is_empty() {
        return Err(DialError::NoAddress(server.to_string()));
    }
    let first = earlier_attempts % addresses.len();
    addresses.rotate_left(first);
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                // The client gathers requests itself, so each write is sent at once.
                let _ = tcp.set_nodelay(true);
                return Ok(tcp);
            }
            Err(cause) => last = Some(DialError::Connect(format!("{server} ({address})"), cause)),
        }
    }
    Err(last.unwrap_or_else(|| DialError::NoAddress(server.to_string())))
}

impl AsyncRead for Conn {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Tcp(tcp) => Pin::new(tcp).poll_read(cx, into),
            Conn::Custom(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Conn {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Conn::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Conn::Custom(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            Conn::Custom(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Conn::Custom(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[test]
    fn attempts_at_a_server_begin_with_each_of_its_addresses_in_turn() {
        for (servers, addresses) in (1..=4).flat_map(|servers| (1..=4).map(move |of| (servers, of))) {
            for server in 0..servers {
                let attempts = (0..addresses).map(|round| server + round * servers);
                let firsts = attempts.map(|attempt| earlier_attempts(attempt as u64, servers) % addresses);
                let mut firsts: Vec<usize> = firsts.collect();
                firsts.sort_unstable();
                assert_eq!(firsts, (0..addresses).collect::<Vec<_>>(), "{servers} servers");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_of_a_silent_server_ends_after_a_timeout() {
        let mute = listen().await;
        let port = mute.local_addr().unwrap().port();
        let hosts = Arc::new(Servers::new(vec![HostPort::new("127.0.0.1", port)], None));
        let dialer = Dialer { hosts, transport: Transport::Tcp(system_resolver()), tls: None };
        assert!(!dialer.can_write(0).await);
    }

    /// The name resolves to two addresses in turn, and once to none.
    #[tokio::test]
    async fn a_name_is_resolved_anew_at_each_attempt() {
        let (old, new) = (listen().await, listen().await);
        let [first, second] = [&old, &new].map(|at| at.local_addr().unwrap());
        let answers = [Some(first), Some(second), None, Some(first), Some(second)].into_iter();
        let (asked, mut names) = tokio::sync::mpsc::unbounded_channel();
        let answers = std::sync::Mutex::new(answers);
        let resolver: Resolver = Arc::new(move |server| {
            let found = answers.lock().unwrap().next().flatten();
            asked.send(server.to_string()).unwrap();
            Box::pin(async move { Ok(vec![found.ok_or(io::ErrorKind::NotFound)?]) })
        });
        let client = Client::builder("zoo.example:2181").resolver(resolver).connect_lazy().unwrap();
        // Each server takes the connection and loses it at once.
        for server in [&old, &new, &old, &new] {
            let taken = timeout(Duration::from_secs(10), server.accept()).await;
            drop(taken.expect("the client does not connect to the new address").unwrap());
        }
        drop(client);
        let mut attempts = 0;
        while let Ok(name) = names.try_recv() {
            assert_eq!(name, "zoo.example:2181");
            attempts += 1;
        }
        assert_eq!(attempts, 5);
    }

    async fn listen() -> tokio::net::TcpListener {
        tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap()
    }
}
