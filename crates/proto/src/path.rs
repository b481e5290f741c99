//! Rules for paths of znodes (`PathUtils.validatePath`), the parts of a path, and paths with a meaning.

/// Whether `path` can be the path of a znode. It must be absolute, without empty, `.` or `..` parts, without a trailing
/// slash (but for the root), and without control and private characters.
pub fn is_valid(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    if !path.starts_with('/') || path.ends_with('/') {
        return false;
    }
    // For plain ASCII, as most paths are, the bytes are enough.
    // No loop ends early, so the compiler makes them work on many bytes at a time.
    let bytes = path.as_bytes();
    let plain = bytes.iter().fold(true, |plain, byte| plain & (*byte >= 0x20) & (*byte <= 0x7e));
    let suspicious = bytes.iter().zip(&bytes[1..]).fold(false, |suspicious, (before, byte)| {
        suspicious | ((*before == b'/') & ((*byte == b'/') | (*byte == b'.')))
    });
    let parts_are_fine = || path[1..].split('/').all(|part| !matches!(part, "" | "." | ".."));
    (plain || !path.chars().any(is_forbidden)) && (!suspicious || parts_are_fine())
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}' | '\u{10000}'..)
}

/// The path of the parent: everything before the last slash, or "/" for the root's children. `None` without a slash,
/// and for a path with a NUL, which upstream refuses before anything else.
pub fn parent(path: &str) -> Option<&str> {
    if path.as_bytes().contains(&0) {
        return None;
    }
    match path.rfind('/')? {
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// The last part of a path, behind the last slash.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The path as the tree has it. In upstream the root is "/" and also the empty string; the tree has "/" only.
pub fn canonical(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Whether `path` is `ancestor` or below it.
pub fn is_within(path: &str, ancestor: &str) -> bool {
    ancestor == "/"
        || path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The paths above `path`, nearest first, the root last.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(if path == "/" { None } else { parent(path) }, |p| {
        if *p == "/" { None } else { parent(p) }
    })
}

/// Whether a path is one of the system znodes, which clients cannot delete.
pub fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | QUOTA_ROOT | CONFIG)
}

/// The znode above the quotas.
pub const QUOTA_ROOT: &str = "/zookeeper/quota";
/// The znode with the ensemble's configuration.
pub const CONFIG: &str = "/zookeeper/config";
/// The name of a znode with a quota's limits.
pub const QUOTA_LIMITS: &str = "zookeeper_limits";
/// The name of a znode with a quota's usage.
pub const QUOTA_STATS: &str = "zookeeper_stats";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn validity_follows_upstream() {
        for good in ["/", "/a", "/a/b.c", "/zookeeper/foo", "/a/...", "/ä€", "/\u{1f600}"] {
            let astral = good.chars().any(|c| c as u32 > 0xffff);
            assert_eq!(is_valid(good), !astral, "{good:?}");
        }
        for bad in [
            "",
            "a",
            "/a/",
            "//",
            "/a//b",
            "/.",
            "/a/..",
            "/a/./b",
            "/\u{1}",
            "/\u{7f}",
            "/\u{f000}",
            "/\u{fff0}",
        ] {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }

    #[test]
    fn parents_and_ancestors_end_at_the_root() {
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/a/"), Some("/a"));
        assert_eq!(parent("a"), None);
        assert_eq!(parent("/a\0"), None);
        assert_eq!(ancestors("/a/b/c").collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("/").count(), 0);
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && !is_within("/ab", "/a"));
    }
}
