//! The access control lists of a tree. Equal lists are stored once, with the number of znodes that use them.

use crate::acl_list::AclList;
use alloc::{sync::Arc, vec::Vec};
use hashbrown::HashMap;
use ostler_proto::acl::{Acl, Perms};
use rustc_hash::FxBuildHasher;

/// The number of a list in the table. On disk it is an i64, with -1 for the open list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AclId(u32);

impl AclId {
    /// The open list: `world:anyone` may do everything. It is never in the table.
    pub const OPEN: AclId = AclId(u32::MAX);

    /// The number in a snapshot.
    pub fn to_disk(self) -> i64 {
        if self == AclId::OPEN { -1 } else { i64::from(self.0) }
    }
}

/// A list. `None` is the open list, which nearly every znode has.
pub type AclRef = Option<Arc<AclList>>;

#[derive(Debug)]
struct Entry {
    acls: Arc<AclList>,
    uses: u64,
}

/// The lists that znodes use.
#[derive(Debug, Default)]
pub struct AclTable {
    by_id: HashMap<AclId, Entry, FxBuildHasher>,
    ids: HashMap<Arc<[Acl]>, AclId, FxBuildHasher>,
    last: u32,
    /// The last serial. Unlike a number, a serial is never used again.
    last_serial: u64,
}

/// Whether a list is the open list.
pub fn is_open(acls: &[Acl]) -> bool {
    matches!(acls, [one] if one.perms == Perms::ALL && one.id.scheme == "world" && one.id.id == "anyone")
}

/// A reference to a new list; `None` for the open list. For `serial` see [`AclList::new`].
pub fn to_ref(acls: &[Acl], serial: u64) -> AclRef {
    (!is_open(acls)).then(|| Arc::new(AclList::new(acls.into(), serial)))
}

impl AclTable {
    /// The number of a list, with one use more. A new list is entered.
    pub fn acquire(&mut self, acls: &[Acl]) -> AclId {
        if is_open(acls) {
            return AclId::OPEN;
        }
        if let Some(id) = self.ids.get(acls).copied() {
            self.acquire_id(id);
            return id;
        }
        let id = self.free_id();
        let acls: Arc<[Acl]> = acls.into();
        self.ids.insert(acls.clone(), id);
        self.last_serial += 1;
        let acls = Arc::new(AclList::new(acls, self.last_serial));
        self.by_id.insert(id, Entry { acls, uses: 1 });
        id
    }

    /// A number that no list has. Each new list gets the next number; at the end they begin again.
    fn free_id(&mut self) -> AclId {
        loop {
            self.last = self.last.wrapping_add(1);
            let id = AclId(self.last);
            if id != AclId::OPEN && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    fn acquire_id(&mut self, id: AclId) {
        if let Some(entry) = self.by_id.get_mut(&id) {
            entry.uses += 1;
        }
    }

    /// One use less. A list without uses is removed.
    pub fn release(&mut self, id: AclId) {
        let Some(entry) = self.by_id.get_mut(&id) else { return };
        entry.uses -= 1;
        if entry.uses == 0 {
            self.ids.remove(&**entry.acls);
            self.by_id.remove(&id);
        }
    }

    /// The list with this number.
    pub fn get(&self, id: AclId) -> AclRef {
        // Nearly every znode has the open list.
        if id == AclId::OPEN {
            return None;
        }
        self.by_id.get(&id).map(|entry| entry.acls.clone())
    }

    /// All lists, in the order of their numbers.
    pub fn entries(&self) -> Vec<(AclId, Arc<[Acl]>)> {
        let mut all: Vec<_> =
            self.by_id.iter().map(|(id, entry)| (*id, entry.acls.shared().clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_again_and_skip_those_in_use() {
        let list = |perms: i32| [Acl::world(Perms(perms))];
        let mut table = AclTable { last: u32::MAX - 2, ..AclTable::default() };
        let kept: Vec<AclId> = (1..=3).map(|perms| table.acquire(&list(perms))).collect();
        assert_eq!(kept, [AclId(u32::MAX - 1), AclId(0), AclId(1)]);
        table.last = u32::MAX - 2;
        assert_eq!(table.acquire(&list(4)), AclId(2));
        assert_eq!(**table.get(kept[0]).unwrap(), list(1));
    }

    #[test]
    fn equal_lists_are_shared_and_removed_with_their_last_use() {
        let mut table = AclTable::default();
        let list = [Acl::world(Perms::READ)];
        let id = table.acquire(&list);
        assert_eq!(table.acquire(&list), id);
        assert_eq!(table.acquire(&[Acl::world(Perms::ALL)]), AclId::OPEN);
        table.release(id);
        assert!(table.get(id).is_some());
        table.release(id);
        assert!(table.get(id).is_none() && table.entries().is_empty());
        assert_ne!(table.acquire(&list), id);
    }

    /// The results of checks are cached by serial.
    #[test]
    fn no_two_lists_have_the_same_serial() {
        let mut table = AclTable::default();
        let ids: Vec<AclId> = (1..=3).map(|perms| table.acquire(&[Acl::world(Perms(perms))])).collect();
        let mut serials: Vec<u64> = ids.iter().map(|id| table.get(*id).unwrap().serial()).collect();
        serials.dedup();
        assert!(serials.len() == 3 && !serials.contains(&0), "{serials:?}");
    }
}
