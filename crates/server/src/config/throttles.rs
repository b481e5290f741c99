//! The keys that limit what all clients together may begin.

use super::settings::Settings;

/// Limits of new connections, of requests, and of the bytes of large requests. All are off by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThrottleSettings {
    /// `None`, the default: new connections are not limited over time.
    pub connections: Option<ConnectionThrottleSettings>,
    /// `None`, the default: requests are not limited over all connections.
    pub requests: Option<RequestThrottleSettings>,
    /// `None`, the default: the bytes of large requests are not limited over all connections.
    pub large_requests: Option<LargeRequestSettings>,
}

/// The tokens that a connection costs by its kind, each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionWeights {
    /// A new session that all servers know; 3 by default.
    pub global_session: u32,
    /// A new session that this server alone knows; 1 by default.
    pub local_session: u32,
    /// A session that comes back; 2 by default.
    pub renewed_session: u32,
}

/// How the probability changes with which connections are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropSettings {
    /// Milliseconds between two changes at least.
    pub freeze_ms: u32,
    /// The rise of the probability if the bucket is empty; 0.02 by default.
    pub increase: f64,
    /// Its fall if few tokens are missing; 0.002 by default.
    pub decrease: f64,
    /// The part of all tokens that may be missing then; 0 by default.
    pub decrease_ratio: f64,
}

/// The keys `connection_throttle_*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionThrottleSettings {
    /// The tokens in a full bucket, at least 1.
    pub tokens: u32,
    /// The tokens that come back in `fill_ms`; 1 by default.
    pub fill_count: u32,
    /// Milliseconds in which `fill_count` tokens come back; 1 by default and at least.
    pub fill_ms: u32,
    /// `None`, the default: connections are refused only when tokens are missing.
    pub drop: Option<DropSettings>,
    /// `None`, the default: each connection costs one token. Otherwise `tokens` and `fill_count` count new sessions that
    /// all servers know, and are that many times the weight of one.
    pub weights: Option<ConnectionWeights>,
}

/// The keys `request_throttle_*`, `request_stale_*` and `throttled_op_wait_time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestThrottleSettings {
    /// Requests of all connections that are carried out at a time, at least 1.
    pub max_requests: u32,
    /// Milliseconds after which a connection in the line looks again by itself; 100 by default and at least 1.
    pub stall_ms: u32,
    /// Whether stale requests are dropped, and with them their connections; true by default.
    pub drop_stale: bool,
    /// Whether a request is stale whose connection was closed by its client; true by default.
    pub stale_connection_check: bool,
    /// Whether a request is stale that has waited for longer than its session's timeout; false by default.
    pub stale_latency_check: bool,
    /// Milliseconds of waiting after which a request is not carried out but refused (-127). `None`, the default: never.
    pub refused_after_ms: Option<u32>,
}

/// The keys `largeRequest*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeRequestSettings {
    /// A request of more bytes is large.
    pub threshold: u32,
    /// The bytes of all large requests together; 100 MiB by default.
    pub max_bytes: u32,
}

impl ThrottleSettings {
    pub(super) fn read(settings: &Settings) -> ThrottleSettings {
        ThrottleSettings {
            connections: connections(settings),
            requests: requests(settings),
            large_requests: limit(settings, "largeRequestThreshold").map(|threshold| LargeRequestSettings {
                threshold,
                max_bytes: settings.unsigned("largeRequestMaxBytes"),
            }),
        }
    }
}

fn connections(settings: &Settings) -> Option<ConnectionThrottleSettings> {
    let freezes = settings.int("connection_throttle_freeze_time") != -1;
    let decimal = |name| settings.text(name).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    Some(ConnectionThrottleSettings {
        tokens: limit(settings, "connection_throttle_tokens")?,
        fill_count: settings.unsigned("connection_throttle_fill_count"),
        fill_ms: settings.unsigned("connection_throttle_fill_time").max(1),
        drop: freezes.then(|| DropSettings {
            freeze_ms: settings.unsigned("connection_throttle_freeze_time"),
            increase: decimal("connection_throttle_drop_increase"),
            decrease: decimal("connection_throttle_drop_decrease"),
            decrease_ratio: decimal("connection_throttle_decrease_ratio"),
        }),
        weights: settings.bool("connection_throttle_weight_enabled").then(|| weights(settings)),
    })
}

/// Weights below 1 count as the default, and none is below that of a local session, as in ZooKeeper.
fn weights(settings: &Settings) -> ConnectionWeights {
    let weight = |name, default| limit(settings, name).unwrap_or(default);
    let local_session = weight("connection_throttle_local_session_weight", 1);
    ConnectionWeights {
        global_session: weight("connection_throttle_global_session_weight", 3).max(local_session),
        local_session,
        renewed_session: weight("connection_throttle_renew_session_weight", 2).max(local_session),
    }
}

fn requests(settings: &Settings) -> Option<RequestThrottleSettings> {
    Some(RequestThrottleSettings {
        max_requests: limit(settings, "request_throttle_max_requests")?,
        stall_ms: settings.unsigned("request_throttle_stall_time").max(1),
        drop_stale: settings.bool("request_throttle_drop_stale"),
        stale_connection_check: settings.bool("request_stale_connection_check"),
        stale_latency_check: settings.bool("request_stale_latency_check"),
        refused_after_ms: limit(settings, "throttled_op_wait_time"),
    })
}

/// A number that means "off" below 1.
fn limit(settings: &Settings, name: &str) -> Option<u32> {
    settings.limit(name).map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}
