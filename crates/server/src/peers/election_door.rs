//! The election port: one connection for each pair of servers, kept by the one with the larger id.
//!
//! A server with a smaller id that wants to talk connects, says who it is, and hangs up: the other connects back.

use super::{
    address_book::{AddressBook, HEARD_OF_MAX},
    addresses::{self, Port},
    claims::{Claim, ElectionAddress, Origin, SameId},
    own_ports,
    tasks::Tasks,
    unidentified::{UnidentifiedPeer, UnidentifiedPeers},
};
use crate::{config::EnsembleSettings, driver::Driver, log_throttle::LogThrottle};
use ostler_proto::{
    election::Notification,
    id::ServerId,
    jute::Writer as _,
    membership::{OtherEnsemble, PeerAddress},
};
use ostler_server_core::Input;
use ostler_zab::leading::AddressMatch;
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    time::timeout,
};

/// The first number of a greeting: one address, or several.
const GREETING: i64 = -65536;
const GREETING_WITH_ADDRESSES: i64 = -65535;
/// The longest message that upstream takes.
const MESSAGE_MAX: i32 = 512 << 10;
const ADDRESS_MAX: i32 = 2048;
const GREETING_WITHIN: Duration = Duration::from_secs(5);
/// Nothing is said while there is a leader.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// How long a server that says that it is elsewhere is called first where its line has it.
const LISTED_FIRST: Duration = Duration::from_millis(500);
/// A server that has been greeted and does not connect back for so long cannot be reached.
const CALL_BACK_WITHIN: Duration = Duration::from_secs(1);

/// Votes that a server has not been sent, oldest first. Upstream keeps the newest alone, but a vote that counts in
/// the other's ballot box may be the one before.
#[derive(Debug, Default)]
struct VoteBox {
    votes: Mutex<VecDeque<Vec<u8>>>,
    wake: Notify,
    closed: Notify,
}

/// More say nothing that the last ones do not say.
const VOTES_MAX: usize = 8;

impl VoteBox {
    fn with(votes: VecDeque<Vec<u8>>) -> VoteBox {
        VoteBox { votes: Mutex::new(votes), ..VoteBox::default() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.votes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, vote: Vec<u8>) {
        put(&mut self.lock(), vote);
        self.wake.notify_one();
    }
}

fn put(votes: &mut VecDeque<Vec<u8>>, vote: Vec<u8>) {
    if votes.len() == VOTES_MAX {
        votes.pop_front();
    }
    votes.push_back(vote);
}

/// The connection of a server.
#[derive(Debug)]
struct Link {
    number: u64,
    origin: Origin,
    votes: Arc<VoteBox>,
}

#[derive(Debug, Default)]
struct Peer {
    link: Option<Link>,
    dialling: bool,
    /// To be sent once there is a connection.
    waiting: VecDeque<Vec<u8>>,
    said_unidentified: LogThrottle,
    said_duplicate: LogThrottle,
    said_unknown: LogThrottle,
}

impl Peer {
    /// Ends the connection; what was not sent on it waits for the next.
    fn unlink(&mut self) {
        if let Some(old) = self.link.take() {
            old.votes.closed.notify_one();
            self.keep(&old.votes);
        }
    }

    /// Refuses a caller with the id of a server that is connected from where the configuration has it, if the caller
    /// comes from elsewhere. Returns whether it did.
    fn refuse_duplicate(&mut self, id: ServerId, new: &Origin) -> bool {
        let Some(live) = &self.link else { return false };
        let is_refused = new.beside(&live.origin) == SameId::Elsewhere;
        if is_refused && self.said_duplicate.take_turn() {
            tracing::warn!(
                server = id.0, from = %new.words(), connected = %live.origin.words(),
                "a connection to the election port was refused: it is not from where the configuration has this server, \
                 and the server that is there is connected. Do two servers have the same myid?"
            );
        }
        is_refused
    }

    /// A caller takes the place of the connection that there was.
    fn note_replaced(&mut self, id: ServerId, new: &Origin) {
        if let Some(live) = &self.link
            && new.beside(&live.origin) == SameId::Moved
            && self.said_duplicate.take_turn()
        {
            tracing::warn!(
                server = id.0, from = %new.words(), instead_of = %live.origin.words(),
                "a connection to the election port has taken the place of one from elsewhere: if this server has not \
                 moved, two servers have the same myid"
            );
        }
    }

