//! Reads key stores and trust stores in the formats JKS, PEM and PKCS12.

mod error;
#[cfg(feature = "key-stores")]
mod jks;
mod kind;
#[cfg(not(feature = "key-stores"))]
mod not_built_in;
mod pem_store;
#[cfg(feature = "key-stores")]
mod pkcs12;

pub use error::StoreError;
pub use kind::{StoreKind, StoreKindError};

use crate::{
    der::{DerReader, SEQUENCE},
    password::Password,
    pem,
};
#[cfg(not(feature = "key-stores"))]
use not_built_in as jks;
#[cfg(not(feature = "key-stores"))]
use not_built_in as pkcs12;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;

const JKS_MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];
const JCEKS_MAGIC: [u8; 4] = [0xce, 0xce, 0xce, 0xce];

/// A private key and the certificates that show it to others.
pub struct KeyStore {
    /// The certificate of the key, then the certificates up to its authority as far as the store has them.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key.
    pub key: PrivateKeyDer<'static>,
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

/// Reads a key store: its first private key, with the chain of the key.
///
/// JKS and PKCS12 are told apart by the content, as Java does it: a store of one kind under the name of the other is
/// read. The password opens the store and the key in it.
///
/// - PEM: the key may be PKCS#8, encrypted PKCS#8, PKCS#1 or SEC1, anywhere in the file. All certificates of the file
///   are the chain, in their order. The password of a key that is not encrypted is ignored.
/// - JKS: the key entry needs the password of the store.
/// - PKCS12: the chain begins with the certificate that has the key's local id, and goes on by the issuers' names. Only
///   DER is read, as keytool and OpenSSL write it, and no password of more than a million rounds.
///
/// # Errors
/// The bytes are no store of this kind, are damaged, have no key, or need another password. See [`StoreError`].
pub fn read_key_store(bytes: &[u8], kind: StoreKind, password: &Password) -> Result<KeyStore, StoreError> {
    let store = match kind_of_content(bytes, kind)? {
        StoreKind::Jks => jks::key_store(bytes, password),
        StoreKind::Pem => pem_store::key_store(bytes, password),
        StoreKind::Pkcs12 => pkcs12::key_store(bytes, password),
    }?;
    let mut key = DerReader::new(store.key.secret_der());
    if key.content_of(SEQUENCE).is_none() || !key.is_at_end() {
        return Err(StoreError::BadKey);
    }
    Ok(store)
}

/// Reads the certificates of a trust store. At least one is returned.
///
/// JKS and PKCS12 are told apart by the content, as for [`read_key_store`].
///
/// - PEM: all certificates of the file. Of several with one subject the last is taken, as in Java.
/// - JKS: the certificate entries; not the chains of keys. The password is always checked.
/// - PKCS12: the certificates that are marked as trusted, as keytool marks them. Java trusts no others. OpenSSL does
///   not mark any: in a store without marks and without a key, all certificates are taken.
///
/// # Errors
/// The bytes are no store of this kind, are damaged, have no certificate, or need another password. See [`StoreError`].
pub fn read_trust_store(
    bytes: &[u8],
    kind: StoreKind,
    password: &Password,
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let certificates = match kind_of_content(bytes, kind)? {
        StoreKind::Jks => jks::trust_store(bytes, password),
        StoreKind::Pem => pem_store::trust_store(bytes),
        StoreKind::Pkcs12 => pkcs12::trust_store(bytes, password),
    }?;
    if certificates.is_empty() {
        return Err(StoreError::NoTrustedCertificate);
    }
    Ok(certificates)
}

/// The kind of a store by its content.
///
/// # Errors
/// The content is of no kind, or neither is of the kind that was asked for nor may stand in for it.
fn kind_of_content(bytes: &[u8], asked: StoreKind) -> Result<StoreKind, StoreError> {
    let found = if bytes.starts_with(&JKS_MAGIC) {
        StoreKind::Jks
    } else if bytes.starts_with(&JCEKS_MAGIC) {
        return Err(StoreError::Jceks);
    } else if pem::is_pem(bytes) {
        StoreKind::Pem
    } else if bytes.first() == Some(&SEQUENCE) {
        StoreKind::Pkcs12
    } else {
        return Err(StoreError::Unknown { asked });
    };
    if (found == StoreKind::Pem) != (asked == StoreKind::Pem) {
        return Err(StoreError::OtherKind { asked, found });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_between_jks_and_pkcs12_only() {
        let (jks, pkcs12, pem) = (&b"\xfe\xed\xfe\xed"[..], &b"\x30\x82"[..], &b"0 -----BEGIN A-----"[..]);
        for (bytes, asked, found) in [
            (jks, StoreKind::Pkcs12, StoreKind::Jks),
            (jks, StoreKind::Jks, StoreKind::Jks),
            (pkcs12, StoreKind::Jks, StoreKind::Pkcs12),
            (pem, StoreKind::Pem, StoreKind::Pem),
        ] {
            assert_eq!(kind_of_content(bytes, asked), Ok(found));
        }
        for (bytes, asked, found) in [
            (jks, StoreKind::Pem, StoreKind::Jks),
            (pkcs12, StoreKind::Pem, StoreKind::Pkcs12),
            (pem, StoreKind::Jks, StoreKind::Pem),
            (pem, StoreKind::Pkcs12, StoreKind::Pem),
        ] {
            assert_eq!(kind_of_content(bytes, asked), Err(StoreError::OtherKind { asked, found }));
        }
        assert_eq!(kind_of_content(b"\xce\xce\xce\xce", StoreKind::Jks), Err(StoreError::Jceks));
        for bytes in [&b""[..], b"text", b"\xfe\xed\xfe"] {
            let asked = StoreKind::Pem;
            assert_eq!(kind_of_content(bytes, asked), Err(StoreError::Unknown { asked }));
        }
    }
}
