//! Whether a text is a distinguished name that Java's `X500Principal` can read: the grammar of RFC 1779 and RFC 2253
//! with Java's own freedoms. An ACL of the scheme `x509` is valid if its id is such a name.
//!
//! One difference to Java is left: after `#`, a value of indefinite length is refused here.

use alloc::{string::String, vec::Vec};
use core::str::Bytes;

/// The names of types besides dotted numbers, in upper case.
const KEYWORDS: [&str; 21] = [
    "C",
    "CN",
    "DC",
    "DNQ",
    "DNQUALIFIER",
    "EMAIL",
    "EMAILADDRESS",
    "GENERATION",
    "GIVENNAME",
    "INITIALS",
    "IP",
    "L",
    "O",
    "OU",
    "S",
    "SERIALNUMBER",
    "ST",
    "STREET",
    "SURNAME",
    "T",
    "UID",
];
/// The characters that may follow a backslash, besides hexadecimal digits.
const SPECIAL: &[u8] = b",=\n+<>#;\\\"";
const SPECIAL_OUTSIDE_OF_QUOTES: &[u8] = b",=\n+<>#;\\\" ";
const OID_PREFIX: &str = "OID.";
/// Java refuses an object identifier that takes more bytes than these.
const OID_BYTES_MAX: usize = 4096;

/// Whether Java's `X500Principal` can read a text as a distinguished name. The empty text is one.
///
/// ```
/// use ostler_proto::distinguished_name::is_distinguished_name;
///
/// assert!(is_distinguished_name("CN=a, O=\"b, c\""));
/// assert!(!is_distinguished_name("a"));
/// ```
pub fn is_distinguished_name(text: &str) -> bool {
    text.is_empty() || is_list(text, ends_name_part, is_relative_name)
}

/// Whether all parts of a list are valid. `is_end` says whether a byte at an offset, found `searched` bytes from the
/// start of the search, ends a part if it is outside of quotes.
fn is_list(text: &str, is_end: fn(&[u8], usize, usize) -> Option<bool>, is_valid: fn(&str) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (mut part_start, mut search_start, mut quotes) = (0, 0, 0_usize);
    for at in 0..bytes.len() {
        let Some(is_end) = is_end(bytes, search_start, at) else { continue };
        quotes += quotes_in(bytes, search_start, at);
        // Java asks for one quote exactly: after the third one, a separator counts again.
        if is_end && quotes != 1 {
            if !is_valid(&text[part_start..at]) {
                return false;
            }
            part_start = at + 1;
            quotes = 0;
        }
        search_start = at + 1;
    }
    is_valid(&text[part_start..])
}

/// Whether a comma or a semicolon is a separator, as Java counts the backslashes before it; `None` for other bytes.
fn ends_name_part(bytes: &[u8], search_start: usize, at: usize) -> Option<bool> {
    if !matches!(bytes[at], b',' | b';') {
        return None;
    }
    let is_backslash = |back: usize| at >= back && bytes[at - back] == b'\\';
    if !is_backslash(1) {
        return Some(true);
    }
    if !is_backslash(2) {
        return Some(false);
    }
    // After two backslashes, Java counts all of the part, not only those in a row.
    let count = bytes[search_start..at].iter().filter(|byte| **byte == b'\\').count();
    Some(count % 2 == 0)
}

/// Whether a plus sign is a separator; `None` for other bytes.
fn ends_pair(bytes: &[u8], _search_start: usize, at: usize) -> Option<bool> {
    (bytes[at] == b'+').then(|| at > 0 && bytes[at - 1] != b'\\')
}

fn quotes_in(bytes: &[u8], from: usize, to: usize) -> usize {
    (from..to).filter(|at| bytes[*at] == b'"' && (*at == from || bytes[*at - 1] != b'\\')).count()
}

/// Whether a text is one or several pairs of type and value, joined by `+`.
fn is_relative_name(text: &str) -> bool {
    is_list(text, ends_pair, is_pair)
}

