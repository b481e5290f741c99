//! Handshakes between both sides, in memory: certificates that are good, and those that are not.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use ostler_tls::{
    config::{client_config, server_config},
    material::TlsMaterial,
    settings::{ClientAuth, Protocol, StoreFile, StorePassword, TlsSettings},
    store::KeyStore,
    trust::Trust,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::{
    ClientConfig, ClientConnection, Connection, Error, ProtocolVersion, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName},
};
use std::sync::Arc;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    fn issue(&self, adjust: impl FnOnce(&mut CertificateParams)) -> KeyStore {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "leaf");
        params.serial_number = Some(SerialNumber::from(7));
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let chain = vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()];
        KeyStore { chain, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }

    /// A list with these serial numbers.
    fn revoke(&self, serials: &[u64]) -> CertificateRevocationListDer<'static> {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2026, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(2126, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().der().clone()
    }

    fn trust(&self, lists: Vec<CertificateRevocationListDer<'static>>) -> Arc<Trust> {
        Arc::new(Trust::new(vec![self.certificate.clone()], lists).unwrap())
    }
}

/// Passes bytes to and fro until both sides are content. Returns the error of the side that is not.
fn shake_hands(server: ServerConfig, client: ClientConfig, name: &str) -> Result<ProtocolVersion, Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = Connection::from(ClientConnection::new(Arc::new(client), name).unwrap());
    let mut server = Connection::from(ServerConnection::new(Arc::new(server)).unwrap());
    for _ in 0..20 {
        pass(&mut client, &mut server)?;
        pass(&mut server, &mut client)?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(server.protocol_version().unwrap())
}

fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut bytes = &bytes[..];
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

/// A server and a client that trust one authority, and the certificate that the client shows.
struct Pair {
    authority: Authority,
    settings: TlsSettings,
    lists: Vec<CertificateRevocationListDer<'static>>,
}

impl Pair {
    fn new() -> Pair {
        Pair { authority: Authority::new("authority"), settings: TlsSettings::default(), lists: Vec::new() }
    }

    fn with(&self, own: Option<&KeyStore>) -> Result<ProtocolVersion, Error> {
        let server_key = self.authority.issue(|_| {});
        let trust = self.authority.trust(self.lists.clone());
        let server = server_config(&self.settings, &server_key, Some(trust)).unwrap();
        let client = client_config(&TlsSettings::default(), own, self.authority.trust(Vec::new())).unwrap();
        shake_hands(server, client, "localhost")
    }

    /// The text of the refusal.
    fn refusal(&self, own: &KeyStore) -> String {
        match self.with(Some(own)).unwrap_err() {
            Error::InvalidCertificate(rustls::CertificateError::Other(other)) => other.0.to_string(),
            other => other.to_string(),
        }
    }
}

#[test]
fn a_certificate_of_the_authority_is_accepted() {
    let pair = Pair::new();
    assert_eq!(pair.with(Some(&pair.authority.issue(|_| {}))), Ok(ProtocolVersion::TLSv1_3));
}

#[test]
fn a_client_without_a_certificate_is_accepted_only_if_none_is_needed() {
    let mut pair = Pair::new();
    assert_eq!(pair.with(None), Err(Error::NoCertificatesPresented));
    for client_auth in [ClientAuth::Want, ClientAuth::None] {
        pair.settings.client_auth = client_auth;
        assert!(pair.with(None).is_ok());
    }
}

#[test]
fn certificates_of_another_authority_are_refused_where_they_are_looked_at() {
    let mut pair = Pair::new();
    let foreign = Authority::new("other").issue(|_| {});
    assert!(pair.refusal(&foreign).contains("no authority of the trust store has signed it"));
    pair.settings.client_auth = ClientAuth::Want;
    assert!(pair.refusal(&foreign).starts_with("the certificate of CN=leaf is refused"));
    pair.settings.client_auth = ClientAuth::None;
    assert!(pair.with(Some(&foreign)).is_ok());
}

/// An authority of the same name, with another key.
#[test]
fn the_name_of_an_authority_is_not_enough() {
    let pair = Pair::new();
    let forged = Authority::new("authority").issue(|_| {});
    assert!(pair.with(Some(&forged)).is_err());
}

