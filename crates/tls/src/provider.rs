//! The cryptography of TLS: that of ring, of aws-lc-rs, or what the process has installed.

use crate::config::ConfigError;
use rustls::crypto::CryptoProvider;

/// The provider that the process has installed, else that of the feature `ring`, else that of `aws-lc-rs`.
pub(crate) fn current() -> Result<CryptoProvider, ConfigError> {
    let installed = CryptoProvider::get_default().map(|provider| CryptoProvider::clone(provider));
    installed.or_else(built_in).ok_or(ConfigError::NoProvider)
}

fn built_in() -> Option<CryptoProvider> {
    #[cfg(feature = "ring")]
    let provider = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let provider = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider = None;
    provider
}
