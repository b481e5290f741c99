//! Connections by TLS, and their configuration: from certificates in PEM, from the stores of a Java client, or from the
//! authorities of the operating system.

use crate::{
    builder::ClientBuilder,
    dial::Conn,
    error::{Error, Result},
};
use ostler_tls::{
    config::client_config, material::TlsMaterial, settings::TlsSettings, store::KeyStore, trust::Trust,
};
use rustls::ClientConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use std::{fmt::Display, io, sync::Arc};
use tokio_rustls::TlsConnector;

pub(crate) type TlsConfig = Arc<ClientConfig>;

/// TLS over a connection to a server of this name.
pub(crate) async fn connect(config: TlsConfig, host: &str, plain: Conn) -> io::Result<Conn> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config).connect(name, plain).await?;
    Ok(Conn::Custom(Box::new(stream)))
}

/// TLS: with the features `tls` and `ring`, which are on by default.
impl ClientBuilder {
    /// Uses TLS with this configuration.
    pub fn tls(mut self, config: impl Into<Arc<ClientConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// Uses TLS with the certificates of the trusted authorities, in PEM.
    ///
    /// # Errors
    /// [`Error::Tls`] if the certificates cannot be used.
    pub fn tls_pem(self, authorities: &[u8]) -> Result<Self> {
        Ok(self.tls(pem_tls_config(authorities)?))
    }

    /// [`tls_pem`](ClientBuilder::tls_pem) for servers that ask for client certificates: `chain` and `key` are this
    /// client's own, in PEM.
    ///
    /// # Errors
    /// [`Error::Tls`] if the certificates or the key cannot be used.
    pub fn tls_pem_with_key(self, authorities: &[u8], chain: &[u8], key: &[u8]) -> Result<Self> {
        Ok(self.tls(pem_tls_config_with_key(authorities, chain, key)?))
    }

    /// Uses TLS with the key store and trust store of a Java client: PEM, and with the feature `key-stores` PKCS12 and
    /// JKS files.
    ///
    /// # Errors
    /// [`Error::Tls`] if a file cannot be read or used. The error names it.
    pub fn tls_stores(self, settings: &TlsSettings) -> Result<Self> {
        Ok(self.tls(config_of_stores(settings)?))
    }

    /// Uses TLS, and trusts the authorities that the operating system trusts. Needs the feature `native-roots`. The
    /// environment's `SSL_CERT_FILE` and `SSL_CERT_DIR` name other files. A certificate that cannot be read is not
    /// trusted.
    ///
    /// # Errors
    /// [`Error::Tls`] if no authority is found.
    #[cfg(feature = "native-roots")]
    pub fn tls_native_roots(self) -> Result<Self> {
        Ok(self.tls(native_roots::config()?))
    }
}

const AUTHORITIES: &str = "the authorities to trust";

/// The configuration that [`ClientBuilder::tls_pem`](crate::ClientBuilder::tls_pem) uses.
///
/// # Errors
/// [`Error::Tls`] if the certificates cannot be used.
pub fn pem_tls_config(authorities: &[u8]) -> Result<ClientConfig> {
    config_with_trust(certificates(authorities, AUTHORITIES)?, None, AUTHORITIES)
}

/// The configuration that [`ClientBuilder::tls_pem_with_key`](crate::ClientBuilder::tls_pem_with_key) uses.
///
/// # Errors
/// [`Error::Tls`] if the certificates or the key cannot be used.
pub fn pem_tls_config_with_key(authorities: &[u8], chain: &[u8], key: &[u8]) -> Result<ClientConfig> {
    let authorities = certificates(authorities, AUTHORITIES)?;
    config_with_trust(authorities, Some(&key_store(chain, key)?), AUTHORITIES)
}

#[cfg(feature = "native-roots")]
mod native_roots {
    use super::{config_with_trust, problem};
    use crate::error::Result;
    use ostler_tls::trust::Trust;
    use rustls::ClientConfig;

    const SUBJECT: &str = "the authorities that the operating system trusts";

    pub(super) fn config() -> Result<ClientConfig> {
        let found = rustls_native_certs::load_native_certs();
        let mut authorities = found.certs;
        // One that cannot be read must not hide the others.
        authorities.retain(|one| Trust::new(vec![one.clone()], Vec::new()).is_ok());
        if authorities.is_empty() {
            let cause = found.errors.first().map_or_else(|| "there is none".to_owned(), ToString::to_string);
            return Err(problem(SUBJECT, cause));
        }
        config_with_trust(authorities, None, SUBJECT)
    }
}

/// Reads the stores of the settings.
fn config_of_stores(settings: &TlsSettings) -> Result<ClientConfig> {
    let built = TlsMaterial::read(settings).and_then(|material| material.client_config(settings));
    built.map_err(|cause| Error::Tls { problem: cause.to_string().into() })
}

/// The configuration with these authorities, which `subject` names in errors.
fn config_with_trust(
    authorities: Vec<CertificateDer<'static>>,
    own: Option<&KeyStore>,
    subject: &str,
) -> Result<ClientConfig> {
    let trust = Arc::new(Trust::new(authorities, Vec::new()).map_err(|cause| problem(subject, cause))?);
    client_config(&TlsSettings::default(), own, trust)
        .map_err(|cause| problem("the client's certificate and key", cause))
}

fn key_store(chain: &[u8], key: &[u8]) -> Result<KeyStore> {
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
