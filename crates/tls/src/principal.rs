//! The name of a certificate's subject, letter by letter as Java's `X500Principal.getName()` writes it. It is the id of
//! the scheme `x509`: a letter that differs is another identity.

use crate::der::{self, DerReader, DerValue};
use rustls_pki_types::CertificateDer;
use std::{borrow::Cow, fmt::Write};

pub use ostler_proto::distinguished_name::is_distinguished_name;

/// The types that have a name, with the content of their object identifiers.
const NAMED: [(&[u8], &str); 9] = [
    (COMMON_NAME, "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const VISIBLE_STRING: u8 = 0x1a;
const GENERAL_STRING: u8 = 0x1b;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;
/// The types of strings that Java writes as text. All others are written as bytes.
const TEXT_TAGS: [u8; 6] =
    [UTF8_STRING, PRINTABLE_STRING, TELETEX_STRING, IA5_STRING, GENERAL_STRING, BMP_STRING];

const ESCAPED: &str = ",=+<>#;\"\\";

/// The reason for which a certificate has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The bytes are not a certificate.
    #[error("this is not an X.509 certificate in DER: its subject cannot be found")]
    NotACertificate,
    /// The subject is not a name.
    #[error("the subject of the certificate is not a distinguished name in DER")]
    NotAName,
    /// The type of an attribute is not an object identifier, or has a number above 128 bits.
    #[error("an attribute in the subject of the certificate has a type that is not an object identifier")]
    BadType,
}

/// The subject of a certificate, as Java's `X500Principal.getName()` writes it (RFC 2253). An empty subject gives the
/// empty text.
///
/// Java's own ways are kept. It writes strings of the types Teletex and BMP as if their bytes were UTF-8, so letters
/// outside of ASCII become U+FFFD, and a BMP string has `\00` before each letter. `=` and every `#` are escaped, and
/// so is each space and carriage return at the start and the end of a value.
///
/// # Errors
/// The bytes are not a certificate, or its subject is not a name.
pub fn subject_name(certificate: &CertificateDer<'_>) -> Result<String, NameError> {
    name_text(subject_of(certificate)?)
}

/// A distinguished name, given as the content of its DER sequence, as text: see [`subject_name`].
fn name_text(name: &[u8]) -> Result<String, NameError> {
    let mut parts = Vec::new();
    let mut relative_names = DerReader::new(name);
    while !relative_names.is_at_end() {
        let mut text = String::new();
        let mut attributes = relative_names.inside(der::SET).ok_or(NameError::NotAName)?;
        while !attributes.is_at_end() {
            if !text.is_empty() {
                text.push('+');
            }
            let (kind, value) = attribute(&mut attributes)?;
            write_attribute(&mut text, kind, value)?;
        }
        parts.push(text);
    }
    parts.reverse();
    Ok(parts.join(","))
}

/// The last common name of a certificate's subject, which is the most specific one, in its own encoding.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let mut found = None;
    let mut relative_names = DerReader::new(subject_of(certificate).ok()?);
    while let Some(mut attributes) = relative_names.inside(der::SET) {
        while let Ok((kind, value)) = attribute(&mut attributes) {
            if kind == COMMON_NAME {
                found = string_of(value).or(found);
            }
        }
    }
    found
}

/// The content of the subject's sequence.
fn subject_of<'a>(certificate: &'a CertificateDer<'_>) -> Result<&'a [u8], NameError> {
    let find = || {
        let mut body = DerReader::new(certificate).inside(der::SEQUENCE)?.inside(der::SEQUENCE)?;
        if body.next_tag() == Some(der::CONTEXT_0) {
            body.value()?;
        }
        let _serial = body.content_of(der::INTEGER)?;
        let _algorithm = body.content_of(der::SEQUENCE)?;
        let _issuer = body.content_of(der::SEQUENCE)?;
        let _validity = body.content_of(der::SEQUENCE)?;
        body.content_of(der::SEQUENCE)
    };
    find().ok_or(NameError::NotACertificate)
}

/// The next type, as the content of an object identifier, and its value.
fn attribute<'a>(attributes: &mut DerReader<'a>) -> Result<(&'a [u8], DerValue<'a>), NameError> {
    let mut parts = attributes.inside(der::SEQUENCE).ok_or(NameError::NotAName)?;
    let kind = parts.content_of(der::OBJECT_IDENTIFIER).ok_or(NameError::NotAName)?;
    let value = parts.value().filter(|_| parts.is_at_end()).ok_or(NameError::NotAName)?;
    Ok((kind, value))
}

fn write_attribute(text: &mut String, kind: &[u8], value: DerValue<'_>) -> Result<(), NameError> {
    let name = NAMED.iter().find(|(named, _)| *named == kind).map(|(_, name)| *name);
    text.push_str(&name.map_or_else(|| dotted(kind), |name| Ok(Cow::Borrowed(name)))?);
    text.push('=');
    if name.is_some() && TEXT_TAGS.contains(&value.tag) {
        text.push_str(&escaped(&decoded(value.content)));
    } else {
        text.push('#');
        for byte in der::encode(value.tag, value.content) {
            write!(text, "{byte:02x}").expect("a String takes all text");
        }
    }
    Ok(())
}

