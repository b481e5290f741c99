//! The child index: the names of a znode's children, and the number and size of all znodes below it.
//!
//! The index is not part of a frozen view, so a change of a long list never copies it. A snapshot does not need it: the
//! order of parents before children follows from the paths.

use crate::{
    sorted_strings::{SortedStrings, is_in_order, order},
    table::hash,
};
use alloc::{borrow::Cow, string::String, vec::Vec};
use arcstr::ArcStr;
use core::{cmp::Ordering, ops::Range};
use hashbrown::HashTable;
use ostler_proto::{path, strings::SharedStrings};

/// The names of one parent's children.
#[derive(Debug)]
enum Names {
    Short(ShortList),
    /// A long list, encoded as a reply has it.
    Long(SortedStrings),
}

/// The highest number of names, and of their bytes, in a short list.
const SHORT_MAX: usize = 1024;
const SHORT_MAX_BYTES: usize = 256 << 10;

impl Names {
    fn new() -> Self {
        Names::Short(ShortList { buckets: ShortList::BUCKETS_AT_FIRST, names: Vec::new() })
    }

    fn len(&self) -> usize {
        match self {
            Names::Short(list) => list.names.len(),
            Names::Long(list) => list.len(),
        }
    }

    /// Returns whether the child is new.
    fn insert(&mut self, child: ArcStr) -> bool {
        match self {
            Names::Short(list) => list.insert(child),
            Names::Long(list) => list.insert(path::name(&child)),
        }
    }

    fn remove(&mut self, child: &str) -> bool {
        match self {
            Names::Short(list) => list.remove(child),
            Names::Long(list) => list.remove(path::name(child)),
        }
    }

    /// Makes it a long list. It stays one when it becomes shorter.
    fn lengthen(&mut self) {
        if let Names::Short(list) = self {
            let mut names: Vec<&str> = list.names.iter().map(|(_, child)| path::name(child)).collect();
            names.sort_unstable();
            let mut long = SortedStrings::default();
            for name in names {
                long.insert(name);
            }
            *self = Names::Long(long);
        }
    }

    fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let (short, long) = match self {
            Names::Short(list) => (&*list.names, None),
            Names::Long(list) => (&[][..], Some(list)),
        };
        let long = long.into_iter().flat_map(SortedStrings::iter);
        short.iter().map(|(_, child)| path::name(child).into()).chain(long)
    }

    /// The names from a place on, in order.
    fn from(&self, (from, after): (&str, bool), max: usize) -> Vec<String> {
        match self {
            Names::Short(list) => {
                let mut names: Vec<&str> = list.names.iter().map(|(_, child)| path::name(child)).collect();
                let order = order_of(names.iter().chain([&from]));
                names.retain(|name| match order(name, from) {
                    Ordering::Less => false,
                    Ordering::Equal => !after,
                    Ordering::Greater => true,
                });
                names.sort_unstable_by(|one, other| order(one, other));
                names.truncate(max);
                names.into_iter().map(Into::into).collect()
            }
            Names::Long(list) if after => list.after(from).take(max).map(Cow::into_owned).collect(),
            Names::Long(list) => list.at_or_after(from).take(max).map(Cow::into_owned).collect(),
        }
    }

    /// Of the names that begin with a text, those from a place on, in order, and the number of all of them.
    fn at(&self, (begin, place): (&str, usize), max: usize) -> (Vec<String>, usize) {
        match self {
            Names::Short(list) => {
                let names = list.names.iter().map(|(_, child)| path::name(child));
                let mut names: Vec<&str> = names.filter(|name| name.starts_with(begin)).collect();
                let order = order_of(names.iter());
                names.sort_unstable_by(|one, other| order(one, other));
                let some = names.iter().skip(place).take(max).map(|name| (*name).into());
                (some.collect(), names.len())
            }
            Names::Long(list) => {
                let places = list.places_of_prefix(begin);
                let max = max.min(places.len().saturating_sub(place));
                let some = list.from_place(places.start.saturating_add(place)).take(max).map(Cow::into_owned);
                (some.collect(), places.len())
            }
        }
    }

    /// The last name in order.
    fn last(&self) -> Option<String> {
        match self {
            Names::Short(list) => {
                let names = list.names.iter().map(|(_, child)| path::name(child));
                names.max_by(|one, other| order(one, other)).map(Into::into)
            }
            Names::Long(list) => list.last().map(Cow::into_owned),
        }
    }

    /// The list for a reply, and the number of pieces that it was made of, as a measure of the work.
    fn share(&self) -> (SharedStrings, usize) {
        match self {
            Names::Short(list) => {
                let names = list.names.iter().map(|(_, child)| path::name(child));
                (SharedStrings::encode(names), list.names.len())
            }
            Names::Long(list) => (list.share(), list.parts()),
        }
    }
}