    fn keep(&mut self, unsent: &VoteBox) {
        for vote in std::mem::take(&mut *unsent.lock()) {
            put(&mut self.waiting, vote);
        }
    }
}

/// This server's end of all elections.
#[derive(Debug)]
pub(crate) struct ElectionDoor {
    settings: EnsembleSettings,
    book: Arc<AddressBook>,
    peers: Mutex<HashMap<ServerId, Peer>>,
    links: std::sync::atomic::AtomicU64,
    unidentified: Arc<UnidentifiedPeers>,
    tasks: Tasks,
    driver: OnceLock<Weak<Driver>>,
}

impl ElectionDoor {
    pub(crate) fn new(settings: EnsembleSettings, book: Arc<AddressBook>) -> Arc<ElectionDoor> {
        Arc::new(ElectionDoor {
            settings,
            book,
            peers: Mutex::default(),
            links: Default::default(),
            unidentified: UnidentifiedPeers::at("election"),
            tasks: Tasks::new(),
            driver: OnceLock::new(),
        })
    }

    pub(crate) fn serve(&self, driver: &Arc<Driver>) {
        let _ = self.driver.set(Arc::downgrade(driver));
    }

    /// Listens at this server's own addresses.
    pub(crate) async fn listen(&self) -> Result<Vec<TcpListener>, (String, io::Error)> {
        match self.book.find(self.settings.me) {
            Some(own) => addresses::listen(&own, Port::Election, self.settings.listen_on_all).await,
            None => Ok(Vec::new()),
        }
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        self.tasks.shut_down().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Peer>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, input: Input<'_>) {
        if let Some(driver) = self.driver.get().and_then(Weak::upgrade) {
            driver.step(input);
        }
    }

