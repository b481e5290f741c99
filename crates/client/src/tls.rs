//! Builds a TLS configuration from certificates in PEM, or from the stores of a Java client.

use crate::error::{Error, Result};
use ostler_tls::{
    config::client_config, material::TlsMaterial, settings::TlsSettings, store::KeyStore, trust::Trust,
};
use rustls::ClientConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{fmt::Display, sync::Arc};

/// The configuration that [`ClientBuilder::tls_pem`](crate::ClientBuilder::tls_pem) uses: certificates in PEM, those of
/// the trusted authorities and this client's own chain and key.
///
/// # Errors
/// [`Error::Tls`] if the certificates or the key cannot be used.
pub fn pem_tls_config(authorities: &[u8], own: Option<(&[u8], &[u8])>) -> Result<ClientConfig> {
    let authorities = certificates(authorities, "the authorities to trust")?;
    let trust = Trust::new(authorities, Vec::new());
    let trust = Arc::new(trust.map_err(|cause| problem("the authorities to trust", cause))?);
    let own = own.map(key_store).transpose()?;
    client_config(&TlsSettings::default(), own.as_ref(), trust)
        .map_err(|cause| problem("the client's certificate and key", cause))
}

/// Reads the stores of the settings.
pub(crate) fn config_of_stores(settings: &TlsSettings) -> Result<ClientConfig> {
    let built = TlsMaterial::read(settings).and_then(|material| material.client_config(settings));
    built.map_err(|cause| Error::Tls { problem: cause.to_string().into() })
}

fn key_store((chain, key): (&[u8], &[u8])) -> Result<KeyStore> {
    let chain = certificates(chain, "the client's certificate")?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|cause| problem("the client's key", cause))?;
    Ok(KeyStore { chain, key })
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
