//! From a configuration to a running server, and to its orderly end.

use crate::{
    admin::{four_letter_door::FourLetterDoor, metrics::Loading},
    client_conn::ConnLimits,
    config::{EnsembleSettings, ServerConfig, SnapshotCompression},
    disk_thread::{self, DiskQueue, DiskWork},
    driver::{Clock, Doors, Driver},
    error::ServerError,
    handle::ServerHandle,
    listener::{self, ClientPort, ConnCounts},
    log_throttle::LogThrottle,
    overrides::{Overrides, PeerListeners},
    peers::{AddressBook, ElectionDoor, QuorumDoor},
    room::Room,
    snapshot_thread::{self, SnapshotQueue},
    timer_task,
};
use ostler_data_dir::{
    Frozen, KeepingOptions, Persistence,
    recovery::{Restored, Restoring},
    snapshots::{SnapshotOptions, SnapshotSettings},
};
use ostler_proto::{id::ServerId, stat::ExtendedTypes};
use ostler_server_core::{CoreConfig, EnsembleConfig, Input, Server, ensemble::ObserverOptions};
use ostler_storage::{
    disk::Disk,
    folders::DataFolders,
    lock::FolderLock,
    names::Compression,
    recover::{Origin, RecoverOptions},
    txnlog::LogOptions,
};
use ostler_zab::{ElectionTiming, EpochLength, HistoryLimits, leading::LeadingTiming};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

/// A server that has its port and its data, and accepts clients.
#[derive(Debug)]
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Znodes at the start, the root once.
    pub znodes: usize,
    /// How long its data took to load.
    pub loaded_in: Duration,
    handle: ServerHandle,
    threads: Threads,
    disk_failed: oneshot::Receiver<ServerError>,
    tasks: JoinSet<()>,
}

/// The threads beside the runtime's. Both are told to end when this is dropped.
#[derive(Debug)]
struct Threads {
    handle: ServerHandle,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    fn join(mut self) {
        self.running.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.handle.abandon();
    }
}

impl RunningServer {
    /// Takes the port, then the folder, then loads the data. Nothing on disk is touched before the port is
    /// ours.
    pub async fn start(config: &ServerConfig) -> Result<RunningServer, ServerError> {
        RunningServer::start_with(config, Overrides::of(config)).await
    }

