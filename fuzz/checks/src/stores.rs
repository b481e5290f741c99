//! Fuzzes the readers of key stores, trust stores, certificates, lists of revoked certificates, and names.

use ostler_tls::{
    Certificate, Password, StoreError, StoreKind, is_distinguished_name, read_crls, read_key_store,
    read_trust_store, subject_name,
};
use rustls_pki_types::CertificateDer;
use sha1::{Digest, Sha1};

/// The password of the stores among the seeds.
pub const PASSWORD: &str = "changeit";

/// The content of an input, by its first byte.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// A key store of a kind.
    KeyStore(StoreKind),
    /// A trust store of a kind.
    TrustStore(StoreKind),
    /// A JKS key store without its checksum, which the check adds. Without it, no change would come as far as the key.
    UnsealedJks,
    /// A certificate.
    Certificate,
    /// Lists of revoked certificates.
    Lists,
    /// A name as text.
    Name,
}

impl Content {
    /// All contents. The place of one is its first byte.
    pub const ALL: [Content; 10] = [
        Content::KeyStore(StoreKind::Jks),
        Content::KeyStore(StoreKind::Pem),
        Content::KeyStore(StoreKind::Pkcs12),
        Content::TrustStore(StoreKind::Jks),
        Content::TrustStore(StoreKind::Pem),
        Content::TrustStore(StoreKind::Pkcs12),
        Content::UnsealedJks,
        Content::Certificate,
        Content::Lists,
        Content::Name,
    ];
}

/// A store that is read has at least one certificate, a file of lists one list. No error shows the password. A
/// certificate has one subject, however it is read.
pub fn check(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first() else { return };
    match Content::ALL[usize::from(first) % Content::ALL.len()] {
        Content::KeyStore(kind) => check_key_store(bytes, kind),
        Content::TrustStore(kind) => check_trust_store(bytes, kind),
        Content::UnsealedJks => check_key_store(&sealed(bytes), StoreKind::Jks),
        Content::Certificate => check_certificate(&CertificateDer::from(bytes)),
        Content::Lists => assert!(read_crls(bytes).map_or(true, |lists| !lists.is_empty())),
        Content::Name => {
            let _is_name = is_distinguished_name(&String::from_utf8_lossy(bytes));
        }
    }
}

fn check_key_store(bytes: &[u8], kind: StoreKind) {
    match read_key_store(bytes, kind, &Password::new(PASSWORD)) {
        Ok(store) => assert!(!store.chain.is_empty()),
        Err(error) => shows_no_secret(&error),
    }
}

fn check_trust_store(bytes: &[u8], kind: StoreKind) {
    match read_trust_store(bytes, kind, &Password::new(PASSWORD)) {
        Ok(trusted) => assert!(!trusted.is_empty()),
        Err(error) => shows_no_secret(&error),
    }
}

fn check_certificate(certificate: &CertificateDer<'_>) {
    let name = subject_name(certificate);
    if let Ok(facts) = Certificate::read(certificate) {
        assert_eq!(name, Ok(facts.subject));
    }
}

fn shows_no_secret(error: &StoreError) {
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
}

/// A JKS store with the checksum that belongs to it.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let hash =
        Sha1::new().chain_update(password).chain_update("Mighty Aphrodite").chain_update(bytes).finalize();
    [bytes, &hash[..]].concat()
}
