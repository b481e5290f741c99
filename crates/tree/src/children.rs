//! Names of children, by parent.
//!
//! They are not part of a frozen view (a snapshot's order of parents before children follows from the
//! paths), so a change to a long list never copies it.

use crate::table::hash;
use alloc::{vec, vec::Vec};
use arcstr::ArcStr;
use hashbrown::{HashMap, HashTable};
use rustc_hash::FxBuildHasher;

/// The children of one parent, as whole paths shared with the znodes. A long list is split, so that no
/// insertion ever rehashes more than a small part of it.
#[derive(Debug)]
struct Names {
    parts: Vec<HashTable<ArcStr>>,
    len: usize,
}

const SPLIT_ABOVE: usize = 1024;
const PARTS: usize = 256;

impl Names {
    fn new() -> Self {
        Names { parts: vec![HashTable::new()], len: 0 }
    }

    fn part(&self, hash: u64) -> usize {
        (hash >> 48) as usize % self.parts.len()
    }

    fn insert(&mut self, child: ArcStr) {
        let hash_value = hash(&child);
        let part = self.part(hash_value);
        let table = &mut self.parts[part];
        if table.find(hash_value, |other| *other == child).is_some() {
            return;
        }
        table.insert_unique(hash_value, child, |other| hash(other));
        self.len += 1;
        if self.parts.len() == 1 && self.len > SPLIT_ABOVE {
            self.split();
        }
    }

    fn split(&mut self) {
        let whole = core::mem::replace(&mut self.parts, (0..PARTS).map(|_| HashTable::new()).collect());
        for child in whole.into_iter().flatten() {
            let hash_value = hash(&child);
            let part = self.part(hash_value);
            self.parts[part].insert_unique(hash_value, child, |other| hash(other));
        }
    }

    fn remove(&mut self, child: &str) -> bool {
        let hash = hash(child);
        let part = self.part(hash);
        let Ok(slot) = self.parts[part].find_entry(hash, |other| **other == *child) else { return false };
        slot.remove();
        self.len -= 1;
        true
    }

    fn iter(&self) -> impl Iterator<Item = &ArcStr> {
        self.parts.iter().flat_map(|part| part.iter())
    }
}

/// Children by parent; parents without any have no entry.
#[derive(Debug, Default)]
pub struct Families {
    by_parent: HashMap<ArcStr, Names, FxBuildHasher>,
}

impl Families {
    /// Adds a child.
    pub fn insert(&mut self, parent: &ArcStr, child: ArcStr) {
        let names = match self.by_parent.get_mut(parent) {
            Some(names) => names,
            None => self.by_parent.entry(parent.clone()).or_insert_with(Names::new),
        };
        names.insert(child);
    }

    /// Removes a child; whether it was there.
    pub fn remove(&mut self, parent: &str, child: &str) -> bool {
        let Some(names) = self.by_parent.get_mut(parent) else { return false };
        let removed = names.remove(child);
        if names.len == 0 {
            self.by_parent.remove(parent);
        }
        removed
    }

    /// The children's whole paths, in no order that means anything.
    pub fn of(&self, parent: &str) -> impl Iterator<Item = &ArcStr> {
        self.by_parent.get(parent).into_iter().flat_map(Names::iter)
    }

    /// How many.
    pub fn count(&self, parent: &str) -> usize {
        self.by_parent.get(parent).map_or(0, |names| names.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format};

    #[test]
    fn long_lists_keep_every_child() {
        let mut families = Families::default();
        let parent: ArcStr = "/p".into();
        for n in 0..3000 {
            families.insert(&parent, format!("/p/{n}").into());
            families.insert(&parent, format!("/p/{n}").into());
        }
        assert_eq!(families.count("/p"), 3000);
        assert_eq!(families.of("/p").collect::<BTreeSet<_>>().len(), 3000);
        for n in 0..3000 {
            assert!(families.remove("/p", &format!("/p/{n}")));
        }
        assert!(!families.remove("/p", "/p/1"));
        assert_eq!((families.count("/p"), families.by_parent.len()), (0, 0));
    }
}
