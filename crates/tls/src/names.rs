//! The host names and addresses that a certificate is for (RFC 6125, RFC 2818).

use crate::log_text::log_text;
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, prelude::FromDer};

/// The kind of other name that is a service of a host (RFC 4985).
const SERVICE: &str = "1.3.6.1.5.5.7.8.7";

/// The names of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// DNS names of its subjectAltName, in lower case. One may begin with `*.`.
    pub dns: Vec<String>,
    /// IP addresses of its subjectAltName.
    pub addresses: Vec<IpAddr>,
    /// The last common name of its subject, which counts for hosts if no alternative name says what the certificate is
    /// for: see [`CertificateNames::of`].
    pub common_name: Option<String>,
}

impl CertificateNames {
    /// Reads the names. A certificate that cannot be read has none.
    ///
    /// The common name is left out if the subjectAltName has a DNS name, a URI or a service (RFC 6125, 6.4.4), or cannot
    /// be read: an unreadable name may be the one that counts. Addresses alone leave the common name in force for host
    /// names, as in Java.
    pub fn of(certificate: &CertificateDer<'_>) -> CertificateNames {
        let Ok((_, read)) = X509Certificate::from_der(certificate) else {
            return CertificateNames::default();
        };
        let common = read.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
        let mut names =
            CertificateNames { common_name: common.map(str::to_lowercase), ..CertificateNames::default() };
        let Ok(alternative) = read.subject_alternative_name() else {
            return CertificateNames::default();
        };
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(name) => names.dns.push(name.to_lowercase()),
                GeneralName::IPAddress(bytes) => names.addresses.extend(address(bytes)),
                GeneralName::URI(_) | GeneralName::Invalid(..) => names.common_name = None,
                GeneralName::OtherName(kind, _) if kind.to_id_string() == SERVICE => names.common_name = None,
                _ => {}
            }
        }
        if !names.dns.is_empty() {
            names.common_name = None;
        }
        names
    }

    /// Whether the certificate is for a host, given as a name or an address as it stands in a configuration. Names are not
    /// looked up: who controls a zone of the DNS would decide.
    pub fn cover(&self, host: &str) -> bool {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.addresses.contains(&address.to_canonical());
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
        if self.dns.is_empty() {
            return self.common_name.as_ref().is_some_and(|name| *name == host);
        }
        self.dns.iter().any(|name| matches(name, &host))
    }

    /// The names for a message, separated by commas and made safe by [`log_text`].
    pub fn text(&self) -> String {
        log_text(&self.all())
    }

    fn all(&self) -> String {
        let addresses = self.addresses.iter().map(IpAddr::to_string);
        let all: Vec<String> = self.dns.iter().cloned().chain(addresses).collect();
        match (&all[..], &self.common_name) {
            ([], Some(name)) => name.clone(),
            ([], None) => "no name".into(),
            _ => all.join(", "),
        }
    }
}

/// `*.` stands for exactly one label.
fn matches(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(domain) => host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == domain),
        None => name == host,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::from(bytes).to_canonical()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, SanType, string::Ia5String,
    };

    fn names(dns: &[&str], addresses: &[&str], common_name: Option<&str>) -> CertificateNames {
        CertificateNames {
            dns: dns.iter().map(|name| (*name).into()).collect(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            common_name: common_name.map(str::to_owned),
        }
    }

    #[test]
    fn hosts_are_covered_by_name_by_address_and_by_one_label_of_a_wildcard() {
        let all = names(&["zk1.example", "*.zk.example"], &["10.0.0.1", "::1"], Some("zk9.example"));
        for host in ["zk1.example", "ZK1.Example.", "a.zk.example", "10.0.0.1", "[::1]", "::ffff:10.0.0.1"] {
            assert!(all.cover(host), "{host}");
        }
        for host in ["zk2.example", "zk.example", "a.b.zk.example", ".zk.example", "10.0.0.2", "zk9.example"]
        {
            assert!(!all.cover(host), "{host}");
        }
    }

    fn made(adjust: impl FnOnce(&mut CertificateParams)) -> CertificateNames {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ZK9.example");
        adjust(&mut params);
        CertificateNames::of(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der())
    }

    #[test]
    fn the_common_name_counts_beside_addresses_and_mail_and_not_beside_names_of_hosts() {
        let text = |text: &str| Ia5String::try_from(text).unwrap();
        for alternative in [
            vec![],
            vec![SanType::IpAddress([10, 0, 0, 1].into())],
            vec![SanType::Rfc822Name(text("a@zk9.example"))],
        ] {
            assert!(made(|params| params.subject_alt_names = alternative).cover("zk9.example"));
        }
        let service = SanType::OtherName((vec![1, 3, 6, 1, 5, 5, 7, 8, 7], "_zk.zk8.example".into()));
        for alternative in
            [SanType::DnsName(text("zk8.example")), SanType::URI(text("zk://zk8.example")), service]
        {
            let names = made(|params| params.subject_alt_names = vec![alternative]);
            assert!(!names.cover("zk9.example") && names.common_name.is_none(), "{names:?}");
        }
    }

    #[test]
    fn a_certificate_with_unreadable_alternative_names_is_for_no_host() {
        let alternative = [2, 5, 29, 17];
        // No sequence; a sequence with a name of an unknown kind; twice.
        for contents in
            [vec![vec![5, 0]], vec![vec![0x30, 3, 0x9f, 0x7f, 0]], vec![vec![0x30, 0], vec![0x30, 0]]]
        {
            let names = made(|params| {
                params.custom_extensions = contents
                    .iter()
                    .map(|content| CustomExtension::from_oid_content(&alternative, content.clone()))
                    .collect();
            });
            assert!(!names.cover("zk9.example"), "{contents:?}");
        }
    }

    #[test]
    fn the_common_name_counts_for_hosts_if_there_is_no_dns_name() {
        assert!(names(&[], &["10.0.0.1"], Some("zk9.example")).cover("zk9.example"));
        assert!(!names(&[], &[], Some("10.0.0.1")).cover("10.0.0.1"), "an address has to be an address");
        assert!(!names(&[], &[], None).cover("zk9.example"));
    }
}
