//! Splits a line into words, as zkCli.sh does.
//!
//! A quote counts only at the beginning of a word, so `set /a {"x":1}` needs none. Between quotes no character is
//! special. One form is not in zkCli.sh: `$'...'` knows `\n`, `\t`, `\r`, `\0`, `\\`, `\'` and `\xHH`, so that any
//! bytes can be written.

use std::{str, string::FromUtf8Error};

/// A word. It has bytes because data may be something other than text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    bytes: Vec<u8>,
    /// A quoted word is not an option, even if it begins with a dash.
    quoted: bool,
}

impl Word {
    /// A word of the program's arguments, which the caller's shell has split.
    pub(crate) fn plain(bytes: impl Into<Vec<u8>>) -> Word {
        Word { bytes: bytes.into(), quoted: false }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn text(&self) -> Result<&str, str::Utf8Error> {
        str::from_utf8(&self.bytes)
    }

    /// The name of the option, if the word is one: the part after one dash or two.
    pub(crate) fn option(&self) -> Option<&str> {
        if self.quoted {
            return None;
        }
        let text = self.text().ok()?;
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
        (!name.is_empty()).then_some(name)
    }

    /// The word that ends the options.
    pub(crate) fn ends_options(&self) -> bool {
        !self.quoted && self.bytes == b"--"
    }
}

/// The reason why a line cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuoteError {
    #[error(
        "a {0} is opened and not closed; to have it as it is, put the word into the other kind of quotes"
    )]
    Unclosed(char),
    #[error("{0:?} follows a closing quote; put a space between them, or both into the quotes")]
    Attached(char),
    #[error("\\{0} means nothing in $'...'; \\n \\t \\r \\0 \\\\ \\' and \\xHH do")]
    Escape(String),
}

/// The words of a line. A line that is empty, or begins with `#`, has none.
pub(crate) fn split(line: &str) -> Result<Vec<Word>, QuoteError> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    if rest.starts_with('#') {
        return Ok(words);
    }
    while !rest.is_empty() {
        let (word, after) = first(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn first(text: &str) -> Result<(Word, &str), QuoteError> {
    if let Some(inner) = text.strip_prefix("$'") {
        let (bytes, after) = escaped(inner)?;
        return Ok((Word { bytes, quoted: true }, detached(after)?));
    }
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (inner, after) = inner.split_once(quote).ok_or(QuoteError::Unclosed(quote))?;
            return Ok((Word { bytes: inner.into(), quoted: true }, detached(after)?));
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Ok((Word { bytes: text[..end].into(), quoted: false }, &text[end..]))
}

fn detached(after: &str) -> Result<&str, QuoteError> {
    match after.chars().next() {
        Some(next) if !next.is_whitespace() => Err(QuoteError::Attached(next)),
        _ => Ok(after),
    }
}

/// The bytes between `$'` and `'`, and the rest of the text.
fn escaped(text: &str) -> Result<(Vec<u8>, &str), QuoteError> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let at = rest.find(['\\', '\'']).ok_or(QuoteError::Unclosed('\''))?;
        bytes.extend(rest[..at].bytes());
        if rest[at..].starts_with('\'') {
            return Ok((bytes, &rest[at + 1..]));
        }
        rest = &rest[at + 1..];
        let escape = rest.chars().next().ok_or(QuoteError::Unclosed('\''))?;
        rest = &rest[escape.len_utf8()..];
        bytes.push(match escape {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            '0' => 0,
            '\\' => b'\\',
            '\'' => b'\'',
            'x' => {
                let digits = rest.get(..2).unwrap_or(rest);
                let wrong = || QuoteError::Escape(format!("x{digits}"));
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return Err(wrong());
                }
                let byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
                rest = &rest[digits.len()..];
                byte
            }
            other => return Err(QuoteError::Escape(other.into())),
        });
    }
}

/// The word that is being written at the end of a text, for completion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfinished<'a> {
    /// The position where the word begins, after its quote if it has one.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
    pub(crate) quote: Option<char>,
    /// The words before it.
    pub(crate) before: Vec<Word>,
}

/// The word that is being written at the end of `line`; `None` if nothing can be completed.
pub(crate) fn unfinished(line: &str) -> Option<Unfinished<'_>> {
    let mut before = Vec::new();
    let mut rest = line.trim_start();
    loop {
        let (word, after) = match first(rest) {
            Ok((word, after)) if !after.is_empty() => (word, after),
            // The cursor is behind a closing quote.
            Ok((Word { quoted: true, .. }, _)) => return None,
            Ok(_) => {
                return Some(Unfinished { start: line.len() - rest.len(), text: rest, quote: None, before });
            }
            Err(QuoteError::Unclosed(quote)) if rest.starts_with(quote) => {
                let text = &rest[1..];
                return Some(Unfinished { start: line.len() - text.len(), text, quote: Some(quote), before });
            }
            Err(_) => return None,
        };
        before.push(word);
        rest = after.trim_start();
    }
}

