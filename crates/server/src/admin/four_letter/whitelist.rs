//! Which words may run: the rule of `4lw.commands.whitelist`.

use super::word::Word;

/// The words that this server executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    words: Vec<Word>,
}

impl Whitelist {
    /// From the value of `4lw.commands.whitelist` (None when the key is absent).
    ///
    /// Upstream's rule: `*` anywhere in the list allows all words, names that are no words are ignored,
    /// `srvr` is always on (its start script asks it) and `isro` is on when read-only mode is enabled
    /// (clients ask it).
    pub fn new(list: Option<&str>, readonly_mode_enabled: bool) -> Whitelist {
        let names: Vec<&str> = list.unwrap_or("").split(',').map(str::trim).collect();
        let all = names.contains(&"*");
        let words = Word::ALL
            .into_iter()
            .filter(|&word| {
                all || names.contains(&word.name())
                    || word == Word::Srvr
                    || (word == Word::Isro && readonly_mode_enabled)
            })
            .collect();
        Whitelist { words }
    }

    pub fn allows(&self, word: Word) -> bool {
        self.words.contains(&word)
    }

    /// The allowed words, in the order of [`Word::ALL`].
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// The answer to a word that is not on the list.
pub fn refusal(word: Word) -> String {
    format!("{} is not executed because it is not in the whitelist.\n", word.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_list_only_srvr_runs() {
        assert_eq!(Whitelist::new(None, false).words(), [Word::Srvr]);
        assert_eq!(Whitelist::new(Some(""), false).words(), [Word::Srvr]);
    }

    #[test]
    fn readonly_mode_adds_isro() {
        assert_eq!(Whitelist::new(None, true).words(), [Word::Isro, Word::Srvr]);
    }

    #[test]
    fn a_star_allows_everything() {
        assert_eq!(Whitelist::new(Some("*"), false).words(), Word::ALL);
        assert_eq!(Whitelist::new(Some("ruok, *"), false).words(), Word::ALL);
    }

    #[test]
    fn names_are_trimmed_and_unknown_ones_ignored() {
        let list = Whitelist::new(Some("stat, ruok ,nope,,STMK"), false);
        assert_eq!(list.words(), [Word::Ruok, Word::Srvr, Word::Stat]);
        assert!(list.allows(Word::Ruok) && !list.allows(Word::Mntr));
    }

    #[test]
    fn the_refusal_names_the_word() {
        assert_eq!(refusal(Word::Mntr), "mntr is not executed because it is not in the whitelist.\n");
    }
}