    /// The same with what the caller gives.
    pub async fn start_with(
        config: &ServerConfig,
        overrides: Overrides,
    ) -> Result<RunningServer, ServerError> {
        let Overrides { files, peers } = overrides;
        let socket = bind(config)?;
        let (folders, lock) = take_folders(config, &*files)?;
        let lock = Arc::new(lock);
        let begun = Instant::now();
        let options = keeping_options(config);
        let types = options.restoring.types;
        let may_start_empty = folders.has_initialize(&*files)?;
        let (mut persistence, restored) = Persistence::start(files.clone(), folders.clone(), options)?;
        if restored.recovered.origin == Origin::Untrusted {
            return Err(ServerError::NoDatabase { folder: folders.snapshots });
        }
        let keeps_config =
            config.ensemble.as_ref().is_none_or(|ensemble| persistence.starts_with(&ensemble.membership));
        let core_config = CoreConfig { keeps_config, ..core_config(config) };
        let disk = Arc::new(DiskQueue::default());
        let settings = persistence.snapshots().clone();
        let znodes = restored.tree.node_count();
        let loaded_in = begun.elapsed();
        let loading = Loading {
            took: loaded_in,
            snapshot: restored.snapshot_loaded_at.map(|loaded| loaded.saturating_duration_since(begun)),
            records: restored.recovered.records,
        };

        let clock = Clock::start();
        let replayed = restored.recovered.records;
        let core = match &config.ensemble {
            None => Server::new(core_config, restored.tree, replayed, clock.now()),
            Some(ensemble) => {
                let mut member = ensemble_config(config, ensemble, (&*files, &folders), &restored)?;
                member.may_start_empty = may_start_empty;
                Server::member(core_config, member, restored.tree, replayed, clock.now())
            }
        };
        let (snapshots, frozen) = SnapshotQueue::new(&settings);
        let doors = config.ensemble.as_ref().map(|ensemble| {
            let all = [&ensemble.membership].into_iter().chain(&ensemble.pending);
            let book = Arc::new(AddressBook::new(ensemble.me, all));
            let (settings, frame_max) = ((**ensemble).clone(), config.limits.jute_max_buffer as usize);
            Doors {
                election: ElectionDoor::new(settings.clone(), book.clone()),
                quorum: QuorumDoor::new(
                    settings,
                    Duration::from_millis(config.tick_time_ms as u64),
                    book.clone(),
                    (files.clone(), folders.clone()),
                    types,
                    frame_max,
                ),
                book,
            }
        });
        let room = Room::new(config.limits.large_answers_max_bytes);
        let driver = Driver::new(core, clock, disk.clone(), snapshots.clone(), doors.clone(), room);
        let driver = Arc::new(driver);
        let warn_above = Duration::from_millis(config.log.fsync_warning_threshold_ms);
        let work = DiskWork { persistence, warn_above };
        let handle =
            ServerHandle { driver: driver.clone(), disk: disk.clone(), snapshots: snapshots.clone() };
        let mut threads = Threads { handle: handle.clone(), running: Vec::new() };
        let (disk_thread, disk_failed) = spawn_disk_thread(&disk, &driver, (work, lock.clone()))?;
        threads.running.push(disk_thread);
        let snapshot_thread = spawn_snapshot_thread(
            (&driver, &disk),
            &snapshots,
            frozen,
            (settings, lock),
            config.snapshots.purge_interval_hours,
        )?;
        threads.running.push(snapshot_thread);

        let door = Arc::new(FourLetterDoor::new(config, &folders, disk.clone(), snapshots.clone(), loading));
        let limits = Arc::new(conn_limits(config));
        let counts = ConnCounts {
            per_address: config.clients.max_client_cnxns,
            ipv6_prefix: config.clients.max_client_cnxns_ipv6_prefix,
            total: config.clients.max_cnxns,
            keep_alive: config.clients.client_tcp_keep_alive,
        };
        let socket_error = |source| ServerError::Listen { address: config.clients.client_address, source };
        let socket = TcpListener::from_std(socket).map_err(socket_error)?;
        let address = socket.local_addr().map_err(socket_error)?;
        let mut tasks = JoinSet::new();
        let own = doors.as_ref().map(|doors| doors.book.own());
        let port =
            ClientPort { listener: socket, address: config.clients.client_address, backlog: backlog(config) };
        tasks.spawn(listener::run(port, own, driver.clone(), limits, counts, door));
        tasks.spawn(disk_thread::gather(disk.clone()));
        tasks.spawn(disk_thread::report(disk.clone(), driver.clone()));
        if let Some(doors) = &doors {
            let observers = config.ensemble.as_ref().and_then(|ensemble| ensemble.observer_master_port);
            let retries = config.ensemble.as_ref().and_then(|ensemble| ensemble.bind_retries);
            open_doors(doors, (peers, observers, retries), &driver, &mut tasks).await?;
        }
        tasks.spawn(timer_task::run(driver.clone()));
        Ok(RunningServer { address, znodes, loaded_in, handle, threads, disk_failed, tasks })
    }