#[test]
fn certificates_out_of_their_time_are_refused() {
    let pair = Pair::new();
    let expired = pair.authority.issue(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    assert!(pair.refusal(&expired).contains("it has expired"));
    let early = pair.authority.issue(|params| params.not_before = date_time_ymd(2126, 1, 1));
    assert!(pair.refusal(&early).contains("it is not valid yet"));
}

#[test]
fn revoked_certificates_are_refused_and_others_are_not() {
    let mut pair = Pair::new();
    pair.lists = vec![pair.authority.revoke(&[7])];
    assert!(pair.refusal(&pair.authority.issue(|_| {})).contains("it is revoked"));
    let other = pair.authority.issue(|params| params.serial_number = Some(SerialNumber::from(8)));
    assert!(pair.with(Some(&other)).is_ok());
}

#[test]
fn a_certificate_whose_authority_has_no_list_is_refused() {
    let mut pair = Pair::new();
    pair.lists = vec![Authority::new("other").revoke(&[])];
    let text = pair.refusal(&pair.authority.issue(|_| {}));
    assert!(text.contains("the revocation lists say nothing of its authority"), "{text}");
}

/// A certificate that is its own authority, as `openssl req -x509` makes it.
#[test]
fn a_trusted_certificate_that_is_its_own_authority_is_accepted() {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let own = KeyStore {
        chain: vec![certificate.clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    };
    let trust = || Arc::new(Trust::new(vec![certificate.clone()], Vec::new()).unwrap());
    let server = server_config(&TlsSettings::default(), &own, Some(trust())).unwrap();
    let client = client_config(&TlsSettings::default(), Some(&own), trust()).unwrap();
    assert!(shake_hands(server, client, "localhost").is_ok());
    // Another one with the same name, and without the key.
    let forged = {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        KeyStore { chain: vec![certificate], key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    };
    let server = server_config(&TlsSettings::default(), &own, Some(trust())).unwrap();
    let client = client_config(&TlsSettings::default(), Some(&forged), trust()).unwrap();
    assert!(shake_hands(server, client, "localhost").is_err());
}

/// A certificate that signs itself and is no authority, with a key that can sign others all the same.
fn pinned(is_ca: IsCa, usages: &[KeyUsagePurpose]) -> (KeyStore, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "pinned");
    params.is_ca = is_ca;
    params.key_usages = usages.to_vec();
    let key = KeyPair::generate().unwrap();
    let chain = vec![params.self_signed(&key).unwrap().der().clone()];
    let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    (KeyStore { chain, key: secret }, Issuer::new(params, key))
}

#[test]
fn a_trusted_certificate_that_is_no_authority_is_trusted_as_itself_only() {
    let no_signer = [KeyUsagePurpose::DigitalSignature];
    for (is_ca, usages) in [
        (IsCa::NoCa, &[][..]),
        (IsCa::ExplicitNoCa, &[]),
        (IsCa::Ca(BasicConstraints::Unconstrained), &no_signer),
    ] {
        let (own, issuer) = pinned(is_ca, usages);
        let trust = || Arc::new(Trust::new(vec![own.chain[0].clone()], Vec::new()).unwrap());
        let try_with = |client: &KeyStore, server: &KeyStore| {
            let server = server_config(&TlsSettings::default(), server, Some(trust())).unwrap();
            let client = client_config(&TlsSettings::default(), Some(client), trust()).unwrap();
            shake_hands(server, client, "localhost")
        };
        assert!(try_with(&own, &own).is_ok());
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "forged");
        let key = KeyPair::generate().unwrap();
        let chain = vec![params.signed_by(&key, &issuer).unwrap().der().clone(), own.chain[0].clone()];
        let forged = KeyStore { chain, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() };
        assert!(try_with(&forged, &own).is_err(), "a client");
        assert!(try_with(&own, &forged).is_err(), "a server");
    }
}

#[test]
fn a_key_that_is_not_that_of_its_certificate_is_refused() {
    let authority = Authority::new("authority");
    let (one, other) = (authority.issue(|_| {}), authority.issue(|_| {}));
    let mixed = KeyStore { chain: one.chain, key: other.key };
    let trust = authority.trust(Vec::new());
    let error = server_config(&TlsSettings::default(), &mixed, Some(trust.clone())).unwrap_err().to_string();
    assert!(error.contains("which is for CN=leaf"), "{error}");
    assert!(client_config(&TlsSettings::default(), Some(&mixed), trust).is_err());
}

#[test]
fn a_client_checks_the_name_of_the_server_unless_it_is_told_not_to() {
    let authority = Authority::new("authority");
    let own = authority.issue(|_| {});
    let settings = TlsSettings { client_auth: ClientAuth::None, ..TlsSettings::default() };
    let server = || server_config(&settings, &own, None).unwrap();
    let client = |checks: bool| {
        let settings = TlsSettings { hostname_verification: checks, ..TlsSettings::default() };
        client_config(&settings, None, authority.trust(Vec::new())).unwrap()
    };
    assert!(shake_hands(server(), client(true), "localhost").is_ok());
    assert!(shake_hands(server(), client(true), "elsewhere").is_err());
    assert!(shake_hands(server(), client(false), "elsewhere").is_ok());
}

#[test]
fn the_common_name_counts_only_without_alternative_names() {
    let authority = Authority::new("authority");
    let settings = TlsSettings { client_auth: ClientAuth::None, ..TlsSettings::default() };
    let client = || client_config(&TlsSettings::default(), None, authority.trust(Vec::new())).unwrap();
    let named = authority.issue(|params| {
        params.subject_alt_names.clear();
        params.distinguished_name.push(DnType::CommonName, "zk1.example");
    });
    let server = |own: &KeyStore| server_config(&settings, own, None).unwrap();
    assert!(shake_hands(server(&named), client(), "zk1.example").is_ok());
    let both = authority.issue(|params| params.distinguished_name.push(DnType::CommonName, "zk1.example"));
    assert!(shake_hands(server(&both), client(), "zk1.example").is_err());
}

#[test]
fn protocols_and_cipher_suites_are_those_of_the_settings() {
    let mut pair = Pair::new();
    let own = pair.authority.issue(|_| {});
    pair.settings.protocols = vec![Protocol::Tls12];
    assert_eq!(pair.with(Some(&own)), Ok(ProtocolVersion::TLSv1_2));
    pair.settings.protocols = vec![Protocol::Tls12, Protocol::Tls13];
    pair.settings.cipher_suites =
        vec!["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".into(), "TLS_UNKNOWN".into()];
    assert_eq!(pair.with(Some(&own)), Ok(ProtocolVersion::TLSv1_2));
    pair.settings.cipher_suites = vec!["TLS_AES_256_GCM_SHA384".into()];
    assert_eq!(pair.with(Some(&own)), Ok(ProtocolVersion::TLSv1_3));
    pair.settings.cipher_suites = vec!["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256".into()];
    let trust = pair.authority.trust(Vec::new());
    let none = server_config(&pair.settings, &own, Some(trust)).unwrap_err().to_string();
    assert!(
        none.starts_with("none of the cipher suites TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 can be used"),
        "{none}"
    );
}

#[test]
fn a_key_store_with_the_key_of_another_certificate_is_refused() {
    let authority = Authority::new("authority");
    let settings = TlsSettings { client_auth: ClientAuth::None, ..TlsSettings::default() };
    let mut own = authority.issue(|_| {});
    server_config(&settings, &own, None).unwrap();
    own.key = authority.issue(|_| {}).key;
    let of_server = server_config(&settings, &own, None).unwrap_err();
    let of_client = client_config(&settings, Some(&own), authority.trust(Vec::new())).unwrap_err();
    assert_eq!(of_server.to_string(), of_client.to_string());
    let text = of_server.to_string();
    assert!(
        text.starts_with("the private key is not that of its first certificate, which is for CN=leaf"),
        "{text}"
    );
    // The authority stands before the certificate.
    let mut own = authority.issue(|_| {});
    own.chain.insert(0, authority.certificate.clone());
    let text = server_config(&settings, &own, None).unwrap_err().to_string();
    assert!(text.contains("which is for CN=authority"), "{text}");
}

/// Keys of every kind: see `data/README.md`.
#[test]
fn the_file_of_a_key_of_another_certificate_is_named() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let read = |location: std::path::PathBuf| {
        let key_store =
            Some(StoreFile { location, kind: None, password: StorePassword::Text("changeit".into()) });
        let settings = TlsSettings { key_store, client_auth: ClientAuth::None, ..TlsSettings::default() };
        let material = TlsMaterial::read(&settings).unwrap();
        material.server_config(&settings).map(|_| ()).map_err(|error| error.to_string())
    };
    for file in ["leaf.pem", "leaf-sec1.pem", "self-signed-rsa.pem", "key.p12", "key.jks"] {
        assert_eq!(read(data.join(file)), Ok(()), "{file}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mixed = folder.path().join("mixed.pem");
    let text = |file: &str| std::fs::read_to_string(data.join(file)).unwrap();
    let block = |text: &str, label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
        let from = text.find(&begin).unwrap();
        text[from..from + text[from..].find(&end).unwrap()].to_owned() + &end + "\n"
    };
    let other = KeyPair::generate().unwrap().serialize_pem();
    std::fs::write(&mixed, other + &block(&text("leaf.pem"), "CERTIFICATE")).unwrap();
    let error = read(mixed.clone()).unwrap_err();
    assert!(error.starts_with(&format!("{}: the private key is not that of", mixed.display())), "{error}");
    assert!(error.contains("CN=server one,O=Ostler\\, Inc.,C=DE"), "{error}");
}
