//! Finds the ancestors of a path that can be in a set of paths, without a look-up for each ancestor.

use alloc::collections::BTreeMap;

/// The lengths of the paths in a set, with the number of paths of each length. Only ancestors with such a length are
/// looked up in the set: a path of ten thousand parts has ten thousand ancestors.
#[derive(Debug, Default)]
pub(crate) struct PathLengths {
    counts: BTreeMap<usize, usize>,
}

impl PathLengths {
    pub(crate) fn add(&mut self, path: &str) {
        *self.counts.entry(path.len()).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, path: &str) {
        if let Some(count) = self.counts.get_mut(&path.len()) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&path.len());
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The highest number of paths that [`PathLengths::above`] returns.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The ancestors of `path` that can be in the set by their length, nearest first.
    pub(crate) fn above<'p>(&self, path: &'p str) -> impl Iterator<Item = &'p str> {
        let lengths = self.counts.range(..path.len()).rev().map(|(length, _)| *length);
        lengths.filter_map(move |length| match length {
            0 => None,
            // The root ends with a slash, unlike other paths, and is above all of them.
            1 => (path != "/" && path.starts_with('/')).then_some("/"),
            _ => (path.as_bytes()[length] == b'/').then(|| &path[..length]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{string::String, vec::Vec};

    #[test]
    fn only_ancestors_of_a_length_that_occurs_are_returned() {
        let mut lengths = PathLengths::default();
        for path in ["/", "/a", "/x/y", "/\u{e4}"] {
            lengths.add(path);
        }
        let above =
            |lengths: &PathLengths, path: &str| lengths.above(path).map(String::from).collect::<Vec<_>>();
        assert_eq!(above(&lengths, "/a/b/c/d"), ["/a/b", "/a", "/"]);
        assert_eq!(above(&lengths, "/a"), ["/"]);
        assert_eq!(above(&lengths, "/"), [""; 0]);
        assert_eq!(above(&lengths, "/\u{e4}/b"), ["/\u{e4}", "/"]);
        assert_eq!(above(&lengths, "/\u{20ac}/b"), ["/\u{20ac}", "/"]);
        lengths.remove("/x/y");
        assert_eq!(above(&lengths, "/a/b/c/d"), ["/a", "/"]);
        assert_eq!(lengths.len(), 3);
    }
}
