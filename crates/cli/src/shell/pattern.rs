//! Patterns for names, with `*` and `?`.

use super::command::Wanted;
use ostler_client::{Stat, paths};

/// Whether `find` shows this znode.
pub(crate) fn is_wanted(wanted: &Wanted, path: &str, stat: &Stat) -> bool {
    wanted.name.as_ref().is_none_or(|pattern| matches(pattern, paths::name(path)))
        && wanted.larger.is_none_or(|bytes| stat.data_length > bytes)
        && (!wanted.ephemeral || stat.ephemeral_owner != 0)
}

/// Whether a name matches. `*` stands for any letters, `?` for one. The time is at most the product of both lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut from) = (0, 0);
    // The position of the last star, and of the name after the letters that it stands for.
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, from) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("lock-*", "lock-0000000001", true),
            ("*-?", "lock-1", true),
            ("*-?", "lock-12", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("ä?", "äö", true),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let stat = Stat { data_length: 10, ..Stat::default() };
        let wanted = |name: &str, larger| Wanted { name: Some(name.into()), larger, ephemeral: false };
        assert!(is_wanted(&wanted("b*", Some(9)), "/a/b1", &stat));
        assert!(!is_wanted(&wanted("a", None), "/a/b1", &stat));
        assert!(!is_wanted(&wanted("*", Some(10)), "/a/b1", &stat));
        assert!(!is_wanted(&Wanted { ephemeral: true, ..Wanted::default() }, "/a", &stat));
    }
}
