//! Decides by the hosts of their servers whether two configurations can be of the same ensemble.
//!
//! Nothing on the wire names an ensemble, but votes carry a configuration. If all its servers are on other machines, it
//! is of another ensemble. This must be certain, since an ensemble can change server by server, and can write its hosts
//! differently: a name for an address, or `zk1` for `zk1.example.com`. A host such as 0.0.0.0 or localhost can be any
//! machine. Ports are not compared: address translation between two servers can change them.

use super::{Member, Membership};
use crate::id::ServerId;
use alloc::{format, string::String, vec::Vec};
use core::net::IpAddr;

/// The result for a configuration of another ensemble: what it lists, and what this ensemble lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its configuration lists {theirs}, none of which is a server of this ensemble: {ours}")]
pub struct OtherEnsemble {
    theirs: String,
    ours: String,
}

/// The number of servers that the message names. Further servers are only counted.
const NAMED_MAX: usize = 9;

impl Membership {
    /// Compares this configuration, which came from outside, with `ours`, those of this ensemble. Returns the
    /// difference if it is of another ensemble: no server is on a machine of `ours`, and of the ids on both sides, more
    /// are certainly on different machines than can be on the same.
    pub fn of_another_ensemble(&self, ours: &[&Membership]) -> Option<OtherEnsemble> {
        let own: Vec<(ServerId, &Member)> =
            ours.iter().flat_map(|of| of.servers.iter().map(|(id, member)| (*id, member))).collect();
        let (mut apart, mut unclear) = (0, 0);
        for (id, theirs) in &self.servers {
            if own.iter().any(|(_, member)| comparison(theirs, member) == HostComparison::Same) {
                return None;
            }
            let same_id = own.iter().filter(|(of, _)| of == id);
            match same_id.map(|(_, member)| comparison(theirs, member)).max() {
                Some(HostComparison::Apart) => apart += 1,
                Some(_) => unclear += 1,
                None => {}
            }
        }
        (apart > unclear).then(|| OtherEnsemble {
            theirs: listed(self),
            ours: ours.first().map_or_else(String::new, |ours| listed(ours)),
        })
    }
}

/// Whether two servers are on the same machine. Ordered by how likely that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostComparison {
    /// They are on different machines.
    Apart,
    /// The hosts do not show it: one is a name and the other an address, or one can be any machine.
    Unclear,
    /// They are on the same machine, by their names or addresses.
    Same,
}

impl HostComparison {
    /// Compares two hosts as they are written. Nothing is resolved.
    pub fn of_hosts(one: &str, other: &str) -> HostComparison {
        let same = match (Host::read(one), Host::read(other)) {
            (Host::Address(one), Host::Address(other)) => one == other,
            (Host::Name(one), Host::Name(other)) => is_short_for(one, other) || is_short_for(other, one),
            _ => return HostComparison::Unclear,
        };
        if same { HostComparison::Same } else { HostComparison::Apart }
    }
}

/// Compares each address of one server with each of the other. The most likely result counts.
fn comparison(one: &Member, other: &Member) -> HostComparison {
    let pairs = one.addresses.iter().flat_map(|a| other.addresses.iter().map(move |b| (&*a.host, &*b.host)));
    pairs.map(|(one, other)| HostComparison::of_hosts(one, other)).max().unwrap_or(HostComparison::Unclear)
}

enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
    /// A wildcard or loopback address, which is another machine for each server.
    Anywhere,
}

impl Host<'_> {
    fn read(text: &str) -> Host<'_> {
        let text = text.trim_end_matches('.');
        match text.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(address) if address.is_unspecified() || address.is_loopback() => Host::Anywhere,
            Ok(address) => Host::Address(address),
            Err(_) if is_short_for("localhost", text) => Host::Anywhere,
            Err(_) => Host::Name(text),
        }
    }
}

/// Whether `short` is `long`, or its beginning up to a dot.
fn is_short_for(short: &str, long: &str) -> bool {
    let (Some(begin), Some(rest)) = (long.get(..short.len()), long.get(short.len()..)) else { return false };
    begin.eq_ignore_ascii_case(short) && (rest.is_empty() || rest.starts_with('.'))
}