    /// To look into it and interfere with it while it runs.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Runs until `shutdown` resolves, the disk fails, or the server is abandoned. When this returns no thread, no
    /// connection and no lock is left. Dropped before, it is abandoned.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), ServerError> {
        let disk = self.handle.disk.clone();
        let failed = tokio::select! {
            () = shutdown => None,
            () = disk.abandoned.notified() => None,
            failed = &mut self.disk_failed => failed.ok(),
        };
        self.tasks.shutdown().await;
        self.handle.driver.leave_peers().await;
        self.handle.driver.ended();
        self.handle.snapshots.stop();
        if failed.is_none() {
            // What clients have sent is written to the log before the end; they find out at the next server.
            disk.stop();
        } else {
            disk.abandon();
        }
        let threads = self.threads;
        let _ = tokio::task::spawn_blocking(move || threads.join()).await;
        match failed.or_else(|| self.disk_failed.try_recv().ok()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Upstream's pause, too.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

fn backlog(config: &ServerConfig) -> i32 {
    const BACKLOG: i32 = 1024;
    config.clients.client_port_listen_backlog.map_or(BACKLOG, |backlog| backlog as i32)
}

fn bind(config: &ServerConfig) -> Result<std::net::TcpListener, ServerError> {
    let (address, backlog) = (config.clients.client_address, backlog(config));
    let bound = listener::bind(address, backlog).or_else(|error| {
        // A machine without IPv6 has no "all addresses" of it.
        if address.is_ipv6() && address.ip().is_unspecified() && error.kind() != std::io::ErrorKind::AddrInUse
        {
            return listener::bind((Ipv4Addr::UNSPECIFIED, address.port()).into(), backlog);
        }
        Err(error)
    });
    bound.map_err(|source| ServerError::Listen { address, source })
}

fn take_folders(config: &ServerConfig, files: &dyn Disk) -> Result<(DataFolders, FolderLock), ServerError> {
    let logs =
        (config.folders.data_log_dir != config.folders.data_dir).then_some(&*config.folders.data_log_dir);
    let folders =
        DataFolders::open(files, &config.folders.data_dir, logs, config.folders.datadir_autocreate)?;
    let lock = FolderLock::take(&folders)?;
    Ok((folders, lock))
}

fn core_config(config: &ServerConfig) -> CoreConfig {
    let mut schemes = config.auth.enforce_auth_schemes.clone();
    if !config.auth.enforce_auth_enabled {
        schemes.clear();
    }
    CoreConfig {
        // Upstream's standalone server has the number 1 in its session ids, whatever myid says.
        server: config.ensemble.as_ref().map_or(ServerId(1), |ensemble| ensemble.me),
        tick_time_ms: config.tick_time_ms as u64,
        session_timeout_min_ms: config.sessions.min_session_timeout_ms,
        session_timeout_max_ms: config.sessions.max_session_timeout_ms,
        types: ExtendedTypes {
            enabled: config.tree.extended_types_enabled,
            emulate_353: config.tree.emulate_353_ttl_nodes,
        },
        digest: config.tree.digest_enabled,
        super_digest: config.auth.super_digest.clone(),
        digest_algorithm: config.auth.digest_auth_alg,
        digest_auth: config.auth.digest_auth_enabled,
        passwords: config.sessions.session_passwords.passwords(),
        skip_acl: config.auth.skip_acl,
        enforced_auth_schemes: schemes,
        enforce_quota: config.tree.enforce_quota,
        reconfig: config.reconfig_enabled,
        // Found out when the configuration's files are there.
        keeps_config: true,
        close_session_paths: config.sessions.close_session_txn_enabled,
        reaper_interval_ms: config.tree.containers.check_interval_ms,
        reaper_max_per_minute: config.tree.containers.max_per_minute,
        container_max_never_used_ms: config.tree.containers.max_never_used_interval_ms.unwrap_or(0) as i64,
        snapshot_txns: config.snapshots.snap_count.into(),
        snapshot_log_bytes: config.snapshots.snap_size_limit_kb.map(|kb| kb * 1024),
        seed: std::process::id().into(),
    }
}

/// How much committed history is kept in memory for learners. Upstream's 500 records are gone in a moment under
/// load, and then every learner that was away reads from the disk or gets the whole tree.
const HISTORY_RECORDS: usize = 200_000;
const HISTORY_BYTES: usize = 64 << 20;

/// A server without a leader serves nobody at all for a tick, and at least for so long: most elections are over by
/// then.
const READ_ONLY_AFTER_MIN_MS: u64 = 2_000;

fn ensemble_config(
    config: &ServerConfig,
    ensemble: &EnsembleSettings,
    (files, folders): (&dyn Disk, &DataFolders),
    restored: &Restored,
) -> Result<EnsembleConfig, ServerError> {
    let (accepted, current) = ostler_data_dir::epochs(files, folders, restored.tree.last_processed())?;
    let tick = config.tick_time_ms as u64;
    Ok(EnsembleConfig {
        membership: ensemble.membership.clone(),
        pending: ensemble.pending.clone(),
        election: ElectionTiming {
            resend_min: ensemble.notification_min_ms.into(),
            resend_max: ensemble.notification_max_ms.into(),
            ..ElectionTiming::default()
        },
        timing: LeadingTiming {
            init: tick * u64::from(ensemble.init_limit),
            sync: tick * u64::from(ensemble.sync_limit),
        },
        refuse_others: ensemble.refuse_others,
        voters_min: if ensemble.standalone { 2 } else { 1 },
        observing: ObserverOptions {
            masters: ensemble.observer_master_port.is_some(),
            election_delay: ensemble.observer_election_delay_ms,
            reconnect_delay: ensemble.observer_reconnect_delay_ms,
        },
        epoch: EpochLength::default(),
        history: HistoryLimits {
            records: HISTORY_RECORDS.max(ensemble.commit_log_count as usize),
            bytes: HISTORY_BYTES,
        },
        local_sessions: ensemble.local_sessions,
        read_only_after_ms: config.readonly_mode_enabled.then_some(tick.max(READ_ONLY_AFTER_MIN_MS)),
        may_start_empty: false,
        incomplete: ostler_data_dir::is_incomplete(files, folders)?,
        accepted,
        current,
        log_from: ostler_data_dir::log_from(restored.recovered.origin),
    })
}

/// Listens on the ports for the other servers.
async fn open_doors(
    doors: &Doors,
    (listeners, observer_master_port, retries): (Option<PeerListeners>, Option<u16>, Option<u32>),
    driver: &Arc<Driver>,
    tasks: &mut JoinSet<()>,
) -> Result<(), ServerError> {
    doors.election.serve(driver);
    doors.quorum.serve(driver);
    let (quorum, election) = match listeners {
        Some(listeners) => (vec![ready(listeners.quorum)?], vec![ready(listeners.election)?]),
        None => {
            let quorum = patiently(retries, || doors.quorum.listen()).await?;
            (quorum, patiently(retries, || doors.election.listen()).await?)
        }
    };
    // The search for a leader begins before anybody calls: a vote that comes earlier would not count in it.
    driver.step(Input::Deadline);
    tasks.spawn(doors.quorum.clone().accept(quorum));
    if let Some(port) = observer_master_port {
        tasks.spawn(doors.quorum.clone().accept_observers(port));
    }
    tasks.spawn(doors.election.clone().accept(election));
    Ok(())
}

/// What a server's own name stands for may be known only seconds after its start, and a port be free only once the one
/// before it has ended. Tries again so often, or for ever.
async fn patiently<F>(retries: Option<u32>, listen: impl Fn() -> F) -> Result<Vec<TcpListener>, ServerError>
where
    F: Future<Output = Result<Vec<TcpListener>, (String, std::io::Error)>>,
{
    let (mut tried, mut said) = (0, LogThrottle::default());
    loop {
        let (address, source) = match listen().await {
            Ok(listeners) => return Ok(listeners),
            Err(failed) => failed,
        };
        if retries.is_some_and(|retries| tried >= retries) {
            return Err(ServerError::ListenForPeers { address, source });
        }
        if said.take_turn() {
            let of = retries.map_or_else(|| "without end".into(), |retries| format!("{retries} times"));
            tracing::warn!(
                %address, error = %source,
                "cannot listen for the other servers yet; it is tried again each second, {of} (electionPortBindRetry)"
            );
        }
        tried += 1;
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

fn ready(listener: std::net::TcpListener) -> Result<TcpListener, ServerError> {
    let address =
        listener.local_addr().map_or_else(|_| "a given socket".into(), |address| address.to_string());
    let failed = |source| ServerError::ListenForPeers { address, source };
    listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)).map_err(failed)
}

fn log_options(config: &ServerConfig) -> LogOptions {
    LogOptions {
        prealloc_bytes: config.log.pre_alloc_size_kb * 1024,
        size_limit_bytes: config.log.txn_log_size_limit_kb.map(|kb| kb * 1024),
        sync: config.log.force_sync,
    }
}

fn conn_limits(config: &ServerConfig) -> ConnLimits {
    ConnLimits {
        frame_max: config.limits.jute_max_buffer as usize,
        unanswered_max: config.limits.global_outstanding_limit.max(1) as usize,
        sessionless: Duration::from_millis(config.clients.sessionless_cnxn_timeout_ms.into()),
    }
}

fn keeping_options(config: &ServerConfig) -> KeepingOptions {
    let beside = |ensemble: &EnsembleSettings| (ensemble.file.clone(), ensemble.me);
    KeepingOptions {
        restoring: Restoring {
            recover: RecoverOptions {
                trust_empty: config.folders.snapshot_trust_empty,
                db_autocreate: config.folders.db_autocreate,
                ..RecoverOptions::default()
            },
            types: ExtendedTypes {
                enabled: config.tree.extended_types_enabled,
                emulate_353: config.tree.emulate_353_ttl_nodes,
            },
            reads_ahead: true,
            clock: Some(Instant::now),
        },
        log: log_options(config),
        snapshots: SnapshotOptions {
            compression: match config.snapshots.snapshot_compression {
                SnapshotCompression::None => Compression::None,
                SnapshotCompression::Gzip => Compression::Gz,
                SnapshotCompression::Snappy => Compression::Snappy,
            },
            digest: config.tree.digest_enabled,
            last_processed: config.snapshots.serialize_last_processed_zxid,
            keep: config.snapshots.purge_interval_hours.map(|_| config.snapshots.snap_retain_count as usize),
        },
        reconfigurable: config.ensemble.as_deref().filter(|_| config.reconfig_enabled).map(beside),
        is_member: config.ensemble.is_some(),
    }
}

type DiskThread = (JoinHandle<()>, oneshot::Receiver<ServerError>);

fn spawn_disk_thread(
    queue: &Arc<DiskQueue>,
    driver: &Arc<Driver>,
    (work, lock): (DiskWork, Arc<FolderLock>),
) -> Result<DiskThread, ServerError> {
    let (failed, receiver) = oneshot::channel();
    let (queue, driver) = (queue.clone(), driver.clone());
    let thread = thread::Builder::new().name("disk".into()).spawn(move || {
        if let Err(error) = disk_thread::run(&queue, &driver, work) {
            let _ = failed.send(error.into());
        }
        // Nobody else may have the folder while this thread may still write.
        drop(lock);
    });
    Ok((thread.map_err(ServerError::Thread)?, receiver))
}

fn spawn_snapshot_thread(
    (driver, disk): (&Arc<Driver>, &Arc<DiskQueue>),
    queue: &Arc<SnapshotQueue>,
    frozen: std::sync::mpsc::Receiver<Option<Frozen>>,
    (settings, lock): (SnapshotSettings, Arc<FolderLock>),
    purge_interval_hours: Option<u32>,
) -> Result<JoinHandle<()>, ServerError> {
    let (driver, disk, queue) = (driver.clone(), disk.clone(), queue.clone());
    let purge_every = purge_interval_hours.map(|hours| Duration::from_secs(3600 * u64::from(hours.max(1))));
    let run = move || {
        snapshot_thread::run(&queue, &frozen, &driver, (&settings, &disk.bytes), purge_every);
        drop(lock);
    };
    thread::Builder::new().name("snapshot".into()).spawn(run).map_err(ServerError::Thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::auth::authenticate;

    /// What upstream's tests of each hash expect of `super:test`.
    #[test]
    fn the_hash_of_the_scheme_digest_is_the_one_that_zoo_cfg_names() {
        for (algorithm, hash) in [
            ("SHA1", "D/InIHSb7yEEbrWz8b9l71RjZJU="),
            ("SHA-256", "wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig="),
            (
                "SHA-512",
                "cMAGk13FCMtJkaVQImGEKhjqoGELCiVjYdIhiD8stB1FnIpdGeFvKwAHh5mf4tUYmBR2ZY9181dZTXEHMlkVhg==",
            ),
            ("SHA3-256", "cRy/KPYuDpW/dtsepniTMpuiuupnWgdU9txltIfv3hA="),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("zoo.cfg");
            let text = format!(
                "dataDir=/d\nclientPort=2181\nDigestAuthenticationProvider.digestAlg={algorithm}\n\
                 DigestAuthenticationProvider.superDigest=super:{hash}\n"
            );
            std::fs::write(&file, text).unwrap();
            let config = crate::config::load(&file).unwrap_or_else(|error| panic!("{error}")).config;
            let ids = authenticate(
                &core_config(&config),
                [127, 0, 0, 1].into(),
                Some("digest"),
                Some(b"super:test"),
            );
            let ids: Vec<String> = ids.unwrap().iter().map(|id| format!("{} {}", id.scheme, id.id)).collect();
            assert_eq!(ids, ["super ".to_owned(), format!("digest super:{hash}")], "{algorithm}");
        }
    }
}
