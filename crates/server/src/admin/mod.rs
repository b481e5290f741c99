//! Reports and metrics of a running server for operators: four-letter words and the election report.

pub mod elections;
pub mod four_letter;
pub(crate) mod four_letter_door;
pub(crate) mod http;
pub mod logins;
mod long_reports;
pub(crate) mod metrics;
pub mod observations;
mod process_metrics;
pub(crate) mod prometheus;
pub(crate) mod reports;
pub(crate) mod word_exchange;

pub use crate::peers::ElectionLinkReport;
pub use crate::snapshot_thread::{FailedSnapshot, WrittenSnapshot};
pub use http::calls::{AdminCall, CallError, OwnPlace};
pub use http::configuration::DynamicConfiguration;
pub use http::disk::{DiskReport, Folder, LastStart, LogOnDisk, NotDone, Purge, SnapshotOnDisk};
pub use http::figures::{Place, ServerFigures, Space};
pub use http::handle::parts::{CensusPart, ShownPart, ShownSession};
pub use http::handle::{AdminHandle, CommandQuery, MayView, NotExpired};
pub use http::router::AdminConn;
pub use ostler_server_core::audit::Operator;
