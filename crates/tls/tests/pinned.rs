//! Trusted certificates that are no authorities: each counts for itself alone.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use ostler_tls::{
    KeyStore,
    config::{ConfigError, server_config},
    settings::{ClientAuth, TlsSettings},
    trust::{Purpose, Trust},
    verify::{ClientCheck, ServerCheck},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, NameConstraints, RevokedCertParams,
    SerialNumber, SigningKey, date_time_ymd,
};
use rustls::{
    CertificateError, Error,
    client::danger::ServerCertVerifier,
    crypto::ring,
    pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime},
    server::danger::ClientCertVerifier,
};
use std::{sync::Arc, time::Duration};
use x509_parser::prelude::{FromDer, X509Certificate};

/// In 2027.
const NOW: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));

struct Party {
    params: CertificateParams,
    key: KeyPair,
    certificate: CertificateDer<'static>,
}

fn params(name: &str, adjust: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(7));
    adjust(&mut params);
    params
}

fn self_signed(name: &str, adjust: impl FnOnce(&mut CertificateParams)) -> Party {
    let (params, key) = (params(name, adjust), KeyPair::generate().unwrap());
    let certificate = params.self_signed(&key).unwrap().der().clone();
    Party { params, key, certificate }
}

fn authority(name: &str) -> Party {
    self_signed(name, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    })
}

impl Party {
    fn issue(&self, name: &str, adjust: impl FnOnce(&mut CertificateParams)) -> Party {
        let (params, key) = (params(name, adjust), KeyPair::generate().unwrap());
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
        Party { params, key, certificate }
    }

    /// The same certificate in version 1, signed by a key.
    fn in_version_1(mut self, signer: &KeyPair) -> Party {
        let (_, read) = X509Certificate::from_der(&self.certificate).unwrap();
        let algorithm = der(0x30, &der(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
        let time = |text: &str| der(0x18, text.as_bytes());
        let parts = [
            der(0x02, read.raw_serial()),
            algorithm.clone(),
            read.issuer().as_raw().to_vec(),
            der(0x30, &[time("20200101000000Z"), time("21200101000000Z")].concat()),
            read.subject().as_raw().to_vec(),
            read.public_key().raw.to_vec(),
        ];
        let signed = der(0x30, &parts.concat());
        let signature = [vec![0], signer.sign(&signed).unwrap()].concat();
        let whole = der(0x30, &[signed, algorithm, der(0x03, &signature)].concat());
        self.certificate = CertificateDer::from(whole);
        self
    }
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [head, content.to_vec()].concat()
}

fn trust(trusted: &[&Party]) -> Arc<Trust> {
    trust_with(trusted, Vec::new())
}

fn trust_with(trusted: &[&Party], lists: Vec<CertificateRevocationListDer<'static>>) -> Arc<Trust> {
    let trusted = trusted.iter().map(|party| party.certificate.clone()).collect();
    Arc::new(Trust::new(trusted, lists).unwrap())
}

/// The verdict of a server, which has to be that of a client too.
fn verdict(trust: &Arc<Trust>, leaf: &Party) -> Result<(), String> {
    let provider = Arc::new(ring::default_provider());
    let text = |error: Error| match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => other.0.to_string(),
        other => other.to_string(),
    };
    let of_server = ClientCheck::new(trust.clone(), true, &provider).unwrap();
    let of_server = of_server.verify_client_cert(&leaf.certificate, &[], NOW).map(|_| ()).map_err(text);
    let of_client = ServerCheck::new(trust.clone(), false, &provider).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let of_client =
        of_client.verify_server_cert(&leaf.certificate, &[], &name, &[], NOW).map(|_| ()).map_err(text);
    assert_eq!(of_server, of_client);
    of_server
}

#[test]
fn a_pinned_certificate_is_accepted_as_itself_and_issues_nothing() {
    let authority = authority("authority");
    let plain = self_signed("pinned", |_| {});
    let no_ca = self_signed("pinned", |params| params.is_ca = IsCa::ExplicitNoCa);
    let no_sign = self_signed("pinned", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    });
    let issued = authority.issue("pinned", |_| {});
    for pinned in [plain, no_ca, no_sign, issued] {
        let trust = trust(&[&pinned]);
        assert_eq!(verdict(&trust, &pinned), Ok(()));
        for other in [pinned.issue("other", |_| {}), pinned.issue("other", |_| {}).in_version_1(&pinned.key)]
        {
            let refusal = verdict(&trust, &other).unwrap_err();
            assert!(refusal.contains("no authority of the trust store has signed it"), "{refusal}");
        }
    }
}

#[test]
fn an_authority_beside_a_pinned_certificate_issues() {
    let (authority, pinned) = (authority("authority"), self_signed("pinned", |_| {}));
    let trust = trust(&[&pinned, &authority]);
    assert_eq!(verdict(&trust, &authority.issue("leaf", |_| {})), Ok(()));
    assert_eq!(verdict(&trust, &authority.issue("leaf", |_| {}).in_version_1(&authority.key)), Ok(()));
    assert_eq!(verdict(&trust, &pinned), Ok(()));
    assert!(verdict(&trust, &pinned.issue("leaf", |_| {})).is_err());
}

