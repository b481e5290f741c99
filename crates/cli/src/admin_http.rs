//! Asks the HTTP admin server of a running server.

use crate::tls_options::PemContents;
use serde::de::DeserializeOwned;
use std::{fmt::Write as _, io, sync::Arc, time::Duration};
use ureq::{
    Agent,
    tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig},
};

const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read. Answers are paged, and a page is far smaller.
const ANSWER_MAX: u64 = 64 << 20;

/// Why a server gives no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("did not answer: {0}")]
    Unreachable(ureq::Error),
    #[error("answered with status {0}")]
    Status(u16),
    #[error("does not know this command: it is no Ostler server, or an older one")]
    Unknown,
    #[error("answered what cannot be read: {0}")]
    Unreadable(serde_json::Error),
    #[error(
        "is asked by https, so a file with the certificate authorities to trust has to be named (--tls-ca)"
    )]
    NoAuthorities,
}

/// The files of TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFilesError {
    #[error("the file of --tls-ca has no certificate in PEM that can be read: {0}")]
    Authorities(ureq::Error),
    #[error("the files of --tls-cert and --tls-key have no certificate and key in PEM that can be read: {0}")]
    Own(ureq::Error),
}

/// Asks admin servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AdminClient {
    agent: Agent,
    has_authorities: bool,
    /// `user:password`.
    identity: Option<String>,
}

impl AdminClient {
    /// A client that trusts the authorities of these files. Without any it can ask by http only.
    pub(crate) fn new(files: Option<&PemContents>) -> Result<AdminClient, TlsFilesError> {
        let tls = files.map(tls_of).transpose()?;
        let has_authorities = tls.is_some();
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0);
        let config = match tls {
            Some(tls) => config.tls_config(tls),
            None => config,
        };
        Ok(AdminClient { agent: config.build().new_agent(), has_authorities, identity: None })
    }

    /// With an identity by digest, `user:password`.
    pub(crate) fn with_identity(self, identity: &str) -> AdminClient {
        AdminClient { identity: Some(identity.to_owned()), ..self }
    }

    /// The JSON of `command` at the server with this URL, such as `http://10.0.0.5:8080`. The parameters may have any
    /// characters.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        server: &str,
        command: &str,
        parameters: &[(&str, &str)],
    ) -> Result<T, AdminError> {
        let mut url = format!("{}/commands/{command}", base(server));
        for (at, (name, value)) in parameters.iter().enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            encode(value, &mut url);
        }
        if url.starts_with("https:") && !self.has_authorities {
            return Err(AdminError::NoAuthorities);
        }
        let mut request = self.agent.get(&url);
        if let Some(identity) = &self.identity {
            request = request.header("Authorization", format!("digest {identity}"));
        }
        let mut answer = request.call().map_err(AdminError::Unreachable)?;
        let status = answer.status().as_u16();
        if status == 404 {
            return Err(AdminError::Unknown);
        }
        if !answer.status().is_success() {
            return Err(AdminError::Status(status));
        }
        let body = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_MAX)
            .read_to_vec()
            .map_err(AdminError::Unreachable)?;
        serde_json::from_slice(&body).map_err(AdminError::Unreadable)
    }
}

fn tls_of(files: &PemContents) -> Result<TlsConfig, TlsFilesError> {
    let authorities = certificates(&files.authorities).map_err(TlsFilesError::Authorities)?;
    if authorities.is_empty() {
        return Err(TlsFilesError::Authorities(nothing()));
    }
    let own = files.own().map(|(chain, key)| {
        let chain = certificates(chain)?;
        Ok(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(key)?))
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&authorities));
    let own = own.transpose().map_err(TlsFilesError::Own)?;
    Ok(config.client_cert(own).unversioned_rustls_crypto_provider(provider).build())
}

fn nothing() -> ureq::Error {
    ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, "the file has no certificate"))
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, ureq::Error> {
    let items = ureq::tls::parse_pem(pem);
    let certificate = |item| match item {
        Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    items.filter_map(certificate).collect()
}

/// The URL of a server without a slash at its end; `http://` is added to a host and port alone.
fn base(server: &str) -> String {
    let server = server.trim_end_matches('/');
    if server.contains("://") { server.to_owned() } else { format!("http://{server}") }
}

/// Writes a value of a query as RFC 3986 has it.
fn encode(value: &str, url: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_completed_and_values_encoded() {
        assert_eq!(base("host:8080"), "http://host:8080");
        assert_eq!(base("https://host:8443/"), "https://host:8443");
        let mut url = String::new();
        encode("[::1]:80 é", &mut url);
        assert_eq!(url, "%5B%3A%3A1%5D%3A80%20%C3%A9");
    }

    #[test]
    fn https_without_authorities_is_refused_before_anything_is_sent() {
        let client = AdminClient::new(None).unwrap();
        let asked = client.get::<serde_json::Value>("https://localhost:1", "stats", &[]);
        assert!(matches!(asked, Err(AdminError::NoAuthorities)));
    }
}
