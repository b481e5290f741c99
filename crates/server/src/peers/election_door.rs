//! The election port. There is one connection for each pair of servers, made by the one with the larger id.
//!
//! A server with the smaller id connects, sends its greeting and closes the connection; then the other connects back.

use super::{
    address_book::{AddressBook, UNLISTED_MAX},
    addresses::{self, ConnectError, Port},
    claims::{Claim, Origin},
    election_peer::{ElectionLink, ElectionLinkReport, ElectionPeer, VoteBox, put, write_votes},
    election_wire::{ElectionReadError, greeting, read_greeting, read_message},
    own_ports,
    peer_security::{OtherServers, PeerSecurity, SecurityError},
    peer_stream::{PeerRead, PeerStream},
    tasks::Tasks,
};
use crate::{
    config::EnsembleSettings,
    driver::Driver,
    log_throttle::{LogThrottle, SharedLogBudget},
    unidentified::{LimitedPort, UnidentifiedPeer, UnidentifiedPeers},
};
use ostler_proto::{
    election::Notification,
    id::ServerId,
    membership::{Member, OtherEnsemble},
};
use ostler_server_core::Input;
use ostler_zab::leading::AddressMatch;
use std::{
    collections::HashMap,
    error::Error,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// How long a caller may take to send its greeting.
const GREETING_WITHIN: Duration = Duration::from_secs(5);
/// A connection ends when the peer's machine is silent for this long. No votes are sent while there is a leader, so the
/// kernel has to notice the loss.
const SILENT_FOR_MAX: Duration = Duration::from_secs(5);
/// How long this server tries the configured address of a server that has moved before it tries the new one.
const CONFIGURED_FIRST: Duration = Duration::from_millis(500);
/// A server that has got a greeting and does not connect back within this time cannot be reached.
const CALL_BACK_WITHIN: Duration = Duration::from_secs(1);

/// Why a caller at the election port is turned away.
#[derive(Debug, thiserror::Error)]
enum CallerError {
    #[error("the caller has not sent its server id within {GREETING_WITHIN:?}")]
    Unidentified,
    #[error("the caller has this server's own id: does another server have the same myid?")]
    OwnId,
    #[error("server {} is not in the configuration, and too many such servers are connected", .0.0)]
    TooManyUnlisted(ServerId),
    #[error("server {} is not in the configuration, and does not call from the address that it names", .0.0)]
    Unlisted(ServerId),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error(transparent)]
    Greeting(#[from] ElectionReadError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// This server's election port, and its election connections.
#[derive(Debug)]
pub(crate) struct ElectionDoor {
    settings: EnsembleSettings,
    book: Arc<AddressBook>,
    security: Arc<PeerSecurity>,
    peers: Mutex<HashMap<ServerId, ElectionPeer>>,
    /// The number of the next connection.
    next_link: AtomicU64,
    unidentified: Arc<UnidentifiedPeers>,
    /// Limits the log lines about callers.
    callers_log: SharedLogBudget,
    tasks: Tasks,
    driver: OnceLock<Weak<Driver>>,
}

impl ElectionDoor {
    pub(crate) fn new(others: OtherServers) -> Arc<ElectionDoor> {
        let OtherServers { settings, book, security } = others;
        Arc::new(ElectionDoor {
            settings,
            book,
            security,
            peers: Mutex::default(),
            next_link: AtomicU64::default(),
            unidentified: UnidentifiedPeers::at(LimitedPort::of_peers("election")),
            callers_log: SharedLogBudget::default(),
            tasks: Tasks::new(),
            driver: OnceLock::new(),
        })
    }

    pub(crate) fn serve(&self, driver: &Arc<Driver>) {
        let _ = self.driver.set(Arc::downgrade(driver));
    }

    /// Listens at this server's own addresses.
    pub(crate) async fn listen(&self) -> Result<Vec<TcpListener>, (String, io::Error)> {
        match self.book.own_member() {
            Some(own) => addresses::listen(&own, Port::Election, self.settings.listen_on_all).await,
            None => Ok(Vec::new()),
        }
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.tasks.shut_down().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, ElectionPeer>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, input: Input<'_>) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.step(input);
        }
    }

    /// Sends a vote, and connects first if there is no connection. Never blocks.
    pub(crate) fn send(self: &Arc<Self>, to: ServerId, vote: &Notification) {
        let mut message = vec![0; 4];
        vote.write(&mut message);
        let length = (message.len() - 4) as i32;
        message[..4].copy_from_slice(&length.to_be_bytes());
        let mut peers = self.lock();
        let peer = peers.entry(to).or_default();
        match &peer.link {
            Some(link) => link.votes.put(message),
            None => {
                put(&mut peer.waiting, message);
                self.connect_in_task(to, peer);
            }
        }
    }

    /// Ends the connection of a server of another ensemble. Never blocks.
    pub(crate) fn refuse(&self, of: ServerId, why: &OtherEnsemble) {
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(&of) else { return };
        let Some(link) = &peer.link else { return };
        if peer.said_other_ensemble.take_turn() {
            tracing::warn!(
                server = of.0, address = %link.origin.text(), reason = %why,
                "a server of another ensemble was sent away, and its vote does not count: correct the server.N lines, or \
                 what the names in them stand for. If all servers of this ensemble get new names at once, set \
                 election.refuseOtherEnsembles=false meanwhile"
            );
        }
        // The connection's task ends, and informs the core.
        link.votes.close();
    }

    fn connect_in_task(self: &Arc<Self>, to: ServerId, peer: &mut ElectionPeer) {
        if !std::mem::replace(&mut peer.connecting, true) {
            let door = self.clone();
            self.tasks.spawn(async move { door.connect_and_install(to).await });
        }
    }

    /// Connects to a server. One with a larger id gets the greeting only, and has to connect back.
    async fn connect_and_install(self: Arc<Self>, to: ServerId) {
        match self.connect(to).await {
            Ok((stream, _)) if to > self.settings.me => {
                drop(stream);
                tokio::time::sleep(CALL_BACK_WITHIN).await;
            }
            Ok((stream, origin)) => return self.install(to, stream, origin),
            Err(error) => self.note_failed(to, &error),
        }
        let is_linked = {
            let mut peers = self.lock();
            peers.get_mut(&to).is_some_and(|peer| {
                peer.connecting = false;
                if peer.link.is_none() {
                    peer.note_down(false, None);
                }
                peer.link.is_some()
            })
        };
        // The server may have connected meanwhile, by itself or because of the greeting.
        if !is_linked {
            self.step(Input::ElectionLink { peer: to, up: false });
        }
    }

    /// Notes that a server could not be called.
    fn note_failed(&self, to: ServerId, error: &ConnectError) {
        if let Some(peer) = self.lock().get_mut(&to).filter(|peer| peer.link.is_none()) {
            peer.note_down(false, Some(error));
        }
        match error {
            error if error.is_without_address() && self.take_unknown_turn(to) => {
                tracing::warn!(server = to.0, %error, "a server cannot be called yet: it is tried again");
            }
            error => {
                tracing::debug!(server = to.0, %error, "cannot connect to a server's election port");
            }
        }
    }

    /// The connections to the other members.
    pub(crate) fn links(&self) -> Vec<ElectionLinkReport> {
        let peers = self.lock();
        peers.iter().filter(|(id, _)| self.book.is_member(**id)).map(|(id, peer)| peer.report(*id)).collect()
    }

    /// Returns true if the log has to say again that this server's address is unknown.
    fn take_unknown_turn(&self, server: ServerId) -> bool {
        self.lock().get_mut(&server).is_some_and(|peer| peer.said_unknown.take_turn())
    }

    /// Connects to a server, and sends the own greeting.
    async fn connect(&self, to: ServerId) -> Result<(PeerStream, Origin), ConnectError> {
        let configured = self.book.find(to).ok_or(ConnectError::NotConfigured)?;
        match self.book.moved(to) {
            Some(moved) => self.connect_to_moved(to, &configured, &moved).await,
            None => {
                let stream = addresses::connect(&configured, Port::Election, self.connect_within()).await?;
                self.greet_configured(stream, (to, &configured)).await
            }
        }
    }

    /// Connects to a server that has named another address than the configured one. The configured address is tried first,
    /// for a short time.
    async fn connect_to_moved(
        &self,
        to: ServerId,
        configured: &Member,
        moved: &Member,
    ) -> Result<(PeerStream, Origin), ConnectError> {
        let within = self.connect_within();
        let mut connecting = pin!(addresses::connect(configured, Port::Election, within));
        // If another server has named the configured address, it would answer there. A machine that is gone does not answer
        // at all, so the wait is limited.
        let at_configured = match self.book.is_taken(to) {
            true => None,
            false => timeout(CONFIGURED_FIRST, &mut connecting).await.ok(),
        };
        if let Some(Ok(stream)) = at_configured {
            return self.greet_configured(stream, (to, configured)).await;
        }
        if let Ok(stream) = addresses::connect(moved, Port::Election, within).await {
            let named = moved.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect();
            let from = stream.peer_addr()?;
            let at = addresses::match_address(configured, from.ip()).await;
            let origin = Origin::of_caller((from, at), named, Some(configured));
            return self.greet(stream, (to, configured), origin).await;
        }
        let stream = match at_configured {
            Some(failed) => failed?,
            None => connecting.await?,
        };
        self.greet_configured(stream, (to, configured)).await
    }

    fn connect_within(&self) -> Duration {
        Duration::from_millis(self.settings.connect_timeout_ms.into())
    }

    /// Sends the own greeting on a connection to the configured address of a server.
    async fn greet_configured(
        &self,
        stream: TcpStream,
        (to, configured): (ServerId, &Member),
    ) -> Result<(PeerStream, Origin), ConnectError> {
        let origin = Origin::of_connected(stream.peer_addr()?, configured);
        self.greet(stream, (to, configured), origin).await
    }

    async fn greet(
        &self,
        stream: TcpStream,
        server: (ServerId, &Member),
        origin: Origin,
    ) -> Result<(PeerStream, Origin), ConnectError> {
        addresses::notice_silence(&stream, SILENT_FOR_MAX)?;
        let mut stream = self.security.connect(stream, server, self.connect_within()).await?;
        stream.write_all(&self.greeting()).await?;
        stream.flush().await?;
        self.security.log_in(&mut stream, server.1, self.connect_within()).await?;
        Ok((stream, origin))
    }

    /// Notes the election address that a caller names, if it may be true.
    async fn note_named_address(&self, id: ServerId, origin: &Origin) {
        if origin.claim == Claim::Confirmed {
            return self.book.forget_moved(id);
        }
        if self.book.is_member(id) && !self.settings.call_moved {
            return;
        }
        // One of several addresses is enough: once the configuration names them, all are tried.
        let is_from_there = match origin.named.first() {
            Some((host, port)) => addresses::comes_from(host, *port, origin.from.ip()).await,
            None => false,
        };
        if let Some(named) = origin.named.first().filter(|_| is_from_there) {
            if self.book.is_member(id)
                && self.book.moved(id).is_none()
                && let Some(ending) = self.callers_log.take_line().ending()
            {
                tracing::warn!(
                    server = id.0, from = %origin.text(),
                    "a server is elsewhere than its server.N line here says: if it cannot be reached there, the address that \
                     it names is tried. If it has moved, correct the line and restart this server; if not, two servers \
                     have the same myid{ending}"
                );
            }
            self.book.note_greeting(id, named.clone());
        }
    }

    fn greeting(&self) -> Vec<u8> {
        greeting(self.settings.me, &self.book.own_addresses())
    }

    /// Accepts connections until it is dropped.
    pub(crate) async fn accept(self: Arc<Self>, listeners: Vec<TcpListener>) {
        let on_all = self.settings.listen_on_all;
        own_ports::accept(&self.book, Port::Election, on_all, listeners, |listener| {
            self.clone().accept_at(listener)
        })
        .await;
    }

    async fn accept_at(self: Arc<Self>, listener: TcpListener) {
        let mut said_failed = LogThrottle::default();
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let Some(unidentified) = self.unidentified.admit(&stream, from.ip()).await else {
                        continue;
                    };
                    let door = self.clone();
                    self.tasks.spawn(async move {
                        if let Err(error) = door.clone().serve_caller(stream, from, unidentified).await
                            && let Some(ending) = door.callers_log.take_line().ending()
                        {
                            tracing::warn!(%from, %error, "a connection to the election port was closed{ending}");
                        }
                    });
                }
                Err(error) => {
                    if said_failed.take_turn() {
                        tracing::warn!(%error, "the election port cannot accept a connection");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Reads a caller's greeting. A caller with a larger id stays connected; to one with a smaller id this server connects
    /// back.
    async fn serve_caller(
        self: Arc<Self>,
        stream: TcpStream,
        from: SocketAddr,
        unidentified: UnidentifiedPeer,
    ) -> Result<(), CallerError> {
        stream.set_nodelay(true)?;
        addresses::notice_silence(&stream, SILENT_FOR_MAX)?;
        let mut stream = tokio::select! {
            biased;
            accepted = self.security.accept(stream, &self.book) => accepted?,
            () = unidentified.gives_way() => return Ok(()),
        };
        let (id, named) = tokio::select! {
            // A caller whose greeting is here does not give way to callers that send nothing.
            biased;
            greeting = timeout(GREETING_WITHIN, read_greeting(&mut stream)) => {
                greeting.map_err(|_| CallerError::Unidentified)??
            }
            () = unidentified.gives_way() => return Ok(()),
        };
        tokio::select! {
            biased;
            login = self.security.expect_login(&mut stream, &self.book, GREETING_WITHIN) => login?,
            () = unidentified.gives_way() => return Ok(()),
        }
        let me = self.settings.me;
        if id == me {
            return Err(CallerError::OwnId);
        }
        let configured = self.book.find(id).filter(|_| self.book.is_member(id));
        self.security.check_caller(stream.certificate().as_ref(), id, configured.as_ref())?;
        let at = match &configured {
            Some(member) => addresses::match_address(member, from.ip()).await,
            None => AddressMatch::Unclear,
        };
        let origin = Origin::of_caller((from, at), named, configured.as_ref());
        // The caller counts as unidentified until its name is looked up, so that the number of lookups is limited, too.
        self.note_named_address(id, &origin).await;
        drop(unidentified);
        // If another server is at the configured address, the live connection is that of the other server.
        let is_taken = self.book.is_taken(id);
        if !is_taken && self.lock().get_mut(&id).is_some_and(|peer| peer.refuse_duplicate(id, &origin)) {
            return Ok(());
        }
        if id > me {
            if !self.book.is_member(id) && self.unlisted_links(id) >= UNLISTED_MAX {
                return Err(CallerError::TooManyUnlisted(id));
            }
            self.install(id, stream, origin);
            return Ok(());
        }
        // This side has to connect.
        drop(stream);
        if !self.book.has(id) {
            return Err(CallerError::Unlisted(id));
        }
        let mut peers = self.lock();
        self.forget_unlisted(&mut peers);
        let peer = peers.entry(id).or_default();
        peer.unlink();
        self.connect_in_task(id, peer);
        Ok(())
    }

    /// The number of connected servers that no configuration names, without `except`.
    fn unlisted_links(&self, except: ServerId) -> usize {
        let peers = self.lock();
        let unlisted = peers.iter().filter(|(id, peer)| peer.link.is_some() && **id != except);
        unlisted.filter(|(id, _)| !self.book.is_member(**id)).count()
    }

    /// Forgets servers without a connection and without a known address: anybody may send greetings with any id.
    fn forget_unlisted(&self, peers: &mut HashMap<ServerId, ElectionPeer>) {
        peers.retain(|id, peer| peer.link.is_some() || self.book.has(*id));
    }

    /// Makes this the connection of the server, in place of an earlier one.
    fn install(self: &Arc<Self>, id: ServerId, stream: PeerStream, origin: Origin) {
        let number = self.next_link.fetch_add(1, Ordering::Relaxed);
        let from = origin.from;
        let votes = {
            let mut peers = self.lock();
            self.forget_unlisted(&mut peers);
            let peer = peers.entry(id).or_default();
            peer.note_replaced(id, &origin);
            peer.unlink();
            let votes = Arc::new(VoteBox::with(std::mem::take(&mut peer.waiting)));
            peer.link = Some(ElectionLink { number, origin, votes: votes.clone() });
            peer.connecting = false;
            peer.note_up();
            votes
        };
        // The core has to hear of the connection before the task can report its end.
        self.step(Input::ElectionLink { peer: id, up: true });
        let door = self.clone();
        self.tasks.spawn(async move {
            let (read, write) = stream.into_split();
            let ended = tokio::select! {
                // No vote of a refused server is read any more.
                biased;
                () = votes.closed() => Ok(()),
                ended = door.read_votes((id, from), read) => ended,
                ended = write_votes(&votes, write) => ended.map_err(ElectionReadError::from),
            };
            match &ended {
                Err(error) if error.is_breach() => {
                    if let Some(ending) = door.callers_log.take_line().ending() {
                        tracing::warn!(
                            server = id.0, %from, %error, "a connection of the election port was closed{ending}"
                        );
                    }
                }
                Err(error) => {
                    tracing::debug!(server = id.0, %from, %error, "a connection of the election port ended");
                }
                Ok(()) => {}
            }
            door.ended(id, number, ended.err());
        });
    }

    fn ended(&self, id: ServerId, number: u64, error: Option<ElectionReadError>) {
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(&id) else { return };
        if let Some(link) = peer.link.take_if(|link| link.number == number) {
            peer.keep(&link.votes);
            peer.note_down(true, error.as_ref().map(|error| error as &dyn Error));
            self.forget_unlisted(&mut peers);
            drop(peers);
            self.step(Input::ElectionLink { peer: id, up: false });
        }
    }

    async fn read_votes(
        &self,
        (from, address): (ServerId, SocketAddr),
        mut read: PeerRead,
    ) -> Result<(), ElectionReadError> {
        let mut message = Vec::new();
        loop {
            read_message(&mut read, &mut message).await?;
            match Notification::read(&message) {
                Ok(notification) => self.step(Input::Vote { from, notification }),
                Err(error) => {
                    if let Some(ending) = self.callers_log.take_line().ending() {
                        tracing::warn!(
                            server = from.0, %address, %error, "a vote cannot be read, and does not count{ending}"
                        );
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_throttle::captured::CapturedLog;
    use ostler_proto::membership::PeerAddress;
    use tokio::io::AsyncReadExt;

    fn door(dir: &std::path::Path) -> Arc<ElectionDoor> {
        std::fs::write(dir.join("myid"), "1000").unwrap();
        let file = dir.join("zoo.cfg");
        let servers = "server.1000=127.0.0.1:1:2\nserver.1=127.0.0.1:3:4\nreconfigEnabled=true\n";
        let own = format!("dataDir={}\nclientPort=1\ninitLimit=5\nsyncLimit=5\n", dir.display());
        std::fs::write(&file, own + servers).unwrap();
        let settings = *crate::config::load(&file).unwrap().config.ensemble.unwrap();
        let book = Arc::new(AddressBook::new(settings.me, [&settings.membership]));
        ElectionDoor::new(OtherServers { settings, book, security: PeerSecurity::plain() })
    }

    #[tokio::test]
    async fn callers_that_are_refused_do_not_fill_the_log() {
        let log = CapturedLog::begin();
        let dir = tempfile::tempdir().unwrap();
        let door = door(dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(door.clone().accept_at(listener));
        for _ in 0..100 {
            let mut caller = TcpStream::connect(address).await.unwrap();
            caller.write_all(&i64::MIN.to_be_bytes()).await.unwrap();
            // Closed.
            let _ = caller.read(&mut [0]).await;
        }
        accepting.abort();
        door.close().await;
        let text = log.text();
        assert_eq!(text.matches("a connection to the election port was closed").count(), 20, "{text}");
        assert!(text.contains("closed; for a minute the next ones have no line"), "{text}");
    }

    /// The oldest form of a greeting has no address, and callers may send any id.
    #[tokio::test]
    async fn unlisted_callers_do_not_fill_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let door = door(dir.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for id in 2..300_i64 {
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            caller.write_all(&id.to_be_bytes()).await.unwrap();
            let (stream, from) = listener.accept().await.unwrap();
            let unidentified = door.unidentified.admit(&stream, from.ip()).await.unwrap();
            let served = door.clone().serve_caller(stream, from, unidentified).await;
            assert!(matches!(served, Err(CallerError::Unlisted(unlisted)) if unlisted.0 == id));
        }
        for id in 2..300_i64 {
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let address = PeerAddress { host: "127.0.0.1".into(), quorum_port: 1, election_port: 1 };
            caller.write_all(&greeting(ServerId(id), &[address])).await.unwrap();
            let (stream, from) = listener.accept().await.unwrap();
            let unidentified = door.unidentified.admit(&stream, from.ip()).await.unwrap();
            door.clone().serve_caller(stream, from, unidentified).await.unwrap();
        }
        assert!(door.lock().len() < 110, "{} servers", door.lock().len());
        door.close().await;
    }
}
