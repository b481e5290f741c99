//! Tests of identities, SASL and TLS.

use crate::program::{Said, said, shell};
use ostler_testkit::TestServer;
use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::PrivateKeyDer,
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};

fn run(words: &[&str]) -> Said {
    said(shell().args(words).output().unwrap())
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn identities_come_from_a_file() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let folder = tempfile::tempdir().unwrap();
    let known = file(folder.path(), "known", "\n  digest:user:secret\ndigest:other:pass:word  \n");
    let known = known.to_str().unwrap();
    let who = run(&["--auth-file", known, "--auth", "digest:third:x", &at, "whoami"]);
    assert_eq!(who.code, Some(0), "{who:?}");
    let mut users: Vec<&str> = who.out.lines().filter(|line| line.starts_with("digest")).collect();
    users.sort_unstable();
    assert_eq!(users, ["digest: other", "digest: third", "digest: user"]);
    let acl = ["create", "/a", "x", "auth::cdrwa"];
    assert_eq!(run(&[&["--auth-file", known, &at][..], &acl].concat()).code, Some(0));
    assert_eq!(run(&["--auth-file", known, &at, "get", "/a"]).out, "x\n");
    assert_eq!(run(&[&at, "get", "/a"]).code, Some(1));

    let wrong = file(folder.path(), "wrong", "secret\n");
    let Said { err, code, .. } = run(&["--auth-file", wrong.to_str().unwrap(), &at, "ls", "/"]);
    assert_eq!(err, "an identity has the form scheme:secret, as in digest:user:password\n");
    assert_eq!(code, Some(1), "and the secret is not shown");
    let missing = folder.path().join("missing");
    let Said { err, code, .. } = run(&["--auth-file", missing.to_str().unwrap(), &at, "ls", "/"]);
    assert!(err.contains("missing: No such file"), "{err}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn a_server_without_sasl_is_refused() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let folder = tempfile::tempdir().unwrap();
    let password = file(folder.path(), "password", "secret\n");
    let password = password.to_str().unwrap();
    let refused = run(&["--sasl-user", "bob", "--sasl-password-file", password, &at, "ls", "/"]);
    assert_eq!((&*refused.out, refused.code), ("", Some(1)), "{refused:?}");
    assert_eq!(refused.err.lines().count(), 1, "{refused:?}");
    assert_eq!(run(&["--sasl-user", "bob", &at, "ls", "/"]).code, Some(2), "a user has a password");
}

fn frame(stream: &mut std::net::TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut payload = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut payload).unwrap();
    payload
}

fn send(stream: &mut std::net::TcpStream, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap();
    stream.write_all(&[&length.to_be_bytes()[..], payload].concat()).unwrap();
}

/// A server that asks for SASL and refuses every client. Gives the answers of the clients.
fn refuses_all(listener: &std::net::TcpListener) -> String {
    const SASL: [u8; 4] = 102_i32.to_be_bytes();
    const AUTH_FAILED: [u8; 4] = (-115_i32).to_be_bytes();
    let challenge = br#"realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess,qop="auth""#;
    let (mut stream, _) = listener.accept().unwrap();
    frame(&mut stream);
    let (timeout, session, password) = (10_000_i32.to_be_bytes(), 0x17_i64.to_be_bytes(), [0; 16]);
    send(&mut stream, &[&[0; 4][..], &timeout, &session, &[0, 0, 0, 16], &password, &[0]].concat());
    let asked = frame(&mut stream);
    assert_eq!(asked[4..8], SASL);
    let length = u8::try_from(challenge.len()).unwrap();
    send(&mut stream, &[&asked[..4], &[0; 12], &[0, 0, 0, length], challenge].concat());
    let answer = frame(&mut stream);
    send(&mut stream, &[&answer[..4], &[0; 8], &AUTH_FAILED, &[0xff; 4]].concat());
    String::from_utf8_lossy(&answer[12..]).into_owned()
}

#[test]
fn a_user_is_shown_by_sasl() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || refuses_all(&listener));
    let folder = tempfile::tempdir().unwrap();
    let password = file(folder.path(), "password", "secret\n");
    let sasl = ["--sasl-user", "bob", "--sasl-password-file", password.to_str().unwrap()];
    let refused = run(&[&sasl[..], &[&at, "ls", "/"]].concat());
    assert_eq!((&*refused.out, refused.code), ("", Some(1)), "{refused:?}");
    let answer = server.join().unwrap();
    assert!(answer.contains(r#"username="bob",realm="zk-sasl-md5""#), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
}

/// Accepts TLS, and passes the decrypted bytes to `server`.
async fn encrypted(server: SocketAddr, config: ServerConfig) -> String {
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
    format!("localhost:{port}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_show_certificates() {
    let server = TestServer::start().await.unwrap();
    let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let (own, theirs, other) = (made("client"), made("localhost"), made("localhost"));
    let mut known = RootCertStore::empty();
    known.add(own.cert.der().clone()).unwrap();
    let verifier: Arc<dyn ClientCertVerifier> = WebPkiClientVerifier::builder(known.into()).build().unwrap();
    let key = PrivateKeyDer::try_from(theirs.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![theirs.cert.der().clone()], key)
        .unwrap();
    let at = encrypted(server.address(), config).await;

    let folder = tempfile::tempdir().unwrap();
    let pem = |name, text: &str| file(folder.path(), name, text).to_str().unwrap().to_owned();
    let authority = pem("authority", &theirs.cert.pem());
    let others = pem("others", &other.cert.pem());
    let (cert, key) = (pem("cert", &own.cert.pem()), pem("key", &own.signing_key.serialize_pem()));
    let command = ["--connect-timeout", "2000", &at, "ls", "/"];
    let with = |options: &[&str]| run(&[options, &command].concat());
    let trusted = with(&["--tls-ca", &authority, "--tls-cert", &cert, "--tls-key", &key]);
    assert_eq!(trusted, Said { out: "[zookeeper]\n".into(), err: String::new(), code: Some(0) });
    let refused = with(&["--tls-ca", &others, "--tls-cert", &cert, "--tls-key", &key]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("TLS with localhost"), "{refused:?}");
    assert_eq!(with(&["--tls-ca", &authority]).code, Some(3), "the server wants a certificate");
    assert_eq!(with(&["--tls-ca", &authority, "--tls-cert", &cert]).code, Some(2), "one without a key");
    let nonsense = with(&["--tls-ca", &pem("nonsense", "text")]);
    assert_eq!(nonsense.code, Some(2), "{nonsense:?}");
}
