//! Builds a TLS configuration from certificates in PEM.

use crate::error::{Error, Result};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::fmt::Display;

pub(crate) fn config(authorities: &[u8], own: Option<(&[u8], &[u8])>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities, "the authorities to trust")? {
        roots.add(authority).map_err(|cause| problem("an authority to trust", cause))?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    let Some((chain, key)) = own else { return Ok(config.with_no_client_auth()) };
    let chain = certificates(chain, "the client's certificate")?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|cause| problem("the client's key", cause))?;
    config
        .with_client_auth_cert(chain, key)
        .map_err(|cause| problem("the client's certificate and key", cause))
}

fn certificates(pem: &[u8], subject: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<std::result::Result<Vec<_>, _>>();
    match read.map_err(|cause| problem(subject, cause))? {
        none if none.is_empty() => Err(problem(subject, "there is no CERTIFICATE section")),
        found => Ok(found),
    }
}

fn problem(subject: &str, cause: impl Display) -> Error {
    Error::Tls { problem: format!("{subject}: {cause}").into() }
}
