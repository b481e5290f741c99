//! A sorted set of strings for long lists, which replies share.
//!
//! The strings are encoded as in a reply and ordered by these bytes, in parts of one or two kilobytes. A reply is a
//! list of these parts. A part that a reply shares is not changed: a changed copy takes its place. The order does not
//! depend on the parts, so it is the same at all servers.

mod sums;

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use core::{cmp::Ordering, ops::Range};
use ostler_proto::{
    jute::{Reader, Writer, stored_text},
    strings::SharedStrings,
};
use sums::Sums;

/// The largest part in bytes. A part that becomes larger is split. A longer string is a part of its own.
const PART_MAX: usize = 2048;
/// The room in bytes that a part gets when it grows.
const SPARE: usize = 128;
/// Two neighbouring parts with at most this number of bytes together become one.
const PAIR_MIN: usize = PART_MAX / 2;

/// The number of bytes of a part's first string that are kept beside the pointer to the part. With them the search for
/// a part among thousands reads few of the parts themselves.
const HEAD: usize = 16;
/// The number of places in a part from which a search can begin.
const MARKS: usize = 6;

#[derive(Debug, Clone)]
struct Part {
    bytes: Arc<Vec<u8>>,
    /// The beginning of its first string, filled up with zeros.
    head: [u8; HEAD],
    /// The number of strings.
    count: u16,
    /// The place where its last string begins.
    last_at: u16,
    /// The places where some other strings begin, in order.
    marks: [u16; MARKS],
}

fn head(key: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let len = key.len().min(HEAD);
    head[..len].copy_from_slice(&key[..len]);
    head
}

impl Part {
    fn of(bytes: &[u8]) -> Part {
        let (mut count, mut last_at) = (0, 0);
        for (at, _) in Entries::of(bytes) {
            // A place in a part of several strings is below `PART_MAX`, and so is their number.
            (count, last_at) = (count + 1, at as u16);
        }
        let mut part =
            Part { bytes: Arc::new(bytes.to_vec()), head: [0; HEAD], count, last_at, marks: [0; MARKS] };
        part.head = head(part.first());
        part.mark();
        part
    }

    /// Spreads the marks over the strings.
    fn mark(&mut self) {
        let step = usize::from(self.count) / (MARKS + 1);
        if step > 0 {
            let places = Entries::of(&self.bytes).map(|(at, _)| at as u16).step_by(step).skip(1);
            self.marks.iter_mut().zip(places).for_each(|(mark, place)| *mark = place);
        }
    }

    fn first(&self) -> &[u8] {
        self.key_at(0)
    }

    fn last(&self) -> &[u8] {
        self.key_at(self.last_at.into())
    }

    fn key_at(&self, at: usize) -> &[u8] {
        Entries::of(&self.bytes[at..]).next().map_or(&[], |(_, key)| key)
    }

    /// Whether the first string of the part is at or before `key`. `head` is the head of `key`.
    fn begins_at_or_before(&self, key: &[u8], head: &[u8; HEAD]) -> bool {
        match self.head.cmp(head) {
            Ordering::Equal => self.first() <= key,
            other => other == Ordering::Less,
        }
    }

