//! Gathers what four-letter words and commands of the admin server show.

use crate::{
    admin::elections::Elections,
    admin::four_letter::{
        Conf, ConfOfMember, Connection, ConnectionSession, Dirs, Gauges, Latency, LeaderGauges, MessageSizes,
        Metrics, Mode, NamespaceQuota, Quorum, ServerView, Word, ZxidDigest, full_version,
    },
    admin::http::whole::newest_snapshot,
    admin::long_reports,
    admin::metrics::{Counted, Loading, metrics},
    admin::word_exchange::Turns,
    config::{EnsembleSettings, ServerConfig},
    disk_thread::DiskQueue,
    driver::Driver,
    handshake_turns::HandshakeTurns,
    responses::Responses,
    snapshot_thread::SnapshotQueue,
};
use ostler_proto::{
    id::ServerId,
    membership::{Membership, PeerAddress},
    op::Op,
    path,
};
use ostler_server_core::{
    Now,
    input::Mono,
    quorum::MemberMode,
    report::{self, quotas},
    sessions::Scope,
    stats,
};
use ostler_storage::folders::DataFolders;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU16, Ordering},
    },
    time::{Instant, SystemTime},
};

/// Shows the server to its operators, with settings and counts that the core does not have.
#[derive(Debug)]
pub(crate) struct Reports {
    conf: Conf,
    ensemble: Option<EnsembleSettings>,
    /// Connections without a session are closed for silence after this.
    sessionless_ms: u64,
    folders: DataFolders,
    disk: Arc<DiskQueue>,
    snapshots: Arc<SnapshotQueue>,
    handshake_turns: Arc<HandshakeTurns>,
    /// Until `srst`.
    loading: Mutex<Option<Loading>>,
    started: Instant,
    trace_mask: AtomicI64,
    client_port: AtomicU16,
    pub(super) turns: Turns,
}

impl Reports {
    pub(crate) fn new(
        config: &ServerConfig,
        folders: &DataFolders,
        (disk, snapshots, handshake_turns): (Arc<DiskQueue>, Arc<SnapshotQueue>, Arc<HandshakeTurns>),
        loading: Loading,
    ) -> Self {
        let shown = |path: &Path| absolute(path).display().to_string();
        // A server without a plain port shows 0, as Java does.
        let client_port = config.clients.client_address.map_or(0, |address| address.port());
        let secure = config.clients.secure.as_deref();
        let conf = Conf {
            client_port,
            secure_client_port: secure.and_then(|secure| secure.address).map(|address| address.port()),
            data_dir: shown(&folders.snapshots),
            data_log_dir: shown(&folders.logs),
            tick_time_ms: config.tick_time_ms,
            max_client_cnxns: config.clients.max_client_cnxns.unwrap_or(0),
            min_session_timeout_ms: config.sessions.min_session_timeout_ms,
            max_session_timeout_ms: config.sessions.max_session_timeout_ms,
            client_port_listen_backlog: config
                .clients
                .client_port_listen_backlog
                .map_or(-1, |backlog| backlog as i32),
            server_id: config.ensemble.as_ref().map_or(0, |ensemble| ensemble.me.0),
            ensemble: None,
        };
        Reports {
            ensemble: config.ensemble.as_deref().cloned(),
            sessionless_ms: config.clients.sessionless_cnxn_timeout_ms.max(1).into(),
            conf,
            folders: folders.clone(),
            disk,
            snapshots,
            handshake_turns,
            loading: Mutex::new(Some(loading)),
            started: Instant::now(),
            client_port: AtomicU16::new(client_port),
            trace_mask: AtomicI64::new(crate::admin::four_letter::DEFAULT_TRACE_MASK),
            turns: Turns::default(),
        }
    }

    /// Notes the new port for clients.
    pub(crate) fn client_port_is(&self, port: u16) {
        self.client_port.store(port, Ordering::Relaxed);
    }

