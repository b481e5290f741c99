//! Stores in the format of RFC 7292, and encrypted PKCS#8 keys, which are a part of that format.

use super::{KeyStore, StoreError};
use crate::{
    der::{CONTEXT_0, DerReader, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, encode},
    password::Password,
};
use p12_keystore::{Certificate, CertificateBag, Pkcs12Archive, PrivateKeyBag, error::Error};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The object identifier 1.3.6.1.4.1.11591.4.11 (scrypt) with its tag and length.
const SCRYPT: &[u8] = &[OBJECT_IDENTIFIER, 9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];
/// The content of 1.2.840.113549.1.7.1: data without encryption around it.
const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
/// The content of 1.2.840.113549.1.12.10.1.2: an encrypted key.
const SHROUDED_KEY_BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 10, 1, 2];
const VERSION: u8 = 3;

pub(super) fn key_store(bytes: &[u8], password: &Password) -> Result<KeyStore, StoreError> {
    let Pkcs12Archive { keys, certs, .. } = archive(bytes, password)?;
    let bag = keys.into_iter().next().ok_or(StoreError::NoPrivateKey)?;
    let chain = chain_of(&bag, &certs)?;
    Ok(KeyStore { chain, key: key_of(&bag) })
}

pub(super) fn trust_store(
    bytes: &[u8],
    password: &Password,
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let Pkcs12Archive { keys, certs, .. } = archive(bytes, password)?;
    let has_marks = certs.iter().any(|bag| bag.trusted);
    // A store with a key is a key store: its chain is what the server shows, not what it trusts.
    let trusts_unmarked = !has_marks && keys.is_empty();
    let trusted = certs.iter().filter(|bag| bag.trusted || trusts_unmarked);
    Ok(trusted.map(|bag| der_of(&bag.cert)).collect())
}

/// The key of a PEM block "ENCRYPTED PRIVATE KEY". PBES2 is read, and of the older methods 3DES and RC2 with SHA-1.
pub(super) fn decrypted_key(
    encrypted: &[u8],
    password: &Password,
) -> Result<PrivateKeyDer<'static>, StoreError> {
    if password.is_empty() {
        return Err(StoreError::NoPassword);
    }
    let archive = archive(&store_of(encrypted), password).map_err(|error| match error {
        StoreError::Pkcs12 { reason } => StoreError::EncryptedKey { reason },
        error => error,
    })?;
    archive.keys.first().map(key_of).ok_or(StoreError::NoPrivateKey)
}

/// A store without checksum that has one encrypted key. So the methods of encryption, and the limits of their rounds,
/// are the same for keys in PEM files and keys in PKCS12 stores.
fn store_of(encrypted_key: &[u8]) -> Vec<u8> {
    let id = |content| encode(OBJECT_IDENTIFIER, content);
    let data = |content: &[u8]| {
        let content = encode(CONTEXT_0, &encode(OCTET_STRING, content));
        encode(SEQUENCE, &[id(DATA), content].concat())
    };
    let bag = encode(SEQUENCE, &[id(SHROUDED_KEY_BAG), encode(CONTEXT_0, encrypted_key)].concat());
    let safe = data(&encode(SEQUENCE, &bag));
    encode(SEQUENCE, &[encode(INTEGER, &[VERSION]), data(&encode(SEQUENCE, &safe))].concat())
}

fn archive(bytes: &[u8], password: &Password) -> Result<Pkcs12Archive, StoreError> {
    // The memory that scrypt takes is the writer's choice, and Java does not read it either.
    if bytes.windows(SCRYPT.len()).any(|part| part == SCRYPT) {
        return Err(StoreError::UnknownEncryption {
            method: "scrypt",
            advice: "encrypt it anew without -scrypt",
        });
    }
    Pkcs12Archive::from_pkcs12(bytes, password.text()).map_err(|error| store_error(&error, bytes, password))
}

fn store_error(error: &Error, bytes: &[u8], password: &Password) -> StoreError {
    match error {
        Error::MacError(_) => not_opened(password),
        Error::UnpadError | Error::InvalidPrivateKey => not_decrypted(bytes, password),
        Error::Pkcs5Error(reason) if *reason == pkcs5::Error::DecryptFailed.to_string() => {
            not_decrypted(bytes, password)
        }
        Error::UnsupportedEncryptionScheme | Error::UnsupportedMacAlgorithm => {
            StoreError::UnknownEncryption {
                method: "a method other than PBES2, and SHA-1 with 3DES or RC2",
                advice: "make it anew with keytool or openssl",
            }
        }
        Error::InvalidParameters => StoreError::UnknownEncryption {
            method: "a password with more than a million rounds",
            advice: "make it anew with fewer rounds",
        },
        error => StoreError::Pkcs12 { reason: error.to_string() },
    }
}

fn not_opened(password: &Password) -> StoreError {
    if password.is_empty() { StoreError::NoPassword } else { StoreError::WrongPassword }
}

/// A part of a store cannot be decrypted. If the store has a checksum, that was right with the same password.
fn not_decrypted(bytes: &[u8], password: &Password) -> StoreError {
    let has_checksum = DerReader::new(bytes).inside(SEQUENCE).is_some_and(|mut parts| {
        let _version = parts.value();
        let _content = parts.value();
        !parts.is_at_end()
    });
    if has_checksum { StoreError::OtherKeyPassword } else { not_opened(password) }
}

