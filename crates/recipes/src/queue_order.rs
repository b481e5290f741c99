//! The order of a queue of sequential znodes.
//!
//! A contender's name is any text, then the recipe's own word (`lock-`, `latch-`), then the number that the server has
//! appended. Names without that word are no contenders. Curator counts them too, and waits for them forever
//! (CURATOR-43).
//!
//! The numbers decide, as in Curator, as long as they differ and grow. A parent's counter ends at 2,147,483,647 and
//! stays there, so later contenders have that number. (ZooKeeper gives -2,147,483,648 as well, while other creates are
//! under way, and old servers went on below zero.) Their names do not clash, because of the ids before the word, and by
//! the numbers alone several contenders would be first. So the zxids of the transactions that have created the znodes
//! decide then ([`Arrivals`]): they grow in the order in which the contenders came. Curator does not handle this: several of its programs hold such a lock at once.

use ostler_planted::{self as planted, Bug};
use ostler_proto::id::Zxid;
use std::collections::HashMap;

/// The position of a contender in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position<'a> {
    /// No contender that counts is before it.
    First,
    /// Only the contender with this name is before it, and nobody can come between them: once that one's znode is
    /// deleted, the contender is first if its own znode is there.
    Next(&'a str),
    /// The contender has to wait until the znode with this name is gone, and then to read the queue again.
    Behind(&'a str),
    /// The contender's znode is not in the queue.
    Gone,
}

/// The number after `word` in a znode's name.
pub(crate) fn number_after(name: &str, word: &str) -> Option<i32> {
    let digits = &name[name.rfind(word)? + word.len()..];
    // Ten characters at least, the sign included: 0000000007, -000000042, -2147483648.
    let is_number = digits.len() >= 10
        && digits.bytes().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 0 && byte == b'-'));
    digits.parse().ok().filter(|_| is_number)
}

/// The number after one of these words in a znode's name.
pub(crate) fn number_of(name: &str, words: &[&str]) -> Option<i32> {
    words.iter().find_map(|word| number_after(name, word))
}

/// The prefix of the name of a znode that takes the place of an earlier contender's znode: the czxid of the earlier znode.
pub(crate) fn arrival_prefix(czxid: Zxid) -> String {
    format!("{:016x}-", czxid.0)
}

/// The czxid of [`arrival_prefix`] in a name, if it has one.
pub(crate) fn arrival_in(name: &str, words: &[&str]) -> Option<Zxid> {
    let at = words.iter().find_map(|word| name.rfind(word))?;
    let before = name[..at].strip_suffix('-')?;
    let czxid = before.rsplit('-').next().filter(|czxid| czxid.len() == 16)?;
    u64::from_str_radix(czxid, 16).ok().map(Zxid)
}

/// For names of contenders, the zxid of the transaction that created the znode. Only the [`unordered_by_number`] ones are needed.
pub(crate) type Arrivals = HashMap<String, Zxid>;

/// The znodes of a queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) names: Vec<String>,
    pub(crate) arrivals: Arrivals,
}

impl Queue {
    /// A queue in which the numbers give the order. This is the usual case.
    pub(crate) fn of(names: Vec<String>) -> Queue {
        Queue { names, arrivals: Arrivals::new() }
    }

    /// The contenders, the first in the queue first.
    pub(crate) fn in_order(&self, number: impl Fn(&str) -> Option<i32>) -> Vec<&str> {
        let mut all: Vec<_> = self.names.iter().filter_map(|name| Some((number(name)?, name))).collect();
        let counts_up = all.iter().all(|(number, _)| *number >= 0);
        let place = |(number, name): &(i32, &String)| {
            (counts_up.then_some(*number), self.arrivals.get(*name).copied())
        };
        all.sort_by_key(place);
        all.into_iter().map(|(_, name)| &**name).collect()
    }

