//! The options of a command, as ZooKeeper's shell takes them: anywhere among its words, one dash, several letters
//! together, values apart or attached.

use super::words::Word;
use std::collections::BTreeMap;

/// How a command is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Syntax {
    pub(crate) name: &'static str,
    /// What follows the name.
    pub(crate) usage: &'static str,
    /// What it does.
    pub(crate) summary: &'static str,
    /// Options without a value.
    pub(crate) flags: &'static [&'static str],
    /// Options with a value.
    pub(crate) values: &'static [&'static str],
    /// The first word that is no option ends the options: what follows is somebody else's command.
    pub(crate) others_command: bool,
}

/// Why a command's options cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("-{0} is no option of it (quote data that begins with a dash)")]
    Unknown(String),
    #[error("-{0} needs a value")]
    NoValue(&'static str),
    #[error("-{0} takes no value")]
    Value(&'static str),
}

/// A command's words, sorted.
#[derive(Debug, Default)]
pub(crate) struct Given<'w> {
    options: BTreeMap<&'static str, Vec<Word>>,
    pub(crate) operands: Vec<&'w Word>,
}

impl Given<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The values of an option, which may stand there several times.
    pub(crate) fn all(&self, name: &str) -> &[Word] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// The value that counts: the last.
    pub(crate) fn value(&self, name: &str) -> Option<&Word> {
        self.all(name).last()
    }
}

/// Sorts the words after a command's name.
pub(crate) fn read<'w>(syntax: &Syntax, words: &'w [Word]) -> Result<Given<'w>, OptionError> {
    let mut given = Given::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.ends_options() {
            given.operands.extend(words);
            break;
        }
        match word.option() {
            Some(text) if !is_negative_number(text) => option(syntax, text, &mut words, &mut given)?,
            _ => {
                given.operands.push(word);
                if syntax.others_command {
                    given.operands.extend(words.skip_while(|word| word.ends_options()));
                    break;
                }
            }
        }
    }
    Ok(given)
}

/// Without its dash.
fn is_negative_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

fn option<'w>(
    syntax: &Syntax,
    text: &str,
    words: &mut impl Iterator<Item = &'w Word>,
    given: &mut Given<'_>,
) -> Result<(), OptionError> {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if let Some(flag) = find(syntax.flags, name) {
        given.options.entry(flag).or_default();
        return if attached.is_some() { Err(OptionError::Value(flag)) } else { Ok(()) };
    }
    if let Some(option) = find(syntax.values, name) {
        let value = match attached {
            Some(value) => Word::plain(value),
            None => words.next().cloned().ok_or(OptionError::NoValue(option))?,
        };
        given.options.entry(option).or_default().push(value);
        return Ok(());
    }
    letters(syntax, text, words, given)
}

/// `-se` is `-s -e`, and `-v3` is `-v 3`.
fn letters<'w>(
    syntax: &Syntax,
    text: &str,
    words: &mut impl Iterator<Item = &'w Word>,
    given: &mut Given<'_>,
) -> Result<(), OptionError> {
    let unknown = || OptionError::Unknown(text.to_owned());
    let mut read = Vec::new();
    for (at, letter) in text.char_indices() {
        let letter_text = &text[at..at + letter.len_utf8()];
        if let Some(flag) = find(syntax.flags, letter_text) {
            read.push((flag, None));
        } else if let Some(option) = find(syntax.values, letter_text) {
            let rest = &text[at + letter.len_utf8()..];
            let value = if rest.is_empty() { words.next().cloned() } else { Some(Word::plain(rest)) };
            read.push((option, Some(value.ok_or(OptionError::NoValue(option))?)));
            break;
        } else {
            return Err(unknown());
        }
    }
    for (name, value) in read {
        given.options.entry(name).or_default().extend(value);
    }
    Ok(())
}

fn find(names: &'static [&'static str], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

#[cfg(test)]
mod tests {
    use super::{super::words::split, *};

    const SYNTAX: Syntax = Syntax {
        name: "x",
        usage: "",
        summary: "",
        flags: &["s", "e", "raw"],
        values: &["v", "file"],
        others_command: false,
    };

    fn check(line: &str, expected: &str) {
        check_with(&SYNTAX, line, expected);
    }

    fn check_with(syntax: &Syntax, line: &str, expected: &str) {
        let words = split(line).unwrap();
        let shown = match read(syntax, &words) {
            Err(error) => error.to_string(),
            Ok(given) => {
                let text = |word: &Word| word.text().unwrap().to_owned();
                let options = given.options.iter().map(|(name, values)| {
                    format!("{name}={}", values.iter().map(text).collect::<Vec<_>>().join("+"))
                });
                let operands = given.operands.iter().map(|word| text(word));
                options.chain(operands).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn options_stand_anywhere() {
        check("-s /a", "s= /a");
        check("/a data -s -v 3", "s= v=3 /a data");
        check("-se /a", "e= s= /a");
        check("-sv3 /a", "s= v=3 /a");
        check("-v -1 /a", "v=-1 /a");
        check("-v=3 --file=f --raw /a", "file=f raw= v=3 /a");
        check("-file a -file b", "file=a+b");
    }

    #[test]
    fn data_may_begin_with_a_dash() {
        check("/a -5", "/a -5");
        check("/a -0.5", "/a -0.5");
        check("/a \"-s\"", "/a -s");
        check("/a -- -s", "/a -s");
        check("/a -", "/a -");
    }

    #[test]
    fn nonsense_is_refused() {
        check("-x /a", "-x is no option of it (quote data that begins with a dash)");
        check("-sx /a", "-sx is no option of it (quote data that begins with a dash)");
        check("/a -v", "-v needs a value");
        check("/a -sv", "-v needs a value");
        check("-s=1", "-s takes no value");
    }

    #[test]
    fn somebody_elses_options_are_left_alone() {
        let syntax = Syntax { others_command: true, ..SYNTAX };
        check_with(&syntax, "-s /a -- sh -c true", "s= /a sh -c true");
        check_with(&syntax, "/a sh -c 'echo -s' -- b", "/a sh -c echo -s -- b");
    }
}
