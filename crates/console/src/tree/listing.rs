//! Whole lists of children in another order than that of the tree, as of one cversion.
//!
//! A list is taken in looks, put in order by a thread that may wait, and kept for the next pages. All lists together have
//! a limited size.

use super::{
    BETWEEN_LOOKS,
    idle::{Cancelled, Turn},
    look,
    refusal::refused,
    runs::locked,
    shown,
};
use crate::{
    error::{ApiError, Code},
    state::Console,
};
use ostler_proto::{
    acl::Id,
    id::Zxid,
    jute::{Reader, stored_text},
    strings::SharedStrings,
};
use ostler_server_core::report::znodes::{ParentReport, ZnodeReader};
use ostler_tree::sorted_strings;
use std::{
    cmp::Ordering,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// A list that nobody asks for is kept for this time.
const KEEP: Duration = Duration::from_secs(30);
/// The most lists, and the most bytes of all of them.
const LISTS_MAX: usize = 4;
const BYTES_MAX: usize = 64 << 20;
/// Children of a parent with a short path that are looked up in one look.
const IN_A_LOOK: usize = 150;
/// The bytes of a path that take as long as the rest of a look-up.
const PATH_BYTES: usize = 256;
/// A list by change is made anew for a caller who begins again after this time.
const FRESH: Duration = Duration::from_secs(2);

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// By name.
    Name,
    /// By the number at the end of the name, then by name. Names without a number come first.
    Sequence,
    /// By the last change of the data, then by name. Children whose change the caller may not see come first.
    Changed,
}

/// The parent, the moment and the order of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListKey {
    pub(super) path: String,
    pub(super) czxid: Zxid,
    pub(super) cversion: i32,
    pub(super) sort: Sort,
    /// A list by change depends on what the caller may see; the others do not.
    pub(super) who: Vec<Id>,
}

/// The names of a parent's children, in order.
pub(super) struct Listing {
    names: String,
    /// Where each name ends, in the order of the tree.
    ends: Vec<u32>,
    /// The numbers by which the names are ordered, in the order of the tree; empty for an order by name.
    ranks: Vec<i64>,
    /// The places of the names in `ends`, in order; empty for an order by name.
    order: Vec<u32>,
}

/// A place in a list: of the name that comes last before it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Place {
    pub(super) rank: i64,
    pub(super) name: String,
}

impl Listing {
    /// A list of encoded names.
    fn of(names: &SharedStrings) -> Listing {
        let mut listing =
            Listing { names: String::new(), ends: Vec::new(), ranks: Vec::new(), order: Vec::new() };
        let whole;
        let parts: Vec<&[u8]> = match names {
            SharedStrings::Whole(bytes) => {
                whole = bytes.clone();
                Vec::from([whole.get(4..).unwrap_or_default()])
            }
            SharedStrings::Parts(parts) => parts.parts().iter().map(|part| &part[..]).collect(),
        };
        for part in parts {
            let mut reader = Reader::new(part);
            while let Ok(Some(name)) = reader.buffer() {
                listing.names.push_str(&stored_text(name));
                listing.ends.push(listing.names.len() as u32);
            }
        }
        listing
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        self.names.capacity() + 4 * (self.ends.capacity() + self.order.capacity()) + 8 * self.ranks.capacity()
    }

    /// The name at a place of the tree's order.
    fn name_of(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.names[begin..self.ends[at] as usize]
    }

    fn at(&self, place: usize) -> usize {
        self.order.get(place).map_or(place, |at| *at as usize)
    }

    fn rank(&self, at: usize) -> i64 {
        self.ranks.get(at).copied().unwrap_or(0)
    }

    fn compare(&self, at: usize, rank: i64, name: &str) -> Ordering {
        self.rank(at).cmp(&rank).then_with(|| sorted_strings::order(self.name_of(at), name))
    }

    fn put_in_order(&mut self) {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by(|one, other| {
            let other = *other as usize;
            self.compare(*one as usize, self.rank(other), self.name_of(other))
        });
        self.order = order;
    }

    /// The number of names that begin with a text.
    pub(super) fn count(&self, starts_with: &str) -> usize {
        if starts_with.is_empty() {
            return self.len();
        }
        (0..self.len()).filter(|at| self.name_of(*at).starts_with(starts_with)).count()
    }

