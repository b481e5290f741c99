//! Which paths at or above a path are in a set, however deep the path is.

use alloc::collections::BTreeMap;

/// How many paths of each length a set has. Only at these lengths is the set asked: a path of ten thousand parts is above
/// ten thousand others, each of which would be a look-up of its own.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    counts: BTreeMap<usize, usize>,
}

impl Lengths {
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

    /// How many look-ups [`Lengths::above`] is, at most.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Of the paths above `path` those that can be in the set, nearest first.
    pub(crate) fn above<'p>(&self, path: &'p str) -> impl Iterator<Item = &'p str> {
        let lengths = self.counts.range(..path.len()).rev().map(|(length, _)| *length);
        lengths.filter_map(move |length| match length {
            0 => None,
            // The root ends with its slash, and is above all others.
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
    fn only_lengths_that_occur_are_asked_for() {
        let mut lengths = Lengths::default();
        for path in ["/", "/a", "/x/y", "/\u{e4}"] {
            lengths.add(path);
        }
        let above = |lengths: &Lengths, path: &str| lengths.above(path).map(String::from).collect::<Vec<_>>();
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
