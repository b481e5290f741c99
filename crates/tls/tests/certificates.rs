//! Reads certificates and lists of revoked certificates in `tests/data`.

#![allow(clippy::unwrap_used)]

use ostler_tls::{
    Certificate, CertificateError, CrlError, Password, StoreKind, files, read_crls, read_trust_store,
};
use rustls_pki_types::CertificateDer;
use std::{
    fs::{self, File},
    io::ErrorKind,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// When `leaf.pem` was made, in seconds since 1970.
const NOT_BEFORE: i64 = 1795722397;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn der(name: &str) -> CertificateDer<'static> {
    let bytes = fs::read(path(name)).unwrap();
    read_trust_store(&bytes, StoreKind::Pem, &Password::default()).unwrap().remove(0)
}

#[test]
fn certificate_of_version_3_has_all_its_facts() {
    let facts = Certificate::read(&der("leaf.pem")).unwrap();
    let expected = Certificate {
        subject: "CN=server one,O=Ostler\\, Inc.,C=DE".to_owned(),
        common_name: Some("server one".to_owned()),
        serial: "0a1b2c3d4e5f60718293".to_owned(),
        not_before: NOT_BEFORE,
        not_after: NOT_BEFORE + 36_500 * 24 * 60 * 60,
        version: 3,
        dns_names: vec!["localhost".to_owned(), "*.example.org".to_owned()],
        ip_addresses: vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])],
    };
    assert_eq!(facts, expected);
}

#[test]
fn certificate_of_version_1_has_no_alternative_names() {
    let facts = Certificate::read(&der("ca-v1.pem")).unwrap();
    assert_eq!((facts.version, &*facts.serial), (1, "05"));
    assert!(facts.dns_names.is_empty() && facts.ip_addresses.is_empty());
}

#[test]
fn bytes_that_are_cut_or_longer_than_a_certificate_are_refused() {
    let whole = der("ca.pem").to_vec();
    let longer = [&whole[..], &[0]].concat();
    for bytes in [Vec::new(), whole[..whole.len() - 1].to_vec(), longer, fs::read(path("crl.der")).unwrap()] {
        let error = Certificate::read(&CertificateDer::from(bytes)).unwrap_err();
        assert!(matches!(error, CertificateError::Damaged { .. }), "{error}");
    }
}

#[test]
fn lists_of_revoked_certificates_are_read_from_pem_and_der() {
    let (pem, der) = (fs::read(path("crl.pem")).unwrap(), fs::read(path("crl.der")).unwrap());
    let lists = read_crls(&pem).unwrap();
    assert_eq!(lists.len(), 2);
    assert_eq!(read_crls(&der).unwrap(), lists[1..]);
    assert_eq!(read_crls(b""), Err(CrlError::Missing));
    assert_eq!(read_crls(b"text"), Err(CrlError::Missing));
    assert_eq!(read_crls(&fs::read(path("ca.pem")).unwrap()), Err(CrlError::Missing));
    assert_eq!(read_crls(&der[..der.len() - 1]), Err(CrlError::Damaged { number: 1 }));
    assert_eq!(read_crls(&[&der[..], &[0]].concat()), Err(CrlError::Damaged { number: 1 }));
    let one_damaged = [&pem[..], b"-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n"].concat();
    assert_eq!(read_crls(&one_damaged), Err(CrlError::Damaged { number: 3 }));
    assert!(matches!(read_crls(&pem[..pem.len() - 30]), Err(CrlError::Pem(_))));
}

#[test]
fn files_are_read_whole_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    assert_eq!(files::read_file(&path).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(&path, "secret\n").unwrap();
    assert_eq!(*files::read_file(&path).unwrap(), b"secret\n");
    assert!(!files::read_password_file(&path).unwrap().is_empty());
    fs::write(&path, "\n").unwrap();
    assert!(files::read_password_file(&path).unwrap().is_empty());
    fs::write(&path, [0xff]).unwrap();
    assert_eq!(files::read_password_file(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    fs::write(&path, vec![b'a'; 70_000]).unwrap();
    assert_eq!(files::read_password_file(&path).unwrap_err().kind(), ErrorKind::FileTooLarge);
    File::create(&path).unwrap().set_len(files::FILE_BYTES_MAX + 1).unwrap();
    assert_eq!(files::read_file(&path).unwrap_err().kind(), ErrorKind::FileTooLarge);
}
