//! The ids of the scheme `ip`: an address, or an address and the number of its first bits that count.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use ostler_proto::acl::Perms;

/// A network. Networks are ordered by the number of bits that count, so all networks of one width are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    is_v6: bool,
    /// The number of first bits that count.
    bits: u32,
    /// The address. The bits that do not count are 0.
    address: u128,
}

impl Network {
    /// Parses an id. `None` if it is not a network.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address = parse_v4(address).map(IpAddr::V4).or_else(|| address.parse().ok())?;
        let bits = bits.unwrap_or(width(address.is_ipv6()));
        Network::new(address, bits)
    }

    fn new(address: IpAddr, bits: u32) -> Option<Network> {
        let (is_v6, all) = match address {
            IpAddr::V4(address) => (false, address.to_bits().into()),
            IpAddr::V6(address) => (true, address.to_bits()),
        };
        let ignored = width(is_v6).checked_sub(bits)?;
        let address = all.checked_shr(ignored).and_then(|kept| kept.checked_shl(ignored)).unwrap_or(0);
        Some(Network { is_v6, bits, address })
    }
}

fn width(is_v6: bool) -> u32 {
    if is_v6 { 128 } else { 32 }
}

/// Parses four numbers up to 255. As in upstream, they may have leading zeros.
fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.').map(|part| part.parse::<i32>().ok().and_then(|n| u8::try_from(n).ok()));
    let address = Ipv4Addr::new(parts.next()??, parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(address)
}

/// Networks with their permissions, in order. An address is looked up once for each width that occurs.
#[derive(Debug, Default)]
pub struct Networks {
    sorted: Vec<(Network, Perms)>,
}

impl Networks {
    /// Networks of these ids. An id that is not a network is left out, so it matches no address.
    pub fn new<'a>(ids: impl IntoIterator<Item = (&'a str, Perms)>) -> Networks {
        let parsed = ids.into_iter().filter_map(|(id, perms)| Some((Network::parse(id)?, perms)));
        let mut sorted: Vec<(Network, Perms)> = parsed.collect();
        sorted.sort_unstable_by_key(|(network, _)| *network);
        sorted.dedup_by(|(other, more), (network, perms)| {
            let is_same = other == network;
            if is_same {
                *perms = perms.with(*more);
            }
            is_same
        });
        Networks { sorted }
    }

    /// The permissions of an address: those of all networks that contain it.
    pub fn perms_of(&self, address: IpAddr) -> Perms {
        let (address, mut rest, mut granted) = (address.to_canonical(), &self.sorted[..], Perms(0));
        while let Some((Network { is_v6, bits, .. }, _)) = rest.first().copied() {
            let of_width =
                rest.partition_point(|(network, _)| (network.is_v6, network.bits) <= (is_v6, bits));
            let (same, others) = rest.split_at(of_width);
            rest = others;
            let Some(wanted) = Network::new(address, bits).filter(|network| network.is_v6 == is_v6) else {
                continue;
            };
            if let Ok(at) = same.binary_search_by_key(&wanted, |(network, _)| *network) {
                granted = granted.with(same[at].1);
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_first_bits() {
        for (address, network, is_in) in [
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("9.9.9.9", "0.0.0.0/0", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "010.1.2.03/32", true),
            ("::1", "::/0", true),
            ("::1", "::1", true),
            ("::2", "::1", false),
            ("::1", "0.0.0.0/0", false),
            ("1.2.3.4", "::/0", false),
            ("::ffff:1.2.3.4", "1.2.0.0/16", true),
            ("1.2.3.4", "host", false),
        ] {
            // Other networks of the same width and of other widths.
            let beside = ["99.0.0.0/8", "99.1.0.0/16", "99.1.1.1", "fe80::/64", "fe80::1"];
            let all = beside.into_iter().chain([network]).map(|id| (id, Perms(1)));
            assert_eq!(
                Networks::new(all).perms_of(address.parse().unwrap()).0 == 1,
                is_in,
                "{address} {network}"
            );
        }
    }

    #[test]
    fn permissions_of_several_networks_add_up() {
        let all = [("10.0.0.0/8", Perms(1)), ("10.1.0.0/16", Perms(2)), ("10.9.9.9/8", Perms(4))];
        assert_eq!(Networks::new(all).perms_of([10, 1, 0, 0].into()), Perms(7));
        assert_eq!(Networks::new(all).perms_of([10, 2, 0, 0].into()), Perms(5));
    }
}
