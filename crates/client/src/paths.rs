//! Splits and joins paths of znodes. Curator's `ZKPaths`.

pub use ostler_proto::path::{is_valid, name, parent};

/// The path of `name` below `parent`.
pub fn join(parent: &str, name: &str) -> String {
    match parent {
        "/" => format!("/{name}"),
        _ => format!("{parent}/{name}"),
    }
}

/// The number of a sequential znode: the ten digits that the server has appended to its name. `None` if the name does
/// not end with ten digits. The number is signed, because the server's counter overflows after 2,147,483,647.
///
/// ```
/// use ostler_client::paths::sequence;
/// assert_eq!(sequence("lock-0000000042"), Some(42));
/// assert_eq!(sequence("lock--0000000042"), Some(-42));
/// assert_eq!(sequence("lock"), None);
/// ```
pub fn sequence(name: &str) -> Option<i32> {
    let at = name.len().checked_sub(10)?;
    let digits = name.get(at..).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let number: i64 = digits.parse().ok()?;
    let before = &name[..at];
    // After the name `lock-` a minus sign is a second one.
    let negative = before.ends_with("--");
    i32::try_from(if negative { -number } else { number }).ok()
}
