use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::path::Path;
#[derive(Debug, Default)]
pub struct Password(String);
impl Password {
    pub fn new(text: String) -> Password { Password(text) }
    pub fn from_file_text(text: &str) -> Password { Password(text.trim_end().into()) }
}
#[derive(Debug, thiserror::Error)]
#[error("damaged")]
pub struct StoreError;
#[derive(Debug, Clone, Copy)]
pub enum StoreKind { Pem }
impl StoreKind {
    pub fn of(_: &Path, _: Option<&str>) -> Result<StoreKind, StoreError> { Ok(StoreKind::Pem) }
}
#[derive(Debug)]
pub struct KeyStore { pub chain: Vec<CertificateDer<'static>>, pub key: PrivateKeyDer<'static> }
pub fn read_key_store(bytes: &[u8], _: StoreKind, _: &Password) -> Result<KeyStore, StoreError> {
    let chain = read_trust_store(bytes, StoreKind::Pem, &Password::default())?;
    Ok(KeyStore { chain, key: PrivateKeyDer::from_pem_slice(bytes).map_err(|_| StoreError)? })
}
pub fn read_trust_store(bytes: &[u8], _: StoreKind, _: &Password) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().map_err(|_| StoreError)
}
