//! The certificates that are trusted, and the check of a certificate that one of them has signed directly.
//!
//! rustls checks nearly all certificates. It refuses two kinds that Java takes and that are in use: certificates of X.509
//! version 1, which OpenSSL makes without an extension file, and authorities that are their own server's certificate,
//! which `openssl req -x509` makes. [`Trust::check_directly`] checks those.

use rustls::{
    CertificateError, RootCertStore,
    pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime},
};
use x509_parser::{
    certificate::X509Certificate, prelude::FromDer, revocation_list::CertificateRevocationList,
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
    authorities: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    roots: RootCertStore,
}

impl Trust {
    /// Trusts these certificates. Without lists nothing counts as revoked.
    pub fn new(
        authorities: Vec<CertificateDer<'static>>,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Trust, TrustError> {
        if authorities.is_empty() {
            return Err(TrustError::Empty);
        }
        let mut roots = RootCertStore::empty();
        for (at, authority) in authorities.iter().enumerate() {
            let damaged = |cause| TrustError::Damaged { number: at + 1, cause };
            roots.add(authority.clone()).map_err(damaged)?;
        }
        for (at, list) in lists.iter().enumerate() {
            CertificateRevocationList::from_der(list)
                .map_err(|_| TrustError::DamagedList { number: at + 1 })?;
        }
        Ok(Trust { authorities, lists, roots })
    }

    /// The trusted certificates, as rustls takes them.
    pub fn roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// The lists of revoked certificates.
    pub fn lists(&self) -> &[CertificateRevocationListDer<'static>] {
        &self.lists
    }

    /// Whether only [`Trust::check_directly`] can check this certificate.
    pub fn is_for_direct_check(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok((_, read)) = X509Certificate::from_der(leaf) else { return false };
        read.version() == X509Version::V1 || (read.is_ca() && self.is_trusted_itself(leaf))
    }

    fn is_trusted_itself(&self, leaf: &CertificateDer<'_>) -> bool {
        self.authorities.iter().any(|trusted| **trusted == **leaf)
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
        let issuers = self.authorities.iter().filter_map(|trusted| {
            let (_, trusted) = X509Certificate::from_der(trusted).ok()?;
            (trusted.subject().as_raw() == read.issuer().as_raw()).then_some(trusted)
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