    /// Sends a vote, over a new connection if need be. Never blocks.
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
                self.dial(to, peer);
            }
        }
    }

    /// Ends the connection of a server of another ensemble. Never blocks.
    pub(crate) fn refuse(&self, of: ServerId, why: &OtherEnsemble) {
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(&of) else { return };
        let Some(link) = &peer.link else { return };
        if peer.said_unidentified.take_turn() {
            tracing::warn!(
                server = of.0, address = %link.origin.words(), reason = %why,
                "a server of another ensemble was sent away, and its vote does not count: correct the server.N lines, or \
                 what the names in them stand for. If all servers of this ensemble get new names at once, set \
                 election.refuseOtherEnsembles=false meanwhile"
            );
        }
        // Its task ends it, and tells the core.
        link.votes.closed.notify_one();
    }

    fn dial(self: &Arc<Self>, to: ServerId, peer: &mut Peer) {
        if !std::mem::replace(&mut peer.dialling, true) {
            let door = self.clone();
            self.tasks.spawn(async move { door.dialled(to).await });
        }
    }

    async fn dialled(self: Arc<Self>, to: ServerId) {
        match self.connect(to).await {
            Ok((stream, _)) if to > self.settings.me => {
                drop(stream);
                tokio::time::sleep(CALL_BACK_WITHIN).await;
            }
            Ok((stream, origin)) => return self.install(to, stream, origin),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.says_unknown(to) => {
                tracing::warn!(server = to.0, %error, "a server cannot be called yet: it is tried again");
            }
            Err(error) => {
                tracing::debug!(server = to.0, %error, "a server's election port cannot be reached");
            }
        }
        let is_linked = {
            let mut peers = self.lock();
            peers.get_mut(&to).is_some_and(|peer| {
                peer.dialling = false;
                peer.link.is_some()
            })
        };
        // It may have connected meanwhile, by itself or because it was greeted.
        if !is_linked {
            self.step(Input::ElectionLink { peer: to, up: false });
        }
    }

    /// Whether it is to be said that nobody knows where this server is.
    fn says_unknown(&self, server: ServerId) -> bool {
        self.lock().get_mut(&server).is_some_and(|peer| peer.said_unknown.take_turn())
    }

    async fn connect(&self, to: ServerId) -> io::Result<(TcpStream, Origin)> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "it is not in the configuration");
        let listed = self.book.find(to).ok_or_else(unknown)?;
        let within = Duration::from_millis(self.settings.connect_timeout_ms.into());
        let mut connecting = pin!(addresses::connect(&listed, Port::Election, within));
        let moved = self.book.moved(to);
        let found = match &moved {
            // It would be taken for the one that is there now.
            Some(_) if self.book.is_taken(to) => None,
            // A machine that is gone does not even refuse.
            Some(_) => timeout(LISTED_FIRST, &mut connecting).await.ok(),
            None => Some(connecting.as_mut().await),
        };
        let stream = match (found, moved) {
            (Some(Ok(stream)), _) => stream,
            (found, Some(moved)) => {
                if let Ok(stream) = addresses::connect(&moved, Port::Election, within).await {
                    let said = moved.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect();
                    let from = stream.peer_addr()?;
                    let at = addresses::place(&listed, from.ip()).await;
                    let origin = Origin::of_caller((from, at), said, Some(&listed));
                    return self.greet(stream, origin).await;
                }
                match found {
                    Some(failed) => failed?,
                    None => connecting.await?,
                }
            }
            (Some(failed), None) => failed?,
            (None, None) => connecting.await?,
        };
        let origin = Origin::dialled(stream.peer_addr()?, &listed);
        self.greet(stream, origin).await
    }

    async fn greet(&self, mut stream: TcpStream, origin: Origin) -> io::Result<(TcpStream, Origin)> {
        addresses::notice_silence(&stream, SILENT_FOR)?;
        stream.write_all(&self.greeting()).await?;
        Ok((stream, origin))
    }

    /// Takes in where a caller says that it is.
    async fn note_place(&self, id: ServerId, origin: &Origin) {
        if origin.claim == Claim::Confirmed {
            return self.book.is_back(id);
        }
        if self.book.is_member(id) && !self.settings.call_moved {
            return;
        }
        // Of several the first will do: all are tried once a configuration names them.
        let is_there = match origin.said.first() {
            Some((host, port)) => addresses::comes_from(host, *port, origin.from.ip()).await,
            None => false,
        };
        if let Some(place) = origin.said.first().filter(|_| is_there) {
            if self.book.is_member(id) && self.book.moved(id).is_none() {
                tracing::warn!(
                    server = id.0, from = %origin.words(),
                    "a server is elsewhere than its server.N line here says: if it cannot be had there, it is called where it \
                     says that it is. If it has moved, correct the line and restart this server; if not, two servers have the same myid"
                );
            }
            self.book.heard_of(id, place.clone());
        }
    }

    fn greeting(&self) -> Vec<u8> {
        let own = self.book.find(self.settings.me);
        greeting(self.settings.me, own.as_ref().map_or(&[], |own| &own.addresses))
    }

    /// Takes connections until it is dropped.
    pub(crate) async fn accept(self: Arc<Self>, listeners: Vec<TcpListener>) {
        let on_all = self.settings.listen_on_all;
        own_ports::accept(&self.book, Port::Election, on_all, listeners, |listener| {
            self.clone().accept_at(listener)
        })
        .await;
    }

    async fn accept_at(self: Arc<Self>, listener: TcpListener) {
        let mut said = LogThrottle::default();
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let Some(stranger) = self.unidentified.welcome(&stream, from.ip()).await else {
                        continue;
                    };
                    let door = self.clone();
                    self.tasks.spawn(async move {
                        if let Err(error) = door.greeted(stream, from, stranger).await {
                            tracing::warn!(%from, %error, "a connection to the election port was closed");
                        }
                    });
                }
                Err(error) => {
                    if said.take_turn() {
                        tracing::warn!(%error, "the election port takes no connection");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn greeted(
        self: Arc<Self>,
        mut stream: TcpStream,
        from: SocketAddr,
        stranger: UnidentifiedPeer,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        addresses::notice_silence(&stream, SILENT_FOR)?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not say who it is");
        let (id, places) = tokio::select! {
            // Who has said it is not turned away for those who say nothing.
            biased;
            greeting = timeout(GREETING_WITHIN, read_greeting(&mut stream)) => greeting.map_err(late).flatten()?,
            () = stranger.gives_way() => return Ok(()),
        };
        let me = self.settings.me;
        if id == me {
            let same = "it has this server's own id: does another server have the same myid?";
            return Err(io::Error::new(io::ErrorKind::InvalidData, same));
        }
        let configured = self.book.find(id).filter(|_| self.book.is_member(id));
        let at = match &configured {
            Some(member) => addresses::place(member, from.ip()).await,
            None => AddressMatch::Unclear,
        };
        let origin = Origin::of_caller((from, at), places, configured.as_ref());
        // The number of callers whose names are looked up at a time is limited, too.
        self.note_place(id, &origin).await;
        drop(stranger);
        // Who was dialled where another one is now is that other one.
        let is_taken = self.book.is_taken(id);
        if !is_taken && self.lock().get_mut(&id).is_some_and(|peer| peer.refuse_duplicate(id, &origin)) {
            return Ok(());
        }
        if id > me {
            if !self.book.is_member(id) && self.unlisted_links(id) >= HEARD_OF_MAX {
                let text =
                    format!("server {} is not in the configuration, and too many such are connected", id.0);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.install(id, stream, origin);
            return Ok(());
        }
        // This side has to connect.
        drop(stream);
        if !self.book.has(id) {
            let text = format!(
                "server {} is not in the configuration, and does not come from where it says that it is",
                id.0
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut peers = self.lock();
        self.forget_unlisted(&mut peers);
        let peer = peers.entry(id).or_default();
        peer.unlink();
        self.dial(id, peer);
        Ok(())
    }

    /// Connections of servers that no configuration names, but for this one.
    fn unlisted_links(&self, but: ServerId) -> usize {
        let peers = self.lock();
        let unlisted = peers.iter().filter(|(id, peer)| peer.link.is_some() && **id != but);
        unlisted.filter(|(id, _)| !self.book.is_member(**id)).count()
    }

    /// Anybody may greet with any id. Of those whom the book does not have only the connected ones stay.
    fn forget_unlisted(&self, peers: &mut HashMap<ServerId, Peer>) {
        peers.retain(|id, peer| peer.link.is_some() || self.book.has(*id));
    }

    fn install(self: &Arc<Self>, id: ServerId, stream: TcpStream, origin: Origin) {
        let number = self.links.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let from = origin.from;
        let votes = {
            let mut peers = self.lock();
            self.forget_unlisted(&mut peers);
            let peer = peers.entry(id).or_default();
            peer.note_replaced(id, &origin);
            peer.unlink();
            let votes = Arc::new(VoteBox::with(std::mem::take(&mut peer.waiting)));
            peer.link = Some(Link { number, origin, votes: votes.clone() });
            peer.dialling = false;
            votes
        };
        // Before any word of its end.
        self.step(Input::ElectionLink { peer: id, up: true });
        let door = self.clone();
        self.tasks.spawn(async move {
            let (read, write) = stream.into_split();
            let ended = tokio::select! {
                // Who is refused says nothing more.
                biased;
                () = votes.closed.notified() => Ok(()),
                ended = door.read_votes((id, from), read) => ended,
                ended = write_votes(&votes, write) => ended,
            };
            match ended {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::warn!(server = id.0, %from, %error, "a connection of the election port was closed");
                }
                Err(error) => {
                    tracing::debug!(server = id.0, %from, %error, "a connection of the election port ended");
                }
                Ok(()) => {}
            }
            door.ended(id, number);
        });
    }

    fn ended(&self, id: ServerId, number: u64) {
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(&id) else { return };
        if let Some(link) = peer.link.take_if(|link| link.number == number) {
            peer.keep(&link.votes);
            self.forget_unlisted(&mut peers);
            drop(peers);
            self.step(Input::ElectionLink { peer: id, up: false });
        }
    }

    async fn read_votes(
        &self,
        (from, address): (ServerId, SocketAddr),
        mut read: OwnedReadHalf,
    ) -> io::Result<()> {
        let mut message = Vec::new();
        loop {
            read_message(&mut read, &mut message).await?;
            match Notification::read(&message) {
                Ok(notification) => self.step(Input::Vote { from, notification }),
                Err(error) => tracing::warn!(server = from.0, %address, %error, "a vote was left unread"),
            }
        }
    }
}

async fn write_votes(votes: &VoteBox, mut write: OwnedWriteHalf) -> io::Result<()> {
    loop {
        let next = votes.lock().pop_front();
        match next {
            Some(vote) => write.write_all(&vote).await?,
            None => votes.wake.notified().await,
        }
    }
}

/// The next vote's bytes, in the place of what the buffer held.
pub async fn read_message(read: &mut (impl AsyncRead + Unpin), message: &mut Vec<u8>) -> io::Result<()> {
    let length = read.read_i32().await?;
    if !(1..=MESSAGE_MAX).contains(&length) {
        let text = format!("a message of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    message.resize(length as usize, 0);
    read.read_exact(message).await?;
    Ok(())
}

/// What a server says first on a connection that it has made: who it is, and where its election port is. Servers that
/// know nothing of several addresses are not told of any.
pub fn greeting(me: ServerId, addresses: &[PeerAddress]) -> Vec<u8> {
    let places: Vec<String> =
        addresses.iter().map(|at| format!("{}:{}", at.host, at.election_port)).collect();
    let mut greeting = Vec::new();
    greeting.i64(if places.len() > 1 { GREETING_WITH_ADDRESSES } else { GREETING });
    greeting.i64(me.0);
    greeting.buffer(Some(places.join("|").as_bytes()));
    greeting
}

/// Who calls, and where its election port is, as far as it says so.
pub async fn read_greeting(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<(ServerId, Vec<(String, u16)>)> {
    let bad = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let first = stream.read_i64().await?;
    if first >= 0 {
        // The oldest form: the id alone.
        return Ok((ServerId(first), Vec::new()));
    }
    if first != GREETING && first != GREETING_WITH_ADDRESSES {
        return Err(bad(format!("it greets with {first:#x}, which is no version of the protocol")));
    }
    let id = stream.read_i64().await?;
    let length = stream.read_i32().await?;
    if !(1..=ADDRESS_MAX).contains(&length) {
        return Err(bad(format!("it greets with an address of {length} bytes")));
    }
    let mut address = vec![0; length as usize];
    stream.read_exact(&mut address).await?;
    let address = String::from_utf8_lossy(&address);
    let place = |text: &str| -> Option<ElectionAddress> {
        let (host, port) = text.rsplit_once(':')?;
        // "Everywhere" is no place to call back.
        (host != "0.0.0.0" && host != "[::]").then_some((host.to_string(), port.parse().ok()?))
    };
    Ok((ServerId(id), address.split('|').filter_map(place).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_several_addresses_names_them_all() {
        let at = |host: &str| PeerAddress { host: host.into(), quorum_port: 1, election_port: 3888 };
        let said = |addresses: &[PeerAddress]| {
            let bytes = greeting(ServerId(7), addresses);
            let version = i64::from_be_bytes(bytes[..8].try_into().unwrap());
            (version, String::from_utf8(bytes[20..].to_vec()).unwrap())
        };
        assert_eq!(said(&[at("one")]), (GREETING, "one:3888".into()));
        assert_eq!(said(&[at("one"), at("two")]), (GREETING_WITH_ADDRESSES, "one:3888|two:3888".into()));
    }

    /// The oldest form of a greeting says nothing of where its sender is, and any id is as good as another.
    #[tokio::test]
    async fn who_cannot_be_called_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("myid"), "1000").unwrap();
        let file = dir.path().join("zoo.cfg");
        let servers = "server.1000=127.0.0.1:1:2\nserver.1=127.0.0.1:3:4\nreconfigEnabled=true\n";
        let own = format!("dataDir={}\nclientPort=1\ninitLimit=5\nsyncLimit=5\n", dir.path().display());
        std::fs::write(&file, own + servers).unwrap();
        let settings = *crate::config::load(&file).unwrap().config.ensemble.unwrap();
        let book = Arc::new(AddressBook::new(settings.me, [&settings.membership]));
        let door = ElectionDoor::new(settings, book);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for id in 2..300_i64 {
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            caller.write_all(&id.to_be_bytes()).await.unwrap();
            let (stream, from) = listener.accept().await.unwrap();
            let stranger = door.unidentified.welcome(&stream, from.ip()).await.unwrap();
            let greeted = door.clone().greeted(stream, from, stranger).await;
            assert!(greeted.is_err_and(|error| {
                error.to_string().contains("does not come from where it says that it is")
            }));
        }
        for id in 2..300_i64 {
            let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let address = PeerAddress { host: "127.0.0.1".into(), quorum_port: 1, election_port: 1 };
            caller.write_all(&greeting(ServerId(id), &[address])).await.unwrap();
            let (stream, from) = listener.accept().await.unwrap();
            let stranger = door.unidentified.welcome(&stream, from.ip()).await.unwrap();
            door.clone().greeted(stream, from, stranger).await.unwrap();
        }
        assert!(door.lock().len() < 110, "{} servers", door.lock().len());
        door.close().await;
    }
}