    /// The names behind a place that begin with a text, each with its rank.
    pub(super) fn behind<'a>(
        &'a self,
        place: Option<&Place>,
        (is_descending, starts_with): (bool, &'a str),
    ) -> Box<dyn Iterator<Item = (i64, &'a str)> + 'a> {
        let entry = |place: usize| (self.rank(self.at(place)), self.name_of(self.at(place)));
        let is_wanted = move |(_, name): &(i64, &str)| name.starts_with(starts_with);
        let places = |wanted: &dyn Fn(Ordering) -> bool| {
            let is_before = |of: &Place, at: usize| wanted(self.compare(self.at(at), of.rank, &of.name));
            place.map(|of| partition(self.len(), |at| is_before(of, at)))
        };
        if is_descending {
            let end = places(&|ordering| ordering == Ordering::Less).unwrap_or(self.len());
            return Box::new((0..end).rev().map(entry).filter(is_wanted));
        }
        let begin = places(&|ordering| ordering != Ordering::Greater).unwrap_or(0);
        Box::new((begin..self.len()).map(entry).filter(is_wanted))
    }
}

/// The number of places at the beginning for which `is_before` holds.
fn partition(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The number of children that are looked up in one look. The path of each is hashed, and may be long.
pub(super) fn in_a_look(parent: &str) -> usize {
    (IN_A_LOOK * PATH_BYTES / (PATH_BYTES + parent.len())).max(1)
}

struct Kept {
    key: ListKey,
    list: Arc<Listing>,
    made: Instant,
    used: Instant,
}

/// The lists that are kept.
#[derive(Default)]
pub(super) struct Lists {
    kept: Mutex<Vec<Kept>>,
    /// One list is made at a time. Those who wait hold no thread: they may be very many.
    pub(super) turn: Turn,
    /// Whether a task drops those that nobody uses.
    is_tidied: AtomicBool,
}

impl Lists {
    /// A list that is kept. With `is_new` not one whose order may have changed since.
    pub(super) fn find(&self, key: &ListKey, is_new: bool) -> Option<Arc<Listing>> {
        let (mut kept, now) = (locked(&self.kept), Instant::now());
        let found = kept.iter_mut().find(|kept| kept.key == *key)?;
        if is_new && key.sort == Sort::Changed && now.saturating_duration_since(found.made) >= FRESH {
            return None;
        }
        found.used = now;
        Some(found.list.clone())
    }

    /// Keeps a list. Those that were not used for the longest time make room.
    fn keep(self: &Arc<Self>, key: ListKey, list: &Arc<Listing>) {
        let (mut kept, now) = (locked(&self.kept), Instant::now());
        kept.retain(|kept| kept.key != key);
        kept.push(Kept { key, list: list.clone(), made: now, used: now });
        let size = |kept: &[Kept]| kept.iter().map(|kept| kept.list.bytes()).sum::<usize>();
        kept.sort_by_key(|kept| kept.used);
        while kept.len() > LISTS_MAX || kept.len() > 1 && size(&kept) > BYTES_MAX {
            kept.remove(0);
        }
        if !self.is_tidied.swap(true, Relaxed) {
            tokio::spawn(forget(Arc::downgrade(self)));
        }
    }
}

/// Drops lists that nobody uses, until none is left.
async fn forget(lists: Weak<Lists>) {
    loop {
        tokio::time::sleep(KEEP / 3).await;
        let Some(lists) = lists.upgrade() else { return };
        let (mut kept, now) = (locked(&lists.kept), Instant::now());
        kept.retain(|kept| now.saturating_duration_since(kept.used) < KEEP);
        if kept.is_empty() {
            lists.is_tidied.store(false, Relaxed);
            return;
        }
    }
}

/// Makes a list of the children as they are now, and keeps it. For a thread that may wait, and has the turn.
pub(super) fn make(
    console: &Console,
    reader: &ZnodeReader,
    (path, sort, who): (&str, Sort, &[Id]),
    cancelled: &Cancelled,
) -> Result<(ParentReport, Arc<Listing>), ApiError> {
    let lists = &console.tree.lists;
    let seen = look(console, |server| server.child_list(reader, path));
    let (parent, names) = seen.map_err(|refusal| refused(path, refusal))?;
    let key = ListKey {
        path: path.to_owned(),
        czxid: parent.stat.czxid,
        cversion: parent.stat.cversion,
        sort,
        who: if sort == Sort::Changed { who.to_vec() } else { Vec::new() },
    };
    // Somebody else may have made it meanwhile.
    if let Some(list) = lists.find(&key, true) {
        return Ok((parent, list));
    }
    if names.size() + 12 * parent.stat.num_children as usize > BYTES_MAX {
        return Err(ApiError::new(
            Code::TooLarge,
            "The list of children is too long to be put in this order. Ask for it by name, ascending.",
        )
        .at(path));
    }
    let mut list = Listing::of(&names);
    drop(names);
    match sort {
        // A short list is in another order in the tree.
        Sort::Name => list.put_in_order(),
        Sort::Sequence => {
            list.ranks =
                (0..list.len()).map(|at| shown::sequence(list.name_of(at)).unwrap_or(i64::MIN)).collect();
            list.put_in_order();
        }
        Sort::Changed => {
            list.ranks = changes(console, reader, (path, &list), cancelled)?;
            list.put_in_order();
        }
    }
    let list = Arc::new(list);
    lists.keep(key, &list);
    Ok((parent, list))
}

/// The zxids of the children's last changes, in several looks.
fn changes(
    console: &Console,
    reader: &ZnodeReader,
    (path, list): (&str, &Listing),
    cancelled: &Cancelled,
) -> Result<Vec<i64>, ApiError> {
    let mut changes = Vec::with_capacity(list.len());
    while changes.len() < list.len() {
        if cancelled.is_set() {
            return Err(ApiError::new(Code::Busy, "Nobody waits for the list any more."));
        }
        let upto = list.len().min(changes.len() + in_a_look(path));
        let names: Vec<&str> = (changes.len()..upto).map(|at| list.name_of(at)).collect();
        let zxids = look(console, |server| server.changes_of_children(reader, path, &names));
        let zxids = zxids.map_err(|refusal| refused(path, refusal))?;
        changes.extend(zxids.into_iter().map(|zxid| zxid.map_or(0, Zxid::to_wire)));
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str], ranks: &[i64]) -> Listing {
        let mut list = Listing::of(&SharedStrings::encode(names.iter().copied()));
        list.ranks = ranks.to_vec();
        list.put_in_order();
        list
    }

    fn names(list: &Listing, place: Option<(i64, &str)>, how: (bool, &'static str)) -> Vec<String> {
        let place = place.map(|(rank, name)| Place { rank, name: name.into() });
        list.behind(place.as_ref(), how).map(|(_, name)| name.to_owned()).collect()
    }

    #[test]
    fn a_list_goes_on_behind_a_place_also_if_its_name_is_gone() {
        let list = listing(&["c", "a", "bb", "ba", "d"], &[]);
        assert_eq!(names(&list, None, (false, "")), ["a", "ba", "bb", "c", "d"]);
        assert_eq!(names(&list, None, (true, "")), ["d", "c", "bb", "ba", "a"]);
        assert_eq!(names(&list, Some((0, "b")), (false, "")), ["ba", "bb", "c", "d"]);
        assert_eq!(names(&list, Some((0, "bb")), (true, "")), ["ba", "a"]);
        assert_eq!(names(&list, Some((0, "a")), (false, "b")), ["ba", "bb"]);
        let ranked = listing(&["c", "a", "b"], &[5, 7, 5]);
        assert_eq!(names(&ranked, None, (false, "")), ["b", "c", "a"]);
        assert_eq!(names(&ranked, Some((5, "b")), (false, "")), ["c", "a"]);
        assert_eq!(names(&ranked, Some((5, "c")), (true, "")), ["b"]);
    }

    #[tokio::test]
    async fn few_lists_are_kept_and_the_oldest_make_room() {
        let lists = Arc::new(Lists::default());
        let key = |n: usize| ListKey {
            path: format!("/{n}"),
            czxid: Zxid(1),
            cversion: 1,
            sort: Sort::Name,
            who: Vec::new(),
        };
        let small = Arc::new(listing(&["a"], &[]));
        for n in 0..=LISTS_MAX {
            lists.keep(key(n), &small);
        }
        assert!(lists.find(&key(0), true).is_none() && lists.find(&key(1), true).is_some());
        let mut large = listing(&["a"], &[]);
        large.names.reserve_exact(BYTES_MAX / 2);
        let large = Arc::new(large);
        lists.keep(key(8), &large);
        lists.keep(key(9), &large);
        assert!(lists.find(&key(8), true).is_none() && lists.find(&key(9), true).is_some());
    }
}
