//! The contents of the words' answers, as plain data. The server fills the parts that a word needs and leaves the rest
//! empty.

use crate::admin::elections::Elections;
use ostler_server_core::stats::Buckets;
use std::net::SocketAddr;

/// A snapshot of the server for one word. The comment of each part names the words that print it.
#[derive(Clone, Debug, Default)]
pub struct ServerView {
    /// False while no tree is served: most words then answer [`super::NOT_SERVING`].
    pub serving: bool,
    /// `srvr stat mntr`: see [`full_version`].
    pub version: String,
    /// `srvr stat mntr isro`
    pub mode: Mode,
    /// `srvr stat mntr`: of all requests since the last `srst`.
    pub latency: Latency,
    /// `srvr stat mntr`
    pub packets_received: u64,
    /// `srvr stat mntr`
    pub packets_sent: u64,
    /// `srvr stat mntr`: open client connections, the asking one included.
    pub connections_alive: u64,
    /// `srvr stat mntr`: requests that are in the server and not yet answered.
    pub outstanding: u64,
    /// `srvr stat`: the last zxid applied, as its 64 bits.
    pub zxid_last: u64,
    /// `srvr stat mntr`
    pub znode_count: u64,
    /// `srvr stat mntr`: sizes of proposals, printed by a leader only.
    pub proposal_sizes: MessageSizes,
    /// `cons stat`
    pub connections: Vec<Connection>,
    /// `conf`
    pub conf: Conf,
    /// `dirs conf`
    pub dirs: Dirs,
    /// `dump`: sessions by the time at which they expire unless they are heard of, earliest first.
    pub session_expiry: Vec<TimeBucket<i64>>,
    /// `dump`: at a server that is not the one to end them, in place of `session_expiry`: sessions and their timeouts
    /// in ms.
    pub learnt_sessions: Option<Vec<(i64, i32)>>,
    /// `dump`: as `session_expiry`, of sessions that no other server knows; None where there are none.
    pub local_session_expiry: Option<Vec<TimeBucket<i64>>>,
    /// `dump`
    pub ephemerals: Vec<EphemeralsOfSession>,
    /// `dump`: connections by the time at which they are closed for silence, earliest first.
    pub connection_expiry: Vec<TimeBucket<ConnectionId>>,
    /// `wchc wchp`: the data watches (child watches are in no word).
    pub watches: Vec<WatchesOfSession>,
    /// `wchs`: connections that have data watches, paths that they watch, and watches.
    pub watch_summary: (usize, usize, usize),
    /// `elec`
    pub elections: Elections,
    /// `hash`: oldest first.
    pub digests: Vec<ZxidDigest>,
    /// `envi`: in the order of [`ENVIRONMENT_KEYS`].
    pub environment: Vec<(&'static str, String)>,
    /// `gtmk stmk`: the mask after the word had its effect.
    pub trace_mask: i64,
    /// Syncs of the log that took longer than `fsync.warningthresholdms`; no word prints it.
    pub slow_syncs: u64,
    /// `mntr`
    pub gauges: Gauges,
    /// `mntr`
    pub metrics: Metrics,
}

/// The version text of `srvr`, `stat`, `mntr` and `envi`: the ZooKeeper version whose behaviour is offered,
/// so that clients which switch on it do the right thing, then our own as the revision. `built_on` is a UTC
/// date and time such as `2026-02-11 20:18 UTC`.
pub fn full_version(built_on: &str) -> String {
    format!("3.9.5-ostler-{}, built on {built_on}", env!("CARGO_PKG_VERSION"))
}

/// The role in the ensemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Standalone,
    Leader,
    Follower,
    Observer,
    ReadOnly,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Standalone => "standalone",
            Mode::Leader => "leader",
            Mode::Follower => "follower",
            Mode::Observer => "observer",
            Mode::ReadOnly => "read-only",
        }
    }
}

/// How long requests took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub min_ms: u64,
    pub max_ms: u64,
    pub sum_ms: u64,
    pub count: u64,
}

/// Sizes in bytes; -1 while there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSizes {
    pub last: i64,
    pub min: i64,
    pub max: i64,
}

impl Default for MessageSizes {
    fn default() -> MessageSizes {
        MessageSizes { last: -1, min: -1, max: -1 }
    }
}

/// A client connection.
#[derive(Clone, Debug)]
pub struct Connection {
    pub remote: SocketAddr,
    /// Whether it has TLS; no word prints it.
    pub has_tls: bool,
    /// 0 nothing, 1 reading, 4 writing, 5 both. A connection that asks a word shows 0.
    pub interest_ops: u8,
    pub queued: u64,
    pub received: u64,
    pub sent: u64,
    /// None before the connect exchange; such a connection has session id 0 and a short line.
    pub session: Option<ConnectionSession>,
}

/// The session that a connection serves, and its counters (`crst` resets those from `last_operation` on,
/// except `established_ms` and `timeout_ms`).
#[derive(Clone, Debug)]
pub struct ConnectionSession {
    pub session_id: i64,
    /// `NA` until the first request, then `PING`, `CREA`, `GETD` and so on.
    pub last_operation: &'static str,
    /// Wall-clock time at which the connection was opened.
    pub established_ms: i64,
    pub timeout_ms: i32,
    /// The xid of the last request; printed from 0 on.
    pub last_cxid: i64,
    /// The zxid of the last reply, -1 at first.
    pub last_zxid: i64,
    /// Monotonic time of the last reply, 0 at first.
    pub last_response_ms: i64,
    pub last_latency_ms: u64,
    pub min_latency_ms: u64,
    pub avg_latency_ms: u64,
    pub max_latency_ms: u64,
}