    /// The place of a string: `Ok` if the part has it, `Err` with the place where it would be inserted.
    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        match self.last().cmp(key) {
            Ordering::Less => return Err(self.bytes.len()),
            Ordering::Equal => return Ok(self.last_at.into()),
            Ordering::Greater => {}
        }
        let passed = self.marks.partition_point(|mark| self.key_at(usize::from(*mark)) <= key);
        let from = passed.checked_sub(1).map_or(0, |at| usize::from(self.marks[at]));
        for (at, other) in Entries::of(&self.bytes[from..]) {
            match other.cmp(key) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(from + at),
                Ordering::Greater => return Err(from + at),
            }
        }
        Err(self.bytes.len())
    }

    /// The place behind the string at `at`.
    fn after(&self, at: usize) -> usize {
        at + 4 + self.key_at(at).len()
    }

    /// Inserts an encoded string at `place`.
    fn insert(&mut self, entry: &[u8], place: usize) {
        let bytes = Arc::make_mut(&mut self.bytes);
        let len = bytes.len();
        if bytes.capacity() - len < entry.len() {
            bytes.reserve_exact(entry.len().max(SPARE));
        }
        bytes.extend_from_slice(entry);
        self.count += 1;
        if place == len {
            self.last_at = place as u16;
            if self.count.is_power_of_two() {
                self.mark();
            }
            return;
        }
        bytes.copy_within(place..len, place + entry.len());
        bytes[place..place + entry.len()].copy_from_slice(entry);
        self.last_at += entry.len() as u16;
        for mark in self.marks.iter_mut().filter(|mark| usize::from(**mark) >= place.max(1)) {
            *mark += entry.len() as u16;
        }
        if place == 0 {
            self.head = head(self.first());
        }
    }

    /// Removes the string at `place`, which has `len` encoded bytes and is not the last one.
    fn remove(&mut self, place: usize, len: usize) {
        Arc::make_mut(&mut self.bytes).drain(place..place + len);
        self.count -= 1;
        self.last_at -= len as u16;
        for mark in self.marks.iter_mut().filter(|mark| usize::from(**mark) > place) {
            *mark -= len as u16;
        }
        if place == 0 {
            self.head = head(self.first());
        }
    }
}

/// Iterates over encoded strings, with the place where each begins.
struct Entries<'a> {
    reader: Reader<'a>,
    len: usize,
}

impl<'a> Entries<'a> {
    fn of(bytes: &'a [u8]) -> Entries<'a> {
        Entries { reader: Reader::new(bytes), len: bytes.len() }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.len - self.reader.rest().len();
        self.reader.buffer().ok().flatten().map(|key| (at, key))
    }
}

fn encoded(string: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + string.len());
    out.string(string);
    out
}

/// The order of strings in a set: that of their encoded bytes.
pub fn order(one: &str, other: &str) -> Ordering {
    if is_in_order(one) && is_in_order(other) {
        return one.cmp(other);
    }
    encoded(one)[4..].cmp(&encoded(other)[4..])
}

/// Whether a string has its place among others as in the order of `str`. It has another one with a NUL and with
/// characters above 16 bits, which names of znodes do not have.
pub(crate) fn is_in_order(string: &str) -> bool {
    string.bytes().fold(true, |is_plain, byte| is_plain & (byte < 0xf0) & (byte > 0))
}

/// Splits the bytes of a part that has become too large: into two parts, or more if a string is long.
fn halves(bytes: &[u8]) -> Vec<Part> {
    let (mut parts, mut begin) = (Vec::with_capacity(2), 0);
    for (at, key) in Entries::of(bytes) {
        let is_half = at - begin >= bytes.len() / 2;
        if at > begin && (is_half || at + 4 + key.len() - begin > PART_MAX) {
            parts.push(Part::of(&bytes[begin..at]));
            begin = at;
        }
    }
    parts.push(Part::of(&bytes[begin..]));
    parts
}

/// A sorted set of strings.
#[derive(Debug, Default)]
pub struct SortedStrings {
    parts: Vec<Part>,
    sums: Sums,
    len: usize,
    bytes: usize,
}

