//! Vectors of strings, encoded and shared.

use crate::{jute::Writer, shared::SharedBytes};
use alloc::{sync::Arc, vec::Vec};

/// A vector of strings as a reply has it: names of children, or paths. Encoded once, shared until it is written. A long
/// one shares the tree's own parts, so that it costs no more than their number.
#[derive(Debug, Clone)]
pub enum SharedStrings {
    /// All of it in one piece, the number of strings in front.
    Whole(SharedBytes),
    /// In parts.
    Parts(Arc<Parts>),
}

/// A long vector of strings.
#[derive(Debug)]
pub struct Parts {
    count: usize,
    len: usize,
    parts: Vec<Arc<Vec<u8>>>,
}

impl Parts {
    /// Bytes of all of it, the number of strings in front among them.
    pub fn size(&self) -> usize {
        4 + self.len
    }

    /// How many strings there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The encoded strings, some in each part, without their number in front.
    pub fn parts(&self) -> &[Arc<Vec<u8>>] {
        &self.parts
    }
}

impl SharedStrings {
    /// A vector of `count` strings that are encoded in these parts.
    pub fn of_parts(count: usize, parts: Vec<Arc<Vec<u8>>>) -> SharedStrings {
        let len = parts.iter().map(|part| part.len()).sum();
        SharedStrings::Parts(Arc::new(Parts { count, len, parts }))
    }

    /// Encodes strings.
    pub fn encode<'s>(strings: impl ExactSizeIterator<Item = &'s str>) -> SharedStrings {
        let mut out = Vec::new();
        out.length(strings.len());
        strings.for_each(|string| out.string(string));
        SharedStrings::Whole(SharedBytes::from(&out[..]))
    }

    /// Bytes of all of it.
    pub fn size(&self) -> usize {
        match self {
            SharedStrings::Whole(bytes) => bytes.len(),
            SharedStrings::Parts(parts) => parts.size(),
        }
    }

    /// Appends all of it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            SharedStrings::Whole(bytes) => out.raw(bytes),
            SharedStrings::Parts(long) => {
                out.length(long.count);
                long.parts.iter().for_each(|part| out.raw(part));
            }
        }
    }

    /// A copy in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        self.write(&mut out);
        out
    }
}

impl PartialEq for SharedStrings {
    fn eq(&self, other: &Self) -> bool {
        self.to_vec() == other.to_vec()
    }
}

impl Eq for SharedStrings {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_bytes_of_the_whole() {
        let whole = SharedStrings::encode(["a", "bc", "d"].into_iter());
        let bytes = whole.to_vec();
        assert_eq!(bytes, [0, 0, 0, 3, 0, 0, 0, 1, b'a', 0, 0, 0, 2, b'b', b'c', 0, 0, 0, 1, b'd']);
        let parts = [&bytes[4..15], &bytes[15..]].map(|part| Arc::new(part.to_vec()));
        let parts = SharedStrings::of_parts(3, parts.into());
        assert_eq!((parts.to_vec(), parts.size(), whole.size()), (bytes, 20, 20));
        assert_eq!(parts, whole);
        assert_ne!(parts, SharedStrings::encode(["a", "bc", "e"].into_iter()));
    }
}
