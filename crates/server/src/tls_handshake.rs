//! The beginning of a connection at a port that takes TLS.

use crate::{
    client_stream::{ClientStream, TlsStream, Unblocked},
    handshake_turns::HandshakeTurns,
};
use ostler_proto::acl::Id;
use ostler_tls::{
    detect::{FirstBytes, HEADER, detect},
    log_text, principal,
};
use rustls::{ServerConfig, ServerConnection, pki_types::CertificateDer};
use std::{
    io,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{net::TcpStream, time::sleep};

/// The pause before the first bytes are looked at again, while they do not decide: only a client that sends one byte
/// after the other comes to wait.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The connections that a port takes.
#[derive(Debug, Clone)]
pub(crate) enum PortSecurity {
    Plain,
    /// TLS from the first byte on.
    Tls(TlsConfig),
    /// TLS or plain text; the first bytes decide.
    Either(TlsConfig),
}

/// The configuration for new connections. It is replaced when its files change; connections keep the one that they
/// began with.
#[derive(Debug, Clone)]
pub(crate) struct TlsConfig(Arc<RwLock<Arc<ServerConfig>>>);

impl TlsConfig {
    pub(crate) fn new(config: ServerConfig) -> TlsConfig {
        TlsConfig(Arc::new(RwLock::new(Arc::new(config))))
    }

    pub(crate) fn replace(&self, config: ServerConfig) {
        // A panic aborts the process, so a poisoned lock is never met.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a connection did not come to its first request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("it is plain text, and this port takes TLS only")]
    PlainText,
    #[error("the connection ended in the middle of it")]
    Ended,
    #[error("it was not done within {0:?}")]
    Late(Duration),
    #[error("{}", refusal(.0))]
    Refused(rustls::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Certificates that were refused name their subject and the reason; rustls wraps that.
pub(crate) fn refusal(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => other.0.to_string(),
        rustls::Error::NoCertificatesPresented => {
            "the client has shown no certificate, and ssl.clientAuth asks for one".into()
        }
        // Some of these have what the other side has sent.
        other => log_text(&other.to_string()),
    }
}

/// The turns of handshakes, and the address that a connection counts for.
type TurnsOf<'a> = (&'a Arc<HandshakeTurns>, IpAddr);

/// A connection that can be served.
pub(crate) struct SecuredStream {
    pub(crate) stream: ClientStream,
    /// The identity that the client's certificate proves.
    pub(crate) proven: Option<Id>,
}

impl PortSecurity {
    /// Does what comes before the first frame.
    pub(crate) async fn begin(
        &self,
        tcp: TcpStream,
        turns: TurnsOf<'_>,
    ) -> Result<SecuredStream, HandshakeError> {
        let plain = |tcp| SecuredStream { stream: ClientStream::Plain(tcp), proven: None };
        match self {
            PortSecurity::Plain => Ok(plain(tcp)),
            PortSecurity::Tls(config) => match first_bytes(&tcp).await? {
                FirstBytes::Tls => handshake(tcp, config.current(), turns).await,
                FirstBytes::Plain | FirstBytes::Undecided => Err(HandshakeError::PlainText),
            },
            PortSecurity::Either(config) => match first_bytes(&tcp).await? {
                FirstBytes::Tls => handshake(tcp, config.current(), turns).await,
                FirstBytes::Plain | FirstBytes::Undecided => Ok(plain(tcp)),
            },
        }
    }
}

/// Looks at the first bytes, and leaves them in the socket.
pub(crate) async fn first_bytes(tcp: &TcpStream) -> Result<FirstBytes, HandshakeError> {
    let mut bytes = [0; HEADER];
    loop {
        match tcp.peek(&mut bytes).await? {
            0 => return Err(HandshakeError::Ended),
            read => match detect(&bytes[..read]) {
                FirstBytes::Undecided => sleep(LOOK_AGAIN_AFTER).await,
                decided => return Ok(decided),
            },
        }
    }
}

async fn handshake(
    tcp: TcpStream,
    config: Arc<ServerConfig>,
    (turns, address): TurnsOf<'_>,
) -> Result<SecuredStream, HandshakeError> {
    let _under_way = turns.begin();
    let mut tls = ServerConnection::new(config).map_err(HandshakeError::Refused)?;
    while tls.is_handshaking() {
        while tls.wants_write() {
            tcp.writable().await?;
            would_block_is_nothing(tls.write_tls(&mut Unblocked(&tcp)))?;
        }
        if !tls.is_handshaking() {
            break;
        }
        tcp.readable().await?;
        match tls.read_tls(&mut Unblocked(&tcp)) {
            Ok(0) => return Err(HandshakeError::Ended),
            read => would_block_is_nothing(read)?,
        }
        let processed = {
            let _turn = turns.turn(address).await;
            tls.process_new_packets()
        };
        if let Err(error) = processed {
            // The alert, as far as the socket takes it.
            let _ = tls.write_tls(&mut Unblocked(&tcp));
            return Err(HandshakeError::Refused(error));
        }
    }
    let proven = tls.peer_certificates().and_then(|chain| chain.first()).and_then(identity);
    Ok(SecuredStream { stream: ClientStream::Tls(Box::new(TlsStream::new(tcp, tls))), proven })
}

fn would_block_is_nothing(done: io::Result<usize>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done.map(|_| ()),
    }
}

/// The identity of the scheme `x509`: the subject of the certificate.
fn identity(leaf: &CertificateDer<'_>) -> Option<Id> {
    principal::subject_name(leaf).ok().map(|name| Id::new("x509", name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_tls::{
        KeyStore,
        config::{client_config, server_config},
        settings::{ClientAuth, TlsSettings},
        trust::Trust,
    };
    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use std::net::Ipv4Addr;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::TlsConnector;

    const CROWD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn a_crowd_of_handshakes_keeps_plain_clients_and_other_addresses_unharmed() {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = own.cert.der().clone();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let key_store = KeyStore { chain: vec![certificate.clone()], key };
        let settings = TlsSettings { client_auth: ClientAuth::None, ..TlsSettings::default() };
        let port = PortSecurity::Either(TlsConfig::new(server_config(&settings, &key_store, None).unwrap()));
        let turns = HandshakeTurns::with_limits(1, 1);
        let held = turns.turn(CROWD).await;
        let crowd: Vec<_> = (0..50)
            .map(|_| {
                let turns = turns.clone();
                // Each holds its turn until the test is over.
                tokio::spawn(async move { std::mem::forget(turns.turn(CROWD).await) })
            })
            .collect();
        tokio::task::yield_now().await;

        let (mut client, accepted) = connected().await;
        client.write_all(b"ruok").await.unwrap();
        let plain = port.begin(accepted, (&turns, CROWD)).await.unwrap();
        assert!(matches!(plain.stream, ClientStream::Plain(_)));

        let trust = Arc::new(Trust::new(vec![certificate], Vec::new()).unwrap());
        let connector = TlsConnector::from(Arc::new(client_config(&settings, None, trust).unwrap()));
        let (client, accepted) = connected().await;
        let name = ServerName::try_from("localhost").unwrap();
        let client = tokio::spawn(connector.connect(name, client));
        let served = tokio::spawn({
            let (port, turns) = (port.clone(), turns.clone());
            async move { port.begin(accepted, (&turns, OTHER)).await }
        });
        sleep(Duration::from_millis(50)).await;
        assert!(!served.is_finished(), "it waits for its turn");
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
        drop(held);
        let mut secured = served.await.unwrap().unwrap();
        secured.stream.write_all(b"imok").await.unwrap();
        let mut answer = [0; 4];
        client.await.unwrap().unwrap().read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"imok");
    }
}