fn key_of(bag: &PrivateKeyBag) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(bag.key.as_der().to_vec()).into()
}

fn der_of(certificate: &Certificate) -> CertificateDer<'static> {
    CertificateDer::from(certificate.as_der().to_vec())
}

/// The certificate of a key, then that of its issuer, and so on as far as the store has them.
fn chain_of(
    key: &PrivateKeyBag,
    certificates: &[CertificateBag],
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let parsed = certificates.iter().zip(1..).map(|(bag, number)| {
        let parsed = X509Certificate::from_der(bag.cert.as_der());
        parsed.map(|(_, certificate)| certificate).map_err(|_| StoreError::BadCertificate { number })
    });
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let id = key.local_key_id.as_ref().map(|id| id.0.as_slice());
    let has_id = |bag: &CertificateBag| id.is_some() && bag.local_key_id.as_deref() == id;
    // Without an id, Java takes the first certificate.
    let own =
        certificates.iter().position(has_id).or((id.is_none() && !certificates.is_empty()).then_some(0));
    let mut next = own.ok_or(StoreError::NoCertificate)?;
    let mut places = vec![next];
    loop {
        let issuer = parsed[next].issuer().as_raw();
        let is_next = |at: &usize| parsed[*at].subject().as_raw() == issuer && !places.contains(at);
        let Some(found) = (0..parsed.len()).find(is_next) else { break };
        places.push(found);
        next = found;
    }
    Ok(places.into_iter().map(|at| der_of(&certificates[at].cert)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreKind, read_trust_store};
    use p12_keystore::{LocalKeyId, PrivateKey};

    const STORE: &[u8] = include_bytes!("../../tests/data/key-plain.p12");
    const OTHER: &[u8] = include_bytes!("../../tests/data/other-ca.pem");
    const FIRST_ID: &[u8] = b"first";

    fn key(id: Option<&[u8]>) -> PrivateKeyBag {
        let key = Pkcs12Archive::from_pkcs12(STORE, "").unwrap().keys.remove(0).key;
        PrivateKeyBag {
            friendly_name: None,
            local_key_id: id.map(LocalKeyId::from),
            key: PrivateKey::from_der(key.as_der()).unwrap(),
        }
    }

    /// The leaf, its authority, and one that has issued neither; only the leaf has an id.
    fn certificates() -> [CertificateBag; 3] {
        let certs = Pkcs12Archive::from_pkcs12(STORE, "").unwrap().certs;
        let other = read_trust_store(OTHER, StoreKind::Pem, &Password::default()).unwrap();
        let bag = |cert, id: Option<&[u8]>| CertificateBag {
            friendly_name: None,
            local_key_id: id.map(<[u8]>::to_vec),
            trusted: false,
            cert,
        };
        let [leaf, authority] = <[_; 2]>::try_from(certs).unwrap().map(|bag| bag.cert);
        let other = Certificate::from_der(&other[0]).unwrap();
        [bag(leaf, Some(FIRST_ID)), bag(authority, None), bag(other, None)]
    }

    #[test]
    fn chain_follows_the_issuers_from_the_certificate_with_the_id_of_the_key() {
        let [leaf, authority, other] = certificates();
        let expected = vec![der_of(&leaf.cert), der_of(&authority.cert)];
        let mixed = [other.clone(), authority.clone(), leaf.clone()];
        assert_eq!(chain_of(&key(Some(FIRST_ID)), &mixed), Ok(expected.clone()));
        let leaf_first = [leaf, other.clone(), authority];
        assert_eq!(chain_of(&key(None), &leaf_first), Ok(expected));
        assert_eq!(chain_of(&key(None), std::slice::from_ref(&other)), Ok(vec![der_of(&other.cert)]));
        assert_eq!(chain_of(&key(Some(b"other")), &leaf_first), Err(StoreError::NoCertificate));
        assert_eq!(chain_of(&key(None), &[]), Err(StoreError::NoCertificate));
    }

    #[test]
    fn part_that_is_not_decrypted_has_another_password_if_the_checksum_is_right() {
        let part = encode(INTEGER, &[VERSION]);
        let without_checksum = encode(SEQUENCE, &part.repeat(2));
        let with_checksum = encode(SEQUENCE, &part.repeat(3));
        let password = Password::new("a");
        for error in [
            Error::UnpadError,
            Error::InvalidPrivateKey,
            Error::Pkcs5Error(pkcs5::Error::DecryptFailed.to_string()),
        ] {
            assert_eq!(store_error(&error, &with_checksum, &password), StoreError::OtherKeyPassword);
            assert_eq!(store_error(&error, &without_checksum, &password), StoreError::WrongPassword);
            assert_eq!(store_error(&error, &without_checksum, &Password::default()), StoreError::NoPassword);
        }
        let other = store_error(&Error::Pkcs5Error("other".to_owned()), &with_checksum, &password);
        assert_eq!(other, StoreError::Pkcs12 { reason: "other".to_owned() });
    }
}
