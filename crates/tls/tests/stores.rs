//! Reads the stores in `tests/data`, which keytool and OpenSSL have made: see the README there.

#![allow(clippy::unwrap_used)]

use ostler_tls::{
    KeyStore, Password, StoreError, StoreKind, is_distinguished_name, read_key_store, read_trust_store,
    subject_name,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};

const PASSWORD: &str = "changeit";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

fn key_store(name: &str, password: &str) -> Result<KeyStore, StoreError> {
    read_key_store(&data(name), StoreKind::of(&path(name), None).unwrap(), &Password::new(password))
}

fn trust_store(name: &str, password: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    read_trust_store(&data(name), StoreKind::of(&path(name), None).unwrap(), &Password::new(password))
}

fn certificate(name: &str) -> CertificateDer<'static> {
    trust_store(name, "").unwrap().remove(0)
}

/// The leaf and its authority.
fn chain() -> Vec<CertificateDer<'static>> {
    let chain = trust_store("leaf.pem", "").unwrap();
    assert_eq!(chain.len(), 2);
    assert_eq!(subject_name(&chain[0]).as_deref(), Ok("CN=server one,O=Ostler\\, Inc.,C=DE"));
    assert_eq!(chain[1], certificate("ca.pem"));
    chain
}

#[test]
fn key_and_chain_are_the_same_in_every_format() {
    let plain = key_store("leaf.pem", "").unwrap();
    assert!(matches!(plain.key, PrivateKeyDer::Pkcs8(_)));
    for name in [
        "leaf.pem",
        "leaf-pbes2.pem",
        "leaf-pbes2-3des-sha1.pem",
        "leaf-3des.pem",
        "key.jks",
        "key.p12",
        "key-java8.p12",
        "key-openssl.p12",
        "key-legacy.p12",
        "key-plain.p12",
    ] {
        let store = key_store(name, PASSWORD).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(store.chain, chain(), "{name}");
        assert_eq!(point(&store.key), point(&plain.key), "{name}");
        assert_eq!(format!("{store:?}"), "KeyStore { certificates: 2, .. }");
    }
    let unicode = key_store("key-unicode.jks", "pÄ€😀ss").unwrap();
    assert_eq!((point(&unicode.key), unicode.chain), (point(&plain.key), chain()));
}

/// The last 32 bytes of the secret number of an EC key in PKCS#8. Java and OpenSSL differ in what they write after it.
fn point(key: &PrivateKeyDer<'_>) -> Vec<u8> {
    let bytes = key.secret_der();
    // An octet string of 32 bytes comes after the version of the inner key.
    let at = bytes.windows(5).position(|part| part == [2, 1, 1, 4, 32]).unwrap();
    bytes[at + 5..at + 37].to_vec()
}

#[test]
fn keys_of_openssl_in_their_own_formats_are_read() {
    let sec1 = key_store("leaf-sec1.pem", "").unwrap();
    assert!(matches!(sec1.key, PrivateKeyDer::Sec1(_)));
    assert_eq!(sec1.chain, chain());
    assert_eq!(point(&sec1.key), point(&key_store("leaf.pem", "").unwrap().key));
    let rsa = key_store("rsa-pkcs1.pem", "").unwrap();
    assert!(matches!(rsa.key, PrivateKeyDer::Pkcs1(_)));
    assert_eq!(subject_name(&rsa.chain[0]).as_deref(), Ok("CN=rsa"));
}

#[test]
fn kind_of_content_wins_over_jks_and_pkcs12_but_not_over_pem() {
    let password = Password::new(PASSWORD);
    for (name, kind) in [("key.jks", StoreKind::Pkcs12), ("key.p12", StoreKind::Jks)] {
        assert_eq!(read_key_store(&data(name), kind, &password).unwrap().chain, chain(), "{name}");
    }
    let error = read_key_store(&data("key.jks"), StoreKind::Pem, &password).unwrap_err();
    assert_eq!(error, StoreError::OtherKind { asked: StoreKind::Pem, found: StoreKind::Jks });
    let error = read_trust_store(&data("ca.pem"), StoreKind::Pkcs12, &password).unwrap_err();
    assert_eq!(error, StoreError::OtherKind { asked: StoreKind::Pkcs12, found: StoreKind::Pem });
}

#[test]
fn trust_stores_have_their_certificates() {
    let both = [certificate("ca.pem"), certificate("other-ca.pem")];
    for name in ["trust.jks", "trust.p12"] {
        let mut trusted = trust_store(name, PASSWORD).unwrap();
        trusted.sort_by_key(|certificate| *certificate != both[0]);
        assert_eq!(trusted, both, "{name}");
    }
    assert_eq!(trust_store("bare.p12", PASSWORD), Ok(vec![certificate("ca.pem")]));
}

