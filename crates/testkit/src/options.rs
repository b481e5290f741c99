//! What a test chooses.

use crate::disk::UnsyncedDisk;
use ostler_storage::disk::{Disk, OsDisk};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

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

/// How servers are to be started. The default is meant for tests: ticks of 200 ms, session timeouts from a tick to an
/// hour, no limit of connections, all four-letter words, and no waiting for the device.
#[derive(Debug, Clone)]
pub struct TestOptions {
    tick: Duration,
    session_min: Option<Duration>,
    session_max: Duration,
    durability: Durability,
    observers: usize,
    settings: BTreeMap<String, String>,
}

impl Default for TestOptions {
    fn default() -> TestOptions {
        TestOptions {
            tick: Duration::from_millis(200),
            session_min: None,
            session_max: Duration::from_secs(3600),
            durability: Durability::default(),
            observers: 0,
            settings: BTreeMap::new(),
        }
    }
}

impl TestOptions {
    /// The default.
    pub fn new() -> TestOptions {
        TestOptions::default()
    }

    /// `tickTime`: sessions expire in steps of it. The members of an ensemble wait 10 ticks for each other, and half a
    /// minute for one that starts. On a busy machine less than 100 ms makes members give up on each other.
    pub fn tick(mut self, tick: Duration) -> TestOptions {
        self.tick = tick;
        self
    }

    /// The session timeouts that servers grant. From a tick to an hour where nothing is said.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> TestOptions {
        (self.session_min, self.session_max) = (Some(min), max);
        self
    }

    /// What acknowledged writes survive.
    pub fn durability(mut self, durability: Durability) -> TestOptions {
        self.durability = durability;
        self
    }

    /// How many of an ensemble's members do not vote: those with the largest numbers.
    pub fn observers(mut self, observers: usize) -> TestOptions {
        self.observers = observers;
        self
    }

    /// Read-only mode: a member that has found no leader for 2 s, or for a tick if that is longer, lets those in who
    /// are content to read. It can only give them local sessions, so these are enabled as well; a session becomes one
    /// of the ensemble with its first ephemeral.
    pub fn read_only_mode(self) -> TestOptions {
        let keys = ["readonlymode.enabled", "localSessionsEnabled", "localSessionsUpgradingEnabled"];
        keys.into_iter().fold(self, |options, key| options.setting(key, "true"))
    }

    /// A line of zoo.cfg, for each server. It wins over all others; ports, folders and `server.N` are not to be
    /// touched.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> TestOptions {
        self.settings.insert(key.into(), value.into());
        self
    }

    pub(crate) fn votes(&self, number: usize, of: usize) -> bool {
        number + self.observers <= of
    }

    /// The text of a zoo.cfg: with these lines, which a test cannot know.
    pub(crate) fn zoo_cfg(&self, own: &[(String, String)]) -> String {
        let millis = |duration: Duration| duration.as_millis().max(1);
        let tick = millis(self.tick);
        let init = Duration::from_secs(30).as_millis() / tick + 1;
        let lines = [
            ("tickTime", tick.to_string()),
            ("minSessionTimeout", millis(self.session_min.unwrap_or(self.tick)).to_string()),
            ("maxSessionTimeout", millis(self.session_max).to_string()),
            ("initLimit", init.to_string()),
            ("syncLimit", "10".into()),
            ("maxClientCnxns", "0".into()),
            ("preAllocSize", "64".into()),
            ("forceSync", if self.durability == Durability::Machine { "yes" } else { "no" }.into()),
            ("4lw.commands.whitelist", "*".into()),
        ];
        let mut all: BTreeMap<&str, &str> = lines.iter().map(|(key, value)| (*key, &**value)).collect();
        for (key, value) in own.iter().map(|(key, value)| (key, value)).chain(&self.settings) {
            all.insert(key, value);
        }
        all.iter().map(|(key, value)| format!("{key}={value}\n")).collect()
    }

    pub(crate) fn files(&self) -> Arc<dyn Disk> {
        match self.durability {
            Durability::Process => Arc::new(UnsyncedDisk),
            Durability::Machine => Arc::new(OsDisk),
        }
    }
}
