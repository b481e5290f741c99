//! The quorum port: accepts learners and, at a port of their own, observers; and connects to the leader's quorum port.

use super::{
    address_book::AddressBook,
    addresses::{self, ConnectError, Port},
    large_packets::LargePackets,
    link::Link,
    own_ports,
    peer_security::{OtherServers, PeerSecurity, SecurityError},
    peer_stream::PeerStream,
    tasks::Tasks,
};
use crate::{
    config::EnsembleSettings,
    driver::Driver,
    log_throttle::{LogThrottle, SharedLogBudget},
    unidentified::{LimitedPort, UnidentifiedPeer, UnidentifiedPeers},
};
use ostler_proto::{id::Zxid, membership::Member, stat::ExtendedTypes};
use ostler_server_core::{DialTarget, Input, LogPart};
use ostler_storage::{StorageError, disk::Disk, folders::DataFolders};
use ostler_zab::leading::LinkId;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The time between two attempts to connect to a leader that has just been elected.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(20);
/// A server that refuses connections for this long does not lead.
const REFUSED_FOR_MAX: Duration = Duration::from_millis(500);

/// A connection ends when the peer's machine is silent for syncLimit, but not before this time.
const SILENT_FOR_MIN: Duration = Duration::from_secs(5);

/// How long a learner may take to log in.
const LOGIN_WITHIN: Duration = Duration::from_secs(5);

/// The time between two attempts to listen for observers. Another process may free the port.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// This server's side of all connections between a leader or observer master and its learners.
pub(crate) struct QuorumDoor {
    settings: EnsembleSettings,
    silent_for: Duration,
    book: Arc<AddressBook>,
    security: Arc<PeerSecurity>,
    disk: Arc<dyn Disk>,
    folders: DataFolders,
    types: ExtendedTypes,
    data_max: usize,
    large: Arc<LargePackets>,
    unidentified: Arc<UnidentifiedPeers>,
    /// Limits the log lines about callers that were closed.
    closed_log: Arc<SharedLogBudget>,
    /// Limits the log lines about callers that have connected.
    connected_log: SharedLogBudget,
    tasks: Tasks,
    driver: OnceLock<Weak<Driver>>,
}

impl QuorumDoor {
    pub(crate) fn new(
        others: OtherServers,
        tick: Duration,
        (disk, folders): (Arc<dyn Disk>, DataFolders),
        types: ExtendedTypes,
        frame_max: usize,
    ) -> Arc<QuorumDoor> {
        let OtherServers { settings, book, security } = others;
        // A record is a request with some additions. That of a multi may be longer than the request.
        let data_max = frame_max.saturating_mul(2).max(64 << 20);
        Arc::new(QuorumDoor {
            silent_for: SILENT_FOR_MIN.max(tick * settings.sync_limit),
            settings,
            book,
            security,
            disk,
            folders,
            types,
            data_max,
            large: LargePackets::with_limit(data_max.saturating_mul(2)),
            unidentified: UnidentifiedPeers::at(LimitedPort::of_peers("quorum")),
            closed_log: Arc::default(),
            connected_log: SharedLogBudget::default(),
            tasks: Tasks::new(),
            driver: OnceLock::new(),
        })
    }

    pub(crate) fn serve(&self, driver: &Arc<Driver>) {
        let _ = self.driver.set(Arc::downgrade(driver));
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.tasks.shut_down().await;
    }

    fn driver(&self) -> Option<Arc<Driver>> {
        self.driver.get().and_then(Weak::upgrade)
    }

    /// Listens at this server's own addresses.
    pub(crate) async fn listen(&self) -> Result<Vec<TcpListener>, (String, io::Error)> {
        match self.book.own_member() {
            Some(own) => addresses::listen(&own, Port::Quorum, self.settings.listen_on_all).await,
            None => Ok(Vec::new()),
        }
    }

    /// Accepts learners' connections until it is dropped.
    pub(crate) async fn accept(self: Arc<Self>, listeners: Vec<TcpListener>) {
        let on_all = self.settings.listen_on_all;
        own_ports::accept(&self.book, Port::Quorum, on_all, listeners, |listener| {
            let door = self.clone();
            async move { door.accept_at(listener, false).await }
        })
        .await;
    }

