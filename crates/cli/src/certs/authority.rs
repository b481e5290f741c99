//! The authority, and what it issues.

use super::CertsError;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, string::Ia5String,
};
use rustls_pki_types::pem;
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

/// Clocks of machines differ: a certificate is valid from this time before it was made.
const EARLIER: Duration = Duration::hours(1);

/// An authority with its key.
pub(super) struct Authority {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// A certificate with its key, in PEM.
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// For whom a certificate is.
pub(super) struct Subject {
    name: String,
    /// Empty for a client.
    hosts: Vec<SanType>,
}

impl Subject {
    pub(super) fn server(name: &str, hosts: &[String]) -> Result<Subject, CertsError> {
        let hosts = hosts.iter().map(|host| san(host)).collect::<Result<_, _>>()?;
        Ok(Subject { name: checked(name)?, hosts })
    }

    pub(super) fn client(name: &str) -> Result<Subject, CertsError> {
        Ok(Subject { name: checked(name)?, hosts: Vec::new() })
    }

    pub(super) fn file_name(&self) -> String {
        let kind = if self.hosts.is_empty() { "client" } else { "server" };
        format!("{kind}-{}.pem", self.name)
    }
}

fn checked(name: &str) -> Result<String, CertsError> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_good) {
        return Err(CertsError::BadName(name.into()));
    }
    Ok(name.into())
}

fn san(host: &str) -> Result<SanType, CertsError> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == ':' || c == '/') => {
            Err(CertsError::BadHost(host.into()))
        }
        Err(_) => {
            let name = Ia5String::try_from(host).map_err(|_| CertsError::BadHost(host.into()))?;
            Ok(SanType::DnsName(name))
        }
    }
}

fn params(name: &str, days: u32) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = now - EARLIER;
    params.not_after = now + Duration::days(days.into());
    params
}

impl Authority {
    /// Makes a new one.
    pub(super) fn make(name: &str, days: u32) -> Result<Authority, CertsError> {
        let mut params = params(name, days);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Authority { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The name of the authority.
    pub(super) fn name(&self) -> String {
        let pem = pem::PemObject::from_pem_slice(self.certificate.as_bytes());
        let subject = pem.ok().and_then(|certificate| ostler_tls::subject_name(&certificate).ok());
        subject.map_or_else(
            || "Ostler ensemble authority".into(),
            |subject| subject.strip_prefix("CN=").unwrap_or(&subject).to_owned(),
        )
    }

    /// Issues a certificate. A server's is good in both directions: it also calls other servers.
    pub(super) fn issue(&self, subject: &Subject, days: u32) -> Result<Issued, CertsError> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let mut params = params(&subject.name, days);
        params.subject_alt_names.clone_from(&subject.hosts);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !subject.hosts.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Whether a private key in PEM is that of the first certificate in PEM.
pub(super) fn is_key_of(key: &str, certificate: &str) -> bool {
    let certificate = pem::PemObject::from_pem_slice(certificate.as_bytes());
    let (Ok(key), Ok(certificate)) = (KeyPair::from_pem(key), certificate) else { return false };
    ostler_tls::has_public_key(&certificate, &key.subject_public_key_info())
}

/// The first certificate of several, in PEM.
pub(super) fn first_certificate(pem: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----";
    pem.find(END).map_or(pem, |at| &pem[..at + END.len()])
}
