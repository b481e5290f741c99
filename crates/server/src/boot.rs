//! From a configuration to a running server, and to its orderly end.

mod admin_ports;
mod client_ports;
mod options;
mod peer_ports;
mod threads;

use crate::{
    admin::{four_letter_door::FourLetterDoor, metrics::Loading, reports::Reports},
    audit::{self, AuditQueue, RunningAudit},
    client_conn::ClientService,
    clock::Clock,
    config::{DataFolderSettings, ServerConfig},
    disk_thread::{self, DiskQueue, DiskWork},
    driver::{Driver, DriverParts},
    error::ServerError,
    handle::ServerHandle,
    handshake_turns::HandshakeTurns,
    overrides::{AdminRoutes, Overrides, PeerListeners},
    peers::{PeerConfigs, PeerSecurity},
    room::Room,
    sasl_files::SaslParts,
    sasl_logins::SaslQueue,
    snapshot_thread::{SnapshotQueue, SnapshotWork},
    throttle::{Throttles, requests::RequestThrottle},
    timer_task,
    tls_files::TlsFiles,
    tls_handshake::PortSecurity,
    traces::TraceExporter,
};
use admin_ports::{AdminParts, AdminPorts};
use client_ports::ClientPorts;
use options::MemberData;
use ostler_data_dir::{Persistence, recovery::Restored};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_server_core::{
    CoreConfig, Now, Server,
    audit::{AuditOperation, AuditResult},
    quorum::LocalSessions,
};
use ostler_storage::{
    disk::Disk,
    folders::DataFolders,
    lock::FolderLock,
    names::{Compression, snapshot_name},
    recover::Origin,
};
use ostler_zab::EpochLength;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use threads::Threads;
use tokio::{sync::oneshot, task::JoinSet};

/// A server that has its port and its data, and accepts clients.
#[derive(Debug)]
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where the admin server listens, if it does.
    pub admin: Option<SocketAddr>,
    /// Znodes at the start, the root once.
    pub znodes: usize,
    /// How long its data took to load.
    pub loaded_in: Duration,
    handle: ServerHandle,
    threads: Threads,
    disk_failed: oneshot::Receiver<ServerError>,
    tasks: JoinSet<()>,
}

impl RunningServer {
    /// Takes the ports, then the folder, then loads the data. Nothing in the data folder is touched before the server has
    /// its ports.
    pub async fn start(config: &ServerConfig) -> Result<RunningServer, ServerError> {
        RunningServer::start_with(config, Overrides::of(config)).await
    }

    /// As [`RunningServer::start`], with files or ports that the caller gives.
    pub async fn start_with(
        config: &ServerConfig,
        overrides: Overrides,
    ) -> Result<RunningServer, ServerError> {
        let Overrides { files, peers, admin_routes } = overrides;
        let ports = Ports::open(config, peers, admin_routes)?;
        let store = DataStore::take(&config.folders, files)?;
        // After the lock of the folder: the audit file may be the one of another server that has it.
        let settings = config.audit.as_ref();
        let audit =
            settings.map(|audit| RunningAudit::start(audit, config.folders.files_mode)).transpose()?;
        let queue = audit.as_ref().map(RunningAudit::queue);
        let started = RunningServer::serve(config, ports, store, queue).await;
        if let Some(audit) = &audit {
            let result = if started.is_ok() { AuditResult::Success } else { AuditResult::Failure };
            audit::note_server(&audit.queue(), AuditOperation::ServerStart, result);
        }
        match started {
            Ok(mut server) => {
                server.threads.audit = audit;
                Ok(server)
            }
            Err(error) => {
                audit.into_iter().for_each(RunningAudit::end);
                Err(error)
            }
        }
    }

