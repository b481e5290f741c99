//! The settings of TLS, named as the keys `ssl.*` of zoo.cfg.

use std::path::PathBuf;

/// A file with keys or certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// `*.location`
    pub location: PathBuf,
    /// `*.type`: `JKS`, `PEM` or `PKCS12`; without it the file's name decides.
    pub kind: Option<String>,
    /// `*.password` or `*.passwordPath`
    pub password: StorePassword,
}

impl StoreFile {
    /// Reads the keys of a store by their last names, such as `location`. A file with the password wins over the
    /// password. `None` without a location.
    pub fn of_keys(text: impl Fn(&str) -> Option<String>) -> Option<StoreFile> {
        let password = match (text("passwordPath"), text("password")) {
            (Some(file), _) => StorePassword::File(file.into()),
            (None, Some(password)) => StorePassword::Text(password),
            (None, None) => StorePassword::None,
        };
        Some(StoreFile { location: text("location")?.into(), kind: text("type"), password })
    }
}

/// The password of a store.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum StorePassword {
    /// The empty password.
    #[default]
    None,
    /// A password that stands in the configuration.
    Text(String),
    /// A file whose text is the password. It is read anew with the store.
    File(PathBuf),
}

/// Without the password, which must not appear in logs.
impl std::fmt::Debug for StorePassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StorePassword::None => "None",
            StorePassword::Text(_) => "Text(..)",
            StorePassword::File(_) => "File(..)",
        })
    }
}

/// `ssl.clientAuth`: whether those who connect need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// Not asked for.
    None,
    /// Asked for. If one is shown, it must be good.
    Want,
    /// Needed, the default.
    #[default]
    Need,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

/// The settings of one set of keys, `ssl.*` or `ssl.quorum.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// `keyStore.*`: the own key and certificate.
    pub key_store: Option<StoreFile>,
    /// `trustStore.*`: the authorities of the other side.
    pub trust_store: Option<StoreFile>,
    /// `crl.location`, Ostler's own: a file with lists of revoked certificates.
    pub crl_location: Option<PathBuf>,
    /// `enabledProtocols` or `protocol`; 1.2 and 1.3 by default.
    pub protocols: Vec<Protocol>,
    /// `ciphersuites`: names of IANA. Empty, the default: all that rustls knows.
    pub cipher_suites: Vec<String>,
    /// `clientAuth`
    pub client_auth: ClientAuth,
    /// `hostnameVerification`: whether a server's certificate must be for the host that was called; true by default.
    pub hostname_verification: bool,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings {
            key_store: None,
            trust_store: None,
            crl_location: None,
            protocols: vec![Protocol::Tls12, Protocol::Tls13],
            cipher_suites: Vec::new(),
            client_auth: ClientAuth::Need,
            hostname_verification: true,
        }
    }
}
