//! The password of a store.

use std::fmt;
use zeroize::Zeroizing;

/// The password of a store and of the key in it. An empty one stands for none.
///
/// `Debug` does not show it, and its memory is overwritten when the value is dropped.
#[derive(Clone, Default)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// A password as it stands in a setting.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// A password as the text of a file. One line separator at the end, `\n` or `\r\n`, is not a part of it.
    pub fn from_file_text(text: &str) -> Self {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let is_cut = line.len() < text.len();
        Self::new(if is_cut { line.strip_suffix('\r').unwrap_or(line) } else { line })
    }

    /// Whether there is no password.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The password itself, for code that decrypts.
    #[cfg(feature = "key-stores")]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The password in UTF-16, the higher byte of each unit first.
    #[cfg(feature = "key-stores")]
    pub(crate) fn utf16_bytes(&self) -> Zeroizing<Vec<u8>> {
        // With its whole capacity from the start, the vector does not move and leaves no copy behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(2 * self.0.len()));
        for unit in self.0.encode_utf16() {
            bytes.extend_from_slice(&unit.to_be_bytes());
        }
        bytes
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_separator_at_the_end_of_a_file_is_cut() {
        for (text, password) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            (" a \n", " a "),
            ("", ""),
        ] {
            assert_eq!(Password::from_file_text(text).text(), password, "{text:?}");
        }
        assert!(Password::from_file_text("\n").is_empty());
    }

    #[test]
    fn debug_shows_nothing_of_a_password() {
        assert_eq!(format!("{:?}", Password::new("secret")), "Password(hidden)");
    }

    #[test]
    fn characters_beyond_16_bits_are_two_units() {
        assert_eq!(*Password::new("aÄ😀").utf16_bytes(), [0, b'a', 0, 0xc4, 0xd8, 0x3d, 0xde, 0]);
    }
}
