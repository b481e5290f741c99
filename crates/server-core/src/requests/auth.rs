//! Authentication: the identities that an auth request proves, and the ids that ACLs may have.

use crate::config::CoreConfig;
use alloc::{format, string::String, string::ToString, vec::Vec};
use base64::{Engine, engine::general_purpose::STANDARD};
use core::net::IpAddr;
use ostler_proto::{acl::Id, distinguished_name::is_distinguished_name};
use ostler_tree::networks::Network;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// The hash in ids of the scheme `digest` (`DigestAuthenticationProvider.digestAlg`). Nothing in an id says which it is:
/// all servers of an ensemble, and all clients that make ids themselves, have to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DigestAlgorithm {
    /// Upstream's default. Clients that make ids themselves use it.
    #[default]
    Sha1,
    /// SHA-224
    Sha224,
    /// SHA-256
    Sha256,
    /// SHA-384
    Sha384,
    /// SHA-512
    Sha512,
    /// SHA3-224
    Sha3_224,
    /// SHA3-256
    Sha3_256,
    /// SHA3-384
    Sha3_384,
    /// SHA3-512
    Sha3_512,
}

impl DigestAlgorithm {
    /// As in Java's `MessageDigest`, whatever the case of the letters. `None` for any other.
    pub fn from_name(name: &str) -> Option<DigestAlgorithm> {
        Some(match &*name.to_ascii_uppercase() {
            "SHA1" | "SHA-1" | "SHA" => DigestAlgorithm::Sha1,
            "SHA-224" => DigestAlgorithm::Sha224,
            "SHA-256" => DigestAlgorithm::Sha256,
            "SHA-384" => DigestAlgorithm::Sha384,
            "SHA-512" => DigestAlgorithm::Sha512,
            "SHA3-224" => DigestAlgorithm::Sha3_224,
            "SHA3-256" => DigestAlgorithm::Sha3_256,
            "SHA3-384" => DigestAlgorithm::Sha3_384,
            "SHA3-512" => DigestAlgorithm::Sha3_512,
            _ => return None,
        })
    }

    /// The id of an authenticated user: the hash is over "user:password" as a whole.
    pub fn id(self, auth: &str) -> String {
        let user = auth.split(':').next().unwrap_or_default();
        let auth = auth.as_bytes();
        let hash = match self {
            DigestAlgorithm::Sha1 => STANDARD.encode(Sha1::digest(auth)),
            DigestAlgorithm::Sha224 => STANDARD.encode(Sha224::digest(auth)),
            DigestAlgorithm::Sha256 => STANDARD.encode(Sha256::digest(auth)),
            DigestAlgorithm::Sha384 => STANDARD.encode(Sha384::digest(auth)),
            DigestAlgorithm::Sha512 => STANDARD.encode(Sha512::digest(auth)),
            DigestAlgorithm::Sha3_224 => STANDARD.encode(Sha3_224::digest(auth)),
            DigestAlgorithm::Sha3_256 => STANDARD.encode(Sha3_256::digest(auth)),
            DigestAlgorithm::Sha3_384 => STANDARD.encode(Sha3_384::digest(auth)),
            DigestAlgorithm::Sha3_512 => STANDARD.encode(Sha3_512::digest(auth)),
        };
        format!("{user}:{hash}")
    }
}

/// The id of an authenticated digest user with upstream's default hash.
pub fn digest_id(auth: &str) -> String {
    DigestAlgorithm::Sha1.id(auth)
}

/// The identities that an auth request proves; `None` if it fails.
pub fn authenticate(
    config: &CoreConfig,
    address: IpAddr,
    scheme: Option<&str>,
    auth: Option<&[u8]>,
) -> Option<Vec<Id>> {
    match scheme? {
        "digest" if config.digest_auth => {
            let id = config.digest_algorithm.id(&String::from_utf8_lossy(auth?));
            let mut ids = Vec::new();
            if config.super_digest.as_deref() == Some(&*id) {
                ids.push(Id::new("super", ""));
            }
            ids.push(Id::new("digest", id));
            Some(ids)
        }
        "ip" => Some(Vec::from([Id::new("ip", address.to_canonical().to_string())])),
        _ => None,
    }
}

