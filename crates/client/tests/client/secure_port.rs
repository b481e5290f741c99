//! The server's port for TLS.

use crate::server::TestServer;
use ostler_client::{Acl, Client, ClientBuilder, Error, ErrorCode, Id, Perms};
use ostler_server::config::{SecurePort, ServerConfig};
use ostler_tls::settings::{ClientAuth, StoreFile, StorePassword, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::{path::Path, time::Duration};

/// Within this time a busy machine connects, too.
const PATIENCE: Duration = Duration::from_secs(20);
/// After this time a connection counts as refused.
const REFUSED: Duration = Duration::from_millis(800);

/// An authority that issues certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, in PEM.
struct Issued {
    chain: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    fn issue(&self, subject: &str, hosts: &[&str]) -> Issued {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).into()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.distinguished_name.push(DnType::OrganizationName, "Example, Inc.");
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { chain, key: key.serialize_pem() }
    }
}

impl Issued {
    /// A key store.
    fn pem(&self) -> String {
        format!("{}{}", self.key, self.chain)
    }
}

fn store(folder: &Path, name: &str, text: &str) -> StoreFile {
    let location = folder.join(name);
    std::fs::write(&location, text).unwrap();
    StoreFile { location, kind: None, password: StorePassword::None }
}

/// A server with both ports, and the authority of all certificates.
struct SecureServer {
    authority: Authority,
    folder: tempfile::TempDir,
    server: TestServer,
    port: u16,
}

/// A port that nobody has at this moment.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl SecureServer {
    fn start(client_auth: ClientAuth) -> SecureServer {
        SecureServer::start_with(client_auth, |_| {})
    }

    fn start_with(client_auth: ClientAuth, adjust: impl FnOnce(&mut ServerConfig)) -> SecureServer {
        let (authority, folder) = (Authority::new("authority"), tempfile::tempdir().unwrap());
        let own = authority.issue("server", &["localhost"]);
        let tls = TlsSettings {
            key_store: Some(store(folder.path(), "server.pem", &own.pem())),
            trust_store: Some(store(folder.path(), "ca.pem", &authority.pem)),
            client_auth,
            ..TlsSettings::default()
        };
        let port = free_port();
        let address = Some(([127, 0, 0, 1], port).into());
        let server = TestServer::start_with(|config| {
            config.clients.secure = Some(Box::new(SecurePort { address, unification: true, tls }));
            adjust(config);
        });
        SecureServer { authority, folder, server, port }
    }

    fn builder(&self, port: u16, own: Option<&Issued>) -> ClientBuilder {
        let builder = Client::builder(&format!("localhost:{port}")).connection_timeout(PATIENCE);
        let authorities = self.authority.pem.as_bytes();
        let builder = match own {
            Some(own) => builder.tls_pem_with_key(authorities, own.chain.as_bytes(), own.key.as_bytes()),
            None => builder.tls_pem(authorities),
        };
        builder.unwrap()
    }

    async fn connect(&self, own: Option<&Issued>) -> Client {
        self.builder(self.port, own).connect().await.unwrap()
    }
}

#[tokio::test]
async fn a_client_with_a_certificate_is_known_by_its_subject() {
    let secure = SecureServer::start(ClientAuth::Need);
    let own = secure.authority.issue("client", &[]);
    let client = secure.connect(Some(&own)).await;
    let large = vec![5; 700_000];
    client.create("/large", &large).await.unwrap();
    assert_eq!(client.get_data("/large").await.unwrap().0, large);
    let acl = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.create("/mine", b"x").acl(&acl).await.unwrap();
    let (stored, _) = client.get_acl("/mine").await.unwrap();
    assert_eq!(stored[0].id, Id::new("x509", "O=Example\\, Inc.,CN=client"));
    let other = secure.connect(Some(&secure.authority.issue("other", &[]))).await;
    assert_eq!(other.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    let plain = Client::connect(&secure.server.address.to_string()).await.unwrap();
    assert_eq!(plain.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
}

#[tokio::test]
async fn both_kinds_of_bytes_are_understood_at_a_unified_port() {
    let secure = SecureServer::start(ClientAuth::Want);
    let port = secure.server.address.port();
    let client = secure.builder(port, None).connect().await.unwrap();
    client.create("/a", b"by TLS").await.unwrap();
    let plain = Client::connect(&secure.server.address.to_string()).await.unwrap();
    assert_eq!(plain.get_data("/a").await.unwrap().0, b"by TLS"[..]);
}

#[tokio::test]
async fn a_client_without_a_good_certificate_is_refused() {
    let secure = SecureServer::start(ClientAuth::Need);
    let unknown = Authority::new("unknown").issue("client", &[]);
    for own in [None, Some(&unknown)] {
        let refused = secure.builder(secure.port, own).connection_timeout(REFUSED).connect().await;
        assert!(matches!(refused, Err(Error::Unreachable { .. })));
    }
    let plain = Client::builder(&format!("localhost:{}", secure.port));
    let refused = plain.connection_timeout(REFUSED).connect().await;
    assert!(matches!(refused, Err(Error::Unreachable { .. })));
}

#[tokio::test]
async fn a_wanted_certificate_has_to_be_good() {
    let secure = SecureServer::start(ClientAuth::Want);
    secure.connect(None).await.get_data("/").await.unwrap();
    let unknown = Authority::new("unknown").issue("client", &[]);
    let refused = secure.builder(secure.port, Some(&unknown)).connection_timeout(REFUSED).connect().await;
    assert!(matches!(refused, Err(Error::Unreachable { .. })));
}

#[tokio::test]
async fn the_super_user_of_x509_may_do_everything() {
    let secure = SecureServer::start_with(ClientAuth::Need, |config| {
        config.auth.x509_super_user = Some("O=Example\\, Inc.,CN=admin".into());
    });
    let client = secure.connect(Some(&secure.authority.issue("client", &[]))).await;
    let acl = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.create("/mine", b"x").acl(&acl).await.unwrap();
    let admin = secure.connect(Some(&secure.authority.issue("admin", &[]))).await;
    assert_eq!(admin.get_data("/mine").await.unwrap().0, b"x"[..]);
}

/// A client that reads nothing makes the answers wait in the buffers of TLS, too.
#[tokio::test]
async fn answers_of_many_megabytes_come_whole() {
    let secure = SecureServer::start(ClientAuth::None);
    let client = secure.connect(None).await;
    let large: Vec<u8> = (0..900_000u32).map(|n| n as u8).collect();
    client.create("/large", &large).await.unwrap();
    let reads: Vec<_> = (0..100).map(|_| client.get_data("/large").send()).collect();
    for read in reads {
        assert!(read.await.unwrap().0 == large);
    }
}

#[tokio::test]
async fn an_authority_that_is_added_to_the_trust_store_counts_for_new_connections() {
    let secure = SecureServer::start(ClientAuth::Need);
    let own = secure.authority.issue("client", &[]);
    let client = secure.connect(Some(&own)).await;
    let other = Authority::new("other");
    let folder = secure.folder.path();
    std::fs::write(folder.join("ca.pem"), format!("{}{}", secure.authority.pem, other.pem)).unwrap();
    let theirs = other.issue("client", &[]);
    // It is refused and tries again until the server has read the file.
    secure.connect(Some(&theirs)).await.get_data("/").await.unwrap();
    client.get_data("/").await.unwrap();
}
