//! The words themselves.

/// The bytes that a telnet client sends on interrupt. They are in the table of words, so that they close the
/// connection quietly and do not count as a frame of negative length.
pub const TELNET_CLOSE: i32 = 0xfff4_fffd_u32 as i32;

/// The trace mask that `gtmk` prints until `stmk` sets another one.
pub const DEFAULT_TRACE_MASK: i64 = 306;

/// A four-letter word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    Conf,
    Cons,
    Crst,
    Dirs,
    Dump,
    /// Ostler's own: upstream has no such word.
    Elec,
    Envi,
    Gtmk,
    Hash,
    Isro,
    Mntr,
    Ruok,
    Srst,
    Srvr,
    Stat,
    Stmk,
    Wchc,
    Wchp,
    Wchs,
}

impl Word {
    pub const ALL: [Word; 19] = [
        Word::Conf,
        Word::Cons,
        Word::Crst,
        Word::Dirs,
        Word::Dump,
        Word::Elec,
        Word::Envi,
        Word::Gtmk,
        Word::Hash,
        Word::Isro,
        Word::Mntr,
        Word::Ruok,
        Word::Srst,
        Word::Srvr,
        Word::Stat,
        Word::Stmk,
        Word::Wchc,
        Word::Wchp,
        Word::Wchs,
    ];

    /// The word as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Word::Conf => "conf",
            Word::Cons => "cons",
            Word::Crst => "crst",
            Word::Dirs => "dirs",
            Word::Dump => "dump",
            Word::Elec => "elec",
            Word::Envi => "envi",
            Word::Gtmk => "gtmk",
            Word::Hash => "hash",
            Word::Isro => "isro",
            Word::Mntr => "mntr",
            Word::Ruok => "ruok",
            Word::Srst => "srst",
            Word::Srvr => "srvr",
            Word::Stat => "stat",
            Word::Stmk => "stmk",
            Word::Wchc => "wchc",
            Word::Wchp => "wchp",
            Word::Wchs => "wchs",
        }
    }

    /// The four bytes that a framing layer reads as the length of the first packet.
    pub fn from_length(length: i32) -> Option<Word> {
        let bytes = length.to_be_bytes();
        Word::ALL.into_iter().find(|word| word.name().as_bytes() == bytes)
    }

    /// How many bytes follow the word (`stmk` carries the new trace mask as a big-endian long).
    pub fn argument_bytes(self) -> usize {
        if self == Word::Stmk { 8 } else { 0 }
    }

    /// Whether the word answers while no tree is being served.
    pub fn answers_without_tree(self) -> bool {
        matches!(self, Word::Ruok | Word::Elec | Word::Envi | Word::Gtmk | Word::Stmk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_by_its_bytes() {
        for word in Word::ALL {
            let bytes: [u8; 4] = word.name().as_bytes().try_into().unwrap();
            assert_eq!(Word::from_length(i32::from_be_bytes(bytes)), Some(word));
        }
        assert_eq!(Word::from_length(i32::from_be_bytes(*b"srvr")), Some(Word::Srvr));
    }

    #[test]
    fn frame_lengths_are_no_words() {
        for length in [0, 8, 45, 1_048_575, -1, TELNET_CLOSE, i32::from_be_bytes(*b"SRVR")] {
            assert_eq!(Word::from_length(length), None, "{length:#x}");
        }
    }

    #[test]
    fn only_the_trace_mask_word_has_an_argument() {
        let with: Vec<_> = Word::ALL.into_iter().filter(|word| word.argument_bytes() > 0).collect();
        assert_eq!(with, [Word::Stmk]);
    }
}