/// A text as a word that [`split`] gives back as it was.
pub(crate) fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && !text.contains(char::is_whitespace)
        && !text.starts_with(['"', '\'', '-', '#'])
        && !text.starts_with("$'");
    if plain {
        return text.to_owned();
    }
    match ['"', '\''].into_iter().find(|quote| !text.contains(*quote)) {
        Some(quote) => format!("{quote}{text}{quote}"),
        None => format!("$'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
    }
}

/// A word that must be text is not valid UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is no UTF-8 text", String::from_utf8_lossy(.0))]
pub(crate) struct NotUtf8(Vec<u8>);

impl From<FromUtf8Error> for NotUtf8 {
    fn from(error: FromUtf8Error) -> NotUtf8 {
        NotUtf8(error.into_bytes())
    }
}

impl TryFrom<&Word> for String {
    type Error = NotUtf8;

    fn try_from(word: &Word) -> Result<String, NotUtf8> {
        Ok(String::from_utf8(word.bytes.clone())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().iter().map(|word| String::try_from(word).unwrap()).collect()
    }

    #[test]
    fn a_line_is_split_as_in_zkcli() {
        for (line, words) in [
            ("", &[] as &[&str]),
            ("  # a remark", &[]),
            ("ls /", &["ls", "/"]),
            ("  get   -s\t/a  ", &["get", "-s", "/a"]),
            (r#"set /a "two words""#, &["set", "/a", "two words"]),
            (r#"set /a 'say "yes"'"#, &["set", "/a", r#"say "yes""#]),
            (r#"set /a {"x":1}"#, &["set", "/a", r#"{"x":1}"#]),
            (r#"set /a "C:\new""#, &["set", "/a", r"C:\new"]),
            (r"set /a it's", &["set", "/a", "it's"]),
            (r#"create /a """#, &["create", "/a", ""]),
            (r"set /a $'a\tb\'c\\'", &["set", "/a", "a\tb'c\\"]),
            ("set /a #1", &["set", "/a", "#1"]),
        ] {
            assert_eq!(texts(line), words, "{line}");
        }
        assert_eq!(split(r"$'\x00\xfF\0'").unwrap()[0].bytes(), [0, 255, 0]);
    }

    #[test]
    fn a_line_that_could_mean_two_things_is_refused() {
        for (line, error) in [
            (r#"set /a "open"#, QuoteError::Unclosed('"')),
            ("set /a 'open", QuoteError::Unclosed('\'')),
            ("set /a $'open", QuoteError::Unclosed('\'')),
            ("set /a $'open\\", QuoteError::Unclosed('\'')),
            (r#"set /a "a"b"#, QuoteError::Attached('b')),
            (r"set /a $'\q'", QuoteError::Escape("q".into())),
            (r"set /a $'\xg0'", QuoteError::Escape("xg0".into())),
            (r"set /a $'\x+1'", QuoteError::Escape("x+1".into())),
            (r"set /a $'\x'", QuoteError::Escape("x'".into())),
        ] {
            assert_eq!(split(line), Err(error), "{line}");
        }
    }

    #[test]
    fn quoted_words_are_no_options() {
        let words = split("set -s /a \"-s\" -- - -5").unwrap();
        let options: Vec<Option<&str>> = words.iter().map(Word::option).collect();
        assert_eq!(options, [None, Some("s"), None, None, None, None, Some("5")]);
        assert!(words[4].ends_options());
    }

    #[test]
    fn the_unfinished_word_is_found() {
        let at =
            |line| unfinished(line).map(|found| (found.start, found.text, found.quote, found.before.len()));
        assert_eq!(at(""), Some((0, "", None, 0)));
        assert_eq!(at("  cre"), Some((2, "cre", None, 0)));
        assert_eq!(at("ls "), Some((3, "", None, 1)));
        assert_eq!(at("ls -s /a/b"), Some((6, "/a/b", None, 2)));
        assert_eq!(at("ls \"/with sp"), Some((4, "/with sp", Some('"'), 1)));
        assert_eq!(at("ls \"/done\""), None);
        assert_eq!(at("ls \"a\"b"), None);
    }

    #[test]
    fn quoting_is_undone_by_splitting() {
        for text in ["/a", "", "two words", "it's \"it\"", "-5", "#", "\"", "$'x'", "a\\'\"b "] {
            assert_eq!(texts(&format!("x {}", quoted(text)))[1], text, "{}", quoted(text));
        }
    }
}
