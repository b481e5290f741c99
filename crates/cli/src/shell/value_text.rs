//! Data as text. Data that is not text, or would control the terminal, is shown in hexadecimal.

use base64::{
    Engine, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
    },
};
use std::fmt::Write;

/// The form in which data is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// As text, or in hexadecimal if it is not text.
    #[default]
    Plain,
    Base64,
    Hex,
    /// The bytes only, without a line end.
    Raw,
}

/// The bytes to print.
pub(crate) fn shown(data: &[u8], form: Form) -> Vec<u8> {
    match form {
        Form::Raw => data.to_vec(),
        Form::Base64 => line(STANDARD.encode(data)),
        Form::Hex => hex_dump(data).into(),
        Form::Plain => match text(data) {
            Some(text) => line(text.to_owned()),
            None => hex_dump(data).into(),
        },
    }
}

fn line(mut text: String) -> Vec<u8> {
    text.push('\n');
    text.into()
}

/// The data as text that is safe to show.
pub(crate) fn text(data: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(data).ok()?;
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    (!text.contains(commands)).then_some(text)
}

/// A text of another client within a line. Characters that would control the terminal or end the line are written as
/// between `$'` and `'`.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(safe, "\\x{byte:02x}");
                }
            }
            c => safe.push(c),
        }
    }
    safe
}

/// The base64 of Java's decoder: the padding may be missing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base64.
pub(crate) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

/// Encodes as base64.
pub(crate) fn to_base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

const FRAME: &str = "         +-------------------------------------------------+";
const FRAME_WITH_TEXT: &str = "+--------+-------------------------------------------------+----------------+";

/// Hexadecimal in the form of zkCli.sh's `get -x`.
fn hex_dump(data: &[u8]) -> String {
    if data.is_empty() {
        return "\n".to_owned();
    }
    let mut dump =
        format!("{FRAME}\n         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n{FRAME_WITH_TEXT}\n");
    for (row, bytes) in data.chunks(16).enumerate() {
        let mut hex = String::new();
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(hex, " {byte:02x}");
        }
        let seen: String = bytes.iter().map(|byte| visible(*byte)).collect();
        let _ = writeln!(dump, "|{:08x}|{hex:48} |{seen:16}|", row * 16);
    }
    dump.push_str(FRAME_WITH_TEXT);
    dump.push('\n');
    dump
}

fn visible(byte: u8) -> char {
    match byte {
        b' '..=b'~' => byte.into(),
        _ => '.',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn text_is_shown_as_it_is() {
        assert_eq!(shown("größe\n\t1".as_bytes(), Form::Plain), "größe\n\t1\n".as_bytes());
        assert_eq!(shown(b"", Form::Plain), b"\n");
        assert_eq!(shown(b"\xff\n", Form::Raw), b"\xff\n");
        assert_eq!(shown(b"\xff\n", Form::Base64), b"/wo=\n");
    }

    #[test]
    fn data_that_is_not_text_is_shown_in_hexadecimal() {
        let dump = String::from_utf8(shown(b"0123456789abcdef\xff~\x1b[2J", Form::Plain)).unwrap();
        expect![[r#"
                     +-------------------------------------------------+
                     |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
            +--------+-------------------------------------------------+----------------+
            |00000000| 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 |0123456789abcdef|
            |00000010| ff 7e 1b 5b 32 4a                               |.~.[2J          |
            +--------+-------------------------------------------------+----------------+
        "#]]
        .assert_eq(&dump);
    }

    #[test]
    fn empty_data_in_hexadecimal_is_an_empty_line() {
        assert_eq!(shown(b"", Form::Hex), b"\n");
    }

    #[test]
    fn no_value_controls_the_terminal() {
        assert_eq!(text(b"\x1b]0;title\x07"), None);
        assert_eq!(text("\u{9b}2J".as_bytes()), None);
        assert_eq!(text(b"{\r\n\t}\n"), Some("{\r\n\t}\n"));
    }
}
