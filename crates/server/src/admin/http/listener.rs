//! Takes connections of the admin server and of the port for metrics, and serves HTTP on them.

use super::router::AdminConn;
use crate::{
    log_throttle::LogThrottle,
    tls_handshake::{HandshakeError, PortSecurity, TlsConfig, first_bytes},
};
use axum::{
    Extension, Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use ostler_proto::acl::Id;
use ostler_tls::{detect::FirstBytes, names::CertificateNames, principal};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Connections at once. More are closed: an operator's tools need few.
const CONNECTIONS_MAX: usize = 128;
/// The time for the handshake of TLS.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The pause after the system could not give a connection, because it has no descriptors left.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// The longest head of a request.
const HEAD_MAX: usize = 64 << 10;

/// A port that serves HTTP.
pub(crate) struct HttpPort {
    pub(crate) listener: TcpListener,
    pub(crate) security: PortSecurity,
    pub(crate) router: Router,
    /// A connection without a request is closed after this time.
    pub(crate) idle: Duration,
}

impl HttpPort {
    /// Accepts until it is dropped.
    pub(crate) async fn run(self) {
        let HttpPort { listener, security, router, idle } = self;
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut failures = LogThrottle::default();
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
                    let conn = NewConn { stream, peer, _slot: slot, idle };
                    connections.spawn(conn.serve(security.clone(), router.clone()));
                }
                Err(error) => {
                    if failures.take_turn() {
                        tracing::warn!(%error, "a connection of the admin server could not be accepted");
                    }
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }
}

struct NewConn {
    stream: TcpStream,
    peer: SocketAddr,
    _slot: OwnedSemaphorePermit,
    idle: Duration,
}

impl NewConn {
    async fn serve(self, security: PortSecurity, router: Router) {
        let _ = self.stream.set_nodelay(true);
        let (idle, peer) = (self.idle, self.peer);
        let conn = AdminConn { peer, has_tls: false, certificate: None, names: Arc::default() };
        let done = match security {
            PortSecurity::Plain => serve_http(self.stream, conn, router, idle).await,
            PortSecurity::Tls(config) => self.serve_tls(config, router).await,
            PortSecurity::Either(config) => {
                match timeout(HANDSHAKE_WITHIN, first_bytes(&self.stream)).await {
                    Ok(Ok(FirstBytes::Tls)) => self.serve_tls(config, router).await,
                    Ok(Ok(_)) => serve_http(self.stream, conn, router, idle).await,
                    Ok(Err(error)) => Err(io::Error::other(error)),
                    Err(_) => Err(io::Error::other(HandshakeError::Late(HANDSHAKE_WITHIN))),
                }
            }
        };
        if let Err(error) = done {
            tracing::debug!(%peer, %error, "a connection of the admin server has failed");
        }
    }

    async fn serve_tls(self, config: TlsConfig, router: Router) -> io::Result<()> {
        let accepting = TlsAcceptor::from(config.current()).accept(self.stream);
        let late = |_| io::Error::other(HandshakeError::Late(HANDSHAKE_WITHIN));
        let stream = timeout(HANDSHAKE_WITHIN, accepting).await.map_err(late)??;
        let (certificate, names) = proven(&stream).unzip();
        let names = Arc::new(names.unwrap_or_default());
        let conn = AdminConn { peer: self.peer, has_tls: true, certificate, names };
        serve_http(stream, conn, router, self.idle).await
    }
}

/// The identity of the client's certificate, and the names that it is for.
fn proven(stream: &TlsStream<TcpStream>) -> Option<(Id, CertificateNames)> {
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    let name = principal::subject_name(certificate).ok()?;
    Some((Id::new("x509", name), CertificateNames::of(certificate)))
}

/// Tells browsers to come by TLS, as Java does.
async fn only_by_tls(mut response: Response) -> Response {
    let value = HeaderValue::from_static("max-age=86400; includeSubDomains");
    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value);
    response
}

async fn serve_http<S>(stream: S, conn: AdminConn, router: Router, idle: Duration) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = match conn.has_tls {
        true => router.layer(map_response(only_by_tls)),
        false => router,
    };
    let service = TowerToHyperService::new(router.layer(Extension(conn)));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(HEAD_MAX);
    http.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}
