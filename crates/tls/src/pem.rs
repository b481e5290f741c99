//! Reads PEM: blocks of base64 between a BEGIN and an END line, with any text around them.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// The header of a block that is encrypted in the way of old OpenSSL.
const ENCRYPTED_HEADER: &str = "Proc-Type:";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A block of PEM.
pub(crate) struct PemBlock {
    /// The words after BEGIN.
    pub(crate) label: String,
    /// Whether the header says that the content is encrypted.
    pub(crate) is_encrypted: bool,
    /// The bytes that the base64 stands for. They may be a key.
    pub(crate) content: Zeroizing<Vec<u8>>,
}

/// The reason for which a text is not PEM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// A block has no END line.
    #[error(
        "the block {label} that begins in line {line} has no END line: the file is cut off; copy it again"
    )]
    NoEnd {
        /// The words after BEGIN.
        label: String,
        /// The line of BEGIN, from 1.
        line: usize,
    },
    /// A block has other characters than those of base64.
    #[error("the block {label} that begins in line {line} is not base64: the file is damaged; copy it again")]
    NotBase64 {
        /// The words after BEGIN.
        label: String,
        /// The line of BEGIN, from 1.
        line: usize,
    },
}

/// Whether bytes have a BEGIN line.
pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(BEGIN.len()).any(|part| part == BEGIN.as_bytes())
}

/// The blocks whose label `is_wanted`, in the order of the file. Others are not looked into.
///
/// # Errors
/// A wanted block has no end, or is not base64.
pub(crate) fn blocks(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PemBlock>, PemError> {
    let mut found = Vec::new();
    let mut lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some(label) = label_of(line, BEGIN).filter(|label| is_wanted(label)) else { continue };
        let mut block =
            PemBlock { label: label.to_owned(), is_encrypted: false, content: Zeroizing::default() };
        let mut text = Zeroizing::new(Vec::new());
        loop {
            let Some((line, _)) = lines.next() else {
                return Err(PemError::NoEnd { label: block.label, line: number });
            };
            if label_of(line, END).is_some_and(|end| end == block.label) {
                break;
            }
            if line.contains(&b':') {
                block.is_encrypted |= line.starts_with(ENCRYPTED_HEADER.as_bytes());
            } else {
                text.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
            }
        }
        let content = BASE64.decode(&*text);
        let content =
            content.map_err(|_| PemError::NotBase64 { label: block.label.clone(), line: number })?;
        block.content = Zeroizing::new(content);
        found.push(block);
    }
    Ok(found)
}

/// The label of a BEGIN or an END line.
fn label_of<'a>(line: &'a [u8], prefix: &str) -> Option<&'a str> {
    let line = std::str::from_utf8(line.trim_ascii()).ok()?;
    line.strip_prefix(prefix)?.strip_suffix(DASHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Result<Vec<(String, Vec<u8>)>, PemError> {
        let found = blocks(text.as_bytes(), |label| label != "SKIPPED")?;
        Ok(found.into_iter().map(|block| (block.label, block.content.to_vec())).collect())
    }

    #[test]
    fn blocks_are_found_among_text_with_any_ends_of_lines() {
        for end in ["\n", "\r\n"] {
            let text = [
                "0 text",
                "-----BEGIN A B-----",
                "YW Jj",
                "ZA",
                "-----END A B-----",
                "",
                "-----BEGIN C-----",
            ];
            let text = [&text[..], &["-----END C-----", ""]].concat().join(end);
            assert!(is_pem(text.as_bytes()));
            let expected = vec![("A B".to_owned(), b"abcd".to_vec()), ("C".to_owned(), Vec::new())];
            assert_eq!(contents(&text), Ok(expected), "{end:?}");
        }
    }

    #[test]
    fn header_lines_are_no_content() {
        let text = "-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nYWJj\n-----END A-----";
        let found = blocks(text.as_bytes(), |_| true).unwrap();
        assert!(found[0].is_encrypted && *found[0].content == b"abc");
    }

    #[test]
    fn damage_is_reported_with_its_line_unless_the_block_is_skipped() {
        let cut = |label: &str| format!("\n-----BEGIN {label}-----\nYWJj\n");
        assert_eq!(contents(&cut("A")), Err(PemError::NoEnd { label: "A".to_owned(), line: 2 }));
        assert_eq!(contents(&cut("SKIPPED")), Ok(Vec::new()));
        let damaged = "-----BEGIN A-----\nY!Jj\n-----END A-----";
        assert_eq!(contents(damaged), Err(PemError::NotBase64 { label: "A".to_owned(), line: 1 }));
    }
}
