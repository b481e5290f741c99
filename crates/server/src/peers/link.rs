//! A connection of the quorum port: its packets go to the core, and what the core has queued goes out.

use super::{
    address_book::AddressBook,
    addresses,
    large_packets::{BufferShare, LargePackets},
    link_error::LinkError,
    link_writer::write_outbox,
    packet_batch::{BatchStop, take_packets},
    peer_outbox::PeerOutbox,
    peer_security::PeerSecurity,
    peer_stream::{PeerCertificate, PeerRead, PeerStream},
    tree_stream,
};
use crate::{driver::Driver, log_throttle::SharedLogBudget, unidentified::UnidentifiedPeer};
use ostler_proto::{
    quorum_packet::{Packet, PacketError, PacketSplit, split},
    stat::ExtendedTypes,
};
use ostler_server_core::Input;
use ostler_zab::leading::{AddressMatch, LinkId};
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{io::AsyncReadExt, time::timeout};

const READ_SIZE: usize = 256 << 10;
/// A read buffer that has become larger than this is shrunk once its packets are taken.
const KEPT_BUFFER_MAX: usize = 2 << 20;
/// A caller that has not sent its first packet by then is no learner.
const FIRST_PACKET_WITHIN: Duration = Duration::from_secs(10);
/// The limit of a packet's data in bytes until a learner has the history.
const DATA_MAX_AT_FIRST: usize = 4 << 10;
/// The limit of the bytes of an incomplete packet until a learner has the history.
const BYTES_MAX_AT_FIRST: usize = 16 << 10;
/// How often the core hears that a tree or a history keeps moving.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// A connection of the quorum port, for the task that serves it.
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) address: SocketAddr,
    pub(super) outbox: Arc<PeerOutbox>,
    pub(super) driver: Arc<Driver>,
    /// Whether the peer is a learner, and this server its leader or observer master.
    pub(super) to_leader: bool,
    /// Limits the log lines about learners; `None` for a leader, which this server has called.
    pub(super) callers_log: Option<Arc<SharedLogBudget>>,
    /// The limit of a packet's data in bytes.
    pub(super) data_max: usize,
    pub(super) large: Arc<LargePackets>,
    pub(super) book: Arc<AddressBook>,
    pub(super) security: Arc<PeerSecurity>,
    pub(super) types: ExtendedTypes,
}

impl Link {
    /// Serves the connection to its end. A learner is an unidentified peer until its first packet; `learner` is `None` for
    /// a leader.
    pub(super) async fn run(&self, stream: PeerStream, learner: Option<UnidentifiedPeer>) {
        let certificate = stream.certificate();
        let (read, write) = stream.into_split();
        let ended = tokio::select! {
            ended = self.read(read, learner.map(|learner| (learner, certificate))) => ended,
            ended = write_outbox(&self.outbox, write, self.progress()) => ended,
        };
        let (link, address) = (self.id.0, self.address);
        if let Err(error) = ended
            && let Some(ending) = self.callers_log.as_ref().map_or(Some(""), |log| log.take_line().ending())
        {
            if error.is_breach() {
                tracing::warn!(link, %address, %error, "a connection of the quorum port was closed{ending}");
            } else {
                tracing::info!(link, %address, %error, "a connection of the quorum port ended{ending}");
            }
        }
        self.driver.peer_gone(self.id);
    }

    /// A function to call for each piece of a tree or a history. It informs the core once in [`PROGRESS_EVERY`].
    fn progress(&self) -> impl FnMut() {
        let (driver, link, mut reported) = (self.driver.clone(), self.id, Instant::now());
        move || {
            if reported.elapsed() >= PROGRESS_EVERY {
                reported = Instant::now();
                driver.step(Input::StreamMoves { link });
            }
        }
    }