    async fn accept_at(self: Arc<Self>, listener: TcpListener, observers: bool) {
        let mut said_failed = LogThrottle::default();
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let _ = stream.set_nodelay(true);
                    // A learner that connects again is refused until the end of its earlier connection is noticed.
                    let _ = addresses::probe_when_idle(&stream, self.silent_for);
                    let Some(unidentified) = self.unidentified.admit(&stream, from.ip()).await else {
                        continue;
                    };
                    let door = self.clone();
                    self.tasks.spawn(async move {
                        door.serve_learner((stream, from), unidentified, observers).await;
                    });
                }
                Err(error) => {
                    if said_failed.take_turn() {
                        tracing::warn!(%error, "the quorum port cannot accept a connection");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn accept_securely(&self, stream: TcpStream) -> Result<PeerStream, SecurityError> {
        let mut stream = self.security.accept(stream, &self.book).await?;
        self.security.expect_login(&mut stream, &self.book, LOGIN_WITHIN).await?;
        Ok(stream)
    }

    async fn serve_learner(
        &self,
        (stream, from): (TcpStream, SocketAddr),
        unidentified: UnidentifiedPeer,
        observers: bool,
    ) {
        let accepted = tokio::select! {
            biased;
            accepted = self.accept_securely(stream) => accepted,
            () = unidentified.gives_way() => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                if let Some(ending) = self.closed_log.take_line().ending() {
                    tracing::warn!(%from, %error, "a connection to the quorum port was closed{ending}");
                }
                return;
            }
        };
        let Some(link) = self.link(from, true) else { return };
        if let Some(ending) = self.connected_log.take_line().ending() {
            tracing::info!(%from, link = link.id.0, observers, "a learner has connected{ending}");
        }
        if observers {
            link.driver.step(Input::ObserverCalls { link: link.id });
        }
        link.run(stream, Some(unidentified)).await;
    }

    /// Accepts observers' connections while this server is a participant, until it is dropped. The core closes those of
    /// observers that it does not serve.
    pub(crate) async fn accept_observers(self: Arc<Self>, port: u16) {
        let mut own = self.book.own();
        loop {
            let voter = own.borrow_and_update().clone().filter(|own| !own.observer);
            let serve = async {
                match voter {
                    Some(own) => self.serve_observers(&own, port).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = serve => tokio::time::sleep(LISTEN_AGAIN_AFTER).await,
                Ok(()) = own.changed() => {}
            }
        }
    }

    /// Serves observers until it is dropped. Returns if it cannot listen.
    async fn serve_observers(self: &Arc<Self>, own: &Member, port: u16) {
        let listeners = match addresses::listen(own, Port::Observers(port), self.settings.listen_on_all).await
        {
            Ok(listeners) => listeners,
            Err((address, error)) => {
                tracing::error!(
                    %address, %error,
                    "cannot listen for observers (observerMasterPort): they have to follow another server"
                );
                return;
            }
        };
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let door = self.clone();
            accepting.spawn(async move { door.accept_at(listener, true).await });
        }
        accepting.join_all().await;
    }

    fn link(&self, address: SocketAddr, to_leader: bool) -> Option<Link> {
        let driver = self.driver()?;
        let (id, outbox) = driver.add_link();
        let (book, security) = (self.book.clone(), self.security.clone());
        let callers_log = to_leader.then(|| self.closed_log.clone());
        let (data_max, large) = (self.data_max, self.large.clone());
        Some(Link {
            id,
            address,
            outbox,
            driver,
            to_leader,
            callers_log,
            data_max,
            large,
            book,
            security,
            types: self.types,
        })
    }

    /// Connects to the leader, or to an observer master in its place, and informs the core of the result. Never blocks.
    pub(crate) fn dial(self: &Arc<Self>, search_id: u64, to: DialTarget) {
        let door = self.clone();
        self.tasks.spawn(async move {
            let connected = door.connect(to).await;
            let Some(driver) = door.driver() else { return };
            match connected.and_then(|stream| Ok((stream.peer_addr()?, stream))) {
                Ok((address, stream)) => {
                    let Some(link) = door.link(address, false) else { return };
                    driver.step(Input::LeaderLink { search_id, link: link.id });
                    link.run(stream, None).await;
                }
                Err(error) => {
                    tracing::warn!(?to, %error, "cannot connect to the server that this one has to follow");
                    driver.step(Input::LeaderUnreachable { search_id });
                }
            }
        });
    }

    async fn connect(&self, to: DialTarget) -> Result<PeerStream, ConnectError> {
        let (id, port, patience) = match to {
            DialTarget::Leader(leader) => (leader, Port::Quorum, REFUSED_FOR_MAX),
            // The next observer master is tried at once.
            DialTarget::Follower(follower) => {
                (follower, Port::Observers(self.settings.observer_master_port.unwrap_or(0)), Duration::ZERO)
            }
        };
        let server = self.book.find(id).ok_or(ConnectError::NotConfigured)?;
        let within = Duration::from_millis(self.settings.connect_timeout_ms.into());
        let begun = Instant::now();
        loop {
            match addresses::connect(&server, port, within).await {
                Err(_) if begun.elapsed() < patience => tokio::time::sleep(CONNECT_AGAIN_AFTER).await,
                Ok(stream) => {
                    // Until the leader's history comes, which may take long, nothing is sent here that would show the loss.
                    addresses::notice_silence(&stream, self.silent_for)?;
                    let mut stream = self.security.connect(stream, (id, &server), within).await?;
                    self.security.log_in(&mut stream, &server, within).await?;
                    return Ok(stream);
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    /// Reads a part of the log for a learner. Never blocks.
    pub(crate) fn read_log(self: &Arc<Self>, search_id: u64, link: LinkId, after: Zxid, through: Zxid) {
        let door = self.clone();
        self.tasks.spawn_blocking(move || {
            let read = door.log_part(after, through).unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read the log for a learner: it gets the whole tree");
                None
            });
            if let Some(driver) = door.driver() {
                driver.step(Input::LogRead { link, search_id, read });
            }
        });
    }

    fn log_part(&self, after: Zxid, through: Zxid) -> Result<Option<LogPart>, StorageError> {
        let Some(percent) = self.settings.snapshot_size_factor else { return Ok(None) };
        ostler_data_dir::log_part(&*self.disk, &self.folders, (after, through), percent)
    }
}