#[test]
fn of_version_1_only_a_self_issued_certificate_issues() {
    let root = self_signed("root", |_| {});
    let signer = KeyPair::try_from(root.key.serialize_der()).unwrap();
    let root = root.in_version_1(&signer);
    assert_eq!(verdict(&trust(&[&root]), &root), Ok(()));
    for leaf in [root.issue("leaf", |_| {}), root.issue("leaf", |_| {}).in_version_1(&root.key)] {
        assert_eq!(verdict(&trust(&[&root]), &leaf), Ok(()));
    }
    let pinned = root.issue("pinned", |_| {}).in_version_1(&root.key);
    let trust = trust(&[&pinned]);
    assert_eq!(verdict(&trust, &pinned), Ok(()));
    for leaf in [pinned.issue("leaf", |_| {}), pinned.issue("leaf", |_| {}).in_version_1(&pinned.key)] {
        assert!(verdict(&trust, &leaf).is_err());
    }
}

#[test]
fn a_pinned_certificate_is_refused_out_of_its_time_for_another_use_and_if_it_is_revoked() {
    let expired = self_signed("pinned", |params| params.not_after = date_time_ymd(2026, 1, 1));
    assert!(verdict(&trust(&[&expired]), &expired).unwrap_err().contains("it has expired"));
    let mail = self_signed("pinned", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
    });
    assert!(
        verdict(&trust(&[&mail]), &mail)
            .unwrap_err()
            .contains("its extendedKeyUsage does not allow this use")
    );
    let server = self_signed("pinned", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let pinned = trust(&[&server]);
    assert_eq!(pinned.check_directly(&server.certificate, Purpose::Server, NOW), Ok(()));
    let refusal = pinned.check_directly(&server.certificate, Purpose::Client, NOW);
    assert_eq!(refusal, Err(CertificateError::InvalidPurpose));
    let authority = authority("authority");
    let list = |serial: u64| {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2026, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(2126, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&Issuer::from_params(&authority.params, &authority.key)).unwrap().der().clone()
    };
    let pinned = authority.issue("pinned", |_| {});
    assert_eq!(verdict(&trust_with(&[&authority, &pinned], vec![list(8)]), &pinned), Ok(()));
    let refusal = verdict(&trust_with(&[&authority, &pinned], vec![list(7)]), &pinned).unwrap_err();
    assert!(refusal.contains("it is revoked"), "{refusal}");
}

#[test]
fn an_authority_with_limits_of_names_issues_nothing_of_version_1() {
    let limited = self_signed("limited", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let permitted_subtrees = vec![GeneralSubtree::DnsName("localhost".to_owned())];
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    });
    let trust = trust(&[&limited]);
    assert_eq!(verdict(&trust, &limited.issue("leaf", |_| {})), Ok(()));
    assert!(verdict(&trust, &limited.issue("leaf", |_| {}).in_version_1(&limited.key)).is_err());
}

#[test]
fn clients_are_asked_for_certificates_of_authorities_and_for_pinned_ones() {
    let (authority, pinned) = (authority("authority"), self_signed("pinned", |_| {}));
    let trust = trust(&[&authority, &pinned, &authority]);
    let subject =
        |party: &Party| X509Certificate::from_der(&party.certificate).unwrap().1.subject().as_raw().to_vec();
    let hints: Vec<_> = trust.hints().iter().map(|hint| hint.as_ref().to_vec()).collect();
    assert_eq!(hints, [subject(&authority), subject(&pinned)]);
}

/// The authorities of this machine, if it has any.
#[test]
fn public_authorities_are_authorities() {
    let Ok(bytes) = std::fs::read("/etc/ssl/certs/ca-certificates.crt") else { return };
    let password = ostler_tls::Password::default();
    let all = ostler_tls::read_trust_store(&bytes, ostler_tls::StoreKind::Pem, &password).unwrap();
    let count = all.len();
    assert_eq!(Trust::new(all, Vec::new()).unwrap().roots().len(), count);
}

#[test]
fn a_refused_subject_is_one_short_line() {
    let authority = authority("authority");
    let name = format!("a\nERROR \u{1b}[2J{}", "b".repeat(10_000));
    let refusal = verdict(&trust(&[&authority]), &self_signed(&name, |_| {})).unwrap_err();
    assert!(refusal.starts_with("the certificate of CN=a\\nERROR \\u{1b}[2Jbbb"), "{refusal}");
    assert!(refusal.chars().all(|c| !c.is_control()) && refusal.len() < 1000, "{refusal}");
}

#[test]
fn a_key_is_compared_with_a_certificate_of_version_1() {
    let root = self_signed("root", |_| {});
    let signer = KeyPair::try_from(root.key.serialize_der()).unwrap();
    let root = root.in_version_1(&signer);
    let settings = TlsSettings { client_auth: ClientAuth::None, ..TlsSettings::default() };
    let with_key = |key: &KeyPair| {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let own = KeyStore { chain: vec![root.certificate.clone()], key };
        server_config(&settings, &own, None).map(|_| ())
    };
    assert!(with_key(&root.key).is_ok());
    assert!(matches!(with_key(&KeyPair::generate().unwrap()), Err(ConfigError::OtherKey { .. })));
}
