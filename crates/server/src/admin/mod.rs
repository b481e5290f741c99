//! Reports and metrics of a running server for operators: four-letter words and the election report.

pub mod elections;
pub mod four_letter;
pub(crate) mod four_letter_door;
pub(crate) mod http;
mod long_reports;
pub(crate) mod metrics;
pub mod observations;
mod process_metrics;
pub(crate) mod prometheus;
pub(crate) mod reports;
pub(crate) mod word_exchange;

pub use http::calls::{AdminCall, CallError, OwnPlace};
pub use http::handle::parts::{CensusPart, ShownPart, ShownSession};
pub use http::handle::{AdminHandle, CommandQuery, MayView, NotExpired};
pub use http::router::AdminConn;
