//! Stores in PEM files.

use super::{KeyStore, StoreError, pkcs12};
use crate::{
    password::Password,
    pem::{PemBlock, blocks},
    principal::subject_name,
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use std::collections::HashMap;

const CERTIFICATE: &str = "CERTIFICATE";
const PKCS8: &str = "PRIVATE KEY";
const ENCRYPTED_PKCS8: &str = "ENCRYPTED PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";

pub(super) fn key_store(bytes: &[u8], password: &Password) -> Result<KeyStore, StoreError> {
    let keys = blocks(bytes, |label| [PKCS8, ENCRYPTED_PKCS8, PKCS1, SEC1].contains(&label))?;
    let key = key_of(keys.into_iter().next().ok_or(StoreError::NoPrivateKey)?, password)?;
    let chain: Vec<_> = certificates(bytes)?.into_iter().map(|(_, certificate)| certificate).collect();
    if chain.is_empty() {
        return Err(StoreError::NoCertificate);
    }
    Ok(KeyStore { chain, key })
}

pub(super) fn trust_store(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let mut places = HashMap::new();
    let mut trusted = Vec::new();
    for (subject, certificate) in certificates(bytes)? {
        let place = *places.entry(subject).or_insert(trusted.len());
        if place == trusted.len() {
            trusted.push(certificate);
        } else {
            trusted[place] = certificate;
        }
    }
    Ok(trusted)
}

/// All certificates, each with the name of its subject.
fn certificates(bytes: &[u8]) -> Result<Vec<(String, CertificateDer<'static>)>, StoreError> {
    let found = blocks(bytes, |label| label == CERTIFICATE)?.into_iter().zip(1..);
    found
        .map(|(block, number)| {
            let certificate = CertificateDer::from(block.content.to_vec());
            let subject = subject_name(&certificate).map_err(|_| StoreError::BadCertificate { number })?;
            Ok((subject, certificate))
        })
        .collect()
}

fn key_of(mut block: PemBlock, password: &Password) -> Result<PrivateKeyDer<'static>, StoreError> {
    if block.is_encrypted {
        return Err(StoreError::UnknownEncryption {
            method: "the old method of OpenSSL (Proc-Type)",
            advice: "convert the key with openssl pkcs8 -topk8",
        });
    }
    if block.label == ENCRYPTED_PKCS8 {
        return pkcs12::decrypted_key(&block.content, password);
    }
    let content = std::mem::take(&mut *block.content);
    Ok(match &*block.label {
        PKCS1 => PrivatePkcs1KeyDer::from(content).into(),
        SEC1 => PrivateSec1KeyDer::from(content).into(),
        _ => PrivatePkcs8KeyDer::from(content).into(),
    })
}