/// The order of these names. The bytes of all names are looked at once, and not with each comparison.
fn order_of<'a>(mut names: impl Iterator<Item = &'a &'a str>) -> fn(&str, &str) -> Ordering {
    match names.all(|name| is_in_order(name)) {
        true => |one: &str, other: &str| one.cmp(other),
        false => order,
    }
}

/// Names in the order of upstream, where the list is a `HashSet`. It starts with 8 buckets, and their number doubles
/// when there are more names than three quarters of it. Names are ordered by bucket, and within a bucket by age.
/// Programs have come to rely on it, since the same names have the same order under every parent, such as `bar snafu
/// foo`.
#[derive(Debug)]
struct ShortList {
    /// The number of buckets: a power of two, which never becomes smaller.
    buckets: u32,
    /// The children with the hashes of their names.
    names: Vec<(u32, ArcStr)>,
}

impl ShortList {
    const BUCKETS_AT_FIRST: u32 = 8;

    fn bucket(&self, hash: u32) -> u32 {
        hash & (self.buckets - 1)
    }

    /// The names in the bucket of this hash.
    fn range(&self, hash: u32) -> Range<usize> {
        let bucket = self.bucket(hash);
        let begin = self.names.partition_point(|(other, _)| self.bucket(*other) < bucket);
        let length =
            self.names[begin..].iter().take_while(|(other, _)| self.bucket(*other) == bucket).count();
        begin..begin + length
    }

    fn insert(&mut self, child: ArcStr) -> bool {
        let hash = java_hash(path::name(&child));
        let range = self.range(hash);
        if self.names[range.clone()].iter().any(|(_, other)| *other == child) {
            return false;
        }
        self.names.insert(range.end, (hash, child));
        if self.names.len() as u32 > self.buckets / 4 * 3 {
            self.buckets *= 2;
            let mask = self.buckets - 1;
            self.names.sort_by_key(|(hash, _)| hash & mask);
        }
        true
    }

    fn remove(&mut self, child: &str) -> bool {
        let range = self.range(java_hash(path::name(child)));
        let found = self.names[range.clone()].iter().position(|(_, other)| **other == *child);
        found.map(|at| self.names.remove(range.start + at)).is_some()
    }
}

/// Java's `HashMap.hash` of a `String`: its `hashCode`, over UTF-16, with the upper half mixed into the lower one.
fn java_hash(name: &str) -> u32 {
    let hash = match name.is_ascii() {
        true => name.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())),
        false => {
            name.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
        }
    };
    hash ^ hash >> 16
}

/// The number of hash tables by parent. With several tables an insertion never rehashes more than a small part.
const PARTS: usize = 256;

fn part_of(hash: u64) -> usize {
    (hash >> 48) as usize % PARTS
}

/// The entry of one parent: the names of its children, and the totals of everything below it.
#[derive(Debug)]
struct Children {
    parent: ArcStr,
    names: Names,
    /// The index of the entry in which the parent is a child; `NONE` for the root's entry.
    above: u32,
    /// The number of znodes below the parent at any depth.
    below: u32,
    /// The bytes of data in these znodes.
    bytes: i64,
    /// The bytes of the children's names.
    name_bytes: usize,
}

const NONE: u32 = u32::MAX;
/// The number of entries in a block. With blocks, growth never moves an entry.
const BLOCK: usize = 1024;

/// Children by parent. A parent without children has no entry.
///
/// The totals below each parent are kept up to date, so a count never goes through a subtree. Each entry has the index
/// of the entry above it, so a change costs one step for each znode above, and no look-up.
#[derive(Debug)]
pub struct ChildIndex {
    by_parent: Vec<HashTable<u32>>,
    blocks: Vec<Vec<Children>>,
    free: Vec<u32>,
}

impl Default for ChildIndex {
    fn default() -> Self {
        let by_parent = (0..PARTS).map(|_| HashTable::new()).collect();
        ChildIndex { by_parent, blocks: Vec::new(), free: Vec::new() }
    }
}

