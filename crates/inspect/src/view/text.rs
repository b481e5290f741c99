//! Words and times in lines of text.

use ostler_proto::error::ErrorCode;
use std::fmt::{self, Write as _};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A text from a file, with control characters as escapes, so that it cannot control a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            if letter.is_control() {
                write!(f, "{}", letter.escape_unicode())?
            } else {
                f.write_char(letter)?
            }
        }
        Ok(())
    }
}

/// A time in ms since 1970 as UTC, `2026-11-27T02:55:36.123Z`. A time that no calendar has is shown in ms.
pub fn time_text(ms: i64) -> String {
    let out_of_range = || format!("{ms} ms");
    let nanos = i128::from(ms) * 1_000_000;
    let Ok(time) = OffsetDateTime::from_unix_timestamp_nanos(nanos) else { return out_of_range() };
    let whole = time.replace_millisecond(0).unwrap_or(time);
    let Ok(text) = whole.format(&Rfc3339) else { return out_of_range() };
    format!("{}.{:03}Z", text.trim_end_matches('Z'), time.millisecond())
}

/// The name of an error code in the log, with its number if it has no name.
pub fn error_name(code: i32) -> String {
    match ErrorCode::from_code(code) {
        _ if code == 0 => "Ok".to_owned(),
        Some(error) => format!("{error:?}"),
        None => format!("error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(time_text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time_text(1_795_748_136_007), "2026-11-27T02:55:36.007Z");
        assert_eq!(time_text(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(time_text(i64::MAX), format!("{} ms", i64::MAX));
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(Printable("/a\u{1b}[2J/ä").to_string(), "/a\\u{1b}[2J/ä");
    }

    #[test]
    fn error_codes_have_their_names() {
        assert_eq!(error_name(-101), "NoNode");
        assert_eq!(error_name(0), "Ok");
        assert_eq!(error_name(-77), "error -77");
    }
}
