//! OpenTelemetry traces of sampled requests, sent by OTLP. Off by default.

mod exporter;
mod queue;
mod spans;

pub(crate) use exporter::TraceExporter;
pub use exporter::TraceSettingsError;
pub(crate) use queue::TraceQueue;
