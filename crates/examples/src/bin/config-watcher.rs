//! A program that follows its configuration in a znode: it uses each valid one at once, and keeps the last good one
//! when a broken one arrives.

use clap::Parser;
use ostler_examples::{ConnectOptions, start_log, stop_signal};
use ostler_recipes::prelude::*;
use serde::Deserialize;
use std::{error::Error, pin::pin};

/// Follows a configuration, and says which one it uses.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The znode with the configuration, which need not exist yet.
    #[arg(long, default_value = "/examples/config")]
    path: String,
}

/// The configuration, as JSON has it. A field with a typing error is refused, and not left out in silence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    workers: u32,
    greeting: String,
}

/// The reason for which a configuration is not used.
#[derive(Debug, thiserror::Error)]
enum ConfigError {
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("workers is {0}, but must be between 1 and 64")]
    Workers(u32),
}

impl Config {
    fn parse(json: &[u8]) -> Result<Config, ConfigError> {
        let config: Config = serde_json::from_slice(json)?;
        match config.workers {
            1..=64 => Ok(config),
            workers => Err(ConfigError::Workers(workers)),
        }
    }
}

/// A program that can change its configuration while it runs.
#[derive(Debug, Default)]
struct Application {
    /// The configuration in use, and the version of its znode; `None` until the first good one.
    current: Option<(Config, i32)>,
}

impl Application {
    /// Uses the configuration that is there now, if it is a good one.
    fn look_at(&mut self, data: &[u8], version: i32) {
        match Config::parse(data) {
            Ok(config) => {
                tracing::info!(
                    "uses version {version}: {} workers say {:?}",
                    config.workers,
                    config.greeting
                );
                self.current = Some((config, version));
            }
            Err(error) => tracing::warn!("{}: version {version} is broken: {error}", self.keeps()),
        }
    }

    fn keeps(&self) -> String {
        match &self.current {
            Some((config, version)) => format!("keeps version {version} with {} workers", config.workers),
            None => "waits for a first good configuration".to_owned(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let ended = follow(&client, &options.path).await;
    client.close().await;
    ended
}

/// Uses each good configuration, until SIGTERM or SIGINT.
async fn follow(client: &Client, path: &str) -> Result<(), Box<dyn Error>> {
    // The cache sets its watch before it reads, and reads again after each loss of the connection. So it misses no
    // last change. A program that reads, and then sets a watch, does.
    let cache = NodeCache::start(client, path)?;
    let (mut events, mut stopped) = (cache.events(), pin!(stop_signal()));
    let (mut application, mut seen) = (Application::default(), None);
    tracing::info!("follows {path}");
    loop {
        let event = tokio::select! {
            stopped = &mut stopped => return Ok(stopped?),
            event = events.next() => event,
        };
        match event {
            // The reason is there once the cache has ended.
            None => return Err(cache.end_reason().map_or_else(|| "the cache has ended".into(), Into::into)),
            Some(CacheEvent::Unreadable { code, .. }) => {
                tracing::warn!("{}: the znode cannot be read: {code}", application.keeps());
            }
            Some(_) => {}
        }
        // An event is only the sign to look: the cache itself has the newest data, and what was between does not
        // matter.
        let node = cache.node();
        let zxid = node.as_ref().map(|node| node.stat.mzxid);
        if zxid == seen {
            continue;
        }
        seen = zxid;
        match node {
            Some(node) => application.look_at(&node.data, node.stat.version),
            // The cache lets go of a znode that may not be read any more as well. It says so in its next event.
            None => tracing::warn!("{}: the znode is gone, or cannot be read", application.keeps()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_configuration_leaves_the_last_good_one_in_use() {
        let mut application = Application::default();
        let in_use = |application: &Application| application.current.as_ref().map(|(_, version)| *version);
        application.look_at(b"no JSON", 0);
        assert_eq!(in_use(&application), None);
        application.look_at(br#"{"workers": 2, "greeting": "hello"}"#, 1);
        assert_eq!(in_use(&application), Some(1));
        for broken in [
            r#"{"workers": 2"#,
            r#"{"workers": 2}"#,
            r#"{"workers": 0, "greeting": "hello"}"#,
            r#"{"workers": -1, "greeting": "hello"}"#,
            r#"{"workers": 2, "greeting": "hello", "wrokers": 3}"#,
            "",
        ] {
            application.look_at(broken.as_bytes(), 2);
            assert_eq!(in_use(&application), Some(1), "{broken}");
        }
        application.look_at(br#"{"workers": 64, "greeting": ""}"#, 3);
        assert_eq!(in_use(&application), Some(3));
    }
}
