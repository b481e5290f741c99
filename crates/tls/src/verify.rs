//! The checks of the other side's certificate in a handshake.

use crate::{
    log_text::log_text,
    names::CertificateNames,
    principal::subject_name,
    trust::{Purpose, Trust},
};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use std::sync::Arc;
use x509_parser::{certificate::X509Certificate, prelude::FromDer, x509::X509Version};

/// A certificate that was refused, for the log. The other side gets the alert `certificate_unknown`, as from Java.
#[derive(Debug, thiserror::Error)]
#[error("the certificate of {subject} is refused: {}", in_words(.reason))]
pub struct RefusedCertificate {
    /// The subject, as Java prints it, made safe by [`log_text`].
    pub subject: String,
    /// The reason.
    pub reason: CertificateError,
}

impl RefusedCertificate {
    fn error(certificate: &CertificateDer<'_>, reason: Error) -> Error {
        let Error::InvalidCertificate(reason) = reason else { return reason };
        let subject = subject_name(certificate)
            .map_or_else(|_| "an unreadable subject".into(), |subject| log_text(&subject));
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(RefusedCertificate {
            subject,
            reason,
        }))))
    }
}

fn in_words(reason: &CertificateError) -> String {
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired; renew it, or correct the clock of this machine".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; is the clock of this machine right?".into()
        }
        CertificateError::Revoked => "it is revoked".into(),
        CertificateError::UnknownIssuer => {
            "no authority of the trust store has signed it; add its authority to the trust store (a certificate there \
             without CA:TRUE counts for itself alone)"
                .into()
        }
        CertificateError::UnknownRevocationStatus => {
            "the revocation lists say nothing of its authority; add that authority's list".into()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its extendedKeyUsage does not allow this use; make one for clientAuth and serverAuth".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is not for the host that was called; make one that names this host".into()
        }
        // Some of these have names of the certificate.
        other => log_text(&other.to_string()),
    }
}

fn is_version_1(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, read)| read.version() == X509Version::V1)
}

/// Checks the signature of a handshake made with the key of a certificate of version 1, which rustls does not read.
fn check_signature_of_version_1(
    algorithms: &WebPkiSupportedAlgorithms,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let (_, read) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let key = read.public_key();
    let known = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let Some((_, candidates)) = known else {
        return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
    };
    let is_valid = candidates.iter().any(|algorithm| {
        algorithm.verify_signature(&key.subject_public_key.data, message, signed.signature()).is_ok()
    });
    if is_valid {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(CertificateError::BadSignature.into())
    }
}

/// The signature schemes that TLS 1.3 allows.
fn is_for_tls13(scheme: SignatureScheme) -> bool {
    !matches!(
        scheme,
        SignatureScheme::RSA_PKCS1_SHA1
            | SignatureScheme::ECDSA_SHA1_Legacy
            | SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512
    )
}

/// The signatures of both kinds of check.
#[derive(Debug, Clone, Copy)]
struct Signatures(WebPkiSupportedAlgorithms);

impl Signatures {
    fn tls12(
        self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_version_1(certificate) {
            return check_signature_of_version_1(&self.0, message, certificate, signed);
        }
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn tls13(
        self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_version_1(certificate) {
            if !is_for_tls13(signed.scheme) {
                return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
            }
            return check_signature_of_version_1(&self.0, message, certificate, signed);
        }
        verify_tls13_signature(message, certificate, signed, &self.0)
    }
}

/// Checks the certificates of those that connect to a server.
#[derive(Debug)]
pub struct ClientCheck {
    /// `None` if no trusted certificate is an authority.
    webpki: Option<Arc<dyn ClientCertVerifier>>,
    trust: Arc<Trust>,
    is_needed: bool,
    signatures: Signatures,
}

impl ClientCheck {
    /// If `is_needed`, a client without a certificate is refused. A certificate that is shown is always checked.
    pub fn new(
        trust: Arc<Trust>,
        is_needed: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<ClientCheck, VerifierBuilderError> {
        let webpki = match trust.roots() {
            roots if roots.is_empty() => None,
            roots => {
                let roots = Arc::new(roots.clone());
                let builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                Some(builder.with_crls(trust.lists().iter().cloned()).build()?)
            }
        };
        let signatures = Signatures(provider.signature_verification_algorithms);
        Ok(ClientCheck { webpki, trust, is_needed, signatures })
    }
}

impl ClientCertVerifier for ClientCheck {
    fn client_auth_mandatory(&self) -> bool {
        self.is_needed
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.trust.hints()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let checked = if self.trust.is_for_direct_check(leaf) {
            let checked = self.trust.check_directly(leaf, Purpose::Client, now);
            checked.map(|()| ClientCertVerified::assertion()).map_err(Error::InvalidCertificate)
        } else {
            match &self.webpki {
                Some(webpki) => webpki.verify_client_cert(leaf, intermediates, now),
                None => Err(CertificateError::UnknownIssuer.into()),
            }
        };
        checked.map_err(|reason| RefusedCertificate::error(leaf, reason))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.0.supported_schemes()
    }
}

/// Checks the certificate of a server that is called.
#[derive(Debug)]
pub struct ServerCheck {
    /// `None` if no trusted certificate is an authority.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    trust: Arc<Trust>,
    checks_name: bool,
    signatures: Signatures,
}

impl ServerCheck {
    /// If `checks_name`, the certificate must be for the host that is called.
    pub fn new(
        trust: Arc<Trust>,
        checks_name: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<ServerCheck, VerifierBuilderError> {
        let webpki = match trust.roots() {
            roots if roots.is_empty() => None,
            roots => {
                let roots = Arc::new(roots.clone());
                let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
                Some(builder.with_crls(trust.lists().iter().cloned()).build()?)
            }
        };
        let signatures = Signatures(provider.signature_verification_algorithms);
        Ok(ServerCheck { webpki, trust, checks_name, signatures })
    }

    fn check_name(&self, leaf: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        if !self.checks_name || CertificateNames::of(leaf).cover(&name.to_str()) {
            return Ok(());
        }
        Err(CertificateError::NotValidForName.into())
    }

    fn check(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.trust.is_for_direct_check(leaf) {
            self.trust.check_directly(leaf, Purpose::Server, now)?;
            return self.check_name(leaf, name);
        }
        let Some(webpki) = &self.webpki else { return Err(CertificateError::UnknownIssuer.into()) };
        match webpki.verify_server_cert(leaf, intermediates, name, &[], now) {
            Ok(_) => Ok(()),
            // rustls checks the name last, and does not look at the common name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => self.check_name(leaf, name),
            Err(error) => Err(error),
        }
    }
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.check(leaf, intermediates, name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(reason) => Err(RefusedCertificate::error(leaf, reason)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.0.supported_schemes()
    }
}
