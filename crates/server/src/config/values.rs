//! The kinds of value that a key can have, and how their text is read.

/// The kind of value that a key can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number.
    Int { min: i64, max: i64 },
    /// `true` or `false`, nothing else.
    Boolean,
    /// `true` means true; a Java server takes any other text for false.
    LooseBoolean,
    /// `yes` or `no`; a Java server takes any other text for `otherwise`.
    YesNo { otherwise: bool },
    /// A number with a fraction.
    Decimal,
    /// One of a few words, in any case.
    OneOf(&'static [&'static str]),
    /// A file or folder.
    Path,
    /// Any text.
    Text,
}

/// A Java int that may be anything, because upstream gives every number a meaning.
pub(super) const ANY_INT: Kind = Kind::Int { min: i32::MIN as i64, max: i32::MAX as i64 };
/// A Java long that may be anything.
pub(super) const ANY_LONG: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
/// A TCP port; 0 lets the system choose one.
pub(super) const PORT: Kind = Kind::Int { min: 0, max: 65_535 };

/// A Java int from `min` up.
pub(super) const fn int_from(min: i64) -> Kind {
    Kind::Int { min, max: i32::MAX as i64 }
}

/// A value that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Bool(bool),
    Text(String),
}

/// A value that was read; for an unclear text the value that Java reads.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    Clear(Value),
    Unclear { value: Value, counts_as: &'static str, clear_ones: &'static str },
}

impl Kind {
    /// Reads `text`; the error names the allowed values. `java_property` is set for keys that Java decodes as
    /// system properties, where numbers may be hexadecimal or octal.
    pub(super) fn read(self, text: &str, java_property: bool) -> Result<Reading, String> {
        match self {
            Kind::Int { min, max } => read_int(text, java_property)
                .filter(|number| (min..=max).contains(number))
                .map(|number| Reading::Clear(Value::Int(number)))
                .ok_or_else(|| allowed_ints(min, max)),
            Kind::Boolean => match () {
                () if text.eq_ignore_ascii_case("true") => Ok(clear_bool(true)),
                () if text.eq_ignore_ascii_case("false") => Ok(clear_bool(false)),
                () => Err("true or false".into()),
            },
            Kind::LooseBoolean if text.eq_ignore_ascii_case("true") => Ok(clear_bool(true)),
            Kind::LooseBoolean if text.eq_ignore_ascii_case("false") => Ok(clear_bool(false)),
            Kind::LooseBoolean => Ok(unclear_bool(false, "false", "true or false")),
            Kind::YesNo { .. } if text == "yes" => Ok(clear_bool(true)),
            Kind::YesNo { .. } if text == "no" => Ok(clear_bool(false)),
            Kind::YesNo { otherwise: true } => Ok(unclear_bool(true, "yes", "yes or no")),
            Kind::YesNo { otherwise: false } => Ok(unclear_bool(false, "no", "yes or no")),
            Kind::Decimal => match text.parse::<f64>() {
                Ok(_) => Ok(Reading::Clear(Value::Text(text.into()))),
                Err(_) => Err("a number such as 0.33".into()),
            },
            Kind::OneOf(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok(Reading::Clear(Value::Text((*word).into()))),
                None => Err(allowed_words(words)),
            },
            Kind::Path if text.is_empty() => Err("a path".into()),
            Kind::Path | Kind::Text => Ok(Reading::Clear(Value::Text(text.into()))),
        }
    }

    pub(super) fn is_bool(self) -> bool {
        matches!(self, Kind::Boolean | Kind::LooseBoolean | Kind::YesNo { .. })
    }
}

fn clear_bool(value: bool) -> Reading {
    Reading::Clear(Value::Bool(value))
}

fn unclear_bool(value: bool, counts_as: &'static str, clear_ones: &'static str) -> Reading {
    Reading::Unclear { value: Value::Bool(value), counts_as, clear_ones }
}

