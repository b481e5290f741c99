//! Jute, ZooKeeper's record encoding: big-endian, without tags and padding. A length of -1 means null.

use alloc::{borrow::Cow, string::String, vec::Vec};

/// The reason why a record could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JuteError {
    /// The record needs more bytes than there are.
    #[error("the record ends early")]
    Truncated,
    /// A length is below -1.
    #[error("unreasonable length {0}")]
    BadLength(i32),
    /// A value is null that must not be.
    #[error("null where a value is needed")]
    Null,
    /// The number of a type or operation is unknown.
    #[error("unknown type {0}")]
    UnknownType(i32),
}

/// Result of reading a record.
pub type Result<T> = core::result::Result<T, JuteError>;

/// Reads values one after another from a slice, without copying.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, from the first one.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes `n` raw bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(JuteError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(JuteError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// One byte. Any value but 0 reads as true, as in upstream.
    pub fn bool(&mut self) -> Result<bool> {
        Ok(self.array::<1>()?[0] != 0)
    }

    /// A 32-bit integer.
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A 64-bit integer.
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A length or an element count: `None` for -1.
    pub fn length(&mut self) -> Result<Option<usize>> {
        match self.i32()? {
            -1 => Ok(None),
            n => usize::try_from(n).map(Some).map_err(|_| JuteError::BadLength(n)),
        }
    }

    /// A buffer; null and empty are different values.
    pub fn buffer(&mut self) -> Result<Option<&'a [u8]>> {
        match self.length()? {
            None => Ok(None),
            Some(n) => self.take(n).map(Some),
        }
    }

    /// A string that a client sent. Malformed UTF-8 reads as U+FFFD, as in Java's decoder.
    pub fn string(&mut self) -> Result<Option<Cow<'a, str>>> {
        Ok(self.buffer()?.map(|bytes| match core::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        }))
    }

    /// A string that a server wrote, see [`stored_text`].
    pub fn stored_string(&mut self) -> Result<Option<Cow<'a, str>>> {
        Ok(self.buffer()?.map(stored_text))
    }

    /// A string that must not be null.
    pub fn text(&mut self) -> Result<Cow<'a, str>> {
        self.string()?.ok_or(JuteError::Null)
    }

    /// A vector. The memory allocated ahead is bounded by the bytes that are there, even if the count claims more.
    pub fn vector<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Option<Vec<T>>> {
        let Some(count) = self.length()? else { return Ok(None) };
        let mut items = Vec::with_capacity(count.min(self.rest.len() / 4));
        for _ in 0..count {
            items.push(one(self)?);
        }
        Ok(Some(items))
    }
}

/// The text of a string that a server wrote. Two three-byte surrogates, as [`Writer::string`] makes them, become one
/// character.
pub fn stored_text(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&0xED) {
        return String::from_utf8_lossy(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if let [0xED, a @ 0xA0..=0xAF, b, 0xED, c @ 0xB0..=0xBF, d, ..] = rest {
            let bits = |high: &u8, low: &u8| u32::from(high & 0x0F) << 6 | u32::from(low & 0x3F);
            let code = 0x1_0000 + (bits(a, b) << 10) + (bits(c, d) & 0x3FF);
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[6..];
        } else {
            out.push(*first);
            rest = &rest[1..];
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// Appends Jute values to a growing buffer.
pub trait Writer {
    /// Appends raw bytes.
    fn raw(&mut self, bytes: &[u8]);

    /// Appends one byte, 0 or 1.
    fn bool(&mut self, value: bool) {
        self.raw(&[u8::from(value)]);
    }
    /// Appends a 32-bit integer.
    fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }
    /// Appends a 64-bit integer.
    fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }
    /// Appends a length or a count. Lengths within a frame or a record are far below the limit of 31 bits.
    fn length(&mut self, length: usize) {
        self.i32(i32::try_from(length).expect("a record's length fits in 31 bits"));
    }
    /// Appends a buffer, or null.
    fn buffer(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.i32(-1),
            Some(bytes) => {
                self.length(bytes.len());
                self.raw(bytes);
            }
        }
    }
    /// Appends a string. A character outside the basic plane becomes two three-byte surrogates: Java's encoder works on
    /// UTF-16 units, and its clients and files have these bytes.
    fn string(&mut self, text: &str) {
        if text.bytes().fold(0, u8::max) < 0xF0 {
            self.buffer(Some(text.as_bytes()));
            return;
        }
        let mut out = Vec::with_capacity(text.len() + 8);
        for unit in text.encode_utf16() {
            match unit {
                0..0x80 => out.push(unit as u8),
                0x80..0x800 => out.extend([0xC0 | (unit >> 6) as u8, 0x80 | (unit & 0x3F) as u8]),
                _ => out.extend([
                    0xE0 | (unit >> 12) as u8,
                    0x80 | ((unit >> 6) & 0x3F) as u8,
                    0x80 | (unit & 0x3F) as u8,
                ]),
            }
        }
        self.buffer(Some(&out));
    }
}

impl Writer for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn null_and_empty_are_different() {
        let mut out = Vec::new();
        out.buffer(None);
        out.buffer(Some(b""));
        let mut r = Reader::new(&out);
        assert_eq!(r.buffer(), Ok(None));
        assert_eq!(r.buffer(), Ok(Some(&b""[..])));
        assert!(r.rest().is_empty());
    }

    #[test]
    fn lengths_beyond_the_end_or_below_minus_one_are_errors() {
        assert_eq!(Reader::new(&[0x7f, 0xff, 0xff, 0xff]).buffer(), Err(JuteError::Truncated));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xfe]).buffer(), Err(JuteError::BadLength(-2)));
        assert_eq!(Reader::new(&[0x7f, 0xff, 0xff, 0xff]).vector(|r| r.i32()), Err(JuteError::Truncated));
    }

    #[test]
    fn astral_characters_are_written_as_surrogate_pairs() {
        let mut out = Vec::new();
        out.string("a\u{1F600}");
        assert_eq!(out, vec![0, 0, 0, 7, b'a', 0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80]);
        assert_eq!(Reader::new(&out).stored_string().unwrap().unwrap(), "a\u{1F600}");
        let mut out = Vec::new();
        out.string("\u{10FFFF}\u{D7FF}x");
        assert_eq!(Reader::new(&out).stored_string().unwrap().unwrap(), "\u{10FFFF}\u{D7FF}x");
    }
}
