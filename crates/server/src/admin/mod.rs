//! Reports and metrics of a running server for operators: four-letter words and the election report.

pub mod elections;
#[cfg(test)]
mod elections_tests;
pub mod four_letter;
pub(crate) mod four_letter_door;
mod long_reports;
pub(crate) mod metrics;
pub mod observations;
pub(crate) mod word_exchange;