impl SortedStrings {
    /// An empty set.
    pub const fn new() -> SortedStrings {
        SortedStrings { parts: Vec::new(), sums: Sums::new(), len: 0, bytes: 0 }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The size of the encoded strings in bytes, without their number in front.
    pub fn encoded_len(&self) -> usize {
        self.bytes
    }

    /// The index of the part in which a string is, or would be inserted.
    fn part_of(&self, key: &[u8]) -> usize {
        let head = head(key);
        // Most new strings come after all others.
        if self.parts.last().is_some_and(|last| last.begins_at_or_before(key, &head)) {
            return self.parts.len() - 1;
        }
        self.parts.partition_point(|part| part.begins_at_or_before(key, &head)).saturating_sub(1)
    }

    /// Inserts a string. Returns false if the set has it already.
    pub fn insert(&mut self, string: &str) -> bool {
        let entry = encoded(string);
        let at = self.part_of(&entry[4..]);
        let Some(part) = self.parts.get_mut(at) else {
            (self.len, self.bytes) = (1, entry.len());
            self.insert_part(0, Part::of(&entry));
            return true;
        };
        let Err(place) = part.find(&entry[4..]) else { return false };
        (self.len, self.bytes) = (self.len + 1, self.bytes + entry.len());
        let is_last = place == part.bytes.len();
        if is_last && part.bytes.len() + entry.len() > PART_MAX {
            // A new part, and no split: so strings that come in order fill each part.
            part.mark();
            self.insert_part(at + 1, Part::of(&entry));
            return true;
        }
        if part.bytes.len() + entry.len() <= PART_MAX {
            part.insert(&entry, place);
            self.sums.add(at, 1);
        } else {
            let (before, after) = part.bytes.split_at(place);
            let halves = halves(&[before, &entry, after].concat());
            for (behind, half) in halves.into_iter().enumerate() {
                if behind == 0 { self.replace_part(at, half) } else { self.insert_part(at + behind, half) }
            }
        }
        true
    }

    fn insert_part(&mut self, at: usize, part: Part) {
        self.parts.insert(at, part);
        self.sums.insert(&self.parts, at);
    }

    fn remove_part(&mut self, at: usize) {
        let part = self.parts.remove(at);
        self.sums.remove(&self.parts, (at, part.count));
    }

    fn replace_part(&mut self, at: usize, part: Part) {
        self.sums.add(at, i32::from(part.count) - i32::from(self.parts[at].count));
        self.parts[at] = part;
    }

    /// Removes a string. Returns false if the set does not have it.
    pub fn remove(&mut self, string: &str) -> bool {
        let entry = encoded(string);
        let at = self.part_of(&entry[4..]);
        let Some(part) = self.parts.get_mut(at) else { return false };
        let Ok(place) = part.find(&entry[4..]) else { return false };
        (self.len, self.bytes) = (self.len - 1, self.bytes - entry.len());
        if part.count == 1 {
            self.remove_part(at);
            return true;
        }
        if place == usize::from(part.last_at) {
            *part = Part::of(&part.bytes[..place]);
        } else {
            part.remove(place, entry.len());
        }
        self.sums.add(at, -1);
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
        true
    }

    /// Joins a part with the next if both are small.
    fn join(&mut self, at: usize) {
        if let Some([one, next]) = self.parts.get(at..at + 2)
            && one.bytes.len() + next.bytes.len() <= PAIR_MIN
        {
            let both = Part::of(&[&one.bytes[..], &next.bytes[..]].concat());
            self.replace_part(at, both);
            self.remove_part(at + 1);
        }
    }

    /// Whether the set has this string.
    pub fn contains(&self, string: &str) -> bool {
        let key = encoded(string);
        self.parts.get(self.part_of(&key[4..])).is_some_and(|part| part.find(&key[4..]).is_ok())
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.parts.iter().flat_map(|part| Entries::of(&part.bytes)).map(|(_, key)| stored_text(key))
    }

    /// The strings after `string`, in order.
    pub fn after(&self, string: &str) -> impl Iterator<Item = Cow<'_, str>> {
        self.strings_from(string, true)
    }

