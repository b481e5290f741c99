//! Explanations in sentences, from what servers report.
//!
//! [`ensemble`] judges the state of an ensemble: what is wrong, and the way out. The rest explains elections: servers'
//! [`records`] of their searches for a leader become one time line, as a text ([`page::Page`]) and as a file for programs
//! ([`file::ElectionsFile`]). Values in, values out: nothing here asks a server, reads a file or looks at a clock.

pub mod ballots;
pub mod ensemble;
pub mod file;
#[cfg(test)]
mod file_tests;
mod moments;
pub mod occasion;
pub mod page;
pub mod records;
#[cfg(test)]
mod records_tests;
mod summary;
#[cfg(test)]
mod tests;
mod timeline;
pub mod witness;
pub mod words;

pub use timeline::{DecidedBy, LineKind};

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