    /// The nearest contender before `mine` of those that `counts`.
    pub(crate) fn nearest_before(
        &self,
        mine: &str,
        number: impl Fn(&str) -> Option<i32>,
        counts: impl Fn(&str) -> bool,
    ) -> Position<'_> {
        let all = self.in_order(number);
        let Some(place) = all.iter().position(|name| *name == mine) else { return Position::Gone };
        let before = all[..place].iter().rev().find(|name| counts(name));
        before.map_or(Position::First, |name| Position::Behind(name))
    }

    /// Whether no contender is before this one, by the numbers alone.
    fn is_first(&self, name: &str, number: impl Fn(&str) -> Option<i32>) -> bool {
        let own = number(name).filter(|own| *own >= 0 && self.arrivals.is_empty());
        own.is_some_and(|own| self.names.iter().filter_map(|name| number(name)).all(|other| other >= own))
    }
}

/// The contenders that the numbers do not order: equal ones, or all of them if there are negative ones.
pub(crate) fn unordered_by_number(names: &[String], number: impl Fn(&str) -> Option<i32>) -> Vec<&str> {
    let mut all: Vec<_> = names.iter().filter_map(|name| Some((number(name)?, &**name))).collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    let counts_up = all.first().is_none_or(|(number, _)| *number >= 0);
    if counts_up {
        return all.chunk_by(|a, b| a.0 == b.0).filter(|of| of.len() > 1).flatten().map(|of| of.1).collect();
    }
    all.into_iter().map(|(_, name)| name).collect()
}

/// The position of `mine` in a queue in which each contender waits for the one before it.
pub(crate) fn position<'a>(queue: &'a Queue, mine: &str, word: &str) -> Position<'a> {
    position_by_number(queue, mine, |name| number_after(name, word))
}

/// The same for a queue in which no contender takes the place of an earlier one: there a contender with only one before it
/// is [`Next`](Position::Next).
pub(crate) fn position_or_next<'a>(queue: &'a Queue, mine: &str, word: &str) -> Position<'a> {
    match position(queue, mine, word) {
        Position::Behind(name) if queue.is_first(name, |name| number_after(name, word)) => {
            Position::Next(name)
        }
        position => position,
    }
}

/// The position of `mine` among the names for which `number` returns a number.
pub(crate) fn position_by_number<'a>(
    queue: &'a Queue,
    mine: &str,
    number: impl Fn(&str) -> Option<i32>,
) -> Position<'a> {
    if let Some(other) = other_znode_of_planted_bug(queue, mine, &number) {
        return Position::Behind(other);
    }
    queue.nearest_before(mine, number, |_| true)
}