/// Bytes as UTF-8, with U+FFFD for each part that is none. Java takes a surrogate, whole or cut off, for one part, where
/// Rust takes each byte of it for one.
fn decoded(bytes: &[u8]) -> String {
    let mut valid = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = match rest {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, after @ ..] | [0xed, 0xa0..=0xbf, after @ ..] => {
                valid.extend_from_slice("\u{fffd}".as_bytes());
                after
            }
            _ => {
                valid.push(*first);
                after
            }
        };
    }
    String::from_utf8_lossy(&valid).into_owned()
}

fn escaped(value: &str) -> String {
    let mut inner = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\0' => inner.push_str("\\00"),
            c if ESCAPED.contains(c) => inner.extend(['\\', c]),
            c => inner.push(c),
        }
    }
    let is_blank = |c| matches!(c, ' ' | '\r');
    let without_start = inner.trim_start_matches(is_blank);
    let middle = without_start.trim_end_matches(is_blank);
    let start = &inner[..inner.len() - without_start.len()];
    let end = &without_start[middle.len()..];
    let mut text = String::with_capacity(inner.len() + start.len() + end.len());
    text.extend(start.chars().flat_map(|c| ['\\', c]));
    text.push_str(middle);
    text.extend(end.chars().flat_map(|c| ['\\', c]));
    text
}

/// The numbers of an object identifier, with dots between them.
fn dotted(content: &[u8]) -> Result<Cow<'static, str>, NameError> {
    let mut text = String::new();
    let mut number = 0_u128;
    let mut is_inside = false;
    for byte in content {
        if (!is_inside && *byte == 0x80) || number > u128::MAX >> 7 {
            return Err(NameError::BadType);
        }
        number = number << 7 | u128::from(byte & 0x7f);
        is_inside = byte & 0x80 != 0;
        if is_inside {
            continue;
        }
        let written = if text.is_empty() {
            let first = (number / 40).min(2);
            write!(text, "{first}.{}", number - 40 * first)
        } else {
            write!(text, ".{number}")
        };
        written.expect("a String takes all text");
        number = 0;
    }
    if is_inside || text.is_empty() {
        return Err(NameError::BadType);
    }
    Ok(Cow::Owned(text))
}

/// A string in its own encoding; `None` if it is of another type, or damaged.
fn string_of(value: DerValue<'_>) -> Option<String> {
    let content = value.content;
    match value.tag {
        UTF8_STRING => String::from_utf8(content.to_vec()).ok(),
        PRINTABLE_STRING | IA5_STRING | NUMERIC_STRING | VISIBLE_STRING => {
            content.is_ascii().then(|| String::from_utf8_lossy(content).into_owned())
        }
        TELETEX_STRING | GENERAL_STRING => Some(content.iter().copied().map(char::from).collect()),
        BMP_STRING => {
            let text = char::decode_utf16(units::<2>(content)?.map(u16::from_be_bytes));
            text.collect::<Result<_, _>>().ok()
        }
        UNIVERSAL_STRING => {
            units::<4>(content)?.map(|unit| char::from_u32(u32::from_be_bytes(unit))).collect()
        }
        _ => None,
    }
}

/// The content in units of `N` bytes; `None` if bytes are left over.
fn units<const N: usize>(content: &[u8]) -> Option<impl Iterator<Item = [u8; N]> + '_> {
    let units = content.chunks_exact(N);
    units.remainder().is_empty().then(|| units.filter_map(|unit| unit.try_into().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_in_their_own_encoding() {
        for (tag, content, text) in [
            (UTF8_STRING, &b"K\xc3\xb6ln"[..], Some("K\u{f6}ln")),
            (UTF8_STRING, b"K\xf6ln", None),
            (PRINTABLE_STRING, b"Koeln", Some("Koeln")),
            (NUMERIC_STRING, b"12", Some("12")),
            (VISIBLE_STRING, b"a", Some("a")),
            (IA5_STRING, b"\xf6", None),
            (TELETEX_STRING, b"K\xf6ln", Some("K\u{f6}ln")),
            (GENERAL_STRING, b"a", Some("a")),
            (BMP_STRING, b"\0K\0\xf6", Some("K\u{f6}")),
            (BMP_STRING, b"\xd8\x3d\xde\0", Some("\u{1f600}")),
            (BMP_STRING, b"\xd8\x3d", None),
            (BMP_STRING, b"\0", None),
            (UNIVERSAL_STRING, b"\0\x01\xf6\0", Some("\u{1f600}")),
            (UNIVERSAL_STRING, b"\0\0\xd8\0", None),
            (UNIVERSAL_STRING, b"\0\0", None),
            (der::OCTET_STRING, b"a", None),
        ] {
            assert_eq!(string_of(DerValue { tag, content }).as_deref(), text, "{tag} {content:?}");
        }
    }
}
