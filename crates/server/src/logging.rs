//! The log format: text for a terminal, or JSON.

mod line_limit;

use line_limit::LineLimit;
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

/// Starts logging to standard error. `RUST_LOG` sets the level, which is INFO by default. Lines of one kind are limited
/// to 1,000 a minute, so that no client can fill the disk of the log.
pub fn start(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let limit = LineLimit::new(json);
    let lines = if json {
        lines.json().with_filter(limit).boxed()
    } else {
        lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).with_filter(limit).boxed()
    };
    // A second start in one process (several servers in a test) keeps the first one's settings.
    let _ = registry().with(lines).with(filter).try_init();
}
