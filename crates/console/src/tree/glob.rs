//! Patterns for paths: `*` stands for any characters of a name, `?` for one, and `**` between slashes for any names.

/// A pattern. Without `*` and `?` it is a text that the name contains; with a slash it is for the whole path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Glob {
    /// A part of the name.
    Part(String),
    /// For the name.
    Name(Vec<char>),
    /// For the path, by its names.
    Path(Vec<Names>),
}

/// The part between two slashes of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Names {
    /// A pattern for one name.
    One(Vec<char>),
    /// Any number of names.
    Any,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Glob {
        if !pattern.contains('/') {
            return match pattern.contains(['*', '?']) {
                true => Glob::Name(pattern.chars().collect()),
                false => Glob::Part(pattern.to_owned()),
            };
        }
        let mut names: Vec<Names> = Vec::new();
        if !pattern.starts_with('/') {
            names.push(Names::Any);
        }
        for name in pattern.split('/').filter(|name| !name.is_empty()) {
            match name {
                "**" if names.last() == Some(&Names::Any) => {}
                "**" => names.push(Names::Any),
                name => names.push(Names::One(name.chars().collect())),
            }
        }
        Glob::Path(names)
    }

    pub(super) fn fits(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        match self {
            Glob::Part(part) => name.contains(part.as_str()),
            Glob::Name(pattern) => name_fits(pattern, name),
            Glob::Path(pattern) => {
                let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
                all_fit(pattern, &names)
            }
        }
    }
}

/// Goes on behind the last `*` at each mismatch, so the time is at most the product of the lengths.
fn name_fits(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    fits(
        pattern.len(),
        name.len(),
        |at| pattern[at] == '*',
        |at, of| pattern[at] == '?' || pattern[at] == name[of],
    )
}

fn all_fit(pattern: &[Names], names: &[&str]) -> bool {
    let one = |at: usize, of: usize| match &pattern[at] {
        Names::One(pattern) => name_fits(pattern, names[of]),
        Names::Any => false,
    };
    fits(pattern.len(), names.len(), |at| pattern[at] == Names::Any, one)
}

/// Whether a pattern of a length fits a text. `is_any` says whether a place of the pattern stands for anything, `is_one`
/// whether it stands for this place of the text.
fn fits(
    pattern: usize,
    text: usize,
    is_any: impl Fn(usize) -> bool,
    is_one: impl Fn(usize, usize) -> bool,
) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while of < text {
        if at < pattern && is_any(at) {
            again = Some((at, of));
            at += 1;
        } else if at < pattern && is_one(at, of) {
            (at, of) = (at + 1, of + 1);
        } else if let Some((any, begun)) = again {
            again = Some((any, begun + 1));
            (at, of) = (any + 1, begun + 1);
        } else {
            return false;
        }
    }
    (at..pattern).all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_and_paths() {
        for (pattern, path, fits) in [
            ("lock", "/a/my-lock-1", true),
            ("lock", "/lock/a", false),
            ("lock", "/a", false),
            ("l*k", "/a/lock", true),
            ("l*k", "/a/locks", false),
            ("l??k", "/a/lock", true),
            ("*", "/", true),
            ("?", "/", false),
            ("*.*", "/a/b.c.d", true),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/a", true),
            ("/a/**/c", "/a/c", true),
            ("/a/**/c", "/a/b/b/c", true),
            ("/a/**/c", "/b/a/c", false),
            ("a/*/c", "/x/a/b/c", true),
            ("**/c", "/c", true),
            ("/", "/", true),
            ("/", "/a", false),
            ("\u{e4}?", "/\u{e4}\u{f6}", true),
        ] {
            assert_eq!(Glob::new(pattern).fits(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_longer_than_the_product_of_lengths() {
        let (pattern, name) = ("*a".repeat(200), "a".repeat(5000));
        let began = std::time::Instant::now();
        assert!(!Glob::new(&format!("{pattern}b")).fits(&format!("/{name}")));
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
        let (pattern, path) = ("/**/a".repeat(200), "/a".repeat(5000));
        assert!(!Glob::new(&format!("{pattern}/b")).fits(&path));
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
    }
}
