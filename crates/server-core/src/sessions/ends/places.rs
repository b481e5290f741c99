//! Which sequential znode is first among its siblings: who holds a lock, and who gets it next.

/// The digits behind the name of a sequential znode.
const DIGITS: usize = 10;

/// The number of a sequential znode, from its path or name.
pub(super) fn sequence(name: &str) -> Option<i32> {
    let at = name.len().checked_sub(DIGITS)?;
    let (before, digits) = (name.get(..at)?, name.get(at..)?);
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    // Something has to stand before it, or the name is just a number.
    let has_name = before.bytes().next_back().is_some_and(|byte| byte != b'/');
    (is_number && has_name).then(|| digits.parse().ok())?
}

/// The parent of a path, and the name below it.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// The sibling that is first now that `gone` is deleted. `None` if another one was before it, or if none is left.
pub(super) fn next_in_line<N: AsRef<str>>(gone: &str, siblings: impl Iterator<Item = N>) -> Option<N> {
    let gone = sequence(gone)?;
    let numbered = siblings.filter_map(|name| Some((sequence(name.as_ref())?, name)));
    let (number, first) = numbered.min_by_key(|(number, _)| *number)?;
    (number > gone).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_names_with_ten_digits() {
        assert_eq!(sequence("/locks/_c_4f-lock-0000000012"), Some(12));
        assert_eq!(sequence("lock-2147483647"), Some(i32::MAX));
        for name in ["lock-12", "0000000012", "/q/0000000012", "lock-9999999999", "é00000000", ""] {
            assert_eq!(sequence(name), None, "{name}");
        }
    }

    #[test]
    fn the_next_is_first_only_if_the_one_that_went_was_first() {
        let siblings = ["a-0000000005", "config", "b-0000000003"];
        assert_eq!(next_in_line("c-0000000001", siblings.iter()), Some(&"b-0000000003"));
        assert_eq!(next_in_line("c-0000000004", siblings.iter()), None, "b was first before as well");
        assert_eq!(next_in_line("c", siblings.iter()), None);
        assert_eq!(next_in_line("c-0000000001", ["config"].iter()), None);
    }

    #[test]
    fn paths_are_split_at_their_last_name() {
        assert_eq!(split("/a/b-0000000001"), Some(("/a", "b-0000000001")));
        assert_eq!(split("/b-0000000001"), Some(("/", "b-0000000001")));
        assert_eq!(split("b"), None);
    }
}
