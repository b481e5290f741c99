//! The files of TLS: read at the start, and again when they change.

use crate::{
    config::{self, ConfigError},
    crl::{self, CrlError},
    files::{read_file, read_password_file},
    password::Password,
    settings::{StoreFile, StorePassword, TlsSettings},
    store::{self, KeyStore, StoreError, StoreKind, StoreKindError},
    trust::{Trust, TrustError},
};
use rustls::{ClientConfig, ServerConfig};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use zeroize::Zeroizing;

/// Why the files of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {cause}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A key store or trust store is damaged, of another kind, or has another password.
    #[error("{}: {cause}", .file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// The problem.
        cause: StoreError,
    },
    /// Nothing says what kind of store a file is.
    #[error("{}: {cause}", .file.display())]
    Kind {
        /// The file.
        file: PathBuf,
        /// The problem.
        cause: StoreKindError,
    },
    /// The certificates in a trust store cannot be trusted.
    #[error("{}: {cause}", .file.display())]
    Trust {
        /// The file.
        file: PathBuf,
        /// The problem.
        cause: TrustError,
    },
    /// The revocation lists cannot be read.
    #[error("{}: {cause}", .file.display())]
    Crl {
        /// The file.
        file: PathBuf,
        /// The problem.
        cause: CrlError,
    },
    /// The key of a key store cannot be used.
    #[error("{}: {cause}", .file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// The problem.
        cause: ConfigError,
    },
    /// There is no key store, and one is needed.
    #[error("there is no key store: a port with TLS needs a key and its certificate")]
    NoKeyStore,
    /// The parts are good, but not together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The contents of the files.
#[derive(Debug)]
pub struct TlsMaterial {
    /// The own key and certificate.
    pub key_store: Option<KeyStore>,
    /// The authorities of the other side.
    pub trust: Option<Arc<Trust>>,
}

/// The bytes of all files, to notice changes. A time of modification would not do: a folder whose symbolic link is
/// swapped, as Kubernetes does it, may keep the times.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TlsFileContents(Vec<Option<Zeroizing<Vec<u8>>>>);

fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, TlsFileError> {
    read_file(file).map_err(|cause| TlsFileError::Read { file: file.into(), cause })
}

fn password(password: &StorePassword) -> Result<Password, TlsFileError> {
    match password {
        StorePassword::None => Ok(Password::new(String::new())),
        StorePassword::Text(text) => Ok(Password::new(text.clone())),
        StorePassword::File(file) => {
            read_password_file(file).map_err(|cause| TlsFileError::Read { file: file.clone(), cause })
        }
    }
}

/// Reads a store by `parse`.
fn read_store<T>(
    file: &StoreFile,
    parse: impl Fn(&[u8], StoreKind, &Password) -> Result<T, StoreError>,
) -> Result<T, TlsFileError> {
    let failed = |cause| TlsFileError::Store { file: file.location.clone(), cause };
    let kind = StoreKind::of(&file.location, file.kind.as_deref())
        .map_err(|cause| TlsFileError::Kind { file: file.location.clone(), cause })?;
    let password = password(&file.password)?;
    parse(&read(&file.location)?, kind, &password).map_err(failed)
}

/// Names the file of the key store in an error about its key.
fn with_file(error: ConfigError, settings: &TlsSettings) -> TlsFileError {
    match (error, &settings.key_store) {
        (cause @ (ConfigError::Key(_) | ConfigError::OtherKey { .. }), Some(store)) => {
            TlsFileError::Key { file: store.location.clone(), cause }
        }
        (error, _) => error.into(),
    }
}

impl TlsMaterial {
    /// Reads all files of the settings.
    pub fn read(settings: &TlsSettings) -> Result<TlsMaterial, TlsFileError> {
        let key_store = settings.key_store.as_ref().map(|file| read_store(file, store::read_key_store));
        let lists = match &settings.crl_location {
            None => Vec::new(),
            Some(file) => crl::read_crls(&read(file)?)
                .map_err(|cause| TlsFileError::Crl { file: file.clone(), cause })?,
        };
        let trust = match &settings.trust_store {
            None => None,
            Some(file) => {
                let authorities = read_store(file, store::read_trust_store)?;
                let failed = |cause| TlsFileError::Trust { file: file.location.clone(), cause };
                Some(Arc::new(Trust::new(authorities, lists).map_err(failed)?))
            }
        };
        Ok(TlsMaterial { key_store: key_store.transpose()?, trust })
    }

    /// The configuration of a port.
    pub fn server_config(&self, settings: &TlsSettings) -> Result<ServerConfig, TlsFileError> {
        let key_store = self.key_store.as_ref().ok_or(TlsFileError::NoKeyStore)?;
        config::server_config(settings, key_store, self.trust.clone())
            .map_err(|error| with_file(error, settings))
    }

    /// The configuration of those who connect.
    pub fn client_config(&self, settings: &TlsSettings) -> Result<ClientConfig, TlsFileError> {
        let trust = self.trust.clone().ok_or(ConfigError::NoTrustStore)?;
        config::client_config(settings, self.key_store.as_ref(), trust)
            .map_err(|error| with_file(error, settings))
    }
}

impl TlsFileContents {
    /// Reads all files of the settings, those of passwords too. A file that cannot be read counts as missing.
    pub fn read(settings: &TlsSettings) -> TlsFileContents {
        let of_store = |store: &StoreFile| {
            let password = match &store.password {
                StorePassword::File(file) => Some(file.clone()),
                _ => None,
            };
            [Some(store.location.clone()), password]
        };
        let stores = [&settings.key_store, &settings.trust_store].into_iter().flatten().flat_map(of_store);
        let files = stores.flatten().chain(settings.crl_location.clone());
        TlsFileContents(files.map(|file| read_file(&file).ok()).collect())
    }
}
