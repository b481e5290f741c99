//! TLS, with a server of the test's own in front of the real one.

use crate::server::TestServer;
use ostler_client::{
    Client, Error,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
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

fn trusting(certificate: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

/// Takes TLS, and passes what is inside on to `server`.
async fn wrapped(server: SocketAddr, Certificate { certificate, key }: Certificate) -> u16 {
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    wrapped_with(server, config.unwrap()).await
}

async fn wrapped_with(server: SocketAddr, config: ServerConfig) -> u16 {
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
async fn a_session_over_tls() {
    let server = TestServer::start();
    let own = certificate();
    let trusted = trusting(&own.certificate);
    let port = wrapped(server.address, own).await;
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

/// TLS lies over whatever the caller connects, for the name that the connect string has.
#[tokio::test]
async fn a_session_over_tls_over_what_the_caller_connects() {
    let server = TestServer::start();
    let own = certificate();
    let trusted = trusting(&own.certificate);
    let port = wrapped(server.address, own).await;
    let connect = move |_, _| TcpStream::connect(("127.0.0.1", port));
    let builder = Client::builder("localhost:1").tls(trusted).connector(connect);
    let client = builder.connect().await.unwrap();
    client.create("/a", b"x").await.unwrap();
    client.close().await;
}

/// A server that wants to know who the client is, and certificates in PEM.
#[tokio::test]
async fn both_sides_show_certificates() {
    let server = TestServer::start();
    let own = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
    let theirs = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut known = RootCertStore::empty();
    known.add(own.cert.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(known.into()).build().unwrap();
    let key = PrivateKeyDer::try_from(theirs.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![theirs.cert.der().clone()], key)
        .unwrap();
    let port = wrapped_with(server.address, config).await;
    let (authority, chain, key) = (theirs.cert.pem(), own.cert.pem(), own.signing_key.serialize_pem());
    let builder = || Client::builder(&format!("localhost:{port}")).connection_timeout(Duration::from_secs(2));
    let known = builder().tls_pem(authority.as_bytes(), Some((chain.as_bytes(), key.as_bytes()))).unwrap();
    known.connect().await.unwrap().get_data("/").await.unwrap();
    let unknown =
        builder().connection_timeout(Duration::from_millis(300)).tls_pem(authority.as_bytes(), None);
    assert!(matches!(unknown.unwrap().connect().await, Err(Error::Unreachable { .. })));
    for (authorities, own) in
        [("", None), (&*authority, Some(("", &*key))), (&*authority, Some((&*chain, "")))]
    {
        let own = own.map(|(chain, key)| (chain.as_bytes(), key.as_bytes()));
        assert!(matches!(builder().tls_pem(authorities.as_bytes(), own), Err(Error::Tls { .. })));
    }
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_refused_and_named() {
    let server = TestServer::start();
    let port = wrapped(server.address, certificate()).await;
    let trusted = trusting(&certificate().certificate);
    let builder = Client::builder(&format!("localhost:{port}")).tls(trusted);
    let refused = builder.connection_timeout(Duration::from_millis(500)).connect().await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }));
    assert!(refused.to_string().contains("TLS with localhost"), "{refused}");
}
