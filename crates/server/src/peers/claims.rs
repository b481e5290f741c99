//! Who a caller at the election port says that it is, against where that server should be.
//!
//! The newer connection of an id takes the place of the older one, as upstream has it: a server that has restarted is
//! known again so. Where two servers have one id, the one that is where the configuration says stays.

use ostler_proto::membership::{HostComparison, Member, PeerAddress};
use ostler_zab::leading::AddressMatch;
use std::net::SocketAddr;

/// A place where an election port is said to be.
pub(super) type ElectionAddress = (String, u16);

/// What a caller's own word for its election port says about it, the least likely to be right first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// The configuration has the server with this id elsewhere.
    Contradicted,
    Unclear,
    /// That is where the configuration has it.
    Confirmed,
}

/// Where a connection comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) from: SocketAddr,
    /// Where it says that its election port is, or where it was dialled.
    pub(super) said: Vec<ElectionAddress>,
    pub(super) claim: Claim,
    /// Where it is by its address. What it says anybody can say.
    pub(super) at: AddressMatch,
}

/// What becomes of a caller whose id is connected already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameId {
    /// It is the same server again, for all that can be told.
    Again,
    /// It comes from elsewhere: the server has moved, or two have one id.
    Moved,
    /// The other one is where the configuration has this server, and this one is not.
    Elsewhere,
}

impl Origin {
    /// A caller that says that its election port is there.
    pub(super) fn of_caller(
        (from, at): (SocketAddr, AddressMatch),
        said: Vec<ElectionAddress>,
        configured: Option<&Member>,
    ) -> Origin {
        let addresses = configured.map_or(&[][..], |member| &member.addresses);
        let pairs = said.iter().flat_map(|said| addresses.iter().map(move |at| claim(said, at)));
        let claim = pairs.max().unwrap_or(Claim::Unclear);
        Origin { from, said, claim, at }
    }

    /// A server that was dialled where the configuration has it.
    pub(super) fn dialled(from: SocketAddr, member: &Member) -> Origin {
        let said = member.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect();
        Origin { from, said, claim: Claim::Confirmed, at: AddressMatch::AtHome }
    }

    /// What `self` is beside a connection of the same id.
    pub(super) fn beside(&self, live: &Origin) -> SameId {
        if live.at == AddressMatch::AtHome && self.at < live.at {
            return SameId::Elsewhere;
        }
        // More speaks for the other's address: it only says otherwise.
        let contradicts = (self.claim, live.claim) == (Claim::Contradicted, Claim::Confirmed);
        if contradicts && self.at <= live.at {
            return SameId::Elsewhere;
        }
        let says_otherwise = !self.said.is_empty() && !live.said.is_empty() && self.said != live.said;
        if self.from.ip() != live.from.ip() || says_otherwise {
            return SameId::Moved;
        }
        SameId::Again
    }

    /// `10.0.0.2:40112 (zk2:3888)`
    pub(super) fn words(&self) -> String {
        let said: Vec<String> = self.said.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        if said.is_empty() { self.from.to_string() } else { format!("{} ({})", self.from, said.join("|")) }
    }
}

