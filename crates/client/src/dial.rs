//! From a server's name to a connection: names are resolved anew at every attempt.

use crate::{connect_string::HostPort, error::DialError};
use rustls_pki_types::ServerName;
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
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A server that takes longer to say whether it can write is none to go to.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// How a server's name becomes addresses.
pub(crate) type Resolver = Arc<dyn Fn(HostPort) -> Resolving + Send + Sync>;

pub(crate) type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// As the system resolves names.
pub(crate) fn by_the_system() -> Resolver {
    Arc::new(|server| {
        Box::pin(async move { Ok(lookup_host((server.host.as_str(), server.port)).await?.collect()) })
    })
}

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) hosts: Arc<[HostPort]>,
    pub(crate) resolver: Resolver,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
}

/// A connection, encrypted or not.
#[derive(Debug)]
pub(crate) enum Conn {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Dialer {
    /// Connects to server number `host`, in attempt number `attempt` of all.
    pub(crate) async fn dial(self, host: usize, attempt: u64) -> Result<Conn, DialError> {
        let server = &self.hosts[host];
        let addresses = (self.resolver)(server.clone()).await;
        let addresses = addresses.map_err(|cause| DialError::Resolve(server.to_string(), cause))?;
        let tcp = connect(server, addresses, turn(attempt, self.hosts.len())).await?;
        match self.tls {
            None => Ok(Conn::Plain(tcp)),
            Some(config) => {
                let failed = |cause| DialError::Tls(server.to_string(), cause);
                let name = ServerName::try_from(server.host.clone());
                let name = name.map_err(|cause| failed(io::Error::other(cause)))?;
                let tls = TlsConnector::from(config).connect(name, tcp).await.map_err(failed)?;
                Ok(Conn::Tls(Box::new(tls)))
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

/// Of several addresses of one name another one is tried first each time, so that one that does not answer is not the
/// first again. Servers take turns, so each comes once in as many attempts as there are servers.
fn turn(attempt: u64, servers: usize) -> usize {
    attempt as usize / servers.max(1)
}

async fn connect(
    server: &HostPort,
    mut addresses: Vec<SocketAddr>,
    turn: usize,
) -> Result<TcpStream, DialError> {
    if addresses.is_empty() {
        return Err(DialError::NoAddress(server.to_string()));
    }
    let first = turn % addresses.len();
    addresses.rotate_left(first);
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                // Requests are gathered before they are written; what is written shall go.
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
            Conn::Plain(tcp) => Pin::new(tcp).poll_read(cx, into),
            Conn::Tls(tls) => Pin::new(tls).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Conn {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Conn::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Conn::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Conn::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Conn::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[test]
    fn each_server_begins_with_each_of_its_addresses_in_turn() {
        for (servers, addresses) in (1..=4).flat_map(|servers| (1..=4).map(move |of| (servers, of))) {
            for server in 0..servers {
                let attempts = (0..addresses).map(|round| server + round * servers);
                let firsts = attempts.map(|attempt| turn(attempt as u64, servers) % addresses);
                let mut firsts: Vec<usize> = firsts.collect();
                firsts.sort_unstable();
                assert_eq!(firsts, (0..addresses).collect::<Vec<_>>(), "{servers} servers");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_say_whether_it_can_write_is_not_waited_for() {
        let mute = listen().await;
        let port = mute.local_addr().unwrap().port();
        let hosts = [HostPort { host: "127.0.0.1".to_owned(), port }].into();
        let dialer = Dialer { hosts, resolver: by_the_system(), tls: None };
        assert!(!dialer.can_write(0).await);
    }

    /// A server that moves to another address, from where nobody has a name to one that has its own again.
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
        let client = Client::builder("zoo.example:2181").resolver(resolver).start().unwrap();
        // Each server takes the connection and loses it at once.
        for server in [&old, &new, &old, &new] {
            let taken = timeout(Duration::from_secs(10), server.accept()).await;
            drop(taken.expect("nobody comes to where the server is now").unwrap());
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