/// The settings that `conf` shows.
#[derive(Clone, Debug, Default)]
pub struct Conf {
    pub client_port: u16,
    pub secure_client_port: Option<u16>,
    /// With `version-2` at its end.
    pub data_dir: String,
    /// With `version-2` at its end.
    pub data_log_dir: String,
    pub tick_time_ms: i32,
    pub max_client_cnxns: u32,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    /// -1 for the system's own.
    pub client_port_listen_backlog: i32,
    /// 0 in standalone mode.
    pub server_id: i64,
    /// Of a member of an ensemble.
    pub ensemble: Option<ConfOfMember>,
}

/// The part of `conf` about the ensemble.
#[derive(Clone, Debug, Default)]
pub struct ConfOfMember {
    pub init_limit: u32,
    pub sync_limit: u32,
    /// One for each address of the server that has a port of its own.
    pub election_ports: Vec<u16>,
    pub quorum_ports: Vec<u16>,
    /// It does not vote.
    pub observer: bool,
    /// The configuration in force; a read-only server does not show it.
    pub membership: Option<String>,
}

/// Bytes on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirs {
    pub data_dir_bytes: u64,
    pub log_dir_bytes: u64,
}

/// The sessions or connections that expire at one time.
#[derive(Clone, Debug)]
pub struct TimeBucket<T> {
    pub expires_at_wall_ms: i64,
    pub members: Vec<T>,
}

/// A connection in `dump`; session id 0 before the connect exchange.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionId {
    pub remote: SocketAddr,
    pub session_id: i64,
}

/// The ephemeral znodes of a session.
#[derive(Clone, Debug)]
pub struct EphemeralsOfSession {
    pub session_id: i64,
    pub paths: Vec<String>,
}

/// The paths that a connection watches, named by its session.
#[derive(Clone, Debug)]
pub struct WatchesOfSession {
    pub session_id: i64,
    pub paths: Vec<String>,
}

/// An entry of the digest log.
#[derive(Clone, Copy, Debug)]
pub struct ZxidDigest {
    pub zxid: u64,
    pub digest: u64,
}

/// The keys of `envi` in upstream's order. A server without a JVM gives `<NA>` for what only a JVM has.
pub const ENVIRONMENT_KEYS: [&str; 18] = [
    "zookeeper.version",
    "host.name",
    "java.version",
    "java.vendor",
    "java.home",
    "java.class.path",
    "java.library.path",
    "java.io.tmpdir",
    "java.compiler",
    "os.name",
    "os.arch",
    "os.version",
    "user.name",
    "user.home",
    "user.dir",
    "os.memory.free",
    "os.memory.max",
    "os.memory.total",
];

/// The gauges of `mntr` that no other word prints.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub uptime_ms: u64,
    pub watch_count: u64,
    pub ephemerals_count: u64,
    pub approximate_data_size: u64,
    pub global_sessions: u64,
    pub local_sessions: u64,
    pub open_file_descriptor_count: u64,
    pub max_file_descriptor_count: u64,
    pub connection_drop_probability: f64,
    pub client_response_sizes: MessageSizes,
    pub outstanding_tls_handshake: u64,
    pub auth_failed_count: u64,
    pub non_mtls_remote_conn_count: u64,
    pub non_mtls_local_conn_count: u64,
    /// Of a member of an ensemble.
    pub quorum: Option<Quorum>,
    /// One per first path component that has a quota below it.
    pub quotas: Vec<NamespaceQuota>,
}

/// A server's place in its ensemble.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quorum {
    /// Such as `leading - broadcast`.
    pub peer_state: &'static str,
    pub size: u64,
    /// The server that an observer follows.
    pub observer_master_id: Option<i64>,
    /// Of a leader, or a follower that observers follow, or could.
    pub synced_observers: Option<u64>,
    pub leader: Option<LeaderGauges>,
}

/// The learners of a leader, as it knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderGauges {
    pub learners: u64,
    pub synced_followers: u64,
    pub synced_non_voting_followers: u64,
    pub pending_syncs: u64,
    pub uptime_ms: u64,
}

/// Limits and usage below `/namespace`, summed over the quotas there; None where no such znode exists.
#[derive(Clone, Debug, Default)]
pub struct NamespaceQuota {
    pub namespace: String,
    pub count_limit: Option<i64>,
    pub bytes_limit: Option<i64>,
    pub count_usage: Option<i64>,
    pub bytes_usage: Option<i64>,
}

/// The counters and summaries of `mntr`. Names of [`super::METRICS`] that are absent here print as zero.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub values: Vec<(&'static str, MetricValue)>,
    /// Sets with one member per key; a set without members prints nothing.
    pub namespaced: Vec<NamespacedMetric>,
}

/// A member of a metric set, see [`super::NAMESPACED_METRICS`].
#[derive(Clone, Debug)]
pub struct NamespacedMetric {
    pub set: &'static str,
    pub key: String,
    pub value: MetricValue,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricValue {
    Counter(u64),
    Summary(Summary),
    AdvancedSummary(Summary, Percentiles, Buckets),
}

/// Five lines of `mntr`: the mean is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub min: u64,
    pub max: u64,
    pub count: u64,
    pub sum: u64,
    /// An estimate of the median; no word prints it.
    pub median: u64,
}

/// Four more lines of `mntr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    pub p50: u64,
    /// No word prints it.
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    pub p999: u64,
}