/// Decimal; for Java properties also `0x1f`, `0X1f`, `#1f` and octal `017`, as `Integer.decode` has it.
fn read_int(text: &str, java_property: bool) -> Option<i64> {
    if !java_property {
        return text.parse().ok();
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = ["0x", "0X", "#"].iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits, radix) = match (hexadecimal, digits.strip_prefix('0')) {
        (Some(hexadecimal), _) => (hexadecimal, 16),
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (digits, 10),
    };
    // A second sign would be taken by the number parser.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

fn allowed_ints(min: i64, max: i64) -> String {
    match (min, max) {
        (i64::MIN, i64::MAX) => "a whole number".into(),
        _ => format!("a whole number from {min} to {max}"),
    }
}

fn allowed_words(words: &[&str]) -> String {
    let shown: Vec<&str> = words.iter().map(|word| if word.is_empty() { "nothing" } else { word }).collect();
    match shown.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => "nothing".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(kind: Kind, text: &str, java_property: bool) -> Option<i64> {
        match kind.read(text, java_property) {
            Ok(Reading::Clear(Value::Int(number))) => Some(number),
            Ok(other) => panic!("{text} was read as {other:?}"),
            Err(_) => None,
        }
    }

    #[test]
    fn numbers_of_the_file_are_decimal() {
        for (text, number) in [("2000", 2000), ("+5", 5), ("010", 10), ("-1", -1)] {
            assert_eq!(int(ANY_INT, text, false), Some(number), "{text}");
        }
        for text in ["", "abc", "0x10", "1.5", "2000ms", "2147483648", "1 000"] {
            assert_eq!(int(ANY_INT, text, false), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_properties_are_decoded_as_java_does() {
        for (text, number) in [("0x10", 16), ("#10", 16), ("-0X10", -16), ("010", 8), ("0", 0), ("+7", 7)] {
            assert_eq!(int(ANY_INT, text, true), Some(number), "{text}");
        }
        for text in ["", "-", "--1", "+-1", "0x", "0x-1", "08", "1e3"] {
            assert_eq!(int(ANY_INT, text, true), None, "{text}");
        }
        assert_eq!(int(ANY_LONG, "-9223372036854775808", true), Some(i64::MIN));
    }

    #[test]
    fn ranges_are_checked_and_named() {
        assert_eq!(int(PORT, "65535", false), Some(65_535));
        assert_eq!(PORT.read("65536", false), Err("a whole number from 0 to 65535".into()));
        assert_eq!(int_from(1).read("0", false), Err("a whole number from 1 to 2147483647".into()));
    }

    #[test]
    fn strict_booleans_take_two_words() {
        assert_eq!(Kind::Boolean.read("TRUE", false), Ok(clear_bool(true)));
        assert_eq!(Kind::Boolean.read("False", false), Ok(clear_bool(false)));
        assert_eq!(Kind::Boolean.read("yes", false), Err("true or false".into()));
    }

    #[test]
    fn loose_booleans_are_read_as_java_does_and_reported_as_unclear() {
        assert_eq!(Kind::LooseBoolean.read("True", true), Ok(clear_bool(true)));
        assert_eq!(Kind::LooseBoolean.read("1", true), Ok(unclear_bool(false, "false", "true or false")));
        let on_unless_no = Kind::YesNo { otherwise: true };
        assert_eq!(on_unless_no.read("no", true), Ok(clear_bool(false)));
        assert_eq!(on_unless_no.read("false", true), Ok(unclear_bool(true, "yes", "yes or no")));
    }

    #[test]
    fn words_are_found_in_any_case() {
        let kind = Kind::OneOf(&["", "gz", "snappy"]);
        assert_eq!(kind.read("GZ", true), Ok(Reading::Clear(Value::Text("gz".into()))));
        assert_eq!(kind.read("zstd", true), Err("nothing, gz or snappy".into()));
    }
}
