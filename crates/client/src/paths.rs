//! Paths of znodes, taken apart and put together. Curator's `ZKPaths`.

pub use ostler_proto::path::{is_valid, name, parent};

/// The path of `name` below `parent`.
pub fn join(parent: &str, name: &str) -> String {
    match parent {
        "/" => format!("/{name}"),
        _ => format!("{parent}/{name}"),
    }
}

/// The ten digits that a server has appended to a sequential znode's name, as a number. Beyond 2,147,483,647
/// servers begin to repeat themselves or go on below zero, so it is signed.
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
