//! One access control list, with an index for permission checks.
//!
//! A client can store tens of thousands of entries. So the index is built once, when the list is made, and no check
//! goes through the entries of a long list.

use crate::networks::Networks;
use alloc::{sync::Arc, vec::Vec};
use core::{hash::BuildHasher, net::IpAddr, ops::Deref};
use hashbrown::HashTable;
use ostler_proto::acl::{Acl, Id, Perms};
use rustc_hash::FxBuildHasher;

/// The number of entries from which a list has an index. Most lists have one entry.
pub const INDEX_FROM: usize = 9;

/// The permissions that all entries of one id grant together.
#[derive(Debug)]
struct IdPerms {
    /// The position of the first entry with this id.
    at: u32,
    perms: Perms,
}

/// An access control list.
#[derive(Debug)]
pub struct AclList {
    entries: Arc<[Acl]>,
    serial: u64,
    size: usize,
    /// The permissions of `world:anyone`.
    everybody: Perms,
    /// The index of ids, without addresses; empty for a short list.
    by_id: HashTable<IdPerms>,
    networks: Networks,
}

fn hash(id: &Id) -> u64 {
    FxBuildHasher.hash_one((&*id.scheme, &*id.id))
}

fn is_anyone(id: &Id) -> bool {
    id.scheme == "world" && id.id == "anyone"
}

/// Whether the ids of a scheme are networks. Ids of other schemes are compared as text.
pub fn is_of_addresses(scheme: &str) -> bool {
    scheme == "ip"
}

impl AclList {
    /// A list of these entries. `serial` is a number that no other list ever has, by which results of checks can be
    /// cached. With 0 nothing is cached.
    pub fn new(entries: Arc<[Acl]>, serial: u64) -> AclList {
        let mut everybody = Perms(0);
        let mut networks = Vec::new();
        for entry in &*entries {
            if is_anyone(&entry.id) {
                everybody = everybody.with(entry.perms);
            } else if is_of_addresses(&entry.id.scheme) {
                networks.push((&*entry.id.id, entry.perms));
            }
        }
        let networks = Networks::new(networks);
        let size = entries.iter().map(Acl::size).sum();
        let mut list = AclList { entries, serial, size, everybody, by_id: HashTable::new(), networks };
        if list.entries.len() >= INDEX_FROM {
            list.index();
        }
        list
    }

    fn index(&mut self) {
        let entries = &self.entries;
        let mut by_id: HashTable<IdPerms> = HashTable::with_capacity(entries.len());
        let compared = entries.iter().enumerate().filter(|(_, entry)| !is_of_addresses(&entry.id.scheme));
        for (at, Acl { perms, id }) in compared {
            let hash_value = hash(id);
            match by_id.find_mut(hash_value, |other| entries[other.at as usize].id == *id) {
                Some(known) => known.perms = known.perms.with(*perms),
                None => {
                    let new = IdPerms { at: at as u32, perms: *perms };
                    by_id.insert_unique(hash_value, new, |other| hash(&entries[other.at as usize].id));
                }
            }
        }
        self.by_id = by_id;
    }

    /// The serial: a number that no other list of this tree ever has, or 0.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// About how many bytes of memory the entries take.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The entries, shared.
    pub fn shared(&self) -> &Arc<[Acl]> {
        &self.entries
    }

    /// The permissions of `world:anyone`.
    pub fn perms_of_everybody(&self) -> Perms {
        self.everybody
    }

    /// The permissions of an id that is not an address.
    pub fn perms_of_id(&self, id: &Id) -> Perms {
        if self.entries.len() < INDEX_FROM {
            let matching = self.entries.iter().filter(|entry| entry.id == *id);
            return matching.fold(Perms(0), |perms, entry| perms.with(entry.perms));
        }
        let found = self.by_id.find(hash(id), |other| self.entries[other.at as usize].id == *id);
        found.map_or(Perms(0), |found| found.perms)
    }

    /// The permissions of an address, by all networks that contain it.
    pub fn perms_of_address(&self, address: IpAddr) -> Perms {
        self.networks.perms_of(address)
    }
}

impl Deref for AclList {
    type Target = [Acl];

    fn deref(&self) -> &[Acl] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn entry(perms: i32, scheme: &str, id: &str) -> Acl {
        Acl { perms: Perms(perms), id: Id::new(scheme, id) }
    }

    #[test]
    fn a_list_with_an_index_grants_the_same_as_a_short_one() {
        let few = [
            entry(1, "digest", "bob:h"),
            entry(4, "digest", "bob:h"),
            entry(2, "ip", "10.0.0.0/8"),
            entry(8, "world", "anyone"),
            entry(16, "world", "somebody"),
        ];
        let many = few.iter().cloned().chain((0..100).map(|n| entry(31, "digest", &format!("u{n}:h"))));
        let many: Vec<Acl> = many.collect();
        for list in [&few[..], &many[..]] {
            let list = AclList::new(list.into(), 0);
            assert_eq!(list.perms_of_everybody(), Perms(8));
            assert_eq!(list.perms_of_id(&Id::new("digest", "bob:h")), Perms(5));
            assert_eq!(list.perms_of_id(&Id::new("digest", "eve:h")), Perms(0));
            assert_eq!(list.perms_of_id(&Id::new("world", "somebody")), Perms(16));
            assert_eq!(list.perms_of_address([10, 1, 2, 3].into()), Perms(2));
            assert_eq!(list.perms_of_address([11, 1, 2, 3].into()), Perms(0));
        }
    }
}
