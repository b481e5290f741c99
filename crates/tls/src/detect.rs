//! Tells TLS from plain text by the first bytes of a connection, as `UnifiedServerSocket` does.

/// The number of bytes that decide.
pub const HEADER: usize = 5;

/// The beginning of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// The header of a TLS record.
    Tls,
    /// Anything else.
    Plain,
    /// They can still become the header of a TLS record.
    Undecided,
}

/// Looks at the first bytes of a connection: a TLS record has a type from 20 to 24 and the major version 3.
///
/// The first frame of a client or a server begins with a length below 2²⁴ or with a word of letters, so it is never
/// taken for TLS. Fewer than [`HEADER`] bytes are plain text at once unless they can become a header, so that
/// four-letter words are answered.
pub fn detect(bytes: &[u8]) -> FirstBytes {
    match bytes {
        [] => FirstBytes::Undecided,
        [kind, ..] if !(20..=24).contains(kind) => FirstBytes::Plain,
        [_, version, ..] if *version != 3 => FirstBytes::Plain,
        all if all.len() < HEADER => FirstBytes::Undecided,
        _ => FirstBytes::Tls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_of_a_record_is_tls() {
        assert_eq!(detect(&[0x16, 3, 1, 2, 0]), FirstBytes::Tls);
        assert_eq!(detect(&[0x15, 3, 3, 0, 2, 1]), FirstBytes::Tls);
        assert_eq!(detect(&[0x16, 2, 1, 2, 0]), FirstBytes::Plain);
        assert_eq!(detect(b"ruok"), FirstBytes::Plain);
        assert_eq!(detect(&[0, 0, 0, 0x2d]), FirstBytes::Plain);
        for length in 0..HEADER {
            assert_eq!(detect(&[0x16, 3, 1, 2, 0][..length]), FirstBytes::Undecided);
        }
    }
}
