//! The four-letter words of the client port: which words there are, which may run, and what they print.
//!
//! Everything here is a pure function of a [`ServerView`]; the caller reads the word from the socket, fills
//! the parts of the view that the word prints, writes the text unframed and closes the connection. The words
//! with an effect (`crst`, `srst`, `stmk`) print only their answer: the caller performs the effect first.

mod connections;
mod java_text;
mod metric_names;
mod mntr;
mod render;
mod view;
mod whitelist;
mod word;

#[cfg(test)]
mod golden_tests;

pub(crate) use java_text::mean_of_four_decimals;
pub use metric_names::{METRICS, MetricKind, NAMESPACED_METRICS};
pub(crate) use mntr::{Gauge, QUOTA_SETS, gauges};
pub use render::{NOT_SERVING, render};
pub use view::{
    Conf, ConfOfMember, Connection, ConnectionId, ConnectionSession, Dirs, ENVIRONMENT_KEYS,
    EphemeralsOfSession, Gauges, Latency, LeaderGauges, MessageSizes, MetricValue, Metrics, Mode,
    NamespaceQuota, NamespacedMetric, Percentiles, Quorum, ServerView, Summary, TimeBucket, WatchesOfSession,
    ZxidDigest, full_version,
};
pub use whitelist::{Whitelist, refusal};
pub use word::{DEFAULT_TRACE_MASK, TELNET_CLOSE, Word};