impl ChildIndex {
    fn at(&self, index: u32) -> &Children {
        &self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }

    fn at_mut(&mut self, index: u32) -> &mut Children {
        &mut self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }

    fn find(&self, parent: &str) -> Option<u32> {
        let hash = hash(parent);
        let part = &self.by_parent[part_of(hash)];
        part.find(hash, |index| *self.at(*index).parent == *parent).copied()
    }

    /// Adds the entry of a parent that gets its first child.
    fn begin(&mut self, parent: &ArcStr) -> u32 {
        let above =
            if parent == "/" { None } else { path::parent(parent).and_then(|above| self.find(above)) };
        let above = above.unwrap_or(NONE);
        let children = Children {
            parent: parent.clone(),
            names: Names::new(),
            above,
            below: 0,
            bytes: 0,
            name_bytes: 0,
        };
        let index = match self.free.pop() {
            Some(index) => {
                *self.at_mut(index) = children;
                index
            }
            None => {
                if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
                    self.blocks.push(Vec::with_capacity(BLOCK));
                }
                let last = self.blocks.len() - 1;
                self.blocks[last].push(children);
                (last * BLOCK + self.blocks[last].len() - 1) as u32
            }
        };
        let hash_value = hash(parent);
        let blocks = &self.blocks;
        let parent_of = |index: &u32| &*blocks[*index as usize / BLOCK][*index as usize % BLOCK].parent;
        let part = &mut self.by_parent[part_of(hash_value)];
        part.insert_unique(hash_value, index, |other| hash(parent_of(other)));
        index
    }

    /// Removes the entry of a parent without children.
    fn end(&mut self, index: u32) {
        let hash = hash(&self.at(index).parent);
        if let Ok(slot) = self.by_parent[part_of(hash)].find_entry(hash, |other| *other == index) {
            slot.remove();
        }
        let children = self.at_mut(index);
        (children.parent, children.names) = (ArcStr::new(), Names::new());
        self.free.push(index);
    }

    /// Adds to the totals of an entry and of all entries above it.
    fn add_to_totals(&mut self, mut index: u32, znodes: i32, bytes: i64) {
        while index != NONE {
            let children = self.at_mut(index);
            children.below = children.below.saturating_add_signed(znodes);
            children.bytes += bytes;
            index = children.above;
        }
    }

    /// Adds a child. `bytes` is the length of its data.
    pub fn insert(&mut self, parent: &ArcStr, child: ArcStr, bytes: usize) {
        let index = self.find(parent).unwrap_or_else(|| self.begin(parent));
        let children = self.at_mut(index);
        let name_bytes = path::name(&child).len();
        if children.names.insert(child) {
            children.name_bytes += name_bytes;
            if children.names.len() > SHORT_MAX || children.name_bytes > SHORT_MAX_BYTES {
                children.names.lengthen();
            }
            self.add_to_totals(index, 1, bytes as i64);
        }
    }

    /// Removes a child. `bytes` is the length of its data. Returns false if there is no such child.
    pub fn remove(&mut self, parent: &str, child: &str, bytes: usize) -> bool {
        let Some(index) = self.find(parent) else { return false };
        let children = self.at_mut(index);
        if !children.names.remove(child) {
            return false;
        }
        children.name_bytes -= path::name(child).len();
        let is_empty = children.names.len() == 0;
        self.add_to_totals(index, -1, -(bytes as i64));
        if is_empty {
            self.end(index);
        }
        true
    }

    /// Notes that the data of a child have become longer by this number of bytes.
    pub fn add_bytes(&mut self, parent: &str, bytes: i64) {
        if let Some(index) = self.find(parent) {
            self.add_to_totals(index, 0, bytes);
        }
    }

    /// The number of znodes below a parent at any depth, and the bytes of their data.
    pub fn below(&self, parent: &str) -> (usize, i64) {
        let children = self.find(parent).map(|index| self.at(index));
        children.map_or((0, 0), |children| (children.below as usize, children.bytes))
    }

    /// The size of the encoded list of the children's names, in bytes.
    pub fn names_size(&self, parent: &str) -> usize {
        let children = self.find(parent).map(|index| self.at(index));
        4 + children.map_or(0, |children| 4 * children.names.len() + children.name_bytes)
    }

    /// The names of the children. Short lists are in upstream's order, long ones in the order of their bytes.
    pub fn of(&self, parent: &str) -> impl Iterator<Item = Cow<'_, str>> {
        self.find(parent).into_iter().flat_map(|index| self.at(index).names.iter())
    }

    /// The names from this one on, in the order of [`order`], at most `max`. With `after` without this one
    /// itself.
    pub fn names_from(&self, parent: &str, from: (&str, bool), max: usize) -> Vec<String> {
        self.find(parent).map_or_else(Vec::new, |index| self.at(index).names.from(from, max))
    }

    /// Of the names that begin with a text, those from a place on, in the order of [`order`], at most `max`, and the number
    /// of all of them.
    pub fn names_at(&self, parent: &str, place: (&str, usize), max: usize) -> (Vec<String>, usize) {
        self.find(parent).map_or((Vec::new(), 0), |index| self.at(index).names.at(place, max))
    }

    /// The last name, in the order of [`order`].
    pub fn last(&self, parent: &str) -> Option<String> {
        self.find(parent).and_then(|index| self.at(index).names.last())
    }

    /// The names for a reply, and the number of pieces that the list was made of, as a measure of the work.
    pub fn share(&self, parent: &str) -> (SharedStrings, usize) {
        match self.find(parent) {
            Some(index) => self.at(index).names.share(),
            None => (SharedStrings::encode([].into_iter()), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format};

    fn ordered(names: &[&str]) -> alloc::vec::Vec<alloc::string::String> {
        let mut child_index = ChildIndex::default();
        let parent: ArcStr = "/p".into();
        names.iter().for_each(|name| child_index.insert(&parent, format!("/p/{name}").into(), 0));
        child_index.of("/p").map(Into::into).collect()
    }

    /// Seen with ZooKeeper 3.9, and what a Java `HashSet` of 8 gives for the same.
    #[test]
    fn names_come_in_upstreams_order() {
        for names in [["foo", "bar", "snafu"], ["snafu", "foo", "bar"], ["bar", "snafu", "foo"]] {
            assert_eq!(ordered(&names), ["bar", "snafu", "foo"]);
        }
        // Aa and BB have the same hash: they are ordered by age.
        assert_eq!(ordered(&["BB", "Aa"]), ["BB", "Aa"]);
        assert_eq!(ordered(&["Aa", "BB"]), ["Aa", "BB"]);
        // More than six: twice as many buckets.
        assert_eq!(ordered(&["h", "p", "a", "i", "b", "c"]), ["h", "p", "a", "i", "b", "c"]);
        assert_eq!(ordered(&["h", "p", "a", "i", "b", "c", "x"]), ["p", "a", "b", "c", "h", "x", "i"]);
        assert_eq!(java_hash("\u{e4}"), 0xe4);
        assert_eq!(java_hash("\u{1f600}"), (0xd83d_u32 * 31 + 0xde00) ^ (0xd83d * 31 + 0xde00) >> 16);
    }

    /// A short list is in upstream's order, a long one in the order of the names' bytes.
    #[test]
    fn a_list_becomes_long_above_a_number_of_names_or_bytes() {
        let is_sorted = |count: usize, len: usize| {
            let names: alloc::vec::Vec<_> = (0..count).map(|n| format!("{n:0len$}")).collect();
            ordered(&names.iter().map(|name| &**name).collect::<alloc::vec::Vec<_>>()).is_sorted()
        };
        assert!(!is_sorted(SHORT_MAX, 8) && is_sorted(SHORT_MAX + 1, 8));
        let len = SHORT_MAX_BYTES / 512;
        assert!(!is_sorted(512, len) && is_sorted(512, len + 1));
    }

    #[test]
    fn children_of_many_parents_are_found_and_removed() {
        let mut child_index = ChildIndex::default();
        let parents: alloc::vec::Vec<ArcStr> = (0..20_000).map(|n| format!("/{n}").into()).collect();
        for parent in &parents {
            child_index.insert(parent, format!("{parent}/a").into(), 1);
        }
        for parent in &parents {
            assert!(child_index.of(parent).eq(["a"]), "{parent}");
        }
        for parent in parents.iter().step_by(2) {
            assert!(child_index.remove(parent, &format!("{parent}/a"), 1));
        }
        for (n, parent) in parents.iter().enumerate() {
            assert_eq!(child_index.of(parent).count(), n % 2, "{parent}");
        }
    }

    #[test]
    fn long_lists_keep_every_child() {
        let mut child_index = ChildIndex::default();
        let parent: ArcStr = "/p".into();
        for n in 0..3000 {
            child_index.insert(&parent, format!("/p/{n}").into(), 1);
            child_index.insert(&parent, format!("/p/{n}").into(), 1);
        }
        assert_eq!(child_index.below("/p"), (3000, 3000));
        assert_eq!(child_index.of("/p").collect::<BTreeSet<_>>().len(), 3000);
        for n in 0..3000 {
            assert!(child_index.remove("/p", &format!("/p/{n}"), 1));
        }
        assert!(!child_index.remove("/p", "/p/1", 1));
        assert_eq!(
            (child_index.below("/p"), child_index.find("/p"), child_index.free.len()),
            ((0, 0), None, 1)
        );
    }

    #[test]
    fn names_from_a_place_on_are_in_one_order_in_short_and_long_lists() {
        let mut child_index = ChildIndex::default();
        let parent: ArcStr = "/p".into();
        let mut put = |name: &str| child_index.insert(&parent, format!("/p/{name}").into(), 0);
        ["b", "a", "ab", "\u{1f600}", "\u{ffff}", "\u{e4}"].into_iter().for_each(&mut put);
        let from = |child_index: &ChildIndex, name, after, max| -> Vec<String> {
            child_index.names_from("/p", (name, after), max)
        };
        let all = ["a", "ab", "b", "\u{e4}", "\u{1f600}", "\u{ffff}"];
        for pass in 0..2 {
            assert_eq!(from(&child_index, "", false, 6), all, "{pass}");
            assert_eq!(from(&child_index, "ab", true, 2), ["b", "\u{e4}"]);
            assert_eq!(from(&child_index, "ab", false, 2), ["ab", "b"]);
            assert_eq!(from(&child_index, "\u{1f600}", true, 9)[0], "\u{ffff}");
            assert!(child_index.names_from("/none", ("", false), 9).is_empty());
            let at = |begin, place, max| child_index.names_at("/p", (begin, place), max);
            let some =
                |names: &[&str], count| (names.iter().map(|name| String::from(*name)).collect(), count);
            assert_eq!(at("", 0, 9), some(&all, 6), "{pass}");
            assert_eq!(at("", 3, 2), some(&["\u{e4}", "\u{1f600}"], 6));
            assert_eq!(at("a", 0, 9), some(&["a", "ab"], 2));
            assert_eq!((at("a", 1, 9), at("a", 2, 9)), (some(&["ab"], 2), some(&[], 2)));
            assert_eq!((at("x", 0, 9), at("", usize::MAX, 9).1), (some(&[], 0), 6));
            assert_eq!(child_index.names_at("/none", ("", 0), 9), some(&[], 0));
            assert_eq!(
                (child_index.last("/p").as_deref(), child_index.last("/none")),
                (Some("\u{ffff}"), None)
            );
            // Then the list is long.
            (0..SHORT_MAX).for_each(|n| child_index.insert(&parent, format!("/p/c{n}").into(), 0));
            (0..SHORT_MAX).for_each(|n| assert!(child_index.remove("/p", &format!("/p/c{n}"), 0)));
        }
    }

    #[test]
    fn totals_below_a_parent_follow_every_change() {
        let mut child_index = ChildIndex::default();
        let tree = [
            ("/", "/a", 1),
            ("/a", "/a/b", 2),
            ("/a/b", "/a/b/c", 4),
            ("/a/b", "/a/b/d", 8),
            ("/", "/e", 16),
        ];
        for (parent, child, bytes) in tree {
            child_index.insert(&parent.into(), child.into(), bytes);
        }
        let below = |child_index: &ChildIndex| ["/", "/a", "/a/b", "/e"].map(|path| child_index.below(path));
        assert_eq!(below(&child_index), [(5, 31), (3, 14), (2, 12), (0, 0)]);
        child_index.add_bytes("/a/b", 3);
        assert!(child_index.remove("/a/b", "/a/b/c", 4));
        assert_eq!(below(&child_index), [(4, 30), (2, 13), (1, 11), (0, 0)]);
        assert!(child_index.remove("/a/b", "/a/b/d", 11) && child_index.remove("/a", "/a/b", 2));
        // A new entry takes the place of a removed one.
        child_index.insert(&"/e".into(), "/e/f".into(), 32);
        child_index.insert(&"/e/f".into(), "/e/f/g".into(), 64);
        assert_eq!(below(&child_index), [(4, 113), (0, 0), (0, 0), (2, 96)]);
    }
}
