//! The quorum port: learners call here; and the way to the leader's.

use super::{
    address_book::AddressBook,
    addresses::{self, Port},
    link::Link,
    tasks::Tasks,
};
use crate::{config::EnsembleSettings, driver::Driver};
use ostler_proto::{
    id::{ServerId, Zxid},
    stat::ExtendedTypes,
};
use ostler_server_core::{Input, LogPart, effect::Record};
use ostler_storage::{
    StorageError, disk::Disk, folders::DataFolders, snapshot::find_snapshots, txnlog::LogReader,
};
use ostler_zab::leading::LinkId;
use std::{
    io,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};
use tokio::net::{TcpListener, TcpStream};

/// Between two attempts to reach a leader that has just been elected.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// A leader that refuses for so long is none.
const REFUSED_FOR: Duration = Duration::from_millis(500);

/// This server's end of all connections between leader and learners.
pub(crate) struct QuorumDoor {
    settings: EnsembleSettings,
    book: Arc<AddressBook>,
    disk: Arc<dyn Disk>,
    folders: DataFolders,
    types: ExtendedTypes,
    data_max: usize,
    tasks: Tasks,
    driver: OnceLock<Weak<Driver>>,
}

impl QuorumDoor {
    pub(crate) fn new(
        settings: EnsembleSettings,
        book: Arc<AddressBook>,
        (disk, folders): (Arc<dyn Disk>, DataFolders),
        types: ExtendedTypes,
        frame_max: usize,
    ) -> Arc<QuorumDoor> {
        Arc::new(QuorumDoor {
            settings,
            book,
            disk,
            folders,
            types,
            // A record is a request and what the servers add to it; a multi of many may grow.
            data_max: frame_max.saturating_mul(2).max(64 << 20),
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
        match self.book.find(self.settings.me) {
            Some(own) => addresses::listen(&own, Port::Quorum, self.settings.listen_on_all).await,
            None => Ok(Vec::new()),
        }
    }

    /// Takes learners' connections until it is dropped.
    pub(crate) async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let _ = stream.set_nodelay(true);
                    let Some(link) = self.link(true) else { return };
                    tracing::debug!(%from, link = link.id.0, "a learner calls");
                    self.tasks.spawn(async move { link.run(stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "the quorum port takes no connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn link(&self, to_leader: bool) -> Option<Link> {
        let driver = self.driver()?;
        let (id, outbox) = driver.add_link();
        Some(Link { id, outbox, driver, to_leader, data_max: self.data_max, types: self.types })
    }

    /// Connects to the leader, and tells the core how that went. Never blocks.
    pub(crate) fn dial(self: &Arc<Self>, term: u64, leader: ServerId) {
        let door = self.clone();
        self.tasks.spawn(async move {
            let connected = door.connect(leader).await;
            let Some(driver) = door.driver() else { return };
            match connected {
                Ok(stream) => {
                    let Some(link) = door.link(false) else { return };
                    driver.step(Input::LeaderLink { term, link: link.id });
                    link.run(stream).await;
                }
                Err(error) => {
                    tracing::warn!(server = leader.0, %error, "the leader cannot be reached");
                    driver.step(Input::LeaderUnreachable { term });
                }
            }
        });
    }

    async fn connect(&self, leader: ServerId) -> io::Result<TcpStream> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "it is not in the configuration");
        let server = self.book.find(leader).ok_or_else(unknown)?;
        let within = Duration::from_millis(self.settings.connect_timeout_ms.into());
        let begun = Instant::now();
        loop {
            match addresses::connect(&server, Port::Quorum, within).await {
                Err(_) if begun.elapsed() < REFUSED_FOR => tokio::time::sleep(AGAIN_AFTER).await,
                done => return done,
            }
        }
    }

    /// Reads a part of the log for a learner. Never blocks.
    pub(crate) fn read_log(self: &Arc<Self>, term: u64, link: LinkId, after: Zxid, through: Zxid) {
        let door = self.clone();
        self.tasks.spawn_blocking(move || {
            let read = door.log_part(after, through).unwrap_or_else(|error| {
                tracing::warn!(%error, "the log cannot be read for a learner, which gets the whole tree");
                None
            });
            if let Some(driver) = door.driver() {
                driver.step(Input::LogRead { link, term, read });
            }
        });
    }

    /// `None` if the log does not reach back so far, or is more to send than a snapshot.
    fn log_part(&self, after: Zxid, through: Zxid) -> Result<Option<LogPart>, StorageError> {
        let Some(percent) = self.settings.snapshot_size_factor else { return Ok(None) };
        let newest = find_snapshots(&*self.disk, &self.folders.snapshots)?.into_iter().next();
        let size = newest.and_then(|file| std::fs::metadata(file.path).ok()).map_or(0, |data| data.len());
        let limit = (size * u64::from(percent) / 100).max(1 << 20);
        // One before shows whether the learner's last is a record here.
        let mut reader = LogReader::open(&*self.disk, &self.folders.logs, Zxid(after.0.saturating_sub(1)))?;
        let (mut part, mut bytes) = (LogPart { before: None, records: Vec::new() }, 0);
        while let Some(record) = reader.next_record()? {
            if record.zxid > through {
                break;
            }
            if record.zxid <= after {
                part.before = Some(record.zxid);
                continue;
            }
            bytes += record.bytes.len() as u64;
            if bytes > limit {
                return Ok(None);
            }
            let zxid = record.zxid;
            part.records.push((zxid, Record(record.bytes.into())));
            // To find the end of the log would be to read all the space that is reserved behind it.
            if zxid == through {
                break;
            }
        }
        let reaches =
            part.before == Some(after) && part.records.last().is_some_and(|(zxid, _)| *zxid == through);
        Ok(reaches.then_some(part))
    }
}
