//! The certificates that are trusted, and the check of a certificate that one of them has signed directly.
//!
//! rustls checks nearly all certificates. It refuses two kinds that Java takes and that are in use: certificates of X.509
//! version 1, which OpenSSL makes without an extension file, and authorities that are their own server's certificate,
//! which `openssl req -x509` makes. [`Trust::check_directly`] checks those.
//!
//! A trust store may also have certificates that are no authorities, as ZooKeeper's guide advises for servers that sign
//! their own. Each is trusted as itself, and what its key has signed is not: otherwise the owner of one such certificate
//! could make one for any other name.

use rustls::{
    CertificateError, DistinguishedName, RootCertStore,
    pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime},
};
use x509_parser::{
    certificate::{BasicExtension, X509Certificate},
    extensions::KeyUsage,
    prelude::FromDer,
    revocation_list::CertificateRevocationList,
    x509::X509Version,
};

/// Why certificates cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There are none.
    #[error("there is no certificate in it")]
    Empty,
    /// A certificate cannot be read.
    #[error("certificate {number} of it is damaged: {cause}")]
    Damaged {
        /// Its place, counted from 1.
        number: usize,
        /// The problem, as rustls has it.
        cause: rustls::Error,
    },
    /// A revocation list cannot be read.
    #[error("revocation list {number} of it is damaged")]
    DamagedList {
        /// Its place, counted from 1.
        number: usize,
    },
}

/// Trusted certificates, and the lists of certificates that are revoked.
#[derive(Debug)]
pub struct Trust {
    trusted: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    /// Those that may sign others.
    authorities: RootCertStore,
    subjects: Vec<DistinguishedName>,
}

impl Trust {
    /// Trusts these certificates. Without lists nothing counts as revoked.
    pub fn new(
        trusted: Vec<CertificateDer<'static>>,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Trust, TrustError> {
        if trusted.is_empty() {
            return Err(TrustError::Empty);
        }
        let (mut all, mut authorities) = (RootCertStore::empty(), RootCertStore::empty());
        for (at, certificate) in trusted.iter().enumerate() {
            let damaged = |cause| TrustError::Damaged { number: at + 1, cause };
            all.add(certificate.clone()).map_err(damaged)?;
            if X509Certificate::from_der(certificate).is_ok_and(|(_, read)| is_authority(&read)) {
                authorities.add(certificate.clone()).map_err(damaged)?;
            }
        }
        for (at, list) in lists.iter().enumerate() {
            CertificateRevocationList::from_der(list)
                .map_err(|_| TrustError::DamagedList { number: at + 1 })?;
        }
        Ok(Trust { trusted, lists, authorities, subjects: all.subjects() })
    }

    /// The trusted certificates that may sign others. There may be none.
    pub fn authorities(&self) -> &RootCertStore {
        &self.authorities
    }

    /// The subjects of all trusted certificates, by which a client chooses its own certificate.
    pub fn subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    /// The lists of revoked certificates.
    pub fn lists(&self) -> &[CertificateRevocationListDer<'static>] {
        &self.lists
    }

    /// Whether only [`Trust::check_directly`] can check this certificate.
    pub fn is_for_direct_check(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok((_, read)) = X509Certificate::from_der(leaf) else { return false };
        read.version() == X509Version::V1 || self.is_trusted_itself(leaf)
    }

    fn is_trusted_itself(&self, leaf: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|trusted| **trusted == **leaf)
    }

    /// Checks that a trusted certificate has signed this one, or is this one, and that it is in its time and not revoked.
    pub fn check_directly(&self, leaf: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
        let (_, read) = X509Certificate::from_der(leaf).map_err(|_| CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < read.validity().not_before.timestamp() {
            return Err(CertificateError::NotValidYet);
        }
        if now > read.validity().not_after.timestamp() {
            return Err(CertificateError::Expired);
        }
        if self.is_trusted_itself(leaf) {
            return Ok(());
        }
        let issuers = self.trusted.iter().filter_map(|trusted| {
            let (_, trusted) = X509Certificate::from_der(trusted).ok()?;
            let is_issuer = trusted.subject().as_raw() == read.issuer().as_raw();
            (is_issuer && is_authority(&trusted)).then_some(trusted)
        });
        for issuer in issuers {
            if read.verify_signature(Some(issuer.public_key())).is_ok() {
                return self.check_revocation(&read, &issuer);
            }
        }
        Err(CertificateError::UnknownIssuer)
    }

    /// As rustls does it: if there are lists, one of them must be the issuer's.
    fn check_revocation(
        &self,
        leaf: &X509Certificate<'_>,
        issuer: &X509Certificate<'_>,
    ) -> Result<(), CertificateError> {
        let mut is_known = self.lists.is_empty();
        for list in &self.lists {
            let Ok((_, list)) = CertificateRevocationList::from_der(list) else { continue };
            if list.issuer().as_raw() != issuer.subject().as_raw()
                || list.verify_signature(issuer.public_key()).is_err()
            {
                continue;
            }
            is_known = true;
            if list.iter_revoked_certificates().any(|revoked| revoked.raw_serial() == leaf.raw_serial()) {
                return Err(CertificateError::Revoked);
            }
        }
        if is_known { Ok(()) } else { Err(CertificateError::UnknownRevocationStatus) }
    }
}

/// Whether a trusted certificate may sign others: it says so, or it is of version 1, which cannot say so, and signs
/// itself, as old authorities do. Java takes every trusted certificate for an authority.
fn is_authority(certificate: &X509Certificate<'_>) -> bool {
    if certificate.version() == X509Version::V1 {
        return certificate.subject().as_raw() == certificate.issuer().as_raw();
    }
    let may_sign =
        |usage: Option<BasicExtension<&KeyUsage>>| usage.is_none_or(|usage| usage.value.key_cert_sign());
    certificate.is_ca() && certificate.key_usage().is_ok_and(may_sign)
}
