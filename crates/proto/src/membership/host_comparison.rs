//! Whether two configurations can be of one ensemble, by where their servers are.
//!
//! Nothing on the wire names an ensemble. What votes carry is a configuration, and one that places all its servers on
//! other machines is another ensemble's. That is told only where it is plain, for an ensemble may change server by
//! server, and spell its hosts anew: a name can stand for an address, `zk1` for `zk1.example.com`, and a host that means
//! "here" or "everywhere" for any. Ports say nothing: what lies between two servers may give them others.

use super::{Member, Membership};
use crate::id::ServerId;
use alloc::{format, string::String, vec::Vec};
use core::net::IpAddr;

/// A configuration that lists none of an ensemble's servers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its configuration lists {theirs}, none of which is a server of this ensemble: {ours}")]
pub struct OtherEnsemble {
    theirs: String,
    ours: String,
}

/// More servers than these are counted, not named.
const NAMED_MAX: usize = 9;

impl Membership {
    /// Why this configuration, from outside, is that of another ensemble than these are of: no host is in both, and of
    /// the ids in both, more are plainly on different machines than may be on the same.
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

/// Whether two servers are on the same machine, the least likely first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostComparison {
    /// Plainly not.
    Apart,
    /// It cannot be told.
    Unclear,
    /// As far as names go.
    Same,
}

impl HostComparison {
    /// Whether two hosts, as they are written, are the same machine.
    pub fn of_hosts(one: &str, other: &str) -> HostComparison {
        let same = match (Host::read(one), Host::read(other)) {
            (Host::Address(one), Host::Address(other)) => one == other,
            (Host::Name(one), Host::Name(other)) => is_short_for(one, other) || is_short_for(other, one),
            _ => return HostComparison::Unclear,
        };
        if same { HostComparison::Same } else { HostComparison::Apart }
    }
}

/// By the best of their addresses.
fn comparison(one: &Member, other: &Member) -> HostComparison {
    let pairs = one.addresses.iter().flat_map(|a| other.addresses.iter().map(move |b| (&*a.host, &*b.host)));
    pairs.map(|(one, other)| HostComparison::of_hosts(one, other)).max().unwrap_or(HostComparison::Unclear)
}

enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
    /// It means another machine to everybody.
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

/// Whether a name is another, or its beginning up to a dot.
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
            // No id in both: a server that is to join may say anything.
            ("4=zk4.b 5=zk5.b", false),
            // Names that go on, and one that only looks like it.
            ("1=zk1 2=zk2 3=zk3", false),
            ("1=zk1.a.example 2=zk2.a.example 3=zk3.a.example", false),
            ("1=zk1.ab 2=zk2.ab 3=zk3.ab", true),
            // Addresses may be those of the names.
            ("1=10.0.0.1 2=10.0.0.2 3=10.0.0.3", false),
            ("1=zk1.b 2=10.0.0.2 3=10.0.0.3", false),
            ("1=zk1.b 2=zk2.b 3=10.0.0.3", true),
        ] {
            check(&[ours], theirs, is_other);
        }
    }

    #[test]
    fn addresses_are_compared_as_such() {
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

    /// Many a server is told to listen everywhere, under its own id. So at two of three ids nothing can be compared, and
    /// the third may just be on its way to another machine.
    #[test]
    fn hosts_that_mean_any_machine_say_nothing() {
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
    fn what_was_proposed_last_counts_as_well() {
        let (in_force, proposed) = ("1=zk1.a 2=zk2.a", "1=zk1.b 2=zk2.b");
        check(&[in_force, proposed], proposed, false);
        check(&[in_force, proposed], "1=zk1.c 2=zk2.c", true);
        check(&[in_force, proposed], "1=zk1.c 2=zk2.b", false);
        check(&[], proposed, false);
        check(&[in_force], "", false);
    }

    #[test]
    fn the_reason_names_both() {
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