    /// Loads the data, and serves.
    async fn serve(
        config: &ServerConfig,
        opened: Ports,
        store: DataStore,
        audit: Option<Arc<AuditQueue>>,
    ) -> Result<RunningServer, ServerError> {
        let Ports { clients, peers, security, quorum_files, sasl, admin } = opened;
        let address = clients.address()?;
        let LoadedData { persistence, recovered, loading } = load(config, &store)?;
        let znodes = recovered.restored.tree.node_count();
        let clock = Clock::start();
        let core_config = options::core_config(config, recovered.keeps_config, sasl.is_some());
        let core = new_core(core_config, config, &store, recovered, clock.now())?;
        let snapshot_settings = persistence.snapshots().clone();
        let (snapshots, frozen) = SnapshotQueue::new(&snapshot_settings);
        let admin_snapshots = snapshot_settings.clone();
        let disk = Arc::new(DiskQueue::default());
        let ports = config.ensemble.as_deref();
        let ports = ports.map(|ensemble| peer_ports::doors(config, ensemble, &security, &store));
        let traces = config.traces.as_ref().map(|traces| {
            let me = config.ensemble.as_ref().map_or(ServerId(0), |ensemble| ensemble.me);
            TraceExporter::start(traces, me)
        });
        let traces = traces.transpose()?;
        let has_local_sessions =
            config.ensemble.as_ref().is_some_and(|of| of.local_sessions != LocalSessions::Off);
        let parts = DriverParts {
            disk: disk.clone(),
            snapshots: snapshots.clone(),
            doors: ports.clone(),
            room: Room::new(config.limits.large_answers_max_bytes),
            sasl: sasl.as_ref().map_or_else(SaslQueue::none, |sasl| sasl.queue.clone()),
            audit,
            traces: traces.as_ref().map(TraceExporter::queue),
            throttles: Throttles::new(&config.throttles, has_local_sessions, clock.now().mono),
            requests: config.throttles.requests.map(RequestThrottle::new),
        };
        let driver = Arc::new(Driver::new(core, clock, parts));
        let handle =
            ServerHandle { driver: driver.clone(), disk: disk.clone(), snapshots: snapshots.clone() };

        let mut threads = Threads::of(&handle);
        threads.traces = traces;
        let warn_above = Duration::from_millis(config.log.fsync_warning_threshold_ms);
        let disk_failed = threads.run_disk(DiskWork { persistence, warn_above }, store.lock.clone())?;
        let purge_every = options::purge_every(&config.snapshots);
        let work = SnapshotWork { settings: snapshot_settings, frozen, purge_every };
        threads.run_snapshots(work, store.lock.clone())?;

        let handshake_turns = HandshakeTurns::new();
        let counted = (disk.clone(), snapshots, handshake_turns.clone());
        let reports = Arc::new(Reports::new(config, &store.folders, counted, loading));
        let door = FourLetterDoor::new(config.four_letter_whitelist.clone(), reports.clone());
        let service = ClientService {
            driver: driver.clone(),
            limits: Arc::new(options::conn_limits(config)),
            security: PortSecurity::Plain,
            handshake_turns,
            handshake_log: Arc::default(),
            door: Arc::new(door),
        };
        let mut tasks = JoinSet::new();
        let own = ports.as_ref().map(|doors| doors.book.own());
        clients.serve(&config.clients, own, &service, &mut tasks)?;
        let parts = AdminParts { service, reports, snapshots: admin_snapshots };
        let admin = admin.serve(config, parts, &mut tasks)?;
        if let Some(sasl) = sasl {
            sasl.spawn(&driver, &mut tasks);
        }
        if let Some(files) = quorum_files {
            tasks.spawn(files.watch(move |changed| security.replace(changed)));
        }
        tasks.spawn(disk_thread::gather(disk.clone()));
        tasks.spawn(disk_thread::report(disk, driver.clone()));
        if let (Some(doors), Some(ensemble)) = (&ports, &config.ensemble) {
            let opened = peer_ports::open(doors, ensemble, peers, &driver, &mut tasks).await;
            if let Err(error) = opened {
                // Another start may follow at once, and needs the folder.
                threads.abandon().await;
                return Err(error);
            }
        }
        tasks.spawn(timer_task::run(driver));
        Ok(RunningServer {
            address,
            admin,
            znodes,
            loaded_in: loading.took,
            handle,
            threads,
            disk_failed,
            tasks,
        })
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
        if let Some(audit) = &self.handle.driver.audit {
            audit::note_server(audit, AuditOperation::ServerStop, AuditResult::Invoked);
        }
        self.tasks.shutdown().await;
        self.handle.driver.leave_peers().await;
        self.handle.driver.ended();
        self.handle.snapshots.stop();
        if failed.is_none() {
            // Writes that clients have sent are in the log before the end. The clients hear of them from the next server.
            disk.stop();
        } else {
            disk.abandon();
        }
        self.handle.driver.end_audit();
        let threads = self.threads;
        threads.join().await;
        match failed.or_else(|| self.disk_failed.try_recv().ok()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The ports, and the parts that protect them.
struct Ports {
    clients: ClientPorts,
    /// In place of the ports in the server's own line, if the caller has given them.
    peers: Option<PeerListeners>,
    security: Arc<PeerSecurity>,
    /// The files of TLS between the servers.
    quorum_files: Option<TlsFiles<PeerConfigs>>,
    sasl: Option<SaslParts>,
    admin: AdminPorts,
}

impl Ports {
    /// Takes the ports for clients, and reads the files of TLS and SASL.
    fn open(
        config: &ServerConfig,
        peers: Option<PeerListeners>,
        admin_routes: Option<AdminRoutes>,
    ) -> Result<Ports, ServerError> {
        let clients = ClientPorts::bind(&config.clients)?;
        let (security, quorum_files) = PeerSecurity::open(config.ensemble.as_deref())?;
        let sasl = config.auth.sasl.as_ref().map(SaslParts::open).transpose()?.flatten();
        let admin = AdminPorts::bind(config, admin_routes)?;
        Ok(Ports { clients, peers, security, quorum_files, sasl, admin })
    }
}

/// A server's data: the folders, which no other process has.
struct DataStore {
    files: Arc<dyn Disk>,
    folders: DataFolders,
    /// Each thread that writes holds the lock too: no other process may have the folders before the last write.
    lock: Arc<FolderLock>,
}

impl DataStore {
    fn take(settings: &DataFolderSettings, files: Arc<dyn Disk>) -> Result<DataStore, ServerError> {
        let logs = (settings.data_log_dir != settings.data_dir).then_some(&*settings.data_log_dir);
        let folders = DataFolders::open(&*files, &settings.data_dir, logs, settings.datadir_autocreate)?;
        let lock = Arc::new(FolderLock::take(&folders)?);
        Ok(DataStore { files, folders, lock })
    }
}

/// The data that were read at the start.
struct LoadedData {
    persistence: Persistence,
    recovered: RecoveredState,
    loading: Loading,
}

/// The state from which the core starts.
struct RecoveredState {
    restored: Restored,
    /// The operator has said, by a file `initialize`, that this member of an ensemble may vote without data.
    may_start_empty: bool,
    /// The files of the configuration are where reconfigurations can be kept.
    keeps_config: bool,
}

fn load(config: &ServerConfig, store: &DataStore) -> Result<LoadedData, ServerError> {
    let begun = Instant::now();
    let may_start_empty = store.folders.has_initialize(&*store.files)?;
    let options = options::keeping_options(config);
    let (mut persistence, restored) =
        Persistence::start(store.files.clone(), store.folders.clone(), options)?;
    if restored.recovered.origin == Origin::Untrusted {
        return Err(ServerError::NoDatabase { folder: store.folders.snapshots.clone() });
    }
    let keeps_config =
        config.ensemble.as_ref().is_none_or(|ensemble| persistence.starts_with(&ensemble.membership));
    let loading = Loading {
        took: begun.elapsed(),
        snapshot: restored.snapshot_loaded_at.map(|loaded| loaded.saturating_duration_since(begun)),
        records: restored.recovered.records,
        snapshot_bytes: match restored.recovered.origin {
            Origin::Snapshot(zxid) => snapshot_size(&store.folders, zxid),
            _ => 0,
        },
    };
    Ok(LoadedData {
        persistence,
        recovered: RecoveredState { restored, may_start_empty, keeps_config },
        loading,
    })
}

/// The size of the snapshot that the start has read; 0 if it is gone.
fn snapshot_size(folders: &DataFolders, zxid: Zxid) -> u64 {
    [Compression::None, Compression::Gz, Compression::Snappy]
        .into_iter()
        .find_map(|compression| folders.snapshots.join(snapshot_name(zxid, compression)).metadata().ok())
        .map_or(0, |file| file.len())
}

fn new_core(
    core_config: CoreConfig,
    config: &ServerConfig,
    store: &DataStore,
    recovered: RecoveredState,
    now: Now,
) -> Result<Server, ServerError> {
    let RecoveredState { restored, may_start_empty, .. } = recovered;
    let replayed = restored.recovered.records;
    let epochs = ostler_data_dir::epochs(&*store.files, &store.folders, restored.tree.last_processed());
    let Some(ensemble) = &config.ensemble else {
        let mut server = Server::new(core_config, restored.tree, replayed, now);
        match epochs {
            Ok((accepted, _)) => server.set_standalone_epochs(accepted, options::epoch_length(config)),
            // They matter in an ensemble only. A later epoch is not begun over one that cannot be read.
            Err(error) => {
                tracing::warn!(%error, "the epochs of this folder cannot be read: an ensemble could not start with them");
                let length = EpochLength { in_place: None, ..EpochLength::default() };
                server.set_standalone_epochs(Epoch(0), length);
            }
        }
        return Ok(server);
    };
    let (accepted, current) = epochs?;
    let data = MemberData {
        may_start_empty,
        incomplete: ostler_data_dir::is_incomplete(&*store.files, &store.folders)?,
        accepted,
        current,
        log_from: ostler_data_dir::log_from(restored.recovered.origin),
    };
    let member = options::ensemble_config(config, ensemble, data);
    Ok(Server::member(core_config, member, restored.tree, replayed, now))
}
