//! The log format: text for a terminal, or JSON.

use tracing_subscriber::EnvFilter;

/// Starts logging to standard error. `RUST_LOG` sets the level, which is INFO by default.
pub fn start(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start in one process (several servers in a test) keeps the first one's settings.
    let _ = if json {
        builder.json().try_init()
    } else {
        builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
    };
}
