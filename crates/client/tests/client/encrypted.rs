//! TLS between the client and a proxy in front of the server.

use crate::server::TestServer;
use ostler_client::{
    Client, Error,
    rustls::{
        ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
    },
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

struct Certificate {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn certificate() -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    Certificate { certificate: made.cert.der().clone(), key }
}

/// Named, because rustls chooses none by itself where the features of two are on.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server_config() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap()
}

fn trusting(certificate: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// Accepts TLS connections, and passes the decrypted bytes on to `server`. Returns the proxy's port.
async fn tls_proxy(server: SocketAddr, Certificate { certificate, key }: Certificate) -> u16 {
    let config = server_config().with_no_client_auth().with_single_cert(vec![certificate], key);
    tls_proxy_with(server, config.unwrap()).await
}

async fn tls_proxy_with(server: SocketAddr, config: ServerConfig) -> u16 {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut tls) = acceptor.accept(tcp).await {
                    let mut plain = TcpStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut tls, &mut plain).await;
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_session_runs_over_tls() {
    let server = TestServer::start();
    let own = certificate();
    let trusted = trusting(&own.certificate);
    let port = tls_proxy(server.address, own).await;
    let client = Client::builder(&format!("localhost:{port}")).tls(trusted).connect().await.unwrap();
    let large = vec![5; 500_000];
    client.create("/large", &large).await.unwrap();
    assert_eq!(client.get_data("/large").await.unwrap().0, large);
    let sets: Vec<_> = (0..1000).map(|_| client.set_data("/large", b"x").send()).collect();
    for set in sets {
        set.await.unwrap();
    }
    client.close().await;
}

/// TLS runs over the connector's stream, with the server name of the connect string.
#[tokio::test]
async fn a_session_runs_over_tls_over_a_custom_connector() {
    let server = TestServer::start();
    let own = certificate();
    let trusted = trusting(&own.certificate);
    let port = tls_proxy(server.address, own).await;
    let connect = move |_| TcpStream::connect(("127.0.0.1", port));
    let builder = Client::builder("localhost:1").tls(trusted).connector(connect);
    let client = builder.connect().await.unwrap();
    client.create("/a", b"x").await.unwrap();
    client.close().await;
}

/// The server asks for a client certificate. Certificates are in PEM.
#[tokio::test]
async fn mutual_tls_accepts_a_known_client_certificate_and_refuses_others() {
    let server = TestServer::start();
    let own = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
    let theirs = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut known = RootCertStore::empty();
    known.add(own.cert.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(known.into(), provider()).build().unwrap();
    let key = PrivateKeyDer::try_from(theirs.signing_key.serialize_der()).unwrap();
    let config = server_config()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![theirs.cert.der().clone()], key)
        .unwrap();
    let port = tls_proxy_with(server.address, config).await;
    let (authority, chain, key) = (theirs.cert.pem(), own.cert.pem(), own.signing_key.serialize_pem());
    let builder =
        || Client::builder(&format!("localhost:{port}")).connection_timeout(Duration::from_secs(20));
    let known = builder().tls_pem_with_key(authority.as_bytes(), chain.as_bytes(), key.as_bytes());
    let known = known.unwrap();
    known.connect().await.unwrap().get_data("/").await.unwrap();
    let unknown = builder().connection_timeout(Duration::from_millis(300)).tls_pem(authority.as_bytes());
    assert!(matches!(unknown.unwrap().connect().await, Err(Error::Unreachable { .. })));
    assert!(matches!(builder().tls_pem(b""), Err(Error::Tls { .. })));
    for (chain, key) in [("", &*key), (&*chain, "")] {
        let refused = builder().tls_pem_with_key(authority.as_bytes(), chain.as_bytes(), key.as_bytes());
        assert!(matches!(refused, Err(Error::Tls { .. })));
    }
}

#[tokio::test]
async fn an_untrusted_server_certificate_is_refused_and_the_error_names_the_server() {
    let server = TestServer::start();
    let port = tls_proxy(server.address, certificate()).await;
    let trusted = trusting(&certificate().certificate);
    let builder = Client::builder(&format!("localhost:{port}")).tls(trusted);
    let refused = builder.connection_timeout(Duration::from_secs(3)).connect().await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }));
    assert!(refused.to_string().contains("TLS with localhost"), "{refused}");
}
