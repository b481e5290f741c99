//! Four-letter words at the client port: which may run, and their answers.

use super::{
    four_letter::{Whitelist, Word, refusal, render},
    reports::Reports,
};
use crate::driver::Driver;
use ostler_server_core::input::ConnId;
use std::sync::Arc;

/// Bytes in which upstream writes an answer; each part counts as a packet.
const ANSWER_PART: usize = 8192;

/// Answers four-letter words.
#[derive(Debug)]
pub(crate) struct FourLetterDoor {
    whitelist: Whitelist,
    pub(crate) reports: Arc<Reports>,
}

impl FourLetterDoor {
    pub(crate) fn new(whitelist: Whitelist, reports: Arc<Reports>) -> Self {
        FourLetterDoor { whitelist, reports }
    }

    /// Whether a word is on the list.
    pub(super) fn allows(&self, word: Word) -> bool {
        self.whitelist.allows(word)
    }

    /// The answer to a word on a connection, which may take long to make.
    pub(super) fn answer(&self, (driver, conn): (&Driver, ConnId), word: Word, mask: Option<i64>) -> Vec<u8> {
        driver.count_word(conn);
        let text = self.text(driver, word, mask);
        driver.count_word_answered(conn, text.len().div_ceil(ANSWER_PART) as u64);
        text.into_bytes()
    }

    fn text(&self, driver: &Driver, word: Word, mask: Option<i64>) -> String {
        if !self.allows(word) {
            return refusal(word);
        }
        self.reports.act(driver, word, mask);
        render(word, &self.reports.view(driver, word))
    }
}
