//! Names of children, by parent.
//!
//! They are not part of a frozen view (a snapshot's order of parents before children follows from the
//! paths), so a change to a long list never copies it.

use crate::table::hash;
use alloc::vec::Vec;
use arcstr::ArcStr;
use core::ops::Range;
use hashbrown::{HashMap, HashTable};
use ostler_proto::path;
use rustc_hash::FxBuildHasher;

/// The children of one parent, as whole paths shared with the znodes.
#[derive(Debug)]
enum Names {
    Short(ShortList),
    Long(LongList),
}

/// A list that is longer is kept in parts.
const SHORT_MAX: usize = 1024;

impl Names {
    fn new() -> Self {
        Names::Short(ShortList { buckets: ShortList::BUCKETS_AT_FIRST, names: Vec::new() })
    }

    fn len(&self) -> usize {
        match self {
            Names::Short(list) => list.names.len(),
            Names::Long(list) => list.len,
        }
    }

    fn insert(&mut self, child: ArcStr) {
        match self {
            Names::Short(list) => {
                list.insert(child);
                if list.names.len() > SHORT_MAX {
                    let names = core::mem::take(&mut list.names);
                    *self = Names::Long(LongList::of(names.into_iter().map(|(_, name)| name)));
                }
            }
            Names::Long(list) => list.insert(child),
        }
    }

    fn remove(&mut self, child: &str) -> bool {
        match self {
            Names::Short(list) => list.remove(child),
            Names::Long(list) => list.remove(child),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &ArcStr> {
        let (short, long) = match self {
            Names::Short(list) => (&*list.names, None),
            Names::Long(list) => (&[][..], Some(list)),
        };
        let long = long.into_iter().flat_map(LongList::iter);
        short.iter().map(|(_, name)| name).chain(long)
    }
}

/// Names in the order of upstream, whose list is a `HashSet` of 8 at first: by buckets, of which there are twice as many
/// whenever three quarters of them would be exceeded, and in a bucket as they came. Programs have got used to it: it
/// starts with `bar snafu foo` under every parent.
#[derive(Debug)]
struct ShortList {
    /// A power of two, which never goes back.
    buckets: u32,
    /// With their hashes.
    names: Vec<(u32, ArcStr)>,
}

impl ShortList {
    const BUCKETS_AT_FIRST: u32 = 8;

    fn bucket(&self, hash: u32) -> u32 {
        hash & (self.buckets - 1)
    }

    /// Where a bucket begins and ends.
    fn range(&self, hash: u32) -> Range<usize> {
        let bucket = self.bucket(hash);
        let begin = self.names.partition_point(|(other, _)| self.bucket(*other) < bucket);
        let length =
            self.names[begin..].iter().take_while(|(other, _)| self.bucket(*other) == bucket).count();
        begin..begin + length
    }

    fn insert(&mut self, child: ArcStr) {
        let hash = java_hash(path::name(&child));
        let range = self.range(hash);
        if self.names[range.clone()].iter().any(|(_, other)| *other == child) {
            return;
        }
        self.names.insert(range.end, (hash, child));
        if self.names.len() as u32 > self.buckets / 4 * 3 {
            self.buckets *= 2;
            let mask = self.buckets - 1;
            self.names.sort_by_key(|(hash, _)| hash & mask);
        }
    }

    fn remove(&mut self, child: &str) -> bool {
        let range = self.range(java_hash(path::name(child)));
        let found = self.names[range.clone()].iter().position(|(_, other)| **other == *child);
        found.map(|at| self.names.remove(range.start + at)).is_some()
    }
}

/// `HashMap.hash` of a `String`: its `hashCode`, which goes by UTF-16, with the upper half mixed into the lower.
fn java_hash(name: &str) -> u32 {
    let hash = match name.is_ascii() {
        true => name.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())),
        false => {
            name.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
        }
    };
    hash ^ hash >> 16
}

/// A list in parts, so that no insertion ever rehashes more than a small part of it. Its order means nothing.
#[derive(Debug)]
struct LongList {
    parts: Vec<HashTable<ArcStr>>,
    len: usize,
}

const PARTS: usize = 256;

impl LongList {
    fn of(names: impl Iterator<Item = ArcStr>) -> LongList {
        let mut list = LongList { parts: (0..PARTS).map(|_| HashTable::new()).collect(), len: 0 };
        names.for_each(|name| list.insert(name));
        list
    }

    fn part(hash: u64) -> usize {
        (hash >> 48) as usize % PARTS
    }

    fn insert(&mut self, child: ArcStr) {
        let hash_value = hash(&child);
        let table = &mut self.parts[LongList::part(hash_value)];
        if table.find(hash_value, |other| *other == child).is_some() {
            return;
        }
        table.insert_unique(hash_value, child, |other| hash(other));
        self.len += 1;
    }

    fn remove(&mut self, child: &str) -> bool {
        let hash = hash(child);
        let part = LongList::part(hash);
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
        if names.len() == 0 {
            self.by_parent.remove(parent);
        }
        removed
    }

    /// The children's whole paths: up to some thousand of them in upstream's order.
    pub fn of(&self, parent: &str) -> impl Iterator<Item = &ArcStr> {
        self.by_parent.get(parent).into_iter().flat_map(Names::iter)
    }

    /// How many.
    pub fn count(&self, parent: &str) -> usize {
        self.by_parent.get(parent).map_or(0, |names| names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format};

    fn ordered(names: &[&str]) -> alloc::vec::Vec<alloc::string::String> {
        let mut families = Families::default();
        let parent: ArcStr = "/p".into();
        names.iter().for_each(|name| families.insert(&parent, format!("/p/{name}").into()));
        families.of("/p").map(|path| path[3..].into()).collect()
    }

    /// Seen with ZooKeeper 3.9, and what a Java `HashSet` of 8 gives for the same.
    #[test]
    fn names_come_in_upstreams_order() {
        for names in [["foo", "bar", "snafu"], ["snafu", "foo", "bar"], ["bar", "snafu", "foo"]] {
            assert_eq!(ordered(&names), ["bar", "snafu", "foo"]);
        }
        // Aa and BB have one hash: they stand as they came.
        assert_eq!(ordered(&["BB", "Aa"]), ["BB", "Aa"]);
        assert_eq!(ordered(&["Aa", "BB"]), ["Aa", "BB"]);
        // More than six: twice as many buckets.
        assert_eq!(ordered(&["h", "p", "a", "i", "b", "c"]), ["h", "p", "a", "i", "b", "c"]);
        assert_eq!(ordered(&["h", "p", "a", "i", "b", "c", "x"]), ["p", "a", "b", "c", "h", "x", "i"]);
        assert_eq!(java_hash("\u{e4}"), 0xe4);
        assert_eq!(java_hash("\u{1f600}"), (0xd83d_u32 * 31 + 0xde00) ^ (0xd83d * 31 + 0xde00) >> 16);
    }

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