#[test]
fn key_stores_trust_nobody() {
    for name in ["key.jks", "key.p12", "key-openssl.p12"] {
        assert_eq!(trust_store(name, PASSWORD), Err(StoreError::NoTrustedCertificate), "{name}");
    }
}

#[test]
fn last_of_several_certificates_with_one_subject_is_trusted() {
    let pem = [data("ca.pem"), data("other-ca.pem"), data("ca-again.pem")].concat();
    let trusted = read_trust_store(&pem, StoreKind::Pem, &Password::default());
    assert_ne!(certificate("ca.pem"), certificate("ca-again.pem"));
    assert_eq!(trusted, Ok(vec![certificate("ca-again.pem"), certificate("other-ca.pem")]));
}

#[test]
fn wrong_password_is_told_from_a_missing_one_and_from_another_of_the_key() {
    for name in ["key.jks", "key.p12", "key-openssl.p12", "key-legacy.p12", "leaf-pbes2.pem", "leaf-3des.pem"]
    {
        assert_eq!(key_store(name, "other").unwrap_err(), StoreError::WrongPassword, "{name}");
        assert_eq!(key_store(name, "").unwrap_err(), StoreError::NoPassword, "{name}");
    }
    for name in ["trust.jks", "trust.p12", "bare.p12"] {
        assert_eq!(trust_store(name, "other").unwrap_err(), StoreError::WrongPassword, "{name}");
        assert_eq!(trust_store(name, "").unwrap_err(), StoreError::NoPassword, "{name}");
    }
    let error = key_store("key-other-password.jks", PASSWORD).unwrap_err();
    assert_eq!(error, StoreError::OtherKeyPassword);
}

#[test]
fn stores_that_are_not_read_say_which_command_helps() {
    let refusals = [
        key_store("leaf-scrypt.pem", PASSWORD).unwrap_err(),
        key_store("leaf-proc-type.pem", PASSWORD).unwrap_err(),
        read_trust_store(&data("store.jceks"), StoreKind::Jks, &Password::new(PASSWORD)).unwrap_err(),
        key_store("ca.pem", PASSWORD).unwrap_err(),
        key_store("trust.jks", PASSWORD).unwrap_err(),
        key_store("trust.p12", PASSWORD).unwrap_err(),
        read_trust_store(b"text", StoreKind::Pem, &Password::default()).unwrap_err(),
        read_trust_store(&data("ca.pem"), StoreKind::Jks, &Password::default()).unwrap_err(),
        read_key_store(&data("key.jks")[..300], StoreKind::Jks, &Password::default()).unwrap_err(),
        read_key_store(&data("key.p12")[..300], StoreKind::Jks, &Password::default()).unwrap_err(),
    ];
    let refusals: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    expect_test::expect_file!["refusals.txt"].assert_eq(&(refusals.join("\n") + "\n"));
}

#[test]
fn every_length_of_a_jks_store_is_compared_with_what_is_left() {
    for name in ["key.jks", "trust.jks"] {
        let whole = data(name);
        for cut in 4..whole.len() {
            let error = read_key_store(&whole[..cut], StoreKind::Jks, &Password::new(PASSWORD)).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{name} {cut}: {error}");
        }
        let longer = [&whole[..], &[0]].concat();
        let error = read_key_store(&longer, StoreKind::Jks, &Password::new(PASSWORD)).unwrap_err();
        assert!(
            matches!(error, StoreError::Damaged { offset, .. } if offset == whole.len()),
            "{name}: {error}"
        );
    }
    // The number of entries, of a chain, and the length of a key, each as large as it can be.
    for at in [8, 12, 30] {
        let mut bytes = data("key.jks");
        bytes[at..at + 4].fill(0xff);
        let error = read_key_store(&bytes, StoreKind::Jks, &Password::new(PASSWORD)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{at}: {error}");
    }
}

#[test]
fn jks_version_that_is_not_known_is_named() {
    let mut bytes = data("key.jks");
    bytes[7] = 1;
    let error = read_key_store(&bytes, StoreKind::Jks, &Password::new(PASSWORD)).unwrap_err();
    assert_eq!(error, StoreError::JksVersion { version: 1 });
}

#[test]
fn key_that_is_no_der_is_damaged() {
    for key in ["", "MAA=", "MAAA"] {
        let block = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let pem = [block.as_bytes(), &data("ca.pem")].concat();
        let store = read_key_store(&pem, StoreKind::Pem, &Password::default());
        assert_eq!(store.err(), (key != "MAA=").then_some(StoreError::BadKey), "{key}");
    }
}

#[test]
fn names_of_real_certificates_are_names_of_acls() {
    for certificate in chain() {
        assert!(is_distinguished_name(&subject_name(&certificate).unwrap()));
    }
}
