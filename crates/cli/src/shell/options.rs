//! Reads the options of a command as zkCli.sh does: anywhere among the words, with one dash, several letters together,
//! values as the next word or attached.

use super::{command::forms::ReadCommand, words::Word};
use std::collections::BTreeMap;

/// An entry of the table of commands.
#[derive(Debug)]
pub(crate) struct Syntax {
    pub(crate) name: &'static str,
    /// The words after the name, as the help shows them.
    pub(crate) usage: &'static str,
    /// The effect of the command, in one line.
    pub(crate) summary: &'static str,
    /// Options without a value.
    pub(crate) flags: &'static [&'static str],
    /// Options with a value.
    pub(crate) values: &'static [&'static str],
    /// Whether the operands end with the command line of another program. Then options end at the first operand.
    pub(crate) others_command: bool,
    /// Makes the command of its words.
    pub(crate) read: ReadCommand,
}

impl PartialEq for Syntax {
    fn eq(&self, other: &Syntax) -> bool {
        self.name == other.name
    }
}

impl Eq for Syntax {}

/// The reason why a command's options cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionError {
    #[error("it has no option -{0} (quote data that begins with a dash)")]
    Unknown(String),
    #[error("-{0} needs a value")]
    NoValue(&'static str),
    #[error("-{0} takes no value")]
    Value(&'static str),
}

/// The words after a command's name, separated into options and operands.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'w> {
    options: BTreeMap<&'static str, Vec<Word>>,
    pub(crate) operands: Vec<&'w Word>,
}

impl Arguments<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// All values of an option that is given several times.
    pub(crate) fn all(&self, name: &str) -> &[Word] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value of an option: it counts.
    pub(crate) fn value(&self, name: &str) -> Option<&Word> {
        self.all(name).last()
    }
}

/// Separates the words after a command's name into options and operands.
pub(crate) fn read<'w>(syntax: &Syntax, words: &'w [Word]) -> Result<Arguments<'w>, OptionError> {
    let mut arguments = Arguments::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.ends_options() {
            arguments.operands.extend(words);
            break;
        }
        match word.option() {
            Some(text) if !is_negative_number(text) => option(syntax, text, &mut words, &mut arguments)?,
            _ => {
                arguments.operands.push(word);
                if syntax.others_command {
                    arguments.operands.extend(words.skip_while(|word| word.ends_options()));
                    break;
                }
            }
        }
    }
    Ok(arguments)
}

/// Whether an option's text, without the dash, is a number.
fn is_negative_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

fn option<'w>(
    syntax: &Syntax,
    text: &str,
    words: &mut impl Iterator<Item = &'w Word>,
    arguments: &mut Arguments<'_>,
) -> Result<(), OptionError> {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if let Some(flag) = find(syntax.flags, name) {
        arguments.options.entry(flag).or_default();
        return if attached.is_some() { Err(OptionError::Value(flag)) } else { Ok(()) };
    }
    if let Some(option) = find(syntax.values, name) {
        let value = match attached {
            Some(value) => Word::plain(value),
            None => words.next().cloned().ok_or(OptionError::NoValue(option))?,
        };
        arguments.options.entry(option).or_default().push(value);
        return Ok(());
    }
    letters(syntax, text, words, arguments)
}

/// `-se` is `-s -e`, and `-v3` is `-v 3`.
fn letters<'w>(
    syntax: &Syntax,
    text: &str,
    words: &mut impl Iterator<Item = &'w Word>,
    arguments: &mut Arguments<'_>,
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
        arguments.options.entry(name).or_default().extend(value);
    }
    Ok(())
}

fn find(names: &'static [&'static str], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{command::forms, words::split},
        *,
    };

    const SYNTAX: Syntax = Syntax {
        name: "x",
        usage: "",
        summary: "",
        flags: &["s", "e", "raw"],
        values: &["v", "file"],
        others_command: false,
        read: forms::quit,
    };

    fn check(line: &str, expected: &str) {
        check_with(&SYNTAX, line, expected);
    }

    fn check_with(syntax: &Syntax, line: &str, expected: &str) {
        let words = split(line).unwrap();
        let shown = match read(syntax, &words) {
            Err(error) => error.to_string(),
            Ok(arguments) => {
                let text = |word: &Word| word.text().unwrap().to_owned();
                let options = arguments.options.iter().map(|(name, values)| {
                    format!("{name}={}", values.iter().map(text).collect::<Vec<_>>().join("+"))
                });
                let operands = arguments.operands.iter().map(|word| text(word));
                options.chain(operands).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn options_may_be_before_and_after_operands() {
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
    fn an_option_that_does_not_exist_or_lacks_its_value_is_refused() {
        check("-x /a", "it has no option -x (quote data that begins with a dash)");
        check("-sx /a", "it has no option -sx (quote data that begins with a dash)");
        check("/a -v", "-v needs a value");
        check("/a -sv", "-v needs a value");
        check("-s=1", "-s takes no value");
    }

    #[test]
    fn options_of_another_program_are_not_read() {
        let syntax = Syntax { others_command: true, ..SYNTAX };
        check_with(&syntax, "-s /a -- sh -c true", "s= /a sh -c true");
        check_with(&syntax, "/a sh -c 'echo -s' -- b", "/a sh -c echo -s -- b");
    }
}