/// With [`Bug::OtherZnodesAreContenders`]: a znode without a number, for which `mine` waits.
fn other_znode_of_planted_bug<'a>(
    queue: &'a Queue,
    mine: &str,
    number: impl Fn(&str) -> Option<i32>,
) -> Option<&'a String> {
    if !planted::is(Bug::OtherZnodesAreContenders) || !queue.names.iter().any(|name| name == mine) {
        return None;
    }
    queue.names.iter().find(|name| number(name).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn numbers_are_read_as_servers_write_them() {
        let protected = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000007";
        let table = [
            ("lock-0000000007", Some(7)),
            (protected, Some(7)),
            ("lock-2147483647", Some(i32::MAX)),
            ("lock--2147483648", Some(i32::MIN)),
            ("lock--000000042", Some(-42)),
            ("lock-7", None),
            ("lock-+000000007", None),
            ("lock-0000000007x", None),
            ("lock-", None),
            ("latch-0000000007", None),
            ("0000000007", None),
            ("lock-99999999999", None),
        ];
        for (name, number) in table {
            assert_eq!(number_after(name, "lock-"), number, "{name}");
        }
    }

    #[test]
    fn contender_waits_for_the_nearest_before_it() {
        use Position::{Behind, First, Gone, Next};
        let (one, two, nine) = ("_c_b-lock-0000000001", "_c_a-lock-0000000002", "_c_c-lock-0000000009");
        let table: &[(&[&str], &str, Position<'_>)] = &[
            (&[one], one, First),
            (&[nine, one, two], one, First),
            (&[nine, one, two], two, Next(one)),
            (&[one, two, nine], nine, Behind(two)),
            (&[two, nine], one, Gone),
            (&[], one, Gone),
            // Other znodes are no contenders.
            (&["0", "lease", "lock-", two], two, First),
            // Another name with the same beginning.
            (&["_c_b-lock-00000000010"], one, Gone),
        ];
        for (queue, mine, expected) in table {
            let queue = Queue::of(names(queue));
            assert_eq!(position_or_next(&queue, mine, "lock-"), *expected, "{mine} in {queue:?}");
        }
    }

    /// Whatever part of a queue is left, one contender is first, and each other waits for one that is there.
    #[test]
    fn exactly_one_contender_is_first_in_every_part_of_a_queue() {
        let all = names(&["lock-0000000003", "lock-0000000001", "lock-0000000007", "lock-0000000005"]);
        for subset in 1_u32..16 {
            let queue: Vec<String> = all
                .iter()
                .enumerate()
                .filter(|(at, _)| subset >> at & 1 == 1)
                .map(|(_, n)| n.clone())
                .collect();
            let queue = Queue::of(queue);
            let first =
                queue.names.iter().filter(|mine| position_or_next(&queue, mine, "lock-") == Position::First);
            assert_eq!(first.count(), 1, "{queue:?}");
            for (place, pair) in queue.in_order(lock_number).windows(2).enumerate() {
                let expected = if place == 0 { Position::Next(pair[0]) } else { Position::Behind(pair[0]) };
                assert_eq!(position_or_next(&queue, pair[1], "lock-"), expected);
            }
        }
    }

    fn lock_number(name: &str) -> Option<i32> {
        number_after(name, "lock-")
    }

    #[test]
    fn zxids_are_needed_only_for_equal_or_negative_numbers() {
        let table: &[(&[&str], &[&str])] = &[
            (&["lock-0000000001", "x", "lock-0000000000", "latch-0000000001"], &[]),
            (&["a-lock-2147483647", "lock-2147483646"], &[]),
            (
                &["a-lock-2147483647", "lock-2147483646", "b-lock-2147483647"],
                &["a-lock-2147483647", "b-lock-2147483647"],
            ),
            (&["lock-2147483647", "lock--2147483648", "x"], &["lock--2147483648", "lock-2147483647"]),
            (&[], &[]),
        ];
        for (queue, expected) in table {
            let queue = names(queue);
            let mut found = unordered_by_number(&queue, lock_number);
            found.sort_unstable();
            assert_eq!(found, *expected, "{queue:?}");
        }
    }

    /// Contenders: the number in the name, and the czxid.
    type Contenders = [(i32, u64)];

    const END: i32 = i32::MAX;
    /// Numbers that servers give in a row. The counter stays at its end; old servers went on below zero.
    const COUNTERS: [[i32; 5]; 5] = [
        [0, 1, 2, 3, 4],
        [END - 2, END - 1, END, END, END],
        [END, END, END, END, END],
        [END - 1, END, i32::MIN, i32::MIN + 1, i32::MIN + 2],
        [-3, -2, -1, 0, 1],
    ];

    /// A name whose random id does not follow the order of arrival.
    fn name_of(number: i32, czxid: u64) -> String {
        format!("_c_{:x}-lock-{number:010}", czxid.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The czxid of the contender for which the contender with the czxid `mine` waits; `None` if it is first.
    fn czxid_before(queue: &Contenders, mine: u64) -> Option<u64> {
        let named: Vec<(String, u64)> =
            queue.iter().map(|(number, czxid)| (name_of(*number, *czxid), *czxid)).collect();
        let czxid = |name: &str| named.iter().find(|(known, _)| known == name).unwrap().1;
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let own = &named.iter().find(|(_, czxid)| *czxid == mine).unwrap().0;
        let arrivals = named.iter().cloned().map(|(name, czxid)| (name, Zxid(czxid))).collect();
        match position_or_next(&Queue { names, arrivals }, own, "lock-") {
            Position::First => None,
            Position::Next(name) | Position::Behind(name) => Some(czxid(name)),
            Position::Gone => panic!("{own} is in the queue"),
        }
    }

    /// The czxids from the first contender on, if each other contender waits for another one.
    fn order_of(queue: &Contenders) -> Result<Vec<u64>, String> {
        let before: Vec<(Option<u64>, u64)> =
            queue.iter().map(|(_, czxid)| (czxid_before(queue, *czxid), *czxid)).collect();
        let (mut order, mut last) = (Vec::new(), None);
        for _ in queue {
            let next: Vec<u64> =
                before.iter().filter(|(before, _)| *before == last).map(|(_, czxid)| *czxid).collect();
            let [next] = next[..] else { return Err(format!("{next:?} follow {last:?} in {queue:?}")) };
            order.push(next);
            last = Some(next);
        }
        Ok(order)
    }

    fn subsets<T: Copy>(all: &[T]) -> impl Iterator<Item = Vec<T>> {
        (1_u32..1 << all.len())
            .map(|chosen| (0..all.len()).filter(|at| chosen >> at & 1 == 1).map(|at| all[at]).collect())
    }

    /// Also after any of the contenders have left, and for any order of the names in a server's list.
    #[test]
    fn positions_follow_the_order_of_arrival() {
        for numbers in COUNTERS {
            let all: Vec<(i32, u64)> = numbers.into_iter().zip([7, 8, 20, 31, 32]).collect();
            for mut queue in subsets(&all) {
                let arrival: Vec<u64> = queue.iter().map(|(_, czxid)| *czxid).collect();
                for _ in 0..queue.len() {
                    queue.rotate_left(1);
                    assert_eq!(order_of(&queue), Ok(arrival.clone()), "{queue:?}");
                }
            }
        }
    }

    /// By equal or negative numbers alone it is not certain that a later contender comes behind.
    #[test]
    fn a_contender_is_next_only_where_the_numbers_decide() {
        let (first, second) = ("a-lock-2147483647", "b-lock-2147483647");
        let mut queue = Queue::of(names(&[first, second]));
        queue.arrivals = [(first.into(), Zxid(1)), (second.into(), Zxid(2))].into();
        assert_eq!(position_or_next(&queue, second, "lock-"), Position::Behind(first));
        let queue = Queue::of(names(&["lock--000000002", "lock-0000000001"]));
        assert_eq!(position_or_next(&queue, "lock-0000000001", "lock-"), Position::Behind("lock--000000002"));
    }

    /// Numbers that no counter gives: one contender is first, and each of the others waits for another one.
    #[test]
    fn arbitrary_numbers_leave_one_first_and_no_two_wait_for_each_other() {
        const NUMBERS: [i32; 9] =
            [0, 7, END - 1, END, i32::MIN, i32::MIN + 7, -1, 1_500_000_000, -1_300_000_000];
        const CZXIDS: [[u64; 3]; 3] = [[1, 2, 3], [2, 3, 1], [3, 2, 1]];
        let mut wrong = Vec::new();
        for (first, second, third) in NUMBERS
            .iter()
            .flat_map(|a| NUMBERS.iter().flat_map(move |b| NUMBERS.iter().map(move |c| (a, b, c))))
        {
            for czxids in CZXIDS {
                let all = [(*first, czxids[0]), (*second, czxids[1]), (*third, czxids[2])];
                for queue in subsets(&all) {
                    match order_of(&queue) {
                        Err(error) => wrong.push(error),
                        Ok(order) => {
                            let place = |czxid| order.iter().position(|other| *other == czxid);
                            for (number, czxid) in &queue {
                                let later =
                                    queue.iter().filter(|other| other.0 == *number && other.1 > *czxid);
                                later.for_each(|other| assert!(place(*czxid) < place(other.1), "{queue:?}"));
                            }
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} queues, the first: {}", wrong.len(), wrong[0]);
    }
}
