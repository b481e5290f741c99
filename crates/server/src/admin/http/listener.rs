//! Takes connections of the admin server and of the port for metrics, and serves HTTP on them.

use super::router::AdminConn;
use crate::{
    log_throttle::LogThrottle,
    tls_handshake::{HandshakeError, PortSecurity, TlsConfig, first_bytes},
};
use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, map_response},
    response::{IntoResponse, Response},
};
use hyper::body::Body as _;
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
/// The longest body of a request that is read before the request is looked at.
const SHORT_BODY: usize = 64 << 10;
/// The time in which such a body must come.
const BODY_WITHIN: Duration = Duration::from_secs(10);

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

/// Reads a short body before the request goes on. If a request were answered before its body has come, hyper would close
/// the connection, and the client's next request on it would fail.
async fn with_short_body(request: Request, next: Next) -> Response {
    let length = request.body().size_hint().exact();
    if !length.is_some_and(|length| (1..=SHORT_BODY as u64).contains(&length)) {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    match timeout(BODY_WITHIN, to_bytes(body, SHORT_BODY)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Err(_)) => StatusCode::BAD_REQUEST.into_response(),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

async fn serve_http<S>(stream: S, conn: AdminConn, router: Router, idle: Duration) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = match conn.has_tls {
        true => router.layer(map_response(only_by_tls)),
        false => router,
    };
    let service = TowerToHyperService::new(router.layer(from_fn(with_short_body)).layer(Extension(conn)));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(HEAD_MAX);
    http.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::{Bytes, Frame, SizeHint};
    use std::{
        convert::Infallible,
        pin::Pin,
        sync::atomic::{AtomicBool, Ordering},
        task::{Context, Poll},
    };

    /// A body of some length, which notes whether somebody reads it.
    struct Noticed {
        length: u64,
        is_read: Arc<AtomicBool>,
    }

    impl hyper::body::Body for Noticed {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.is_read.store(true, Ordering::Relaxed);
            Poll::Ready(None)
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.length)
        }
    }

    /// Otherwise a refusal, for which nobody reads the body, would end the connection. A long body is for the handler.
    #[tokio::test]
    async fn a_short_body_is_read_before_the_request_is_answered() {
        let router = Router::new().fallback(async || StatusCode::NOT_FOUND).layer(from_fn(with_short_body));
        for (length, expected) in [(1, true), (SHORT_BODY as u64, true), (SHORT_BODY as u64 + 1, false)] {
            let is_read = Arc::new(AtomicBool::new(false));
            let body = Body::new(Noticed { length, is_read: is_read.clone() });
            let service = TowerToHyperService::new(router.clone());
            let answer = hyper::service::Service::call(&service, Request::new(body)).await.unwrap();
            assert_eq!(answer.status(), StatusCode::NOT_FOUND);
            assert_eq!(is_read.load(Ordering::Relaxed), expected, "{length} bytes");
        }
    }
}
