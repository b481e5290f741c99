//! The configuration of a session.

use alloc::{string::String, vec::Vec};
use core::time::Duration;
#[cfg(feature = "sasl")]
use ostler_sasl::digest_md5::SaslCredentials;

/// An identity that the client sends on every connection.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthInfo {
    /// The authentication scheme, for example `digest`.
    pub scheme: String,
    /// The scheme's data: `user:password` for digest.
    pub auth: Vec<u8>,
}

/// Without the secret, which must not appear in logs.
impl core::fmt::Debug for AuthInfo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AuthInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// How a client logs in by SASL, before all requests of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaslLogin {
    /// DIGEST-MD5, which this crate speaks with the feature `sasl`.
    #[cfg(feature = "sasl")]
    DigestMd5(SaslCredentials),
    /// A mechanism that the caller speaks, such as GSSAPI: [`Effect::SaslToken`](crate::Effect::SaslToken) asks for each
    /// token.
    OfCaller,
}

/// The configuration of a session.
#[derive(Debug, Clone)]
pub struct Config {
    /// The number of servers. Effects name a server by its index. With 0 the client waits for
    /// [`Input::Servers`](crate::Input::Servers).
    pub hosts: usize,
    /// The rank of each server by its index; 0 for servers beyond the end of the list. Servers of a lower rank are tried
    /// first.
    pub ranks: Vec<u8>,
    /// The seed for the order of the servers and for the waits between attempts.
    pub seed: u64,
    /// The session timeout to ask for. The server may grant another one.
    pub session_timeout: Duration,
    /// The servers' `tickTime`, or a longer time: a leader hears of a follower's answers up to half a tick later.
    /// `None`: 2 s, or half the session's timeout if that is shorter. Servers grant at least two ticks, unless their
    /// `minSessionTimeout` is shorter.
    pub tick_time: Option<Duration>,
    /// Whether writes prove that a session lives while something is held in it ([`Input::Hold`](crate::Input::Hold)).
    pub prove_holding: bool,
    /// How long a request waits for a connection before it fails with [`Failure::NotConnected`](crate::Failure).
    pub connection_timeout: Duration,
    /// Whether the client may use a server that is cut off from its ensemble and answers reads only.
    pub read_only: bool,
    /// Whether the client opens a new session after a lost one. Otherwise it ends.
    pub new_session_after_loss: bool,
    /// The identities that are sent from the first connection on.
    pub auth: Vec<AuthInfo>,
    /// The login by SASL, which comes before all requests.
    pub sasl: Option<SaslLogin>,
    /// The size of the largest frame to send, in bytes. A server closes the connection on a frame above its own limit.
    pub packet_max: usize,
}

impl Config {
    /// The default configuration.
    pub fn new(hosts: usize, seed: u64) -> Config {
        Config {
            hosts,
            ranks: Vec::new(),
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
