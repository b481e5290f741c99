//! Text of a certificate in a message: whoever made the certificate has chosen it.

/// The most characters of such a text in a message.
const SHOWN_MAX: usize = 200;

/// The text for a message or a log: control characters and characters that turn the direction of text are escaped, and
/// a long text is cut.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == SHOWN_MAX {
            shown.push_str("...");
            break;
        }
        match c {
            '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(c.escape_unicode())
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_certificates_stay_in_their_line_and_are_cut() {
        assert_eq!(shown("CN=J\u{fc}rgen \u{20ac}"), "CN=J\u{fc}rgen \u{20ac}");
        assert_eq!(shown("CN=a\nWARN b\u{1b}[31m\u{202e}c"), "CN=a\\nWARN b\\u{1b}[31m\\u{202e}c");
        let cut = shown(&"x".repeat(5000));
        assert_eq!((cut.len(), &cut[198..]), (203, "xx..."));
    }
}