    /// The port for clients: the plain one, or else the one with TLS.
    pub(super) fn shown_client_port(&self) -> u16 {
        match self.client_port.load(Ordering::Relaxed) {
            0 => self.conf.secure_client_port.unwrap_or(0),
            port => port,
        }
    }

    /// The zxid of the newest snapshot, and its time in seconds.
    pub(super) fn last_snapshot(&self) -> Option<(u64, u64)> {
        let (zxid, file) = newest_snapshot(&self.folders.snapshots)?;
        let changed = file.metadata().ok()?.modified().ok()?;
        let at = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some((zxid, at.as_secs()))
    }

    /// The settings of the process that a JVM has as properties.
    pub(super) fn properties(&self) -> Vec<(String, String)> {
        environment().into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Does what a word does beside its answer.
    pub(super) fn act(&self, driver: &Driver, word: Word, mask: Option<i64>) {
        match word {
            Word::Srst => {
                driver.reset_stats();
                self.disk.reset_figures();
                *self.snapshots.took_ms.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
                *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            Word::Crst => driver.reset_conn_stats(),
            Word::Stmk => {
                if let Some(mask) = mask {
                    self.trace_mask.store(mask, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }

    /// The server as a word shows it. Gathers only the parts that the word prints, because some of them are long.
    pub(super) fn view(&self, driver: &Driver, word: Word) -> ServerView {
        let now = driver.clock.now();
        let moment = Moment::of(driver, word);
        let mut view = self.summary_view(&moment);
        match word {
            Word::Cons | Word::Stat => view.connections = connections(driver),
            Word::Dirs => view.dirs = self.dirs(),
            Word::Conf => {
                view.dirs = self.dirs();
                view.conf.ensemble = self.ensemble.as_ref().map(|of| conf_of_member(of, driver));
            }
            Word::Dump => self.add_sessions(&mut view, driver, now),
            Word::Elec => view.elections = self.elections(driver, now),
            Word::Wchc | Word::Wchp => view.watches = long_reports::watches(driver),
            Word::Wchs => view.watch_summary = driver.inspect(|server| server.watch_summary()),
            Word::Hash => view.digests = digests(driver),
            Word::Envi => view.environment = environment(),
            Word::Mntr => {
                view.gauges = self.gauges(driver, &moment, now);
                view.metrics = self.metrics(driver, &moment);
            }
            _ => {}
        }
        view
    }

    /// As [`Reports::view`], for a command that shows the server's figures.
    pub(super) fn view_with_figures(&self, driver: &Driver, word: Word) -> ServerView {
        let now = driver.clock.now();
        let moment = Moment::of(driver, Word::Mntr);
        let mut view = self.summary_view(&moment);
        view.dirs = self.dirs();
        view.gauges = self.gauges(driver, &moment, now);
        view.slow_syncs = self.disk.slow_syncs.load(Ordering::Relaxed);
        if word == Word::Stat {
            view.connections = connections(driver);
        }
        view
    }

    /// The figures that need no long work. Several words print parts of them.
    fn summary_view(&self, Moment { summary, mode, .. }: &Moment) -> ServerView {
        ServerView {
            serving: *mode != Some(MemberMode::Looking),
            mode: match mode {
                None | Some(MemberMode::Looking) => Mode::Standalone,
                Some(MemberMode::Leader) => Mode::Leader,
                Some(MemberMode::Follower) => Mode::Follower,
                Some(MemberMode::Observer) => Mode::Observer,
                Some(MemberMode::ReadOnly) => Mode::ReadOnly,
            },
            version: full_version(BUILT_ON),
            latency: latency(&summary.stats.latency_ms),
            packets_received: summary.stats.packets_received,
            packets_sent: summary.stats.packets_sent,
            connections_alive: summary.connections as u64,
            outstanding: summary.outstanding as u64,
            zxid_last: summary.zxid.0,
            proposal_sizes: proposal_sizes(&summary.stats),
            znode_count: summary.node_count as u64,
            conf: Conf { client_port: self.client_port.load(Ordering::Relaxed), ..self.conf.clone() },
            trace_mask: self.trace_mask.load(Ordering::Relaxed),
            ..ServerView::default()
        }
    }

    /// Sessions, their ephemerals, and when sessions and connections end.
    fn add_sessions(&self, view: &mut ServerView, driver: &Driver, now: Now) {
        view.session_expiry = long_reports::session_ends(driver, Scope::Global, now);
        view.learnt_sessions = long_reports::learnt_sessions(driver);
        view.local_session_expiry = driver
            .inspect(|server| server.has_local_sessions())
            .then(|| long_reports::session_ends(driver, Scope::Local, now));
        view.ephemerals = long_reports::ephemerals(driver);
        view.connection_expiry = long_reports::connection_ends(driver, self.sessionless_ms, now);
    }

    fn elections(&self, driver: &Driver, now: Now) -> Elections {
        match driver.inspect(|server| server.elections()) {
            Some(all) => Elections::of(all, now.wall_ms),
            None => Elections {
                server: ServerId(self.conf.server_id),
                now_ms: now.wall_ms,
                ..Elections::default()
            },
        }
    }

    fn metrics(&self, driver: &Driver, moment: &Moment) -> Metrics {
        metrics(&Counted {
            stats: &moment.summary.stats,
            mode: moment.mode,
            digest_mismatches: moment.summary.digest_mismatches,
            responses: moment.responses,
            traffic: &driver.traffic,
            requests: driver.request_throttle_counts(),
            throttles: &driver.throttles,
            disk: &self.disk.figures(),
            snapshots_ms: *self.snapshots.took_ms.lock().unwrap_or_else(PoisonError::into_inner),
            snapshots_failed: self.snapshots.failed.load(Ordering::Relaxed),
            loading: *self.loading.lock().unwrap_or_else(PoisonError::into_inner),
            learners: &moment.learners,
        })
    }

    fn dirs(&self) -> Dirs {
        Dirs {
            data_dir_bytes: folder_size(&self.folders.snapshots),
            log_dir_bytes: folder_size(&self.folders.logs),
        }
    }

    fn gauges(&self, driver: &Driver, moment: &Moment, now: Now) -> Gauges {
        let Moment { summary, mode, responses, .. } = moment;
        // A read-only server shows nothing of a quorum, as in Java.
        let quorum_report = moment.quorum.as_ref().filter(|_| *mode != Some(MemberMode::ReadOnly));
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Gauges {
            uptime_ms: self.started.elapsed().as_millis() as u64,
            watch_count: summary.watch_count as u64,
            ephemerals_count: summary.ephemerals_count as u64,
            approximate_data_size: summary.data_size.max(0) as u64,
            global_sessions: summary.sessions as u64,
            local_sessions: summary.local_sessions as u64,
            open_file_descriptor_count: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |all| all.count() as u64),
            max_file_descriptor_count: limits.current.unwrap_or(u64::MAX),
            auth_failed_count: summary.stats.auth_failed,
            connection_drop_probability: driver
                .throttles
                .connection_figures()
                .unwrap_or_default()
                .drop_probability,
            outstanding_tls_handshake: self.handshake_turns.under_way() as u64,
            non_mtls_local_conn_count: driver.traffic.plain_local.load(Ordering::Relaxed),
            non_mtls_remote_conn_count: driver.traffic.plain_remote.load(Ordering::Relaxed),
            client_response_sizes: response_sizes(responses),
            quorum: quorum_report.map(|of| quorum(of, *mode, now.mono)),
            quotas: long_reports::quotas(driver).into_iter().map(namespace_quota).collect(),
        }
    }
}

/// The day of the release, for the version line.
const BUILT_ON: &str = "2026-11-21 00:00 UTC";

/// The state of the core at one moment.
struct Moment {
    summary: report::Summary,
    /// `None` for a standalone server.
    mode: Option<MemberMode>,
    responses: Responses,
    /// For `mntr` alone.
    quorum: Option<report::QuorumReport>,
    /// At a leader, for `mntr` alone.
    learners: Vec<ServerId>,
}

impl Moment {
    fn of(driver: &Driver, word: Word) -> Moment {
        driver.inspect_with_responses(|server, responses| Moment {
            summary: server.summary(),
            mode: server.mode(),
            responses: *responses,
            quorum: server.quorum().filter(|_| word == Word::Mntr),
            learners: match word {
                Word::Mntr => server.member_report().map(|member| member.synced).unwrap_or_default(),
                _ => Vec::new(),
            },
        })
    }
}

fn connections(driver: &Driver) -> Vec<Connection> {
    let all = long_reports::connections(driver);
    all.iter().map(|of| connection(&of.report, of.notified, of.has_tls)).collect()
}

fn digests(driver: &Driver) -> Vec<ZxidDigest> {
    let digests = driver.inspect(|server| server.digest_log());
    digests.into_iter().map(|entry| ZxidDigest { zxid: entry.zxid.0, digest: entry.digest }).collect()
}

fn response_sizes(responses: &Responses) -> MessageSizes {
    responses.sizes.map_or_else(MessageSizes::default, |sizes| MessageSizes {
        last: sizes.last as i64,
        min: sizes.min as i64,
        max: sizes.max as i64,
    })
}

fn proposal_sizes(stats: &stats::Stats) -> MessageSizes {
    let sizes = &stats.proposal_bytes;
    match sizes.count {
        0 => MessageSizes::default(),
        _ => MessageSizes {
            last: stats.last_proposal_bytes as i64,
            min: sizes.min as i64,
            max: sizes.max as i64,
        },
    }
}

/// The ensemble of the configuration in the tree, which is in force.
fn conf_of_member(settings: &EnsembleSettings, driver: &Driver) -> ConfOfMember {
    let shown = driver.inspect(|server| {
        let data = server.tree().get(path::CONFIG)?.data.as_deref()?;
        Some(String::from_utf8_lossy(data).into_owned())
    });
    let membership = shown.as_deref().and_then(|text| Membership::parse(text).ok());
    let own = membership.as_ref().unwrap_or(&settings.membership).servers.get(&settings.me);
    let own = own.or_else(|| settings.membership.servers.get(&settings.me));
    let ports = |of: fn(&PeerAddress) -> u16| {
        let mut ports: Vec<u16> = Vec::new();
        for port in own.iter().flat_map(|member| &member.addresses).map(of) {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        ports
    };
    ConfOfMember {
        init_limit: settings.init_limit,
        sync_limit: settings.sync_limit,
        election_ports: ports(|address| address.election_port),
        quorum_ports: ports(|address| address.quorum_port),
        observer: own.is_some_and(|member| member.observer),
        membership: shown.filter(|_| driver.mode() != Some(MemberMode::ReadOnly)),
    }
}

fn namespace_quota((namespace, of): (String, quotas::NamespaceQuota)) -> NamespaceQuota {
    let quotas::NamespaceQuota { count_limit, bytes_limit, count_usage, bytes_usage } = of;
    NamespaceQuota { namespace, count_limit, bytes_limit, count_usage, bytes_usage }
}

fn quorum(of: &report::QuorumReport, mode: Option<MemberMode>, now: Mono) -> Quorum {
    let learners = of.learners;
    let leader = LeaderGauges {
        learners: learners.all as u64,
        synced_followers: learners.followers as u64,
        synced_non_voting_followers: of.non_voting_followers as u64,
        pending_syncs: of.pending_syncs as u64,
        uptime_ms: of.serves_since.map_or(0, |since| now.0.saturating_sub(since.0)),
    };
    Quorum {
        peer_state: match mode {
            Some(MemberMode::Leader) => "leading - broadcast",
            Some(MemberMode::Follower) => "following - broadcast",
            Some(MemberMode::Observer) => "observing - broadcast",
            Some(MemberMode::Looking | MemberMode::ReadOnly) | None => "looking",
        },
        size: of.voters as u64,
        observer_master_id: of.master.map(|master| master.0),
        synced_observers: matches!(mode, Some(MemberMode::Leader | MemberMode::Follower))
            .then_some(learners.observers as u64),
        leader: (mode == Some(MemberMode::Leader)).then_some(leader),
    }
}

fn latency(counts: &stats::Summary) -> Latency {
    Latency { min_ms: counts.min, max_ms: counts.max, sum_ms: counts.sum, count: counts.count }
}

fn connection(report: &report::ConnReport, notified: u64, has_tls: bool) -> Connection {
    let stats = &report.stats;
    let session = report.session.map(|(id, timeout_ms)| ConnectionSession {
        session_id: id.0,
        last_operation: operation_name(stats.last_op),
        established_ms: stats.established_wall_ms,
        timeout_ms,
        last_cxid: stats.last_cxid.into(),
        last_zxid: stats.last_zxid,
        last_response_ms: stats.last_response_mono_ms as i64,
        last_latency_ms: stats.last_latency_ms,
        min_latency_ms: stats.latency_ms.min,
        avg_latency_ms: stats.latency_ms.sum.checked_div(stats.latency_ms.count).unwrap_or(0),
        max_latency_ms: stats.latency_ms.max,
    });
    Connection {
        remote: report.peer,
        has_tls,
        interest_ops: 1,
        queued: report.outstanding as u64,
        received: stats.received,
        sent: stats.sent + notified,
        session,
    }
}

/// Upstream's four letters for the last operation (`lop`).
fn operation_name(code: Option<i32>) -> &'static str {
    let Some(op) = code.and_then(Op::from_code) else { return "NA" };
    match op {
        Op::Ping => "PING",
        Op::CreateSession => "SESS",
        Op::Multi => "MULT",
        Op::MultiRead => "MLTR",
        Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => "CREA",
        Op::Delete | Op::DeleteContainer => "DELE",
        Op::SetData => "SETD",
        Op::Reconfig => "RECO",
        Op::SetAcl => "SETA",
        Op::CloseSession => "CLOS",
        Op::Sync => "SYNC",
        Op::Check => "CHEC",
        Op::Exists => "EXIS",
        Op::GetData => "GETD",
        Op::SetWatches => "SETW",
        Op::SetWatches2 => "STW2",
        Op::AddWatch => "ADDW",
        Op::GetAcl => "GETA",
        Op::GetChildren | Op::GetChildren2 => "GETC",
        Op::GetAllChildrenNumber => "GETACN",
        Op::CheckWatches => "CHKW",
        Op::RemoveWatches => "REMW",
        Op::WhoAmI => "HOMI",
        Op::GetEphemerals => "GETE",
        Op::Auth | Op::Sasl => "NA",
    }
}

fn environment() -> Vec<(&'static str, String)> {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let variable = |name| std::env::var(name).unwrap_or_else(|_| "<NA>".into());
    let folder = std::env::current_dir().map_or("<NA>".into(), |path| path.display().to_string());
    let none = || String::from("<NA>");
    let memory = rustix::system::sysinfo();
    let unit = u64::from(memory.mem_unit).max(1);
    let megabytes = |of: u64| format!("{}MB", (of.saturating_mul(unit)) >> 20);
    Vec::from([
        ("zookeeper.version", full_version(BUILT_ON)),
        ("host.name", text(system.nodename())),
        // Some tools look for these by name. There is no JVM.
        ("java.version", none()),
        ("java.vendor", none()),
        ("java.home", none()),
        ("java.class.path", none()),
        ("java.library.path", none()),
        ("java.io.tmpdir", std::env::temp_dir().display().to_string()),
        ("java.compiler", none()),
        ("os.name", text(system.sysname())),
        ("os.arch", text(system.machine())),
        ("os.version", text(system.release())),
        ("user.name", variable("USER")),
        ("user.home", variable("HOME")),
        ("user.dir", folder),
        ("os.memory.free", megabytes(memory.freeram)),
        ("os.memory.max", megabytes(memory.totalram)),
        ("os.memory.total", megabytes(memory.totalram)),
    ])
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}
