//! The order of readers and writers in the queue of a read-write lock.
//!
//! A writer waits for all readers and writers before it, a reader only for the writers before it. Both kinds of names
//! end in the number that the server has appended, so they form one queue. A reader that was a writer keeps that
//! writer's number, so it stays before writers that have come since (CURATOR-621). Where the numbers do not give the
//! order, its name also has the zxid by which the writer's znode was created
//! ([`arrival_in`](crate::queue_order::arrival_in)).

use crate::queue_order::{Position, Queue, arrival_prefix, number_after, position_by_number};
use ostler_proto::id::Zxid;

pub(crate) const READ: &str = "__READ__";
pub(crate) const WRITE: &str = "__WRIT__";

/// A reader's or a writer's number.
pub(crate) fn number(name: &str) -> Option<i32> {
    number_after(name, READ).or_else(|| number_after(name, WRITE))
}

/// The position of the reader `mine`. It waits for the nearest writer before it: writers before that one leave earlier.
pub(crate) fn reader_position<'a>(queue: &'a Queue, mine: &str) -> Position<'a> {
    queue.nearest_before(mine, number, |name| number_after(name, WRITE).is_some())
}

/// The position of the writer `mine`.
pub(crate) fn writer_position<'a>(queue: &'a Queue, mine: &str) -> Position<'a> {
    position_by_number(queue, mine, number)
}

/// From this number on, the name of a downgraded writer also has its czxid: the counter may soon be at its end.
const NEAR_THE_END: i32 = 1 << 30;

/// The name of a reader that was the writer `writer`, whose znode has this czxid.
pub(crate) fn downgraded_name(writer: &str, czxid: Zxid) -> String {
    let number = number_as_written(writer);
    match number.parse::<i32>() {
        Ok(counted) if (0..NEAR_THE_END).contains(&counted) => format!("{READ}{number}"),
        _ => format!("{}{READ}{number}", arrival_prefix(czxid)),
    }
}

/// The digits of the number in a writer's name, for the name of a reader that was this writer.
pub(crate) fn number_as_written(writer: &str) -> &str {
    writer.rfind(WRITE).map_or("", |at| &writer[at + WRITE.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue_order::arrival_in;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn readers_wait_for_writers_and_writers_for_all() {
        use Position::{Behind, First, Gone};
        let (r1, r2, r5) = ("a__READ__0000000001", "b__READ__0000000002", "c__READ__0000000005");
        let (w0, w3, w4) = ("d__WRIT__0000000000", "e__WRIT__0000000003", "f__WRIT__0000000004");
        // `w3` after its downgrade.
        let r3 = "e__READ__0000000003";
        let table: &[(&[&str], &str, Position<'_>)] = &[
            (&[r1, r2], r2, First),
            (&[r1, r2, w3], r2, First),
            (&[r1, r2, w3], w3, Behind(r2)),
            (&[r1, w3], w3, Behind(r1)),
            (&[w3], w3, First),
            (&[w0, r1, r2], r2, Behind(w0)),
            (&[w3, w4, r5], r5, Behind(w4)),
            (&[w4, r5, r1], r5, Behind(w4)),
            (&[r3, w4], w4, Behind(r3)),
            (&[r3, w4, r5], r5, Behind(w4)),
            (&[r3, r5], r5, First),
            (&[r1], r2, Gone),
            (&[r1], w3, Gone),
            (&["0", "lock-0000000000", w3], w3, First),
        ];
        for (queue, mine, expected) in table {
            let queue = Queue::of(names(queue));
            let found = match mine.contains(WRITE) {
                true => writer_position(&queue, mine),
                false => reader_position(&queue, mine),
            };
            assert_eq!(found, *expected, "{mine} in {queue:?}");
        }
    }

    #[test]
    fn number_of_a_writer_keeps_its_digits_and_sign() {
        assert_eq!(number_as_written("_c_x-__WRIT__0000000012"), "0000000012");
        assert_eq!(number_as_written("__WRIT__-000000012"), "-000000012");
    }

    #[test]
    fn downgraded_name_has_the_czxid_near_the_end_of_the_counter() {
        let czxid = Zxid(0x5_0000_0abc);
        let plain = downgraded_name("_c_x-__WRIT__0000000012", czxid);
        assert_eq!((&*plain, arrival_in(&plain, &[READ])), ("__READ__0000000012", None));
        for number in ["2147483647", "-2147483648"] {
            let name = downgraded_name(&format!("_c_x-__WRIT__{number}"), czxid);
            assert_eq!(name, format!("0000000500000abc-__READ__{number}"));
            assert_eq!(arrival_in(&name, &[READ]), Some(czxid));
            assert_eq!(arrival_in(&format!("_c_0f-1e-{name}"), &[READ]), Some(czxid), "protected");
        }
        for other in [
            "__WRIT__2147483647",
            "_c_01234567-89ab-cdef-0123-456789abcdef-__READ__2147483647",
            "-__READ__2147483647",
        ] {
            assert_eq!(arrival_in(other, &[READ]), None, "{other}");
        }
    }

    /// At the end of the counter all numbers are equal, and the order of arrival decides.
    #[test]
    fn at_the_end_of_the_counter_a_writer_holds_alone() {
        // Random ids, in the order of arrival.
        const IDS: [&str; 4] = ["7f", "02", "e1", "5a"];
        for kinds in 0_u32..16 {
            let is_writer = |at: usize| kinds >> at & 1 == 1;
            let word = |at| if is_writer(at) { WRITE } else { READ };
            let names: Vec<String> =
                (0..4).map(|at| format!("_c_{}-{}2147483647", IDS[at], word(at))).collect();
            let arrivals = names.iter().cloned().zip([3, 4, 17, 20].map(Zxid)).collect();
            let queue = Queue { names: names.clone(), arrivals };
            let first = |at: usize| {
                let found = match is_writer(at) {
                    true => writer_position(&queue, &names[at]),
                    false => reader_position(&queue, &names[at]),
                };
                found == Position::First
            };
            let holders: Vec<usize> = (0..4).filter(|at| first(*at)).collect();
            // The first writer alone, or all readers before it.
            let readers: Vec<usize> = (0..4).take_while(|at| !is_writer(*at)).collect();
            assert_eq!(holders, if readers.is_empty() { vec![0] } else { readers }, "{queue:?}");
        }
    }
}
