//! Stands in for the readers of JKS and PKCS12 in a build without the feature `key-stores`.

use super::{KeyStore, StoreError};
use crate::password::Password;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub(super) fn key_store(_: &[u8], _: &Password) -> Result<KeyStore, StoreError> {
    Err(StoreError::NotBuiltIn)
}

pub(super) fn trust_store(_: &[u8], _: &Password) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    Err(StoreError::NotBuiltIn)
}

pub(super) fn decrypted_key(_: &[u8], _: &Password) -> Result<PrivateKeyDer<'static>, StoreError> {
    Err(StoreError::NotBuiltIn)
}
