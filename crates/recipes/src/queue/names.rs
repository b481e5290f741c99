//! The meaning of the names of a queue's items. A server appends ten digits to each.
//!
//! | Queue | Name before the digits |
//! |---|---|
//! | plain | `queue-` |
//! | with ids | <code>queue-&#124;id&#124;</code> |
//! | with priorities | `queue-`, `1` (`0` for negative ones), the priority in eight hexadecimal digits |
//! | with delays | <code>queue-&#124;T&#124;</code>, T in hexadecimal ms since 1970 |

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PREFIX: &str = "queue-";
const SEPARATOR: char = '|';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Id,
    /// How many items are taken before a newer list is looked at.
    Priority {
        before_refresh: usize,
    },
    /// How long after it has failed an item is due again.
    Delay {
        retry_after: Duration,
    },
}

pub(crate) fn plain() -> String {
    PREFIX.to_owned()
}

/// An id as it is in a name: Curator replaces what cannot be there.
pub(crate) fn id_in_name(id: &str) -> String {
    id.replace(['/', SEPARATOR], "_")
}

pub(crate) fn with_id(id: &str) -> String {
    format!("{PREFIX}{SEPARATOR}{}{SEPARATOR}", id_in_name(id))
}

pub(crate) fn with_priority(priority: i32) -> String {
    let sign = if priority >= 0 { '1' } else { '0' };
    format!("{PREFIX}{sign}{:08X}", priority as u32)
}

pub(crate) fn with_delay(due: SystemTime) -> String {
    let since = due.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    // More does not fit into Java's number.
    let due_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).min(i64::MAX as u64);
    format!("{PREFIX}{SEPARATOR}{due_ms:08X}{SEPARATOR}")
}

/// An item's id, and its name without that.
fn split_id(name: &str) -> Option<(&str, String)> {
    let (before, rest) = name.split_once(SEPARATOR)?;
    let (id, after) = rest.split_once(SEPARATOR)?;
    Some((id, format!("{before}{after}")))
}

pub(crate) fn id(name: &str) -> &str {
    split_id(name).map_or(name, |(id, _)| id)
}

/// When an item may be taken, ms since 1970; 0 for one that does not say.
fn due_ms(name: &str) -> u64 {
    let mut parts = name.rsplitn(3, SEPARATOR);
    let (_, due, before) = (parts.next(), parts.next(), parts.next());
    before.and(due).and_then(|due| u64::from_str_radix(due, 16).ok()).unwrap_or(0)
}

/// For how many ms more an item may not be taken.
pub(crate) fn delay_ms(kind: Kind, name: &str, now_ms: u64) -> u64 {
    match kind {
        Kind::Delay { .. } => due_ms(name).saturating_sub(now_ms),
        _ => 0,
    }
}

/// The items among the names, in the order in which they are to be taken.
pub(crate) fn in_order(kind: Kind, names: Vec<String>) -> Vec<String> {
    let mut items: Vec<String> = names.into_iter().filter(|name| name.starts_with(PREFIX)).collect();
    match kind {
        Kind::Plain | Kind::Priority { .. } => items.sort_unstable(),
        Kind::Id => items.sort_by_cached_key(|name| split_id(name).map_or(name.clone(), |(_, rest)| rest)),
        Kind::Delay { .. } => items.sort_by_cached_key(|name| (due_ms(name), name.clone())),
    }
    items
}

/// A name without the server's digits, if it has a priority: one without has fewer characters in all.
fn before_digits(name: &str) -> Option<&str> {
    const LENGTH: usize = PREFIX.len() + 1 + 8;
    const DIGITS: usize = 10;
    (name.len() >= LENGTH + DIGITS).then(|| name.get(..LENGTH)).flatten()
}

/// The name for an item that has failed and is put back. The server's digits put it behind those with the same id or
/// priority; where its time has come, that would put it first, so it gets another one.
pub(crate) fn put_back(kind: Kind, name: &str, now: SystemTime) -> String {
    match kind {
        Kind::Plain => plain(),
        Kind::Id => split_id(name).map_or_else(plain, |(id, _)| with_id(id)),
        Kind::Priority { .. } => before_digits(name).map_or_else(plain, str::to_owned),
        Kind::Delay { retry_after } => with_delay(now.checked_add(retry_after).unwrap_or(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Kind = Kind::Delay { retry_after: Duration::from_millis(3) };

    fn at_ms(ms: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(ms)
    }

    #[test]
    fn names_are_those_of_curator() {
        assert_eq!(with_id("a/b|c"), "queue-|a_b_c|");
        assert_eq!(id("queue-|a_b|0000000003"), "a_b");
        assert_eq!(id("queue-0000000003"), "queue-0000000003");
        assert_eq!(with_priority(10), "queue-10000000A");
        assert_eq!(with_priority(-1), "queue-0FFFFFFFF");
        assert_eq!(with_delay(at_ms(0x1234)), "queue-|00001234|");
        assert_eq!(delay_ms(DELAY, "queue-|00001234|0000000001", 0x1230), 4);
        assert_eq!(delay_ms(DELAY, "queue-|00001234|0000000001", 0x1235), 0);
        for odd in ["queue-|zz|0000000001", "queue-|12", "queue-", "|"] {
            assert_eq!(delay_ms(DELAY, odd, 0), 0, "{odd}");
        }
    }

    #[test]
    fn each_queue_has_its_order() {
        let check = |kind, names: &str, expected: &str| {
            let names = names.split_whitespace().map(str::to_owned).collect();
            assert_eq!(in_order(kind, names).join(" "), expected);
        };
        check(Kind::Plain, "queue-2 other queue-1 _c_x-queue-0", "queue-1 queue-2");
        check(Kind::Id, "queue-|z|1 queue-|a|2 queue-|m|0", "queue-|m|0 queue-|z|1 queue-|a|2");
        let priority = |priority: i32| format!("{}0000000001", with_priority(priority));
        let names = [5, -3, 0, -7].map(priority).join(" ");
        check(Kind::Priority { before_refresh: 1 }, &names, &[-7, -3, 0, 5].map(priority).join(" "));
        check(DELAY, "queue-|FF|1 queue-|100|0 queue-|1|9", "queue-|1|9 queue-|FF|1 queue-|100|0");
    }

    #[test]
    fn failed_item_keeps_its_id_or_priority() {
        let check = |kind, name: &str, expected: &str| {
            assert_eq!(put_back(kind, name, at_ms(0x1234_5678)), expected, "{name}");
        };
        check(Kind::Plain, "queue-0000000001", "queue-");
        check(Kind::Id, "queue-|a|0000000001", "queue-|a|");
        check(Kind::Id, "queue-0000000001", "queue-");
        let priority = Kind::Priority { before_refresh: 1 };
        for number in [i32::MIN, -1, 0, i32::MAX] {
            let name = with_priority(number);
            check(priority, &format!("{name}0000000001"), &name);
            check(priority, &format!("{name}-2147483648"), &name);
        }
        // As Curator puts them back.
        check(priority, "queue-0000000001", "queue-");
        check(priority, "queue--2147483648", "queue-");
        check(DELAY, "queue-|000000FF|0000000001", "queue-|1234567B|");
        check(DELAY, "queue-0000000001", "queue-|1234567B|");
    }
}
