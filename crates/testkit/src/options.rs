//! The options of test servers.

use crate::disk::UnsyncedDisk;
use ostler_storage::disk::{Disk, OsDisk};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// The kinds of failures that acknowledged writes survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the server process, including `kill -9`, but not a crash of the machine (`forceSync=no`).
    #[default]
    Process,
    /// A crash of the machine as well, as in production: each write waits for the disk.
    Machine,
}

/// The options with which servers are started. The default is meant for tests: ticks of 200 ms, session timeouts from one
/// tick to one hour, no limit of connections, all four-letter words, and no wait for the disk.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until a server is started with them"]
pub struct TestOptions {
    tick: Duration,
    session_min: Option<Duration>,
    session_max: Duration,
    durability: Durability,
    observers: usize,
    pub(crate) client_proxies: bool,
    pub(crate) folder: Option<PathBuf>,
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
            client_proxies: false,
            folder: None,
            settings: BTreeMap::new(),
        }
    }
}

impl TestOptions {
    /// The default options.
    pub fn new() -> TestOptions {
        TestOptions::default()
    }

    /// `tickTime`; 200 ms by default. Sessions expire at multiples of it. The members of an ensemble wait 10 ticks for each
    /// other, and 30 s for a member that starts. With less than 100 ms, members on a busy machine lose each other.
    pub fn tick(mut self, tick: Duration) -> TestOptions {
        self.tick = tick;
        self
    }

    /// The shortest and longest session timeout that servers grant; by default one tick and one hour.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> TestOptions {
        (self.session_min, self.session_max) = (Some(min), max);
        self
    }

    /// The failures that acknowledged writes survive; [`Durability::Process`] by default.
    pub fn durability(mut self, durability: Durability) -> TestOptions {
        self.durability = durability;
        self
    }

    /// The number of observers in an ensemble: the members with the largest ids; none by default.
    pub fn observers(mut self, observers: usize) -> TestOptions {
        self.observers = observers;
        self
    }

    /// Read-only mode: a member that has found no leader for 2 s, or for a tick if that is longer, accepts clients that
    /// allow read-only servers. It can only give them local sessions, so local sessions are enabled as well. A local
    /// session becomes a global one with its first ephemeral.
    pub fn read_only_mode(self) -> TestOptions {
        let keys = ["readonlymode.enabled", "localSessionsEnabled", "localSessionsUpgradingEnabled"];
        keys.into_iter().fold(self, |options, key| options.setting(key, "true"))
    }

    /// Puts a [`FrameProxy`](crate::FrameProxy) between clients and each server. Clients find it at the server's address,
    /// and in `/zookeeper/config` as well. [`TestServer::client_proxy`](crate::TestServer::client_proxy) is the proxy. While
    /// the server is down, a connection is accepted and closed at once.
    pub fn client_proxies(mut self) -> TestOptions {
        self.client_proxies = true;
        self
    }

    /// The folder in which each server makes its own folder; by default that of the system for temporary files.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> TestOptions {
        self.folder = Some(folder.into());
        self
    }

    /// Adds a line to the zoo.cfg of each server. It takes precedence over the other options. Do not set ports, folders or
    /// `server.N`.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> TestOptions {
        self.settings.insert(key.into(), value.into());
        self
    }

    pub(crate) fn votes(&self, number: usize, of: usize) -> bool {
        number + self.observers <= of
    }

    /// The text of a server's zoo.cfg. `own` are the lines with its ports and folders.
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
