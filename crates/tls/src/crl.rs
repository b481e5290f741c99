//! Lists of revoked certificates.

use crate::{
    der::{DerReader, SEQUENCE},
    pem::{self, PemError},
};
use rustls_pki_types::CertificateRevocationListDer;

const LABEL: &str = "X509 CRL";

/// The reason for which no list of revoked certificates can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrlError {
    /// The PEM file is damaged.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// There is no list.
    #[error(
        "there is no list of revoked certificates: the file needs blocks of PEM with the label X509 CRL, or one list \
         in DER; openssl ca -gencrl writes one"
    )]
    Missing,
    /// A list is damaged.
    #[error("list {number} of revoked certificates is damaged: get it again from its authority")]
    Damaged {
        /// The number of the list in the file, from 1.
        number: usize,
    },
}

/// Reads lists of revoked certificates: the blocks `X509 CRL` of a PEM file, or one list in DER. At least one is
/// returned. Their signatures and dates are not judged.
///
/// # Errors
/// There is no list, or one is damaged. Of a list no more than its frame is looked at.
pub fn read_crls(bytes: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, CrlError> {
    let lists: Vec<Vec<u8>> = if pem::is_pem(bytes) {
        let blocks = pem::blocks(bytes, |label| label == LABEL)?;
        blocks.into_iter().map(|mut block| std::mem::take(&mut *block.content)).collect()
    } else if bytes.first() == Some(&SEQUENCE) {
        vec![bytes.to_vec()]
    } else {
        Vec::new()
    };
    if lists.is_empty() {
        return Err(CrlError::Missing);
    }
    if let Some(at) = lists.iter().position(|list| !is_framed(list)) {
        return Err(CrlError::Damaged { number: at + 1 });
    }
    Ok(lists.into_iter().map(CertificateRevocationListDer::from).collect())
}

/// Whether bytes are what all signed things are: a sequence of a sequence, an algorithm and a signature.
fn is_framed(list: &[u8]) -> bool {
    let mut whole = DerReader::new(list);
    let Some(mut parts) = whole.inside(SEQUENCE).filter(|_| whole.is_at_end()) else { return false };
    let is_signed = parts.content_of(SEQUENCE).is_some() && parts.content_of(SEQUENCE).is_some();
    is_signed && parts.value().is_some() && parts.is_at_end()
}
