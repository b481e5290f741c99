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
    /// To reset counts and the like: as [`Right::Read`], but a page of another site must not be able to ask.
    Change,
    /// To take all data, to replace them, or to send clients away: needs an identity at every port.
    Whole,
}

/// The facts about a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// Whether the connection has TLS.
    pub(crate) has_tls: bool,
    /// The header `Host`, without the port.
    pub(crate) host: Option<&'a str>,
    /// Whether the header `Origin` or `Sec-Fetch-Site` says that a page of another site asks.
    pub(crate) is_cross_site: bool,
}

/// The result for a caller whose identity is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// Allowed with an identity that has these permissions.
    NeedsIdentity(Perms),
    /// The request came by a name of somebody else, or from a page of another site.
    OtherSite,
}

/// Decides about a request.
pub(crate) fn decide(exposure: Exposure, right: Right, caller: Caller<'_>) -> Verdict {
    if right == Right::Health {
        return Verdict::Allowed;
    }
    // A page of the web can let a browser on this machine ask, by a name that its owner points here.
    let by_foreign_name = exposure == Exposure::Loopback && !caller.host.is_none_or(is_own_name);
    if by_foreign_name || (right != Right::Read && caller.is_cross_site) {
        return Verdict::OtherSite;
    }
    match (right, exposure) {
        (Right::Whole, _) => Verdict::NeedsIdentity(Perms::ALL),
        (_, Exposure::Loopback | Exposure::Open) => Verdict::Allowed,
        (_, Exposure::Guarded) if caller.has_tls => Verdict::Allowed,
        (_, Exposure::Guarded) => Verdict::NeedsIdentity(Perms::READ),
    }
}

/// Whether a name of the header `Host` can only mean this machine: an address, or `localhost`.
fn is_own_name(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
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

    const PLAIN: Caller<'_> = Caller { has_tls: false, host: Some("10.0.0.1"), is_cross_site: false };

    #[test]
    fn health_is_for_all_and_the_whole_for_those_with_an_identity() {
        for exposure in [Exposure::Loopback, Exposure::Open, Exposure::Guarded] {
            let cross = Caller { is_cross_site: true, host: Some("evil.example"), ..PLAIN };
            assert_eq!(decide(exposure, Right::Health, cross), Verdict::Allowed);
            assert_eq!(decide(exposure, Right::Whole, PLAIN), Verdict::NeedsIdentity(Perms::ALL));
            assert_eq!(decide(exposure, Right::Whole, cross), Verdict::OtherSite);
        }
    }

    #[test]
    fn reading_needs_loopback_tls_an_identity_or_an_opened_port() {
        for right in [Right::Read, Right::Change] {
            assert_eq!(decide(Exposure::Loopback, right, PLAIN), Verdict::Allowed);
            assert_eq!(decide(Exposure::Open, right, PLAIN), Verdict::Allowed);
            assert_eq!(decide(Exposure::Guarded, right, PLAIN), Verdict::NeedsIdentity(Perms::READ));
            let tls = Caller { has_tls: true, ..PLAIN };
            assert_eq!(decide(Exposure::Guarded, right, tls), Verdict::Allowed);
        }
    }

    #[test]
    fn a_web_page_cannot_use_the_browser_of_this_machine() {
        let decide_for = |host, right, is_cross_site| {
            decide(Exposure::Loopback, right, Caller { host, is_cross_site, ..PLAIN })
        };
        assert_eq!(decide_for(Some("evil.example"), Right::Read, false), Verdict::OtherSite);
        for own in [None, Some("localhost"), Some("127.0.0.1"), Some("[::1]"), Some("::1")] {
            assert_eq!(decide_for(own, Right::Read, false), Verdict::Allowed, "{own:?}");
        }
        assert_eq!(decide_for(Some("localhost"), Right::Change, true), Verdict::OtherSite);
        assert_eq!(decide_for(Some("localhost"), Right::Read, true), Verdict::Allowed);
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
