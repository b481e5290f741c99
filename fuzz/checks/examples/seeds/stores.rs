//! Seeds of key stores, trust stores, certificates, lists of revoked certificates, and names, from the files that
//! keytool and OpenSSL have made.

use crate::Seeds;
use ostler_fuzz_checks::stores::Content;
use ostler_tls::{Password, StoreKind, read_trust_store};
use std::{fs, io, path::Path};

const CHECKSUM_BYTES: usize = 20;
const NAME: &str = r#"CN=" a,b" + 2.5.4.5=#1303313233; o=\c3\b6\,\\,OID.2.5.4.10= x"#;

pub(crate) fn all(seeds: &Seeds, data: &Path) -> io::Result<()> {
    let put = |name: &str, content: usize, bytes: &[u8]| {
        seeds.put("stores", name, &[&[content as u8], bytes].concat())
    };
    for (number, content) in Content::ALL.iter().enumerate() {
        let files: &[&str] = match content {
            Content::KeyStore(StoreKind::Jks) => &["key.jks"],
            Content::KeyStore(StoreKind::Pem) => &["leaf-pbes2.pem", "leaf-3des.pem", "leaf-sec1.pem"],
            Content::KeyStore(StoreKind::Pkcs12) => &["key.p12", "key-legacy.p12", "key-plain.p12"],
            Content::TrustStore(StoreKind::Jks) => &["trust.jks"],
            Content::TrustStore(StoreKind::Pem) => &["ca.pem"],
            Content::TrustStore(StoreKind::Pkcs12) => &["trust.p12", "bare.p12"],
            Content::Lists => &["crl.pem", "crl.der"],
            Content::UnsealedJks | Content::Certificate | Content::Name => &[],
        };
        for file in files {
            put(file, number, &fs::read(data.join(file))?)?;
        }
        match content {
            Content::UnsealedJks => {
                let sealed = fs::read(data.join("key.jks"))?;
                put("unsealed.jks", number, &sealed[..sealed.len() - CHECKSUM_BYTES])?;
            }
            Content::Certificate => {
                let pem = fs::read(data.join("leaf.pem"))?;
                let chain =
                    read_trust_store(&pem, StoreKind::Pem, &Password::default()).map_err(io::Error::other)?;
                put("certificate", number, &chain[0])?;
            }
            Content::Name => put("name", number, NAME.as_bytes())?,
            _ => {}
        }
    }
    Ok(())
}
