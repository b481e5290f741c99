//! Compares the address of a caller at the election port, and the address that it names, with the configuration.
//!
//! The newer connection of a server id replaces the older one, as upstream: a server that has restarted connects again.
//! If two servers have one id, the one at the address of the configuration stays connected.

use ostler_proto::membership::{HostComparison, Member, PeerAddress};
use ostler_tls::log_text;
use ostler_zab::leading::AddressMatch;
use std::net::SocketAddr;

/// The host and port that a server names as its election address.
pub(super) type ElectionAddress = (String, u16);

/// The election addresses that a caller names, compared with those of the configuration. The first variant speaks most
/// against the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// The configuration has other addresses for this server id.
    Contradicted,
    /// Names and addresses cannot be compared, or the caller names none.
    Unclear,
    /// The configuration has one of these addresses for this server id.
    Confirmed,
}

/// The origin of an election connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) from: SocketAddr,
    /// The election addresses that the caller has named; those of the configuration if this server has connected.
    pub(super) named: Vec<ElectionAddress>,
    pub(super) claim: Claim,
    /// The caller's IP address compared with the configuration. It counts more than the claim, which any caller can make.
    pub(super) at: AddressMatch,
}

/// A caller compared with the live connection of the same server id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameId {
    /// Nothing shows that it is another server.
    Again,
    /// It calls from another address: the server has moved, or two servers have one id.
    Moved,
    /// The live connection is from the address of the configuration, and the caller is not.
    Elsewhere,
}

impl Origin {
    /// The origin of a caller that names these election addresses.
    pub(super) fn of_caller(
        (from, at): (SocketAddr, AddressMatch),
        named: Vec<ElectionAddress>,
        configured: Option<&Member>,
    ) -> Origin {
        let addresses = configured.map_or(&[][..], |member| &member.addresses);
        let pairs = named.iter().flat_map(|named| addresses.iter().map(move |at| claim(named, at)));
        let claim = pairs.max().unwrap_or(Claim::Unclear);
        Origin { from, named, claim, at }
    }

    /// The origin of a connection that this server has made to the address of the configuration.
    pub(super) fn of_connected(from: SocketAddr, member: &Member) -> Origin {
        let named = member.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect();
        Origin { from, named, claim: Claim::Confirmed, at: AddressMatch::AtHome }
    }

    /// Compares a caller with the live connection of the same server id.
    pub(super) fn compare(&self, live: &Origin) -> SameId {
        if live.at == AddressMatch::AtHome && self.at < live.at {
            return SameId::Elsewhere;
        }
        // Only the claims differ, and the caller's address is no better than that of the live connection.
        let contradicts = (self.claim, live.claim) == (Claim::Contradicted, Claim::Confirmed);
        if contradicts && self.at <= live.at {
            return SameId::Elsewhere;
        }
        let claims_differ = !self.named.is_empty() && !live.named.is_empty() && self.named != live.named;
        if self.from.ip() != live.from.ip() || claims_differ {
            return SameId::Moved;
        }
        SameId::Again
    }

    /// The caller's address and the addresses that it names, for the log: `10.0.0.2:40112 (zk2:3888)`.
    pub(super) fn text(&self) -> String {
        let named: Vec<String> = self.named.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        match &named[..] {
            [] => self.from.to_string(),
            // Any caller may name what it likes.
            _ => format!("{} ({})", self.from, log_text(&named.join("|"))),
        }
    }
}

