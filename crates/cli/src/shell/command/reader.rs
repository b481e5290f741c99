//! Reads the options and operands of a command. The functions for single commands are in [`forms`](super::forms).

use super::{
    super::{
        options::{Arguments, Syntax},
        value_text,
        words::Word,
    },
    Action, Command, CommandError, Data, ParsedLine,
};
use ostler_client::paths;
use std::str::FromStr;

/// The version that matches any version.
pub(super) const ANY: i32 = -1;

/// The words of one command, while they are read.
pub(crate) struct CommandReader<'w> {
    syntax: &'static Syntax,
    arguments: Arguments<'w>,
    /// A note for the user if the words have a form of old versions.
    outdated: Option<&'static str>,
}

impl<'w> CommandReader<'w> {
    pub(super) fn new(syntax: &'static Syntax, arguments: Arguments<'w>) -> CommandReader<'w> {
        CommandReader { syntax, arguments, outdated: None }
    }

    /// Reads all words, by the function of the command's entry in the table of commands.
    pub(super) fn read(mut self) -> Result<ParsedLine, CommandError> {
        let action = (self.syntax.read)(&mut self)?;
        Ok(ParsedLine { action, outdated: self.outdated })
    }

    pub(super) fn syntax(&self) -> &'static Syntax {
        self.syntax
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.arguments.has(option)
    }

    /// Refuses fewer than `least` and more than `most` operands.
    pub(super) fn operands(&self, least: usize, most: usize) -> Result<(), CommandError> {
        let count = self.arguments.operands.len();
        if (least..=most).contains(&count) { Ok(()) } else { Err(CommandError::Usage(self.syntax)) }
    }

    /// The command, if it has no operands.
    pub(super) fn alone(&self, command: Command) -> Result<Action, CommandError> {
        self.operands(0, 0).map(|()| command.into())
    }

    pub(super) fn all_operands(&self) -> &[&'w Word] {
        &self.arguments.operands
    }

    /// The last value of an option.
    pub(super) fn value(&self, option: &str) -> Option<&Word> {
        self.arguments.value(option)
    }

    /// All values of an option.
    pub(super) fn values(&self, option: &str) -> &[Word] {
        self.arguments.all(option)
    }

    /// Notes that the words have a form of old versions, which `note` explains.
    pub(super) fn note_outdated(&mut self, note: &'static str) {
        self.outdated = Some(note);
    }

    /// The operand at `at`, as text.
    pub(super) fn text(&self, at: usize) -> Result<String, CommandError> {
        let word = self.arguments.operands.get(at).ok_or(CommandError::Usage(self.syntax))?;
        Ok(String::try_from(*word)?)
    }

    pub(super) fn path(&self, at: usize) -> Result<String, CommandError> {
        let path = self.text(at)?;
        // A sequential znode's name may be empty, and is checked when it is created.
        if self.syntax.name == "create" || paths::is_valid(&path) {
            return Ok(path);
        }
        let what = "path of a znode: it begins with a slash, and has no empty, `.` or `..` part and no slash at the end";
        Err(CommandError::Value { command: self.syntax.name, value: path, what })
    }

    pub(super) fn only_path(&self) -> Result<String, CommandError> {
        self.operands(1, 1)?;
        self.path(0)
    }

    pub(super) fn path_or_root(&self) -> Result<String, CommandError> {
        self.operands(0, 1)?;
        if self.arguments.operands.is_empty() { Ok("/".into()) } else { self.path(0) }
    }

    pub(super) fn number<T: FromStr>(
        &self,
        option: &str,
        what: &'static str,
    ) -> Result<Option<T>, CommandError> {
        self.arguments.value(option).map(|word| number(self.syntax.name, word, what)).transpose()
    }

    pub(super) fn version(&self) -> Result<i32, CommandError> {
        Ok(self.number("v", "version")?.unwrap_or(ANY))
    }

    pub(super) fn depth(&self) -> Result<Option<usize>, CommandError> {
        self.number("L", "depth")
    }

    pub(super) fn conflict<T>(&self, problem: &'static str) -> Result<T, CommandError> {
        Err(CommandError::Conflict { command: self.syntax.name, problem })
    }

    /// The data among the operands at `at`, or where an option says.
    pub(super) fn data(&self, at: usize) -> Result<Option<Data>, CommandError> {
        let file = self.arguments.value("file").map(String::try_from).transpose()?;
        match (file, self.arguments.operands.get(at)) {
            (Some(file), _) if file == "-" => Ok(Some(Data::Input)),
            (Some(file), _) => Ok(Some(Data::File(file.into()))),
            (None, Some(word)) if self.has("b") => {
                let value = || String::from_utf8_lossy(word.bytes()).into_owned();
                let decoded = value_text::from_base64(word.bytes());
                let wrong =
                    || CommandError::Value { command: self.syntax.name, value: value(), what: "base64" };
                Ok(Some(Data::Given(decoded.ok_or_else(wrong)?)))
            }
            (None, Some(word)) => Ok(Some(Data::Given(word.bytes().to_vec()))),
            (None, None) => Ok(None),
        }
    }
}

/// Reads a word as a number.
pub(super) fn number<T: FromStr>(
    command: &'static str,
    word: &Word,
    what: &'static str,
) -> Result<T, CommandError> {
    let number = word.text().ok().and_then(|text| text.parse().ok());
    let value = || String::from_utf8_lossy(word.bytes()).into_owned();
    number.ok_or_else(|| CommandError::Value { command, value: value(), what })
}
