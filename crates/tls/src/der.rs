//! Reads and writes the few forms of DER that the formats of this crate need. A tag is one byte.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// The tag of a constructed value that its context explains: `[0]`.
pub(crate) const CONTEXT_0: u8 = 0xa0;

const LONG_LENGTH: u8 = 0x80;
/// More bytes than these in a length stand for more than any file has.
const LENGTH_BYTES_MAX: usize = 4;

/// One value: its tag and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DerValue<'a> {
    /// The first byte.
    pub(crate) tag: u8,
    /// The bytes after tag and length.
    pub(crate) content: &'a [u8],
}

/// Reads one value after the other.
#[derive(Debug, Clone)]
pub(crate) struct DerReader<'a> {
    rest: &'a [u8],
}

impl<'a> DerReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The tag of the next value, if there is one.
    pub(crate) fn next_tag(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next value; `None` if the bytes are at their end, or are no value.
    pub(crate) fn value(&mut self) -> Option<DerValue<'a>> {
        let (&[tag, first], after) = self.rest.split_first_chunk()?;
        let (length, after) = if first < LONG_LENGTH {
            (usize::from(first), after)
        } else {
            let count = usize::from(first - LONG_LENGTH);
            if count == 0 || count > LENGTH_BYTES_MAX {
                return None;
            }
            let (bytes, after) = after.split_at_checked(count)?;
            let length = bytes.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
            (usize::try_from(length).ok()?, after)
        };
        let (content, rest) = after.split_at_checked(length)?;
        self.rest = rest;
        Some(DerValue { tag, content })
    }

    /// The content of the next value, which has to have this tag.
    pub(crate) fn content_of(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.value().filter(|value| value.tag == tag).map(|value| value.content)
    }

    /// A reader of the content of the next value, which has to have this tag.
    pub(crate) fn inside(&mut self, tag: u8) -> Option<DerReader<'a>> {
        self.content_of(tag).map(DerReader::new)
    }
}

/// A value as bytes, with the shortest form of its length.
pub(crate) fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut encoded = vec![tag];
    if length < usize::from(LONG_LENGTH) {
        encoded.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        encoded.push(LONG_LENGTH | (bytes.len() - zeros) as u8);
        encoded.extend_from_slice(&bytes[zeros..]);
    }
    encoded.extend_from_slice(content);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_value_is_read_again() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let content = vec![7; length];
            let encoded = encode(OCTET_STRING, &content);
            let mut reader = DerReader::new(&encoded);
            assert_eq!(reader.value(), Some(DerValue { tag: OCTET_STRING, content: &content }));
            assert!(reader.is_at_end() && reader.value().is_none());
            assert_eq!(DerReader::new(&encoded[..encoded.len() - 1]).value(), None, "{length}");
        }
    }

    #[test]
    fn lengths_without_end_or_beyond_any_file_are_refused() {
        for bytes in [
            &[SEQUENCE][..],
            &[SEQUENCE, 0x80, 0, 0],
            &[SEQUENCE, 0x85, 0, 0, 0, 0, 0],
            &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[SEQUENCE, 0x82, 1],
        ] {
            assert_eq!(DerReader::new(bytes).value(), None, "{bytes:?}");
        }
    }
}