fn claim((host, port): &ElectionAddress, at: &PeerAddress) -> Claim {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let comparison = HostComparison::of_hosts(host, &at.host);
    if comparison == HostComparison::Same || host.eq_ignore_ascii_case(&at.host) {
        // Two servers of one machine have ports of their own.
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

    fn place(text: &str) -> ElectionAddress {
        let (host, port) = text.rsplit_once(':').unwrap();
        (host.into(), port.parse().unwrap())
    }

    fn caller(from: &str, said: &str) -> Origin {
        let said = said.split_whitespace().map(place).collect();
        Origin::of_caller(
            (from.parse().unwrap(), AddressMatch::Unclear),
            said,
            Some(&member("zk2:2888:3888")),
        )
    }

    #[test]
    fn a_claim_is_judged_by_the_configured_election_address() {
        for (configured, said, expected) in [
            ("zk2:2888:3888", "zk2:3888", Claim::Confirmed),
            ("zk2:2888:3888", "ZK2.example:3888", Claim::Confirmed),
            ("zk2:2888:3888", "zk2:3889", Claim::Contradicted),
            ("zk2:2888:3888", "zk7:3888", Claim::Contradicted),
            ("zk2:2888:3888", "zk7:3888 zk2:3888", Claim::Confirmed),
            ("a:1:2|zk2:2888:3888", "zk2:3888", Claim::Confirmed),
            // A name against an address, or a place that means any machine.
            ("zk2:2888:3888", "10.0.0.2:3888", Claim::Unclear),
            ("10.0.0.2:2888:3888", "127.0.0.1:3888", Claim::Unclear),
            ("0.0.0.0:2888:3888", "zk2:3888", Claim::Unclear),
            ("zk2:2888:3888", "", Claim::Unclear),
            ("127.0.0.1:2888:3888", "127.0.0.1:3888", Claim::Confirmed),
            ("127.0.0.1:2888:3888", "127.0.0.1:3889", Claim::Contradicted),
            ("[fd00::2]:2888:3888", "[fd00:0::2]:3888", Claim::Confirmed),
            ("10.0.0.2:2888:3888", "10.0.0.20:3888", Claim::Contradicted),
        ] {
            let said = said.split_whitespace().map(place).collect();
            let from = ([10, 0, 0, 9], 40_000).into();
            let origin = Origin::of_caller((from, AddressMatch::Unclear), said, Some(&member(configured)));
            assert_eq!(origin.claim, expected, "{configured}: {:?}", origin.said);
        }
        let from = (([10, 0, 0, 9], 1).into(), AddressMatch::Unclear);
        let unknown = Origin::of_caller(from, vec![place("zk2:3888")], None);
        assert_eq!(unknown.claim, Claim::Unclear);
    }

    #[test]
    fn the_one_that_is_where_it_should_be_stays() {
        let right = || caller("10.0.0.2:1", "zk2:3888");
        let wrong = || caller("10.0.0.7:1", "zk7:3888");
        let by_address = |from: &str| caller(from, "10.0.0.2:3888");
        for (new, live, expected) in [
            (right(), right(), SameId::Again),
            (caller("10.0.0.2:2", "zk2:3888"), right(), SameId::Again),
            (caller("10.0.0.2:2", ""), right(), SameId::Again),
            (wrong(), right(), SameId::Elsewhere),
            (wrong(), Origin::dialled(([10, 0, 0, 2], 3888).into(), &member("zk2:1:2")), SameId::Elsewhere),
            (right(), wrong(), SameId::Moved),
            (wrong(), wrong(), SameId::Again),
            (caller("10.0.0.7:1", "zk8:3888"), wrong(), SameId::Moved),
            // Nothing to hold against it.
            (by_address("10.0.0.3:1"), right(), SameId::Moved),
            (caller("10.0.0.3:1", "zk2:3888"), right(), SameId::Moved),
            (by_address("10.0.0.2:2"), by_address("10.0.0.2:1"), SameId::Again),
        ] {
            assert_eq!(new.beside(&live), expected, "{} beside {}", new.words(), live.words());
        }
    }

    /// What a caller says of itself anybody can say.
    #[test]
    fn an_address_that_is_not_the_servers_loses_to_one_that_is() {
        let at = |at, from: &str, said: &str| Origin { at, ..caller(from, said) };
        let right = || at(AddressMatch::AtHome, "10.0.0.2:1", "zk2:3888");
        for (new, live, expected) in [
            (at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"), right(), SameId::Elsewhere),
            (at(AddressMatch::Unclear, "10.0.0.9:1", "zk2:3888"), right(), SameId::Elsewhere),
            (right(), at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"), SameId::Moved),
            (at(AddressMatch::AtHome, "10.0.0.2:1", "zk7:3888"), right(), SameId::Elsewhere),
            // It has new lines, and is where the old ones have it.
            (
                at(AddressMatch::AtHome, "10.0.0.2:1", "zk7:3888"),
                at(AddressMatch::Elsewhere, "10.0.0.9:1", "zk2:3888"),
                SameId::Moved,
            ),
            (at(AddressMatch::AtHome, "10.0.0.2:2", "zk2:3888"), right(), SameId::Again),
            // Addresses are translated on the way: no caller is where it should be.
            (
                at(AddressMatch::Elsewhere, "10.0.9.1:2", "zk2:3888"),
                at(AddressMatch::Elsewhere, "10.0.9.2:1", "zk2:3888"),
                SameId::Moved,
            ),
        ] {
            assert_eq!(new.beside(&live), expected, "{new:?} beside {live:?}");
        }
    }
}
