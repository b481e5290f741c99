//! What an operator can ask a running server.

pub mod elections;
#[cfg(test)]
mod elections_tests;
pub mod four_letter;
pub(crate) mod four_letter_door;
mod long_reports;
pub(crate) mod metrics;
pub(crate) mod word_exchange;