/// Compares an address that a caller names with one of the configuration.
fn claim((host, port): &ElectionAddress, at: &PeerAddress) -> Claim {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let comparison = HostComparison::of_hosts(host, &at.host);
    if comparison == HostComparison::Same || host.eq_ignore_ascii_case(&at.host) {
        // Two servers on one machine have different ports.
        return if *port == at.election_port { Claim::Confirmed } else { Claim::Contradicted };
    }
    if comparison == HostComparison::Apart { Claim::Contradicted } else { Claim::Unclear }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(addresses: &str) -> Member {
        Member::parse("server.2", addresses).unwrap()
    }

    fn address(text: &str) -> ElectionAddress {
        let (host, port) = text.rsplit_once(':').unwrap();
        (host.into(), port.parse().unwrap())
    }

    fn caller(from: &str, named: &str) -> Origin {
        let named = named.split_whitespace().map(address).collect();
        Origin::of_caller(
            (from.parse().unwrap(), AddressMatch::Unclear),
            named,
            Some(&member("zk2:2888:3888")),
        )
    }

    #[test]
    fn addresses_that_callers_name_cannot_write_lines_of_the_log() {
        let mut origin = caller("10.0.0.2:1", "zk2:3888");
        assert_eq!(origin.text(), "10.0.0.2:1 (zk2:3888)");
        origin.named = vec![("a\n\u{1b}[2J".into(), 1), ("b".repeat(2000), 2)];
        let text = origin.text();
        assert!(text.starts_with("10.0.0.2:1 (a\\n\\u{1b}[2J:1|bbb"), "{text}");
        assert!(text.chars().count() < 320, "{text}");
    }

    #[test]
    fn a_claim_is_judged_by_the_configured_election_address() {
        for (configured, named, expected) in [
            ("zk2:2888:3888", "zk2:3888", Claim::Confirmed),
            ("zk2:2888:3888", "ZK2.example:3888", Claim::Confirmed),
            ("zk2:2888:3888", "zk2:3889", Claim::Contradicted),
            ("zk2:2888:3888", "zk7:3888", Claim::Contradicted),
            ("zk2:2888:3888", "zk7:3888 zk2:3888", Claim::Confirmed),
            ("a:1:2|zk2:2888:3888", "zk2:3888", Claim::Confirmed),
            // A name and an IP address, or an address that stands for any machine.
            ("zk2:2888:3888", "10.0.0.2:3888", Claim::Unclear),
            ("10.0.0.2:2888:3888", "127.0.0.1:3888", Claim::Unclear),
            ("0.0.0.0:2888:3888", "zk2:3888", Claim::Unclear),
            ("zk2:2888:3888", "", Claim::Unclear),
            ("127.0.0.1:2888:3888", "127.0.0.1:3888", Claim::Confirmed),
            ("127.0.0.1:2888:3888", "127.0.0.1:3889", Claim::Contradicted),
            ("[fd00::2]:2888:3888", "[fd00:0::2]:3888", Claim::Confirmed),
            ("10.0.0.2:2888:3888", "10.0.0.20:3888", Claim::Contradicted),
        ] {
            let named = named.split_whitespace().map(address).collect();
            let from = ([10, 0, 0, 9], 40_000).into();
            let origin = Origin::of_caller((from, AddressMatch::Unclear), named, Some(&member(configured)));
            assert_eq!(origin.claim, expected, "{configured}: {:?}", origin.named);
        }
        let from = (([10, 0, 0, 9], 1).into(), AddressMatch::Unclear);
        let unknown = Origin::of_caller(from, vec![address("zk2:3888")], None);
        assert_eq!(unknown.claim, Claim::Unclear);
    }

    #[test]
    fn a_connection_with_a_confirmed_claim_stays_when_a_contradicted_one_comes() {
        let right = || caller("10.0.0.2:1", "zk2:3888");
        let wrong = || caller("10.0.0.7:1", "zk7:3888");
        let by_address = |from: &str| caller(from, "10.0.0.2:3888");
        for (new, live, expected) in [
            (right(), right(), SameId::Again),
            (caller("10.0.0.2:2", "zk2:3888"), right(), SameId::Again),
            (caller("10.0.0.2:2", ""), right(), SameId::Again),
            (wrong(), right(), SameId::Elsewhere),
            (
                wrong(),
                Origin::of_connected(([10, 0, 0, 2], 3888).into(), &member("zk2:1:2")),
                SameId::Elsewhere,
            ),
            (right(), wrong(), SameId::Moved),
            (wrong(), wrong(), SameId::Again),
            (caller("10.0.0.7:1", "zk8:3888"), wrong(), SameId::Moved),
            // The claims cannot be compared, or are the same.
            (by_address("10.0.0.3:1"), right(), SameId::Moved),
            (caller("10.0.0.3:1", "zk2:3888"), right(), SameId::Moved),
            (by_address("10.0.0.2:2"), by_address("10.0.0.2:1"), SameId::Again),
        ] {
            assert_eq!(new.compare(&live), expected, "{} compared with {}", new.text(), live.text());
        }
    }

    /// Any caller can make any claim, so its IP address counts more.
    #[test]
    fn a_caller_from_another_ip_address_loses_to_one_from_the_configured() {
        let at = |at, from: &str, named: &str| Origin { at, ..caller(from, named) };
        let right = || at(AddressMatch::AtHome, "10.0.0.2:1", "zk2:3888");
        for (new, live, expected) in [
            (at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"), right(), SameId::Elsewhere),
            (at(AddressMatch::Unclear, "10.0.0.9:1", "zk2:3888"), right(), SameId::Elsewhere),
            (right(), at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"), SameId::Moved),
            (at(AddressMatch::AtHome, "10.0.0.2:1", "zk7:3888"), right(), SameId::Elsewhere),
            // Its own server.N lines are newer, and it calls from the address of the old ones.
            (
                at(AddressMatch::AtHome, "10.0.0.2:1", "zk7:3888"),
                at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"),
                SameId::Moved,
            ),
            (at(AddressMatch::AtHome, "10.0.0.2:2", "zk2:3888"), right(), SameId::Again),
            // Addresses are translated on the way: no caller has the address of the configuration.
            (
                at(AddressMatch::Elsewhere, "10.0.9.1:2", "zk2:3888"),
                at(AddressMatch::Elsewhere, "10.0.9.2:1", "zk2:3888"),
                SameId::Moved,
            ),
        ] {
            assert_eq!(new.compare(&live), expected, "{new:?} compared with {live:?}");
        }
    }
}
