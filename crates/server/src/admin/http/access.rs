//! Decides who may ask what at the admin server.

use ostler_proto::acl::Perms;
use std::net::IpAddr;

/// How far the port is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Only this machine reaches it.
    Loopback,
    /// Others reach it by TLS, or the operator has opened it (`admin.openToAll`).
    Open,
    /// Others reach it, without TLS: they need an identity.
    Guarded,
}

/// The right that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Everybody who reaches the port may know it: whether the server lives and serves.
    Health,
    /// To read the state of the server.
    Read,
    /// As [`Right::Read`], for the pages of the console. A browser shows them, so at every port they are there by the
    /// server's own names only.
    Page,
    /// To reset counts and the like: as [`Right::Read`], but a page of another site must not be able to ask.
    Change,
    /// To take all data, to replace them, or to send clients away: needs an identity at every port.
    Whole,
}

/// The facts about a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Whether the connection has TLS.
    pub(crate) has_tls: bool,
    /// Whether the header `Host` is missing, or has a name of this server.
    pub(crate) has_own_name: bool,
    /// Whether the header `Origin` or `Sec-Fetch-Site` says that a page of another site asks.
    pub(crate) is_cross_site: bool,
}

/// The result for a caller whose identity is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// Allowed with an identity that has these permissions.
    NeedsIdentity(Perms),
    /// The request came by a name that is none of this server's.
    OtherName,
    /// The request came from a page of another site.
    OtherSite,
}

/// Decides about a request.
pub(crate) fn decide(exposure: Exposure, right: Right, caller: Caller) -> Verdict {
    if right == Right::Health {
        return Verdict::Allowed;
    }
    // A page of the web can let a browser ask by a name that its owner points here. The browser takes the answer for one of
    // that page's own site.
    if !caller.has_own_name && (exposure == Exposure::Loopback || right == Right::Page) {
        return Verdict::OtherName;
    }
    if !matches!(right, Right::Read | Right::Page) && caller.is_cross_site {
        return Verdict::OtherSite;
    }
    match (right, exposure) {
        (Right::Whole, _) => Verdict::NeedsIdentity(Perms::ALL),
        (_, Exposure::Loopback | Exposure::Open) => Verdict::Allowed,
        (_, Exposure::Guarded) if caller.has_tls => Verdict::Allowed,
        (_, Exposure::Guarded) => Verdict::NeedsIdentity(Perms::READ),
    }
}

/// Whether a host of the header `Host` is no name that somebody else could point here: an address, or `localhost`.
pub(crate) fn is_address_or_localhost(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    is_same_name(bare, "localhost") || bare.parse::<IpAddr>().is_ok()
}

/// Whether two names of hosts are the same. A dot at the end says that a name is whole.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    let whole = |name| str::strip_suffix(name, ".").unwrap_or(name);
    !one.is_empty() && whole(one).eq_ignore_ascii_case(whole(other))
}

/// A header `Authorization`, as upstream reads it: a scheme and data, or one of the schemes that need none.
pub(crate) fn scheme_and_data(header: &str) -> Option<(&str, Option<&str>)> {
    let mut words = header.split(' ');
    let (scheme, data) = (words.next()?, words.next());
    match (data, words.next()) {
        (Some(_), None) => Some((scheme, data)),
        (None, None) if matches!(scheme, "ip" | "x509") => Some((scheme, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Caller = Caller { has_tls: false, has_own_name: true, is_cross_site: false };

    #[test]
    fn health_is_for_all_and_the_whole_for_those_with_an_identity() {
        for exposure in [Exposure::Loopback, Exposure::Open, Exposure::Guarded] {
            let cross = Caller { is_cross_site: true, ..PLAIN };
            assert_eq!(
                decide(exposure, Right::Health, Caller { has_own_name: false, ..cross }),
                Verdict::Allowed
            );
            assert_eq!(decide(exposure, Right::Whole, PLAIN), Verdict::NeedsIdentity(Perms::ALL));
            assert_eq!(decide(exposure, Right::Whole, cross), Verdict::OtherSite);
        }
    }

    #[test]
    fn reading_needs_loopback_tls_an_identity_or_an_opened_port() {
        for right in [Right::Read, Right::Page, Right::Change] {
            assert_eq!(decide(Exposure::Loopback, right, PLAIN), Verdict::Allowed);
            assert_eq!(decide(Exposure::Open, right, PLAIN), Verdict::Allowed);
            assert_eq!(decide(Exposure::Guarded, right, PLAIN), Verdict::NeedsIdentity(Perms::READ));
            let tls = Caller { has_tls: true, ..PLAIN };
            assert_eq!(decide(Exposure::Guarded, right, tls), Verdict::Allowed);
        }
    }

    #[test]
    fn a_web_page_cannot_use_the_browser_of_this_machine() {
        let decide_for = |has_own_name, right, is_cross_site| {
            decide(Exposure::Loopback, right, Caller { has_own_name, is_cross_site, ..PLAIN })
        };
        assert_eq!(decide_for(false, Right::Read, false), Verdict::OtherName);
        assert_eq!(decide_for(true, Right::Read, false), Verdict::Allowed);
        assert_eq!(decide_for(true, Right::Change, true), Verdict::OtherSite);
        assert_eq!(decide_for(true, Right::Read, true), Verdict::Allowed);
    }

    #[test]
    fn pages_are_there_by_the_servers_own_names_only() {
        let foreign = Caller { has_own_name: false, ..PLAIN };
        for exposure in [Exposure::Loopback, Exposure::Open, Exposure::Guarded] {
            for has_tls in [false, true] {
                let decided = decide(exposure, Right::Page, Caller { has_tls, ..foreign });
                assert_eq!(decided, Verdict::OtherName, "{exposure:?}");
            }
        }
        // Programs ask for the commands by whatever name leads here.
        assert_eq!(decide(Exposure::Open, Right::Read, foreign), Verdict::Allowed);
    }

    #[test]
    fn an_address_and_localhost_mean_this_machine() {
        for own in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]", "::1", "10.0.0.1"] {
            assert!(is_address_or_localhost(own), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "."] {
            assert!(!is_address_or_localhost(foreign), "{foreign}");
        }
        assert!(is_same_name("Zk1.example.", "zk1.EXAMPLE"));
        assert!(!is_same_name("zk1", "zk1.example") && !is_same_name("", ""));
    }

    #[test]
    fn the_header_has_a_scheme_and_data() {
        assert_eq!(scheme_and_data("digest a:b"), Some(("digest", Some("a:b"))));
        assert_eq!(scheme_and_data("x509"), Some(("x509", None)));
        for wrong in ["digest", "digest a b", "Basic"] {
            assert_eq!(scheme_and_data(wrong), None, "{wrong}");
        }
    }
}
