//! Splits and joins paths of znodes. Curator's `ZKPaths`.

pub use ostler_proto::path::{is_valid, name, parent};

/// The path of `name` below `parent`.
pub fn join(parent: &str, name: &str) -> String {
    match parent {
        "/" => format!("/{name}"),
        _ => format!("{parent}/{name}"),
    }
}

/// The number of a sequential znode: the ten characters that the server has appended to its name. `None` if the name does
/// not end with such a number.
///
/// The number is signed: old servers counted on below zero after 2,147,483,647. A minus sign counts among the ten
/// characters; only numbers below -999,999,999 have eleven. After a name like `lock-` it is the second minus sign.
///
/// ```
/// use ostler_client::paths::sequence;
/// assert_eq!(sequence("lock-0000000042"), Some(42));
/// assert_eq!(sequence("lock--000000042"), Some(-42));
/// assert_eq!(sequence("lock--2147483648"), Some(i32::MIN));
/// assert_eq!(sequence("lock"), None);
/// ```
pub fn sequence(name: &str) -> Option<i32> {
    let at = name.len().checked_sub(10)?;
    let (before, number) = (name.get(..at)?, name.get(at..)?);
    let digits = number.strip_prefix('-').unwrap_or(number);
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: i64 = number.parse().ok()?;
    // With eleven characters the sign is before the ten digits, of which none is a leading zero.
    let is_negative = before.ends_with("--") && number >= 1_000_000_000;
    i32::try_from(if is_negative { -number } else { number }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_servers_write_them() {
        for number in [0, 7, 999_999_999, i32::MAX, -1, -42, -999_999_999, -1_000_000_000, i32::MIN] {
            assert_eq!(sequence(&format!("lock-{number:010}")), Some(number));
        }
        assert_eq!(sequence("0000000007"), Some(7));
        // Zeros before ten digits are no negative number.
        assert_eq!(sequence("lock--0000000042"), Some(42));
        for name in ["lock", "lock-123", "lock-9999999999", "lock-00000-0042", "lock-+000000042", "ä00000000"]
        {
            assert_eq!(sequence(name), None, "{name}");
        }
    }
}
