//! The facts of a certificate that logs and checks need.

use crate::principal::{NameError, common_name, subject_name};
use rustls_pki_types::CertificateDer;
use std::{fmt::Write, net::IpAddr};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Facts of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The subject: see [`subject_name`].
    pub subject: String,
    /// The last common name of the subject, which is the most specific one.
    pub common_name: Option<String>,
    /// The serial number in hexadecimal digits, two for each byte, without zero bytes at its start.
    pub serial: String,
    /// The first second in which the certificate is valid, in seconds since 1970. It may be negative.
    pub not_before: i64,
    /// The last second in which the certificate is valid, in seconds since 1970.
    pub not_after: i64,
    /// The version: 1, 2 or 3. Only version 3 has alternative names and other extensions.
    pub version: u32,
    /// The DNS names among the subject's alternative names, as they stand there: with `*`, in any case.
    pub dns_names: Vec<String>,
    /// The addresses among the subject's alternative names.
    pub ip_addresses: Vec<IpAddr>,
}

/// The reason for which a certificate cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The bytes are not a certificate.
    #[error("this is not an X.509 certificate in DER ({reason}): make the certificate anew")]
    Damaged {
        /// The reason, in the words of the reader.
        reason: String,
    },
    /// The subject is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Certificate {
    /// Reads the facts of a certificate. Its signature and its dates are not judged.
    ///
    /// # Errors
    /// The bytes are not a certificate, have more after it, or the alternative names are damaged or there twice.
    pub fn read(der: &CertificateDer<'_>) -> Result<Certificate, CertificateError> {
        let damaged = |reason: String| CertificateError::Damaged { reason };
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|error| damaged(error.to_string()))?;
        if !rest.is_empty() {
            return Err(damaged("there are bytes after its end".to_owned()));
        }
        let mut certificate = Certificate {
            subject: subject_name(der)?,
            common_name: common_name(der),
            serial: hexadecimal(parsed.raw_serial()),
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            version: parsed.version().0.saturating_add(1),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
        };
        let names = parsed.subject_alternative_name().map_err(|error| damaged(error.to_string()))?;
        for name in names.into_iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(name) => certificate.dns_names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => certificate.ip_addresses.extend(address(bytes)),
                _ => {}
            }
        }
        Ok(certificate)
    }
}

/// Whether a certificate is for this public key (SubjectPublicKeyInfo in DER).
pub fn has_public_key(certificate: &CertificateDer<'_>, public_key: &[u8]) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, read)| read.public_key().raw == public_key)
}

fn hexadecimal(number: &[u8]) -> String {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len().saturating_sub(1));
    let mut text = String::new();
    for byte in &number[start..] {
        write!(text, "{byte:02x}").expect("a String takes all text");
    }
    text
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
