//! What a session is told once.

use crate::digest_md5::SaslCredentials;
use alloc::{string::String, vec::Vec};
use core::time::Duration;

/// An identity to show on every connection.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthInfo {
    /// `digest`, ...
    pub scheme: String,
    /// `user:password` for digest.
    pub auth: Vec<u8>,
}

/// Secrets are not for logs.
impl core::fmt::Debug for AuthInfo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AuthInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// What a session is told once.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many servers there are, at least one; effects name them by their number.
    pub hosts: usize,
    /// Chance: the order of the servers, and how long to wait between attempts.
    pub seed: u64,
    /// Session timeout to ask for. The server has the last word.
    pub session_timeout: Duration,
    /// The servers' `tickTime`, or longer: how late a leader can hear of what a follower has answered. `None`: no
    /// longer than 2 s, and half the session's timeout, which is what servers grant at least unless their
    /// `minSessionTimeout` is below two ticks.
    pub tick_time: Option<Duration>,
    /// Whether what is held by a session is to be proven by writes ([`Input::Hold`](crate::Input::Hold)).
    pub prove_holding: bool,
    /// How long a request waits for a connection before it is given up unsent.
    pub connection_timeout: Duration,
    /// Whether a server that is cut off from its ensemble will do.
    pub read_only: bool,
    /// Whether a lost session is followed by a new one.
    pub new_session_after_loss: bool,
    /// Identities to show from the first connection on.
    pub auth: Vec<AuthInfo>,
    /// Who to be by SASL DIGEST-MD5, which comes before everything else.
    pub sasl: Option<SaslCredentials>,
    /// The largest frame to send, bytes; a server closes the connection on one above its own limit.
    pub packet_max: usize,
}

impl Config {
    /// With the limits and timeouts that suit most.
    pub fn new(hosts: usize, seed: u64) -> Config {
        Config {
            hosts,
            seed,
            session_timeout: Duration::from_secs(40),
            tick_time: None,
            prove_holding: true,
            connection_timeout: Duration::from_secs(15),
            read_only: false,
            new_session_after_loss: true,
            auth: Vec::new(),
            sasl: None,
            packet_max: 0xf_ffff,
        }
    }
}
