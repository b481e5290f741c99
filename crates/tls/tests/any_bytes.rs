//! No bytes make a reader panic: stores that are changed, cut or mixed give a value or an error.

#![allow(clippy::unwrap_used)]

use ostler_tls::{
    Certificate, Password, StoreKind, is_distinguished_name, read_crls, read_key_store, read_trust_store,
    subject_name,
};
use proptest::{collection::vec, prelude::*};
use rustls_pki_types::CertificateDer;
use std::{fs, path::Path};

fn all_files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn read_all_ways(bytes: &[u8]) {
    let password = Password::new("changeit");
    for kind in StoreKind::ALL {
        if let Ok(store) = read_key_store(bytes, kind, &password) {
            assert!(!store.chain.is_empty());
        }
        if let Ok(trusted) = read_trust_store(bytes, kind, &password) {
            assert!(!trusted.is_empty());
        }
    }
    let _lists = read_crls(bytes);
    let certificate = CertificateDer::from(bytes);
    if Certificate::read(&certificate).is_ok() {
        assert!(subject_name(&certificate).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn changed_and_cut_stores_give_a_value_or_an_error(
        file in 0..all_files().len(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = all_files().swap_remove(file);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all_ways(&bytes);
    }

    #[test]
    fn changed_certificates_give_facts_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let password = Password::default();
        let pem = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/leaf.pem")).unwrap();
        let mut bytes = read_trust_store(&pem, StoreKind::Pem, &password).unwrap().remove(0).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _facts = Certificate::read(&CertificateDer::from(&*bytes));
        let _name = subject_name(&CertificateDer::from(&*bytes));
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in vec(any::<u8>(), 0..64), text in any::<String>()) {
        read_all_ways(&bytes);
        read_all_ways(&[&[0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2], &bytes[..]].concat());
        read_all_ways(text.as_bytes());
        let _is_name = is_distinguished_name(&text);
    }

    #[test]
    fn any_mix_of_the_letters_of_names_is_judged(text in "[CNOU=,;+\\\\\"#<> 0-9a\n\u{e4}]{0,40}") {
        let _is_name = is_distinguished_name(&text);
    }
}
