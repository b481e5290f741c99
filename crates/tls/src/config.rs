//! Builds the configurations of rustls from settings and stores.

use crate::{
    log_text::log_text,
    principal::subject_name,
    provider,
    settings::{ClientAuth, Protocol, TlsSettings},
    store::KeyStore,
    trust::Trust,
    verify::{ClientCheck, ServerCheck},
};
use rustls::{
    ClientConfig, ServerConfig, SupportedProtocolVersion,
    client::ResolvesClientCert,
    crypto::CryptoProvider,
    pki_types::CertificateDer,
    server::{NoClientAuth, NoServerSessionStorage, ResolvesServerCert, VerifierBuilderError},
    sign::{CertifiedKey, SigningKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use std::sync::Arc;
use x509_parser::{certificate::X509Certificate, prelude::FromDer, x509::SubjectPublicKeyInfo};

/// Why settings and stores make no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The program has no cryptography for TLS.
    #[error(
        "this program has no cryptography for TLS: build it with the feature ring or aws-lc-rs, or let it install a \
         provider of rustls at its start"
    )]
    NoProvider,
    /// No cipher suite of the list can be used.
    #[error(
        "none of the cipher suites {given} can be used; known are {known}, as far as the protocols allow them"
    )]
    NoCipherSuite {
        /// The list.
        given: String,
        /// All suites, separated by commas.
        known: String,
    },
    /// The key is of a kind that cannot sign.
    #[error("the private key cannot be used: {0}; use an RSA, ECDSA (P-256, P-384) or Ed25519 key")]
    Key(rustls::Error),
    /// The key is not that of the certificate.
    #[error(
        "the private key is not that of its first certificate, which is for {subject}: put the key and the certificate \
         together that were made together, and this certificate before those of its authorities"
    )]
    OtherKey {
        /// The subject of the certificate, made safe by [`log_text`].
        subject: String,
    },
    /// Clients shall show certificates, but nothing says which ones are good.
    #[error("certificates of the other side are asked for, but there is no trust store to check them with")]
    NoTrustStore,
    /// The trust store or the revocation lists cannot be used.
    #[error("the trust store or the revocation lists cannot be used: {0}")]
    Trust(#[from] VerifierBuilderError),
    /// rustls refuses the combination.
    #[error("the settings of TLS do not fit together: {0}")]
    Combination(rustls::Error),
}

fn iana_name(suite: &rustls::SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

/// The provider, with the cipher suites of the settings.
fn provider_for(settings: &TlsSettings) -> Result<Arc<CryptoProvider>, ConfigError> {
    let mut provider = provider::current()?;
    if !settings.cipher_suites.is_empty() {
        let known: Vec<String> = provider.cipher_suites.iter().map(iana_name).collect();
        let is_wanted = |suite: &rustls::SupportedCipherSuite| {
            settings.cipher_suites.iter().any(|name| *name == iana_name(suite))
        };
        provider.cipher_suites.retain(is_wanted);
        let fits = |suite: &rustls::SupportedCipherSuite| {
            let needed = if suite.tls13().is_some() { Protocol::Tls13 } else { Protocol::Tls12 };
            settings.protocols.contains(&needed)
        };
        if !provider.cipher_suites.iter().any(fits) {
            let given = settings.cipher_suites.join(",");
            return Err(ConfigError::NoCipherSuite { given, known: known.join(", ") });
        }
    }
    Ok(Arc::new(provider))
}

/// The protocols of the settings for which there is a cipher suite.
fn versions(settings: &TlsSettings, provider: &CryptoProvider) -> Vec<&'static SupportedProtocolVersion> {
    let has_suite = |is_13: bool| provider.cipher_suites.iter().any(|suite| suite.tls13().is_some() == is_13);
    let all = [(Protocol::Tls13, &TLS13, true), (Protocol::Tls12, &TLS12, false)];
    all.into_iter()
        .filter(|(protocol, _, is_13)| settings.protocols.contains(protocol) && has_suite(*is_13))
        .map(|(_, version, _)| version)
        .collect()
}

/// Not by `with_single_cert`: that refuses certificates of X.509 version 1, see [`crate::trust`].
fn certified(key_store: &KeyStore, provider: &CryptoProvider) -> Result<SingleCertAndKey, ConfigError> {
    let key = provider.key_provider.load_private_key(key_store.key.clone_key());
    let key = key.map_err(ConfigError::Key)?;
    check_key(&*key, key_store.chain.first())?;
    Ok(SingleCertAndKey::from(CertifiedKey::new(key_store.chain.clone(), key)))
}

/// Checks that a key is that of a certificate. Not by `keys_match`, for the same reason.
fn check_key(key: &dyn SigningKey, leaf: Option<&CertificateDer<'_>>) -> Result<(), ConfigError> {
    let Some((leaf, own)) = leaf.zip(key.public_key()) else { return Ok(()) };
    let (Ok((_, read)), Ok((_, own))) =
        (X509Certificate::from_der(leaf), SubjectPublicKeyInfo::from_der(&own))
    else {
        return Ok(());
    };
    // The algorithm may be written in several ways.
    if read.public_key().subject_public_key.data == own.subject_public_key.data {
        return Ok(());
    }
    let subject = subject_name(leaf).unwrap_or_else(|_| "an unreadable subject".into());
    Err(ConfigError::OtherKey { subject: log_text(&subject) })
}

/// The configuration of a port. `trust` may be missing only if no certificates are asked for.
pub fn server_config(
    settings: &TlsSettings,
    key_store: &KeyStore,
    trust: Option<Arc<Trust>>,
) -> Result<ServerConfig, ConfigError> {
    let provider = provider_for(settings)?;
    let certified: Arc<dyn ResolvesServerCert> = Arc::new(certified(key_store, &provider)?);
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder =
        builder.with_protocol_versions(&versions(settings, &provider)).map_err(ConfigError::Combination)?;
    let builder = match settings.client_auth {
        ClientAuth::None => builder.with_client_cert_verifier(Arc::new(NoClientAuth)),
        asked => {
            let trust = trust.ok_or(ConfigError::NoTrustStore)?;
            let check = ClientCheck::new(trust, asked == ClientAuth::Need, &provider)?;
            builder.with_client_cert_verifier(Arc::new(check))
        }
    };
    let mut config = builder.with_cert_resolver(certified);
    // A resumed session would not show its certificate again, and that may be revoked by then.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of a client, or of a server that calls another one.
pub fn client_config(
    settings: &TlsSettings,
    key_store: Option<&KeyStore>,
    trust: Arc<Trust>,
) -> Result<ClientConfig, ConfigError> {
    let provider = provider_for(settings)?;
    let check = ServerCheck::new(trust, settings.hostname_verification, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder
        .with_protocol_versions(&versions(settings, &provider))
        .map_err(ConfigError::Combination)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check));
    Ok(match key_store {
        None => builder.with_no_client_auth(),
        Some(key_store) => {
            let certified: Arc<dyn ResolvesClientCert> = Arc::new(certified(key_store, &provider)?);
            builder.with_client_cert_resolver(certified)
        }
    })
}