fn listed(of: &Membership) -> String {
    let server = |(id, member): (&ServerId, &Member)| {
        let hosts: Vec<&str> = member.addresses.iter().map(|address| &*address.host).collect();
        format!("server.{} at {}", id.0, hosts.join("|"))
    };
    let mut named: Vec<String> = of.servers.iter().take(NAMED_MAX).map(server).collect();
    let others = of.servers.len() - named.len();
    if others > 0 {
        named.push(format!("{others} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// `1=a 2=b|c`: hosts by id.
    fn config(servers: &str) -> Membership {
        let mut membership = Membership::default();
        for server in servers.split_whitespace() {
            let (id, hosts) = server.split_once('=').unwrap();
            let addresses: Vec<String> = hosts.split('|').map(|host| format!("{host}:2888:3888")).collect();
            membership.take(&format!("server.{id}"), &addresses.join("|")).unwrap();
        }
        membership
    }

    #[track_caller]
    fn check(ours: &[&str], theirs: &str, is_other: bool) {
        let ours: Vec<Membership> = ours.iter().map(|text| config(text)).collect();
        let ours: Vec<&Membership> = ours.iter().collect();
        assert_eq!(config(theirs).of_another_ensemble(&ours).is_some(), is_other, "{theirs}");
    }

    #[test]
    fn another_ensemble_has_none_of_the_hosts() {
        let ours = "1=zk1.a 2=zk2.a 3=zk3.a";
        for (theirs, is_other) in [
            ("1=zk1.b 2=zk2.b 3=zk3.b", true),
            ("1=zk1.b 2=zk2.b", true),
            ("3=zk3.b 4=zk4.b 5=zk5.b", true),
            ("1=ZK1.a. 2=zk2.a 3=zk3.a", false),
            // One server of three stays where it is, under any id.
            ("1=zk1.b 2=zk2.a 3=zk3.b", false),
            ("1=zk3.a 2=zk2.b 3=zk1.b", false),
            ("1=zk1.b|zk1.a 2=zk2.b 3=zk3.b", false),
            // No id in both: a server that will join can have any configuration.
            ("4=zk4.b 5=zk5.b", false),
            // Short and long names, and one that only looks like a long one.
            ("1=zk1 2=zk2 3=zk3", false),
            ("1=zk1.a.example 2=zk2.a.example 3=zk3.a.example", false),
            ("1=zk1.ab 2=zk2.ab 3=zk3.ab", true),
            // The addresses can be those of the names.
            ("1=10.0.0.1 2=10.0.0.2 3=10.0.0.3", false),
            ("1=zk1.b 2=10.0.0.2 3=10.0.0.3", false),
            ("1=zk1.b 2=zk2.b 3=10.0.0.3", true),
        ] {
            check(&[ours], theirs, is_other);
        }
    }

    #[test]
    fn addresses_are_compared_by_value_not_by_text() {
        let ours = "1=10.0.0.1 2=10.0.0.2 3=[fd00::3]";
        for (theirs, is_other) in [
            ("1=10.0.1.1 2=10.0.1.2 3=10.0.1.3", true),
            ("1=10.0.1.1 2=10.0.1.2 3=[FD00:0::3]", false),
            ("1=[::ffff:10.0.0.1] 2=10.0.1.2 3=10.0.1.3", false),
            ("1=10.0.0.10 2=10.0.0.20 3=[fd00::30]", true),
        ] {
            check(&[ours], theirs, is_other);
        }
    }

    /// Servers often have 0.0.0.0 in their own line. Then two of three ids cannot be compared, and the third server may
    /// just move to another machine.
    #[test]
    fn wildcard_and_loopback_hosts_do_not_show_another_ensemble() {
        for any in
            ["0.0.0.0", "[::]", "127.0.0.1", "127.0.1.1", "[::1]", "localhost", "LocalHost.localdomain"]
        {
            let ours = format!("1={any} 2=zk2.a 3=zk3.a");
            check(&[&ours], &format!("1=zk1.b 2={any} 3=zk3.b"), false);
            check(&[&format!("{ours} 4=zk4.a 5=zk5.a")], &format!("1=zk1.b 2={any} 3=c 4=d 5=e"), true);
            let all_here = format!("1={any} 2={any} 3={any}");
            check(&[&all_here], &all_here, false);
            check(&[&all_here], "1=zk1.b 2=zk2.b 3=zk3.b", false);
            check(&["1=zk1.a 2=zk2.a"], &all_here, false);
        }
    }

    #[test]
    fn servers_of_the_proposed_configuration_are_of_this_ensemble() {
        let (in_force, proposed) = ("1=zk1.a 2=zk2.a", "1=zk1.b 2=zk2.b");
        check(&[in_force, proposed], proposed, false);
        check(&[in_force, proposed], "1=zk1.c 2=zk2.c", true);
        check(&[in_force, proposed], "1=zk1.c 2=zk2.b", false);
        check(&[], proposed, false);
        check(&[in_force], "", false);
    }

    #[test]
    fn the_reason_lists_servers_of_both_configurations() {
        let (ours, theirs) = (config("1=a1 2=a2"), config("1=b1|c1 2=b2"));
        let why = theirs.of_another_ensemble(&[&ours]).unwrap().to_string();
        assert_eq!(
            why,
            "its configuration lists server.1 at b1|c1, server.2 at b2, none of which is a server of this ensemble: \
             server.1 at a1, server.2 at a2"
        );
        let many: String = (1..=12).map(|id| format!("{id}=b{id} ")).collect();
        let why = config(&many).of_another_ensemble(&[&ours]).unwrap().to_string();
        assert!(why.contains("server.9 at b9, 3 more, none of which"), "{why}");
    }
}
