//! Vectors of strings, encoded as a reply has them and shared without a copy.

use crate::{jute::Writer, shared::SharedBytes};
use alloc::{sync::Arc, vec::Vec};

/// An encoded vector of strings: names of children, or paths. It is shared until it is written. A long vector shares
/// the parts that the tree has, so a reply with it costs one pointer for each part.
#[derive(Debug, Clone)]
pub enum SharedStrings {
    /// The vector in one piece, with the number of strings in front.
    Whole(SharedBytes),
    /// A long vector, in parts.
    Parts(Arc<StringParts>),
}

/// A long vector of strings, in parts that the tree shares.
#[derive(Debug)]
pub struct StringParts {
    count: usize,
    len: usize,
    parts: Vec<Arc<Vec<u8>>>,
}

impl StringParts {
    /// The encoded size of the vector in bytes, with the number of strings in front.
    pub fn size(&self) -> usize {
        4 + self.len
    }

    /// The number of strings.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The encoded strings, without their number in front. Each part has some of them.
    pub fn parts(&self) -> &[Arc<Vec<u8>>] {
        &self.parts
    }
}

impl SharedStrings {
    /// A vector of `count` strings that are encoded in these parts.
    pub fn of_parts(count: usize, parts: Vec<Arc<Vec<u8>>>) -> SharedStrings {
        let len = parts.iter().map(|part| part.len()).sum();
        SharedStrings::Parts(Arc::new(StringParts { count, len, parts }))
    }

    /// Encodes strings in one piece.
    pub fn encode<'s>(strings: impl ExactSizeIterator<Item = &'s str>) -> SharedStrings {
        let mut out = Vec::new();
        out.length(strings.len());
        strings.for_each(|string| out.string(string));
        SharedStrings::Whole(SharedBytes::from(&out[..]))
    }

    /// The encoded size of the vector in bytes.
    pub fn size(&self) -> usize {
        match self {
            SharedStrings::Whole(bytes) => bytes.len(),
            SharedStrings::Parts(parts) => parts.size(),
        }
    }

    /// Appends the encoded vector.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            SharedStrings::Whole(bytes) => out.raw(bytes),
            SharedStrings::Parts(long) => {
                out.length(long.count);
                long.parts.iter().for_each(|part| out.raw(part));
            }
        }
    }

    /// The encoded vector as a copy in one piece.
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
    fn a_vector_in_parts_has_the_bytes_of_one_in_one_piece() {
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
