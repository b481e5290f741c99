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
