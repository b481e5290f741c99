//! The queue of future events, in order of time. Events of one millisecond keep the order in which they were added.

use std::collections::{BTreeMap, VecDeque};

/// Length of the near range in milliseconds; most events are added within it. A power of two.
const NEAR: u64 = 1024;

/// Entries at the same time come out in the order in which they were added.
pub(crate) struct Agenda<T> {
    /// One queue for each of the next `NEAR` milliseconds, used as a ring that begins at `from`.
    near: Vec<VecDeque<(u64, T)>>,
    /// Entries that were out of the near range when they were added. So they were added before the near entries of the
    /// same time, and come out first.
    far: BTreeMap<(u64, u64), T>,
    /// The current time: no entry is earlier.
    from: u64,
    /// The number of entries added so far.
    count: u64,
    left: usize,
}

impl<T> Agenda<T> {
    /// An empty queue whose time begins at `from`.
    pub(crate) fn new(from: u64) -> Agenda<T> {
        let near = (0..NEAR).map(|_| VecDeque::new()).collect();
        Agenda { near, far: BTreeMap::new(), from, count: 0, left: 0 }
    }

    /// The number of entries that are still to come.
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    fn place(at: u64) -> usize {
        (at % NEAR) as usize
    }

    pub(crate) fn add(&mut self, at: u64, entry: T) {
        assert!(at >= self.from, "nothing happens in the past");
        self.count += 1;
        self.left += 1;
        if at - self.from < NEAR {
            self.near[Self::place(at)].push_back((self.count, entry));
        } else {
            self.far.insert((at, self.count), entry);
        }
    }

    /// Takes out the next entry at or before `until`, with its time and its number.
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, u64, T)> {
        while self.left > 0 {
            let at = self.from;
            let next = match self.far.first_entry().filter(|first| first.key().0 == at) {
                Some(first) => Some((first.key().1, first.remove())),
                None => self.near[Self::place(at)].pop_front(),
            };
            if let Some((number, entry)) = next {
                self.left -= 1;
                return Some((at, number, entry));
            }
            // More can be added for this same millisecond.
            if at >= until {
                return None;
            }
            self.from += 1;
        }
        self.from = self.from.max(until);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    /// Adds an entry that holds its own time and number.
    fn add(agenda: &mut Agenda<(u64, u64)>, said: &mut Vec<(u64, u64)>, at: u64) {
        let number = said.len() as u64 + 1;
        agenda.add(at, (at, number));
        said.push((at, number));
    }

    #[test]
    fn entries_come_in_order_of_time_and_then_of_being_added() {
        let mut chance = Chance::new(1);
        let (mut agenda, mut said, mut came) = (Agenda::new(7), Vec::new(), Vec::new());
        let mut now = 7;
        for _ in 0..5_000 {
            for _ in 0..chance.below(4) {
                let at = now + [0, 1, chance.below(20), chance.below(3 * NEAR)][chance.below(4) as usize];
                add(&mut agenda, &mut said, at);
            }
            let until = now + chance.below(5);
            // Entries that are added meanwhile may be for the same millisecond.
            while let Some((at, number, entry)) = agenda.next(until) {
                assert_eq!((at, number), entry);
                came.push(entry);
                if chance.one_in(3) {
                    add(&mut agenda, &mut said, at + chance.below(2));
                }
            }
            now = until;
        }
        assert!(agenda.len() > 0);
        came.extend(std::iter::from_fn(|| agenda.next(u64::MAX)).map(|(_, _, entry)| entry));
        said.sort();
        assert!(came == said && agenda.len() == 0);
    }
}
