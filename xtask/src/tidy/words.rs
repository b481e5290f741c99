//! Checks that the code uses the words of `docs/glossary.md`, that functions whose names ask a question have no
//! effects, and that docs have content.

use super::sources::SourceFile;

/// Words and phrases that are not used, each with its replacement.
const REFUSED: [(&str, &str); 16] = [
    ("reign", "epoch, or leadership"),
    ("reigns", "leads, or epochs"),
    ("lone server", "standalone server"),
    ("kinship", "same ensemble"),
    ("whereabouts", "address"),
    ("likeness", "comparison"),
    ("chronicle", "election history"),
    ("newcomer", "caller"),
    ("impostor", "caller with the id of another"),
    ("wandering", "retry of the observer master"),
    ("whence", "origin"),
    ("unless said", "by default"),
    ("unless told", "by default"),
    ("is told so", "is informed"),
    ("are told so", "are informed"),
    ("so many", "the number"),
];
/// Words that are refused in code only, each with its replacement. Documents for users may have them.
const REFUSED_IN_CODE: [(&str, &str); 2] =
    [("stranger", "unidentified peer, or caller"), ("strangers", "unidentified peers, or callers")];
/// Files that may name these words.
const ABOUT_WORDS: [&str; 3] = ["docs/glossary.md", "CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// Prefixes of names that ask a question.
const QUESTIONS: [&str; 9] = ["is_", "are_", "has_", "had_", "may_", "can_", "was_", "takes_", "refuses_"];
/// Parameters that show that a function has effects.
const ACTS: [&str; 2] = ["&mut self", "effects: &mut"];

/// Docs without content.
const SILENCERS: [&str; 8] = ["What.", "Which.", "Why.", "Who.", "Whom.", "Whose.", "Where.", "When."];

/// Complaints about a file's words.
pub(crate) fn check(file: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_about_words = ABOUT_WORDS.contains(&&*file.name);
    if !is_about_words {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            let in_code = REFUSED_IN_CODE.iter().filter(|_| !file.is_document());
            let words = REFUSED.iter().chain(in_code);
            for (refused, instead) in words.filter(|(refused, _)| has_word(&line, refused)) {
                complaints.push(format!(
                    "{}:{}: \"{refused}\" is not used here: write {instead} (docs/glossary.md)",
                    file.name,
                    number + 1
                ));
            }
        }
    }
    if file.name.ends_with(".rs") && !is_about_words {
        complaints.extend(questions_that_act(file));
        complaints.extend(docs_without_content(file));
    }
    complaints
}

/// Whether a line has a word as a whole, or as a part of a name between underscores.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + word.len()..].chars().next())
    })
}

/// Complaints about functions whose names ask a question and that have effects.
fn questions_that_act(file: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    for (at, _) in file.text.match_indices("fn ") {
        let rest = &file.text[at + 3..];
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if !QUESTIONS.iter().any(|question| name.starts_with(question)) {
            continue;
        }
        let signature = rest.split(['{', ';']).next().unwrap_or_default();
        if let Some(act) = ACTS.iter().find(|act| signature.contains(**act)) {
            let line = file.text[..at].lines().count().max(1);
            complaints.push(format!(
                "{}:{line}: {name} asks a question and takes `{act}`: split the question from the act, or name it by \
                 what it does",
                file.name
            ));
        }
    }
    complaints
}

fn docs_without_content(file: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let Some(doc) = line.trim_start().strip_prefix("/// ") else { continue };
        if SILENCERS
            .iter()
            .any(|word| doc == *word || doc.split_once(' ').is_some_and(|(_, last)| is_of(last, word)))
        {
            complaints.push(format!(
                "{}:{}: \"{doc}\" says nothing: write what it is, when it happens, or in which unit",
                file.name,
                number + 1
            ));
        }
    }
    complaints
}

/// Whether the second word of a doc is one of the words without content: "To whom." is refused like "Whom."
fn is_of(last: &str, word: &str) -> bool {
    last.eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, text: &str) -> usize {
        check(&SourceFile { name: name.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn second_words_are_found_in_text_and_in_names() {
        for (word, _) in REFUSED {
            assert_eq!(complaints("a.md", &format!("A line with {word}, for once.\n")), 1, "{word}");
            assert_eq!(complaints("a.rs", &format!("fn a_{word}_b() {{}}\n")), 1, "{word}");
            assert_eq!(complaints("docs/glossary.md", word), 0);
        }
        assert_eq!(complaints("a.rs", "// foreign keys, newcomers"), 0);
        assert_eq!(complaints("a.rs", "fn refuse_strangers() {}\n"), 1);
        assert_eq!(complaints("docs/a.md", "Strangers\n"), 0);
    }

    #[test]
    fn questions_that_act_are_found() {
        assert_eq!(complaints("a.rs", "fn is_due(&self) -> bool {\n}\nfn take(&mut self) {}\n"), 0);
        assert_eq!(complaints("a.rs", "fn is_due(&mut self) -> bool {\n}\n"), 1);
        assert_eq!(
            complaints("a.rs", "fn refuses_it(\n    &self,\n    effects: &mut Vec<Effect>,\n) {\n}\n"),
            1
        );
        assert_eq!(complaints("a.md", "fn is_due(&mut self)"), 0);
    }

    #[test]
    fn docs_that_only_silence_a_lint_are_found() {
        for doc in ["What.", "To whom.", "Of whom.", "Which."] {
            assert_eq!(complaints("a.rs", &format!("    /// {doc}\n    to: Id,\n")), 1, "{doc}");
        }
        assert_eq!(complaints("a.rs", "    /// The server that votes.\n"), 0);
    }
}
