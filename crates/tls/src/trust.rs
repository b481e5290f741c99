//! The certificates that are trusted, and the check of a certificate that one of them has signed directly.
//!
//! rustls checks the certificates that authorities have issued. It refuses two kinds that Java takes and that are in use:
//! certificates of X.509 version 1, which OpenSSL makes without an extension file, and authorities that are their own
//! server's certificate, which `openssl req -x509` makes. It has no notion of a pinned certificate either: one that is
//! trusted as itself. [`Trust::check_directly`] checks all those.

use crate::der::{DerReader, SEQUENCE};
use rustls::{
    CertificateError, DistinguishedName, RootCertStore,
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

/// The use of a certificate in a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It shows who a client is.
    Client,
    /// It shows who a server is.
    Server,
}

/// Trusted certificates, and the lists of certificates that are revoked.
///
/// A trusted certificate that is no authority counts for itself alone: who has its key cannot issue certificates for
/// others. See `is_authority`.
#[derive(Debug)]
pub struct Trust {
    trusted: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    /// The authorities among the trusted certificates.
    roots: RootCertStore,
    hints: Vec<DistinguishedName>,
}

/// Whether a trusted certificate may issue others.
///
/// Java lets every trusted certificate issue. There the holder of one pinned key can pass for any other server or client,
/// so here only an authority may:
///
/// - A certificate with extensions says it itself, by basicConstraints CA:TRUE. If it has a keyUsage, keyCertSign must be
///   in it. keytool's self-signed certificates have no basicConstraints, and are pinned certificates.
/// - A certificate of version 1 cannot say it. A self-issued one may issue, as in Java, because authorities of this kind
///   are in use: `openssl x509 -req -signkey` makes them. A certificate of version 1 that another one has issued may not.
fn is_authority(certificate: &X509Certificate<'_>) -> bool {
    let may_sign = match certificate.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    let is_issuer = match certificate.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        Ok(None) => {
            certificate.version() == X509Version::V1
                && certificate.subject().as_raw() == certificate.issuer().as_raw()
        }
        Err(_) => false,
    };
    may_sign && is_issuer
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
        let (mut roots, mut hints) = (RootCertStore::empty(), Vec::new());
        for (at, certificate) in trusted.iter().enumerate() {
            let damaged = |cause| TrustError::Damaged { number: at + 1, cause };
            let (_, read) = X509Certificate::from_der(certificate)
                .map_err(|_| damaged(CertificateError::BadEncoding.into()))?;
            let hint = if is_authority(&read) {
                roots.add(certificate.clone()).map_err(damaged)?;
                read.subject()
            } else {
                // Java's clients choose a certificate by its issuer.
                read.issuer()
            };
            let hint = DerReader::new(hint.as_raw()).content_of(SEQUENCE).map(DistinguishedName::in_sequence);
            let is_known = |hint: &DistinguishedName| {
                hints.iter().any(|known: &DistinguishedName| known.as_ref() == hint.as_ref())
            };
            let hint = hint.filter(|hint| !is_known(hint));
            hints.extend(hint);
        }
        for (at, list) in lists.iter().enumerate() {
            CertificateRevocationList::from_der(list)
                .map_err(|_| TrustError::DamagedList { number: at + 1 })?;
        }
        Ok(Trust { trusted, lists, roots, hints })
    }

    /// The authorities among the trusted certificates, as rustls takes them. There may be none.
    pub fn roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// The lists of revoked certificates.
    pub fn lists(&self) -> &[CertificateRevocationListDer<'static>] {
        &self.lists
    }

    /// The names of issuers whose certificates can be accepted. Clients choose their certificate by them.
    pub fn hints(&self) -> &[DistinguishedName] {
        &self.hints
    }

    /// Whether only [`Trust::check_directly`] can check this certificate.
    pub fn is_for_direct_check(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok((_, read)) = X509Certificate::from_der(leaf) else { return false };
        read.version() == X509Version::V1 || self.is_trusted_itself(leaf)
    }

    fn is_trusted_itself(&self, leaf: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|trusted| **trusted == **leaf)
    }

    /// Checks that a trusted authority has signed this certificate, or that it is trusted itself, and that it is in its
    /// time, for this use and not revoked.
    pub fn check_directly(
        &self,
        leaf: &CertificateDer<'_>,
        purpose: Purpose,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let (_, read) = X509Certificate::from_der(leaf).map_err(|_| CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < read.validity().not_before.timestamp() {
            return Err(CertificateError::NotValidYet);
        }
        if now > read.validity().not_after.timestamp() {
            return Err(CertificateError::Expired);
        }
        if !is_for(&read, purpose)? {
            return Err(CertificateError::InvalidPurpose);
        }
        let is_trusted_itself = self.is_trusted_itself(leaf);
        for trusted in &self.trusted {
            let Ok((_, issuer)) = X509Certificate::from_der(trusted) else { continue };
            if issuer.subject().as_raw() != read.issuer().as_raw()
                || !is_authority(&issuer)
                || !has_signed(&issuer, &read)
            {
                continue;
            }
            match self.is_revoked(&read, &issuer) {
                Some(true) => return Err(CertificateError::Revoked),
                _ if is_trusted_itself => {}
                // A certificate of version 1 has no alternative names by which the authority's limits are checked.
                _ if !matches!(issuer.name_constraints(), Ok(None)) => {
                    return Err(CertificateError::UnknownIssuer);
                }
                Some(false) => return Ok(()),
                // As rustls does it: if there are lists, one of them must be the issuer's.
                None if self.lists.is_empty() => return Ok(()),
                None => return Err(CertificateError::UnknownRevocationStatus),
            }
        }
        if is_trusted_itself { Ok(()) } else { Err(CertificateError::UnknownIssuer) }
    }

    /// Whether an issuer's list has a certificate; `None` if there is no list of that issuer.
    fn is_revoked(&self, leaf: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> Option<bool> {
        let mut is_known = false;
        for list in &self.lists {
            let Ok((_, list)) = CertificateRevocationList::from_der(list) else { continue };
            if list.issuer().as_raw() != issuer.subject().as_raw() || !has_signed_list(issuer, &list) {
                continue;
            }
            is_known = true;
            if list.iter_revoked_certificates().any(|revoked| revoked.raw_serial() == leaf.raw_serial()) {
                return Some(true);
            }
        }
        is_known.then_some(false)
    }
}

#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
fn has_signed(issuer: &X509Certificate<'_>, certificate: &X509Certificate<'_>) -> bool {
    certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
fn has_signed_list(issuer: &X509Certificate<'_>, list: &CertificateRevocationList<'_>) -> bool {
    list.verify_signature(issuer.public_key()).is_ok()
}

/// A build without cryptography of its own cannot check the signatures that rustls does not check.
#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn has_signed(_: &X509Certificate<'_>, _: &X509Certificate<'_>) -> bool {
    false
}

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn has_signed_list(_: &X509Certificate<'_>, _: &CertificateRevocationList<'_>) -> bool {
    false
}

/// Whether a certificate is for a use. One without extendedKeyUsage is for all.
fn is_for(certificate: &X509Certificate<'_>, purpose: Purpose) -> Result<bool, CertificateError> {
    let usage = certificate.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    Ok(usage.is_none_or(|usage| {
        let named = match purpose {
            Purpose::Client => usage.value.client_auth,
            Purpose::Server => usage.value.server_auth,
        };
        usage.value.any || named
    }))
}
