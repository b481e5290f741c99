//! The options of TLS that programs which connect have in common.

use clap::Args;
use ostler_client::{ClientBuilder, Result, pem_tls_config, pem_tls_config_with_key};
use rustls::ClientConfig;
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// The files of TLS, in PEM.
#[derive(Debug, Args)]
pub(crate) struct TlsOptions {
    /// PEM file with the certificate authorities to trust; switches TLS on.
    #[arg(long, global = true, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// PEM file with this client's certificate chain for TLS.
    #[arg(long, global = true, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate in --tls-cert.
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// The contents of the files.
#[derive(Clone)]
pub(crate) struct PemContents {
    pub(crate) authorities: Vec<u8>,
    /// Chain and key.
    own: Option<(Vec<u8>, Vec<u8>)>,
}

/// Without the key.
impl fmt::Debug for PemContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PemContents(..)")
    }
}

/// A file of the options cannot be read.
#[derive(Debug)]
pub(crate) struct UnreadableFile {
    pub(crate) path: PathBuf,
    pub(crate) cause: io::Error,
}

impl TlsOptions {
    /// Reads the files. `None` without --tls-ca: TLS is off.
    pub(crate) fn read(&self) -> std::result::Result<Option<PemContents>, UnreadableFile> {
        let Some(authorities) = &self.tls_ca else { return Ok(None) };
        let own = match (&self.tls_cert, &self.tls_key) {
            (Some(chain), Some(key)) => Some((bytes_of(chain)?, bytes_of(key)?)),
            _ => None,
        };
        Ok(Some(PemContents { authorities: bytes_of(authorities)?, own }))
    }
}

impl PemContents {
    /// The builder with TLS by these certificates.
    pub(crate) fn apply(&self, builder: ClientBuilder) -> Result<ClientBuilder> {
        match self.own() {
            Some((chain, key)) => builder.tls_pem_with_key(&self.authorities, chain, key),
            None => builder.tls_pem(&self.authorities),
        }
    }

    /// The configuration of TLS by these certificates.
    pub(crate) fn config(&self) -> Result<ClientConfig> {
        match self.own() {
            Some((chain, key)) => pem_tls_config_with_key(&self.authorities, chain, key),
            None => pem_tls_config(&self.authorities),
        }
    }

    /// This client's chain and key.
    pub(crate) fn own(&self) -> Option<(&[u8], &[u8])> {
        self.own.as_ref().map(|(chain, key)| (&**chain, &**key))
    }
}

fn bytes_of(path: &Path) -> std::result::Result<Vec<u8>, UnreadableFile> {
    fs::read(path).map_err(|cause| UnreadableFile { path: path.to_owned(), cause })
}