/// Whether a client that names its ensemble means this one; `None` if there is nothing to compare.
pub fn is_this_ensemble(names: &[String], auth: Option<&[u8]>) -> Option<bool> {
    let named = auth.filter(|named| !named.is_empty() && !names.is_empty())?;
    Some(names.iter().any(|name| name.as_bytes() == named))
}

/// Whether upstream can read the id as a name of Kerberos: a text without `@`, or with a realm behind the only one.
fn is_sasl_id(id: &str) -> bool {
    match id.split_once('@') {
        None => true,
        Some((name, realm)) => name.split('/').count() <= 2 && !realm.contains(['@', '/']),
    }
}

/// Whether an identity is proven, so that `auth` in an ACL stands for it; an address is not.
pub fn is_proven(id: &Id) -> bool {
    matches!(&*id.scheme, "digest" | "x509" | "sasl")
}

/// The user name that `whoAmI` shows for an identity.
pub fn user_name(id: &Id) -> String {
    match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default().into(),
        "super" => String::new(),
        _ => id.id.clone(),
    }
}

/// Whether an ACL entry's scheme is known and its id well formed (`AuthenticationProvider.isValid`).
pub fn is_valid_id(config: &CoreConfig, scheme: &str, id: &str) -> bool {
    match scheme {
        // Java's split drops empty parts at the end.
        "digest" if config.digest_auth => {
            id.trim_end_matches(':').split(':').count() == 2 && id.contains(':')
        }
        "ip" => Network::parse(id).is_some(),
        "x509" => config.x509_auth && is_distinguished_name(id),
        "sasl" => config.sasl_acls && is_sasl_id(id),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_java() {
        assert_eq!(digest_id("bob:pw"), "bob:ikIaKsbtGweaHnb/jKn7OHqbunM=");
        assert_eq!(digest_id("super:admin"), "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
    }

    #[test]
    fn schemes_that_are_not_there_have_no_ids() {
        let without = CoreConfig::default();
        let with = CoreConfig { x509_auth: true, sasl_acls: true, ..CoreConfig::default() };
        for (scheme, id, valid) in [
            ("x509", "CN=app,O=Example", true),
            ("x509", "", true),
            ("x509", "not a name", false),
            ("sasl", "", true),
            ("sasl", "bob", true),
            ("sasl", "a/b/c", true),
            ("sasl", "client/host@REALM", true),
            ("sasl", "a@b@c", false),
        ] {
            assert_eq!(is_valid_id(&with, scheme, id), valid, "{scheme}:{id}");
            assert!(!is_valid_id(&without, scheme, id), "{scheme}:{id}");
        }
    }

    #[test]
    fn ids_are_valid_as_upstream_decides() {
        let config = CoreConfig::default();
        for (scheme, id, valid) in [
            ("digest", "a:b", true),
            ("digest", ":b", true),
            ("digest", "a:", false),
            ("digest", "a:b:c", false),
            ("digest", "a:b:", true),
            ("digest", "a", false),
            ("ip", "127.0.0.1", true),
            ("ip", "10.0.0.0/8", true),
            ("ip", "127.0.0.01", true),
            ("ip", "1.2.3.256", false),
            ("ip", "1.2.3.4.5", false),
            ("ip", "10.0.0.0/33", false),
            ("ip", "::1/128", true),
            ("ip", "host", false),
            ("ip", "1.2.3", false),
            ("world", "anyone", false),
            ("nope", "a:b", false),
        ] {
            assert_eq!(is_valid_id(&config, scheme, id), valid, "{scheme}:{id}");
        }
    }
}
