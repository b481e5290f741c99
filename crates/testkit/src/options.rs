//! What a test chooses.

use crate::disk::UnsyncedDisk;
use ostler_server::config::ServerConfig;
use ostler_storage::disk::{Disk, OsDisk};
use std::{fmt, path::Path, sync::Arc, time::Duration};

/// What survives what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// What is acknowledged survives every end of a server, `kill` included, as it does after `kill -9`. It need not
    /// survive the machine's.
    #[default]
    Process,
    /// The machine's end too, as in service: each write waits for the device.
    Machine,
}

type Adjust = Arc<dyn Fn(&mut ServerConfig) + Send + Sync>;

/// How servers are to be started. The default is meant for tests: ticks of 200 ms, session timeouts as short as a tick
/// and as long as an hour, no limit of connections, no waiting for the device.
#[derive(Clone)]
pub struct TestOptions {
    tick: Duration,
    session_min: Option<Duration>,
    session_max: Duration,
    durability: Durability,
    adjust: Option<Adjust>,
}

impl Default for TestOptions {
    fn default() -> TestOptions {
        TestOptions {
            tick: Duration::from_millis(200),
            session_min: None,
            session_max: Duration::from_secs(3600),
            durability: Durability::default(),
            adjust: None,
        }
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

impl TestOptions {
    /// The default.
    pub fn new() -> TestOptions {
        TestOptions::default()
    }

    /// `tickTime`: sessions expire in steps of it, and the members of an ensemble wait for each other in multiples of
    /// it. On a busy machine less than 100 ms makes members give up on each other.
    pub fn tick(mut self, tick: Duration) -> TestOptions {
        self.tick = tick;
        self
    }

    /// The session timeouts that servers grant. A tick and an hour where nothing is said.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> TestOptions {
        (self.session_min, self.session_max) = (Some(min), max);
        self
    }

    /// What acknowledged writes survive.
    pub fn durability(mut self, durability: Durability) -> TestOptions {
        self.durability = durability;
        self
    }

    /// Changes any other setting, of each server, before each start. Ports, folders and membership are not to be
    /// touched.
    pub fn adjust(mut self, adjust: impl Fn(&mut ServerConfig) + Send + Sync + 'static) -> TestOptions {
        self.adjust = Some(Arc::new(adjust));
        self
    }

    pub(crate) fn config(&self, dir: &Path) -> ServerConfig {
        let mut config = ServerConfig::embedded(dir);
        config.tick_time_ms = millis(self.tick).max(1);
        config.min_session_timeout_ms = millis(self.session_min.unwrap_or(self.tick));
        config.max_session_timeout_ms = millis(self.session_max);
        config.max_client_cnxns = None;
        config.pre_alloc_size_kb = 64;
        config.force_sync = self.durability == Durability::Machine;
        if let Some(adjust) = &self.adjust {
            adjust(&mut config);
        }
        config
    }

    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        match self.durability {
            Durability::Process => Arc::new(UnsyncedDisk),
            Durability::Machine => Arc::new(OsDisk),
        }
    }
}

impl fmt::Debug for TestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestOptions")
            .field("tick", &self.tick)
            .field("session_min", &self.session_min)
            .field("session_max", &self.session_max)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