    async fn read(
        &self,
        mut read: PeerRead,
        learner: Option<(UnidentifiedPeer, Option<PeerCertificate>)>,
    ) -> Result<(), LinkError> {
        let mut buffer = Vec::new();
        let mut incoming = Incoming { is_known: !self.to_leader, share: self.large.new_share() };
        // The core watches a leader from the beginning, and a learner from its first packet on.
        if let Some((unidentified, certificate)) = learner {
            let first = self.first_packet(&mut buffer, &mut read);
            tokio::select! {
                // A caller whose first packet is here does not give way to callers that send nothing.
                biased;
                first = timeout(FIRST_PACKET_WITHIN, first) => first.map_err(|_| LinkError::Unidentified(FIRST_PACKET_WITHIN))??,
                () = unidentified.gives_way() => return Ok(()),
            }
            self.report_origin(&buffer, certificate.as_ref()).await?;
            drop(unidentified);
            self.packets(&mut buffer, &mut read, &mut incoming).await?;
        }
        loop {
            if incoming.is_known {
                buffer.reserve(READ_SIZE.saturating_sub(buffer.len()));
            }
            if read.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            self.packets(&mut buffer, &mut read, &mut incoming).await?;
            if buffer.capacity() > KEPT_BUFFER_MAX && buffer.len() < READ_SIZE {
                buffer.shrink_to(READ_SIZE);
            }
            incoming.share.fit(buffer.len()).await;
        }
    }

    /// Waits until the first packet is complete, or known to be malformed.
    async fn first_packet(&self, buffer: &mut Vec<u8>, read: &mut PeerRead) -> Result<(), LinkError> {
        while let PacketSplit::Incomplete = split(buffer, DATA_MAX_AT_FIRST, self.to_leader) {
            if buffer.len() > BYTES_MAX_AT_FIRST {
                return Err(LinkError::TooMuchAtFirst);
            }
            if read.read_buf(buffer).await? == 0 {
                return Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(())
    }

    /// Informs the core whether the learner calls from the address that the configuration has for the server id in its
    /// first packet.
    async fn report_origin(
        &self,
        first: &[u8],
        certificate: Option<&PeerCertificate>,
    ) -> Result<(), LinkError> {
        let info = match split(first, DATA_MAX_AT_FIRST, self.to_leader) {
            PacketSplit::Packet(Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }, _) => {
                info
            }
            _ => return Ok(()),
        };
        let member = info.server.filter(|id| self.book.is_member(*id)).and_then(|id| self.book.find(id));
        if let Some(id) = info.server {
            self.security.check_caller(certificate, id, member.as_ref())?;
        }
        let origin = match member {
            Some(member) => addresses::match_address(&member, self.address.ip()).await,
            None => AddressMatch::Unclear,
        };
        self.driver.step(Input::LearnerFrom { link: self.id, place: origin });
        Ok(())
    }

    /// Takes the whole packets off the front of `buffer`.
    async fn packets(
        &self,
        buffer: &mut Vec<u8>,
        read: &mut PeerRead,
        incoming: &mut Incoming,
    ) -> Result<(), LinkError> {
        let mut used = 0;
        loop {
            let data_max = if incoming.is_known { self.data_max } else { DATA_MAX_AT_FIRST };
            let batch = self
                .driver
                .peer_packets(self.id, |step| take_packets(&buffer[used..], data_max, self.to_leader, step));
            used += batch.used;
            match batch.stopped_by {
                None if !incoming.is_known && buffer.len() - used > BYTES_MAX_AT_FIRST => {
                    incoming.is_known = self.driver.has_joined(self.id);
                    if !incoming.is_known {
                        return Err(LinkError::TooMuchAtFirst);
                    }
                }
                None => break,
                Some(BatchStop::Malformed(PacketError::Length(_)))
                    if !incoming.is_known && self.driver.has_joined(self.id) =>
                {
                    incoming.is_known = true;
                }
                Some(BatchStop::Malformed(error)) => return Err(error.into()),
                Some(BatchStop::Tree(zxid)) => {
                    let rest = buffer.split_off(used);
                    buffer.clear();
                    used = 0;
                    self.driver.step(Input::SnapBegins { link: self.id });
                    let (tree, after) =
                        tree_stream::receive(rest, read, zxid, self.types, self.progress()).await?;
                    self.driver.step(Input::Snap { link: self.id, tree: Box::new(tree) });
                    *buffer = after;
                }
                Some(BatchStop::LogCut) => self.driver.until_reloaded().await,
                Some(BatchStop::TurnOver) => tokio::task::yield_now().await,
            }
        }
        buffer.drain(..used);
        Ok(())
    }
}

/// How much may come on a connection.
struct Incoming {
    /// The peer is a learner that has the history, or was connected to as the leader. Others may send little.
    is_known: bool,
    share: BufferShare,
}
