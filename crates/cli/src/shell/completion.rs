//! Completion by the Tab key: commands, and paths of znodes.

use super::{
    catalogue,
    words::{Unfinished, quoted, unfinished},
};
use ostler_client::{Client, paths};
use rustyline::{
    Context, Helper,
    completion::{Completer, Pair},
    highlight::Highlighter,
    hint::Hinter,
    validate::Validator,
};
use std::time::Duration;
use tokio::{runtime::Handle, time::timeout};

/// The longest time that Tab waits for a server.
const PATIENCE: Duration = Duration::from_secs(2);

/// The part at the end of a text that can be completed.
#[derive(Debug, PartialEq, Eq)]
enum Completable<'a> {
    Command(&'a str),
    /// Names below `parent` that begin with `begun`.
    Path {
        parent: &'a str,
        begun: &'a str,
    },
}

fn completable<'a>(word: &Unfinished<'a>) -> Option<Completable<'a>> {
    let first = word.before.is_empty() || is_help(word);
    match word.text.rfind('/') {
        None if first => Some(Completable::Command(word.text)),
        Some(at) if !first && word.text.starts_with('/') => {
            let parent = if at == 0 { "/" } else { &word.text[..at] };
            paths::is_valid(parent).then_some(Completable::Path { parent, begun: &word.text[at + 1..] })
        }
        _ => None,
    }
}

fn is_help(word: &Unfinished<'_>) -> bool {
    matches!(&*word.before, [command] if command.bytes() == b"help")
}

/// Completes commands from the table, and paths from the servers.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) client: Option<Client>,
    pub(crate) runtime: Handle,
}

impl Completion {
    fn names(&self, parent: &str) -> Vec<String> {
        let Some(client) = &self.client else { return Vec::new() };
        // Without an answer in time nothing is completed.
        let read = self.runtime.block_on(async { timeout(PATIENCE, client.get_children(parent)).await });
        read.map_or_else(|_| Vec::new(), |names| names.unwrap_or_default())
    }

    fn candidates(&self, word: &Unfinished<'_>) -> Vec<Pair> {
        let mut names: Vec<Pair> = match completable(word) {
            None => Vec::new(),
            Some(Completable::Command(begun)) => {
                let names = catalogue::COMMANDS.iter().map(|command| command.name);
                names
                    .filter(|name| name.starts_with(begun))
                    .map(|name| pair(name, format!("{name} ")))
                    .collect()
            }
            Some(Completable::Path { parent, begun }) => {
                let names = self.names(parent).into_iter().filter(|name| name.starts_with(begun));
                names.map(|name| pair(&name, in_line(word, &paths::join(parent, &name)))).collect()
            }
        };
        names.sort_by(|a, b| a.display.cmp(&b.display));
        names
    }
}

fn pair(display: &str, replacement: String) -> Pair {
    Pair { display: display.to_owned(), replacement }
}

/// A path as a word of the line. A quote that was opened stays open.
fn in_line(word: &Unfinished<'_>, path: &str) -> String {
    if word.quote.is_some() { path.to_owned() } else { quoted(path) }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(word) = line.get(..at).and_then(unfinished) else { return Ok((at, Vec::new())) };
        Ok((word.start, self.candidates(&word)))
    }
}

/// No hints before Tab is pressed.
impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_first_and_paths_after() {
        let what = |line| {
            unfinished(line).and_then(|word| {
                completable(&word).map(|found| match found {
                    Completable::Command(begun) => format!("command {begun}"),
                    Completable::Path { parent, begun } => format!("{parent} {begun}"),
                })
            })
        };
        assert_eq!(what("ge"), Some("command ge".into()));
        assert_eq!(what(""), Some("command ".into()));
        assert_eq!(what("help wa"), Some("command wa".into()));
        assert_eq!(what("ls /"), Some("/ ".into()));
        assert_eq!(what("ls -s /a/b/co"), Some("/a/b co".into()));
        assert_eq!(what("get \"/a/with sp"), Some("/a with sp".into()));
        assert_eq!(what("get /a//x"), None);
        assert_eq!(what("get x"), None);
    }
}