/// Whether a text is a type, `=` and a value.
fn is_pair(text: &str) -> bool {
    let Some((keyword, value)) = text.split_once('=') else { return false };
    let value = value.trim_start_matches([' ', '\n']);
    is_type(keyword)
        && match value.as_bytes().first() {
            None => true,
            Some(b'#') => is_hexadecimal(&value[1..]),
            Some(b'"') => is_quoted(&value[1..]),
            Some(_) => is_plain(value),
        }
}

fn is_type(keyword: &str) -> bool {
    let upper: String = keyword.to_uppercase();
    let name = upper.trim_matches(|c| c <= ' ');
    KEYWORDS.contains(&name) || is_object_identifier(name.strip_prefix(OID_PREFIX).unwrap_or(name))
}

fn is_object_identifier(text: &str) -> bool {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let mut first = 0;
    let mut size = 0;
    let mut count = 0;
    for part in text.split('.') {
        let Some(number) = Number::read(part) else { return false };
        match (count, number.small) {
            (0, Some(0..=2)) => first = number.small.unwrap_or_default(),
            (0, _) => return false,
            (1, second) if first < 2 && !matches!(second, Some(0..=39)) => return false,
            _ => size += number.size,
        }
        count += 1;
    }
    count >= 2 && size <= OID_BYTES_MAX
}

/// One number of an object identifier.
struct Number {
    /// Its value, if it has no more than two digits.
    small: Option<u8>,
    /// About how many bytes it takes.
    size: usize,
}

impl Number {
    fn read(text: &str) -> Option<Number> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        if unsigned.is_empty() || !unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let digits = unsigned.trim_start_matches('0');
        if unsigned.len() < text.len() && !digits.is_empty() {
            // Java reads -0 as 0; any other negative number is refused.
            return None;
        }
        let small =
            if digits.is_empty() { Some(0) } else { digits.parse().ok().filter(|value| *value < 100) };
        // A digit has 3.3219 bits, and a byte of the encoding 7.
        Some(Number { small, size: digits.len() * 33_219 / 70_000 + 1 })
    }
}

/// Whether the text after `#` is one DER value in hexadecimal digits, up to the end of the text or of the value.
fn is_hexadecimal(text: &str) -> bool {
    let digits = text.split([',', '+', ';']).next().unwrap_or_default();
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else { return false };
    let value: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    is_der_value(&value)
}

fn is_der_value(value: &[u8]) -> bool {
    let Some((&[_, first], after)) = value.split_first_chunk() else { return false };
    if first < 0x80 {
        return after.len() == usize::from(first);
    }
    let count = usize::from(first - 0x80);
    if count == 0 || count > 4 || after.len() < count {
        return false;
    }
    let (length, content) = after.split_at(count);
    length.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte)) == content.len() as u64
}

/// Whether the text after a quote is a quoted value, with nothing but spaces after the closing quote.
fn is_quoted(text: &str) -> bool {
    let mut bytes = text.bytes();
    loop {
        match bytes.next() {
            None => return false,
            Some(b'"') => return bytes.all(|byte| matches!(byte, b' ' | b'\n')),
            Some(b'\\') if !skip_escaped(&mut bytes, SPECIAL) => return false,
            Some(_) => {}
        }
    }
}

/// Whether a text is a value without quotes.
fn is_plain(text: &str) -> bool {
    let mut bytes = text.bytes();
    let mut is_first = true;
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if !skip_escaped(&mut bytes, SPECIAL_OUTSIDE_OF_QUOTES) => return false,
            // Java looks no further here. The separator is one that it took for escaped when it split the name.
            b',' | b'+' | b';' if !is_first => return true,
            b',' | b'+' | b';' | b'<' | b'>' | b'"' => return false,
            _ => {}
        }
        is_first = false;
    }
    true
}

/// Goes past that which follows a backslash: one of the special characters, or two hexadecimal digits. Returns whether
/// it is one of these.
fn skip_escaped(bytes: &mut Bytes<'_>, special: &[u8]) -> bool {
    match bytes.next() {
        Some(digit) if digit.is_ascii_hexdigit() => {
            bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())
        }
        Some(byte) => special.contains(&byte),
        None => false,
    }
}
