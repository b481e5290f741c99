use rustls::pki_types::{CertificateRevocationListDer, pem::PemObject};
#[derive(Debug, thiserror::Error)]
#[error("damaged")]
pub struct CrlError;
pub fn read_crls(bytes: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, CrlError> {
    CertificateRevocationListDer::pem_slice_iter(bytes).collect::<Result<_, _>>().map_err(|_| CrlError)
}