    /// The strings at or after `string`, in order.
    pub fn at_or_after(&self, string: &str) -> impl Iterator<Item = Cow<'_, str>> {
        self.strings_from(string, false)
    }

    fn strings_from(&self, string: &str, above: bool) -> impl Iterator<Item = Cow<'_, str>> + use<'_> {
        let key = encoded(string);
        self.strings_at(self.place_of(&key[4..], above))
    }

    /// The strings from a part and a byte in it on.
    fn strings_at(&self, (at, place): (usize, usize)) -> impl Iterator<Item = Cow<'_, str>> + use<'_> {
        let rest = self.parts.get(at..).unwrap_or_default();
        let first = rest.first().map_or(&[][..], |part| &part.bytes[place..]);
        let others = rest.iter().skip(1).map(|part| &part.bytes[..]);
        core::iter::once(first).chain(others).flat_map(Entries::of).map(|(_, key)| stored_text(key))
    }

    /// The places of the strings that begin with `prefix`, counted from 0. They are next to each other.
    pub fn places_of_prefix(&self, prefix: &str) -> Range<usize> {
        let mut key = encoded(prefix).split_off(4);
        let begin = self.rank(&key);
        // No byte of a text is 0xff, so there is a key behind all with this beginning.
        let Some(last) = key.last_mut() else { return 0..self.len };
        *last += 1;
        begin..self.rank(&key)
    }

    /// The strings from a place on, counted from 0, in order. A step for each some hundred parts, and no step for each string
    /// before.
    pub fn from_place(&self, place: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let (at, behind) = self.sums.part_at(&self.parts, place);
        self.strings_at((at, 0)).skip(behind)
    }

    /// The number of strings before `key`.
    fn rank(&self, key: &[u8]) -> usize {
        let (at, place) = self.place_of(key, false);
        let Some(part) = self.parts.get(at) else { return 0 };
        self.sums.before(&self.parts, at) + Entries::of(&part.bytes[..place]).count()
    }

    /// The part and the place in it of the first string at or after `key`, or with `above` of the first one after
    /// `key`.
    fn place_of(&self, key: &[u8], above: bool) -> (usize, usize) {
        let at = self.part_of(key);
        let place = self.parts.get(at).map_or(0, |part| match part.find(key) {
            Ok(place) if above => part.after(place),
            Ok(place) | Err(place) => place,
        });
        (at, place)
    }

    /// The last string.
    pub fn last(&self) -> Option<Cow<'_, str>> {
        self.parts.last().map(|part| stored_text(part.last()))
    }

    /// All strings, for a reply.
    pub fn share(&self) -> SharedStrings {
        SharedStrings::of_parts(self.len, self.parts.iter().map(|part| part.bytes.clone()).collect())
    }

    /// The strings that begin with `prefix`, for a reply.
    pub fn share_prefix(&self, prefix: &str) -> SharedStrings {
        let key = encoded(prefix);
        let key = &key[4..];
        let (mut count, mut shared) = (0, Vec::new());
        let (first, mut place) = self.place_of(key, false);
        for part in self.parts.get(first..).unwrap_or_default() {
            if place == 0 && part.last().starts_with(key) {
                count += part.count as usize;
                shared.push(part.bytes.clone());
                continue;
            }
            let begin = place;
            let (mut end, mut here) = (begin, 0);
            for (_, entry) in Entries::of(&part.bytes[begin..]).take_while(|(_, it)| it.starts_with(key)) {
                (end, here) = (end + 4 + entry.len(), here + 1);
            }
            if here > 0 {
                count += here;
                shared.push(Arc::new(part.bytes[begin..end].to_vec()));
            }
            if end < part.bytes.len() {
                break;
            }
            place = 0;
        }
        SharedStrings::of_parts(count, shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format, string::String};

    /// Pseudo-random numbers.
    struct Shuffled(u64);

    impl Shuffled {
        fn next(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % below
        }
    }

    fn check(set: &SortedStrings, model: &BTreeSet<String>) {
        assert!(set.iter().eq(model.iter().map(|name| &**name)), "{:?}", set.iter().collect::<Vec<_>>());
        assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
        assert_eq!(set.last().as_deref(), model.last().map(|name| &**name));
        let shared = SharedStrings::encode(model.iter().map(|name| &**name));
        assert_eq!((set.share(), set.encoded_len() + 4), (shared.clone(), shared.size()));
        assert_eq!(set.sums, Sums::of(&set.parts));
        for part in &set.parts {
            assert!(part.bytes.len() <= PART_MAX || part.count == 1);
            let same = Part::of(&part.bytes);
            assert_eq!((part.count, part.last_at, part.head), (same.count, same.last_at, same.head));
            let places: Vec<_> = Entries::of(&part.bytes).map(|(at, _)| at as u16).collect();
            assert!(part.marks.iter().all(|mark| places.contains(mark)) && part.marks.is_sorted());
        }
    }

    #[test]
    fn random_changes_have_the_same_results_as_in_a_btree_set() {
        let (mut set, mut model) = (SortedStrings::default(), BTreeSet::<String>::new());
        let mut random = Shuffled(7);
        for round in 0..6000 {
            // Few different names, so that many are removed. The set grows at first, and shrinks later.
            let number = random.next(3000);
            let name = format!(
                "{}{number:0width$}",
                "n".repeat(if number.is_multiple_of(97) {
                    number as usize * 4
                } else {
                    number as usize % 40
                }),
                width = 1 + number as usize % 9
            );
            let (grows, is_new) = (round < 3500, model.contains(&name));
            assert_eq!(set.contains(&name), is_new);
            if random.next(4) > 0 || !grows && random.next(8) > 0 {
                let name = match model.range(name.clone()..).next() {
                    Some(next) if !grows => next.clone(),
                    _ => name,
                };
                match grows {
                    true => assert_eq!(set.insert(&name), model.insert(name)),
                    false => assert_eq!(set.remove(&name), model.remove(&name)),
                }
            } else {
                assert_eq!(set.remove(&name), model.remove(&name));
            }
            if round % 100 == 0 {
                check(&set, &model);
                assert!(
                    set.after(&format!("{number}"))
                        .eq(model.range(format!("{number}\0")..).map(|name| &**name))
                );
                for prefix in ["", "n", "nnn", "1", "n12", "zz"] {
                    let some: Vec<_> =
                        model.iter().map(|name| &**name).filter(|name| name.starts_with(prefix)).collect();
                    let places = set.places_of_prefix(prefix);
                    assert!(
                        set.from_place(places.start).take(places.len()).eq(some.iter().copied()),
                        "{prefix}"
                    );
                    assert_eq!(places.len(), some.len(), "{prefix}");
                    assert_eq!(set.share_prefix(prefix), SharedStrings::encode(some.into_iter()), "{prefix}");
                }
            }
        }
        check(&set, &model);
        for name in &model {
            assert!(set.remove(name) && !set.remove(name));
        }
        check(&set, &BTreeSet::new());
    }

    #[test]
    fn marks_are_spread_evenly_over_a_part() {
        let bytes: Vec<u8> = (0..100).flat_map(|n| encoded(&format!("{n:08}"))).collect();
        let part = Part::of(&bytes);
        // A seventh of a hundred is 14.
        assert_eq!(part.marks, [1, 2, 3, 4, 5, 6].map(|n| n * 14 * 12));
        assert_eq!(part.head, *b"00000000\0\0\0\0\0\0\0\0");
        assert_eq!(Part::of(&encoded("a name of many letters")).head, *b"a name of many l");
        assert_eq!(Part::of(&encoded("a")).marks, [0; MARKS]);
        let mut grows = Part::of(&encoded("0"));
        for n in 1..16 {
            grows.insert(&encoded(&format!("{n:x}")), grows.bytes.len());
        }
        assert_eq!(grows.marks, [1, 2, 3, 4, 5, 6].map(|n| n * 2 * 5));
    }

    #[test]
    fn a_part_that_is_too_long_is_halved() {
        let mut set = SortedStrings::default();
        // Each name comes before the earlier ones. An encoded name has 32 bytes.
        let mut names: Vec<_> = (0..65).map(|n| format!("{:028}", 999 - n)).collect();
        names.iter().for_each(|name| assert!(set.insert(name)));
        let lens =
            |set: &SortedStrings| set.parts.iter().map(|part| part.bytes.len() / 32).collect::<Vec<_>>();
        assert_eq!(lens(&set), [33, 32]);
        // A name longer than a part is alone in its part.
        names.push(format!("{:028}{}", 951, "x".repeat(PART_MAX)));
        assert!(set.insert(&names[65]));
        assert_eq!(set.parts.iter().map(|part| part.count).collect::<Vec<_>>(), [17, 1, 16, 32]);
        names.sort();
        assert!(set.iter().eq(names.iter().map(|name| &**name)));
    }

    #[test]
    fn a_string_has_itself_as_a_prefix_but_is_not_after_itself() {
        let mut set = SortedStrings::default();
        ["a", "ab", "b"].iter().for_each(|name| assert!(set.insert(name)));
        assert_eq!(set.share_prefix("a"), SharedStrings::encode(["a", "ab"].into_iter()));
        assert!(set.after("a").eq(["ab", "b"]));
    }

    #[test]
    fn strings_in_order_fill_their_parts_and_small_parts_are_joined_after_removals() {
        let mut set = SortedStrings::default();
        let names: Vec<_> = (0..10_000).map(|n| format!("{n:08}")).collect();
        names.iter().for_each(|name| assert!(set.insert(name)));
        assert_eq!(set.parts(), (10_000_usize * 12).div_ceil(PART_MAX / 12 * 12));
        names.iter().enumerate().filter(|(n, _)| n % 50 > 0).for_each(|(_, name)| assert!(set.remove(name)));
        assert!(set.len() == 200 && set.parts() <= 4, "{}", set.parts());
    }

    #[test]
    fn strings_of_any_length_and_alphabet_are_inserted_in_order_and_removed() {
        let long = "l".repeat(3 * PART_MAX);
        let names = ["a", &long, "m", "\u{1f600}", "\u{e4}", "l", "\u{ffff}", "lz"];
        let mut set = SortedStrings::default();
        for name in names {
            assert!(set.insert(name) && set.contains(name) && !set.insert(name), "{name}");
        }
        // The order is that of the bytes in a reply, where a character above 16 bits is written as two surrogates.
        assert!(set.iter().eq(["a", "l", &*long, "lz", "m", "\u{e4}", "\u{1f600}", "\u{ffff}"]));
        for (left, name) in names.iter().enumerate().rev() {
            assert!(set.remove(name));
            assert_eq!(
                set.iter().collect::<BTreeSet<_>>(),
                names[..left].iter().map(|it| (*it).into()).collect()
            );
        }
    }

    /// There are many blocks of parts, as a long name is a part of its own.
    #[test]
    fn places_are_right_while_parts_come_and_go() {
        let (mut set, mut model, mut random) = (SortedStrings::new(), BTreeSet::<String>::new(), Shuffled(3));
        let tail = "x".repeat(PART_MAX / 2);
        for round in 0..9_000 {
            let name = format!("{:05}{}", random.next(4000), if random.next(3) > 0 { &tail } else { "" });
            // It grows to several blocks, shrinks to one, and grows again.
            let grows = round / 3000 != 1;
            match if grows { random.next(5) > 0 } else { random.next(5) == 0 } {
                true => assert_eq!(set.insert(&name), model.insert(name)),
                false => {
                    let name = model.range(name.clone()..).next().cloned().unwrap_or(name);
                    assert_eq!(set.remove(&name), model.remove(&name));
                }
            }
            assert_eq!(set.sums, Sums::of(&set.parts), "{round}");
            if round % 50 == 0 {
                let place = random.next(model.len() as u64 + 2) as usize;
                assert!(set.from_place(place).take(3).eq(model.iter().skip(place).take(3).map(|it| &**it)));
                let name = format!("{:03}", random.next(400));
                let places = set.places_of_prefix(&name);
                assert_eq!(places.start, model.range(..name.clone()).count());
                assert_eq!(places.len(), model.iter().filter(|it| it.starts_with(&name)).count());
            }
        }
        assert!(set.parts() > 2 * sums::BLOCK, "{}", set.parts());
    }

    #[test]
    fn a_place_behind_all_strings_has_none() {
        let mut set = SortedStrings::new();
        assert!(set.from_place(0).next().is_none() && set.places_of_prefix("").is_empty());
        ["a", "b"].iter().for_each(|name| assert!(set.insert(name)));
        assert!(set.from_place(1).eq(["b"]) && set.from_place(2).next().is_none());
        assert_eq!(
            (set.places_of_prefix(""), set.places_of_prefix("b"), set.places_of_prefix("c")),
            (0..2, 1..2, 2..2)
        );
    }

    #[test]
    fn a_shared_list_does_not_change_with_the_set() {
        let mut set = SortedStrings::default();
        (0..1000).for_each(|n| assert!(set.insert(&format!("{n}"))));
        let (shared, bytes) = (set.share(), set.share().to_vec());
        (0..1000).for_each(|n| assert!(set.remove(&format!("{n}")) && set.insert(&format!("x{n}"))));
        assert_eq!(shared.to_vec(), bytes);
    }
}
