//! One access control list, and what is looked up in it.
//!
//! A client may store tens of thousands of entries. So what a check asks for is sorted once, when the list is made, and
//! no check goes through the entries of a long list.

use crate::networks::Networks;
use alloc::{sync::Arc, vec::Vec};
use core::{hash::BuildHasher, net::IpAddr, ops::Deref};
use hashbrown::HashTable;
use ostler_proto::acl::{Acl, Id, Perms};
use rustc_hash::FxBuildHasher;

/// Shorter lists are gone through: most have one entry.
pub const INDEX_FROM: usize = 9;

/// What all entries of one id grant together.
#[derive(Debug)]
struct Named {
    /// The first of them.
    at: u32,
    perms: Perms,
}

/// A list of entries.
#[derive(Debug)]
pub struct AclList {
    entries: Arc<[Acl]>,
    serial: u64,
    size: usize,
    /// What `world:anyone` may do.
    everybody: Perms,
    /// By id, but for addresses; empty for a short list.
    named: HashTable<Named>,
    networks: Networks,
}

fn hash(id: &Id) -> u64 {
    FxBuildHasher.hash_one((&*id.scheme, &*id.id))
}

fn is_anyone(id: &Id) -> bool {
    id.scheme == "world" && id.id == "anyone"
}

/// Whether ids of a scheme are networks, and not compared as they stand.
pub fn is_of_addresses(scheme: &str) -> bool {
    scheme == "ip"
}

impl AclList {
    /// The list of these entries. `serial` is a number that no other list ever has, or 0: then nothing may be remembered
    /// about it.
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
        let mut list = AclList { entries, serial, size, everybody, named: HashTable::new(), networks };
        if list.entries.len() >= INDEX_FROM {
            list.index();
        }
        list
    }

    fn index(&mut self) {
        let entries = &self.entries;
        let mut named: HashTable<Named> = HashTable::with_capacity(entries.len());
        let by_id = entries.iter().enumerate().filter(|(_, entry)| !is_of_addresses(&entry.id.scheme));
        for (at, Acl { perms, id }) in by_id {
            let hash_value = hash(id);
            match named.find_mut(hash_value, |other| entries[other.at as usize].id == *id) {
                Some(known) => known.perms = known.perms.with(*perms),
                None => {
                    let new = Named { at: at as u32, perms: *perms };
                    named.insert_unique(hash_value, new, |other| hash(&entries[other.at as usize].id));
                }
            }
        }
        self.named = named;
    }

    /// A number that no other list of this tree ever has; 0 for none.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// About how many bytes the entries take.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The entries, shared.
    pub fn shared(&self) -> &Arc<[Acl]> {
        &self.entries
    }

    /// What everybody may do.
    pub fn everybody(&self) -> Perms {
        self.everybody
    }

    /// What an id may do that is no address.
    pub fn of_id(&self, id: &Id) -> Perms {
        if self.entries.len() < INDEX_FROM {
            let of_it = self.entries.iter().filter(|entry| entry.id == *id);
            return of_it.fold(Perms(0), |perms, entry| perms.with(entry.perms));
        }
        let found = self.named.find(hash(id), |named| self.entries[named.at as usize].id == *id);
        found.map_or(Perms(0), |named| named.perms)
    }

    /// What an address may do.
    pub fn of_address(&self, address: IpAddr) -> Perms {
        self.networks.of(address)
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
    fn short_and_long_lists_say_the_same() {
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
            assert_eq!(list.everybody(), Perms(8));
            assert_eq!(list.of_id(&Id::new("digest", "bob:h")), Perms(5));
            assert_eq!(list.of_id(&Id::new("digest", "eve:h")), Perms(0));
            assert_eq!(list.of_id(&Id::new("world", "somebody")), Perms(16));
            assert_eq!(list.of_address([10, 1, 2, 3].into()), Perms(2));
            assert_eq!(list.of_address([11, 1, 2, 3].into()), Perms(0));
        }
    }
}
