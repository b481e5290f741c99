//! Checks that no sentence of a comment begins with a relative pronoun, as in "What is left waits".

use super::sources::SourceFile;

/// Extensions of code with comments after `//`.
const LANGUAGES: [&str; 3] = [".rs", ".js", ".java"];
/// A file whose tests have such sentences.
const ABOUT_COMMENTS: &str = "xtask/src/tidy/comments.rs";
const REFUSED: [&str; 4] = ["Who ", "Whom ", "Whose ", "What "];
const MARKERS: [&str; 3] = ["///", "//!", "//"];
const ENDS: [char; 3] = ['.', '!', '?'];

/// Consecutive lines of one comment, joined by spaces.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// The position in `text` at which each line begins, and the number of the line.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    fn push(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
    }

    fn line_of(&self, position: usize) -> usize {
        self.lines.iter().rev().find(|(begin, _)| *begin <= position).map_or(0, |(_, number)| *number)
    }
}

/// Complaints about the sentences in a file's comments.
pub(crate) fn check(file: &SourceFile) -> Vec<String> {
    if !LANGUAGES.iter().any(|language| file.name.ends_with(language)) || file.name == ABOUT_COMMENTS {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for paragraph in paragraphs(&file.text) {
        for (position, sentence) in sentences(&paragraph.text) {
            if let Some(word) = refused(sentence) {
                complaints.push(format!(
                    "{}:{}: a sentence begins with \"{word}\" and is not a question: name the thing or the person",
                    file.name,
                    paragraph.line_of(position)
                ));
            }
        }
    }
    complaints
}

fn refused(sentence: &str) -> Option<&'static str> {
    let word = REFUSED.into_iter().find(|word| sentence.starts_with(word))?;
    (!sentence.ends_with('?')).then_some(word.trim_end())
}

/// The paragraphs of all comments. An empty line of a comment, a line of code, an item of a list and another kind of
/// comment begin a new one.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut paragraphs = vec![Paragraph::default()];
    let mut marker_before = "";
    for (number, line) in (1..).zip(text.lines()) {
        let comment = comment_of(line);
        let (marker, content) = comment.unwrap_or_default();
        let content = content.trim();
        let item = content.strip_prefix("- ").or_else(|| content.strip_prefix("* "));
        if marker != marker_before
            || content.is_empty()
            || item.is_some()
            || !line.trim_start().starts_with("//")
        {
            paragraphs.push(Paragraph::default());
        }
        marker_before = marker;
        if let Some(paragraph) = paragraphs.last_mut().filter(|_| !content.is_empty()) {
            paragraph.push(number, item.unwrap_or(content));
        }
    }
    paragraphs
}

/// The marker and the text of a line's comment, if it has one.
fn comment_of(line: &str) -> Option<(&'static str, &str)> {
    let trimmed = line.trim_start();
    if let Some(marker) = MARKERS.into_iter().find(|marker| trimmed.starts_with(marker)) {
        return Some((marker, &trimmed[marker.len()..]));
    }
    // Behind code, but not in a text.
    let (code, comment) = line.split_once(" // ")?;
    code.matches('"').count().is_multiple_of(2).then_some(("//", comment))
}

/// The sentences of a text, with their positions.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    for (at, end) in text.match_indices(ENDS) {
        let after = at + end.len();
        if text[after..].starts_with(' ') {
            sentences.push((begin, &text[begin..after]));
            begin = after + 1;
        }
    }
    sentences.push((begin, &text[begin..]));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        check(&SourceFile { name: "a.rs".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn sentences_with_a_pronoun_in_front_are_found() {
        for text in [
            "/// What is left.\n",
            "//! All of it. Who is\n//! elected waits.\n",
            "    // Whose turn it is\n",
            "let a = 1; // What it was.\n",
            "/// - What is left.\n",
        ] {
            assert_eq!(complaints(text).len(), 1, "{text}");
        }
        let complaint = complaints("fn a() {}\n/// All of it.\n/// More. What\n/// is left.\n").remove(0);
        assert!(complaint.starts_with("a.rs:3: "), "{complaint}");
    }

    #[test]
    fn questions_and_other_sentences_are_allowed() {
        for text in [
            "/// What is left? Nothing.\n",
            "// Who leads, and\n// why?\n",
            "/// Says what is left.\n",
            "let a = \"x // What is left\";\n",
            "let a = \"What is left\";\n",
        ] {
            assert_eq!(complaints(text), [""; 0], "{text}");
        }
    }
}
