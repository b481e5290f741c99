//! Texts that the other side has chosen, for a line of the log.

use std::fmt::Write;

/// The most characters of such a text in a log line.
pub const LOG_TEXT_MAX: usize = 256;

/// A text that the other side has chosen, safe for the log: one line without control characters, escape sequences and
/// invisible characters, and no longer than [`LOG_TEXT_MAX`] characters and a mark with the number of all.
pub fn log_text(text: &str) -> String {
    let mut safe = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == LOG_TEXT_MAX {
            write!(safe, "… ({} characters)", text.chars().count()).expect("a String takes all text");
            break;
        }
        match c {
            // They are harmless, and are frequent in names.
            '\\' | '"' | '\'' => safe.push(c),
            _ => safe.extend(c.escape_debug()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_one_short_visible_line() {
        assert_eq!(log_text("CN=Jürgen € 山,O=a\\, \"b\" 'c'"), "CN=Jürgen € 山,O=a\\, \"b\" 'c'");
        let safe = log_text("a\nERROR b\r\t\u{1b}[31m\u{0}\u{202e}\u{2028}\u{85}");
        assert_eq!(safe, "a\\nERROR b\\r\\t\\u{1b}[31m\\0\\u{202e}\\u{2028}\\u{85}");
        let long = log_text(&"ä".repeat(LOG_TEXT_MAX + 1));
        assert_eq!(long, format!("{}… (257 characters)", "ä".repeat(LOG_TEXT_MAX)));
        assert_eq!(log_text(&"a".repeat(LOG_TEXT_MAX)).len(), LOG_TEXT_MAX);
    }
}
