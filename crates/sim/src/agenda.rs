//! What is to happen, and when: in order of time, and of being said.

use std::collections::{BTreeMap, VecDeque};

/// Most of what is said happens within so many milliseconds. A power of two.
const NEAR: u64 = 1024;

/// Entries at the same time come out in the order in which they went in.
pub(crate) struct Agenda<T> {
    /// A queue for each millisecond that is near, beginning with `from` at its place.
    near: Vec<VecDeque<(u64, T)>>,
    /// Whatever went in when it was further away; so it comes before what is near and at the same time.
    far: BTreeMap<(u64, u64), T>,
    /// Nothing is earlier.
    from: u64,
    /// How many have gone in.
    count: u64,
    left: usize,
}

impl<T> Agenda<T> {
    /// Nothing will happen before `from`.
    pub(crate) fn new(from: u64) -> Agenda<T> {
        let near = (0..NEAR).map(|_| VecDeque::new()).collect();
        Agenda { near, far: BTreeMap::new(), from, count: 0, left: 0 }
    }

    /// How many are to come.
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

    /// The next one at or before `until`, with its time and its number.
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
            // More can be said for this very moment.
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

    /// A number at a time, and the same once more for the order in which they went in.
    fn add(agenda: &mut Agenda<(u64, u64)>, said: &mut Vec<(u64, u64)>, at: u64) {
        let number = said.len() as u64 + 1;
        agenda.add(at, (at, number));
        said.push((at, number));
    }

    #[test]
    fn entries_come_in_order_of_time_and_then_of_being_said() {
        let mut chance = Chance::new(1);
        let (mut agenda, mut said, mut came) = (Agenda::new(7), Vec::new(), Vec::new());
        let mut now = 7;
        for _ in 0..5_000 {
            for _ in 0..chance.below(4) {
                let at = now + [0, 1, chance.below(20), chance.below(3 * NEAR)][chance.below(4) as usize];
                add(&mut agenda, &mut said, at);
            }
            let until = now + chance.below(5);
            // What is said meanwhile may be for this very moment.
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
