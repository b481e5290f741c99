//! The packets between leader and learners on the quorum port.
//!
//! A stream is a sequence of packets, each of type, zxid, data and identities. A packet has no length in front.

use crate::{
    acl::Id,
    id::{Epoch, ServerId, SessionId, Zxid},
    jute::{JuteError, Reader, Writer, stored_text},
};
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The protocol version of this server. Since this version there is LEADERINFO.
pub const PROTOCOL_VERSION: i32 = 0x10000;
/// The highest number of identities in a packet. No client has as many.
const IDS_MAX: usize = 10_000;

/// A learner's information about itself, in its first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnerInfo {
    /// The learner's server id; `None` from an observer that has none.
    pub server: Option<ServerId>,
    /// The learner's protocol version.
    pub protocol: i32,
    /// The version of the configuration that the learner uses.
    pub config_version: u64,
    /// Whether the learner can check session passwords that are made with a secret. Only Ostler can, and Java ignores
    /// the bytes that say it.
    pub knows_secrets: bool,
    /// Whether the learner can move on to a later epoch on the same connection, when the leader's counter ends. Only
    /// Ostler can, and Java ignores the bytes that say it.
    pub moves_in_place: bool,
}

/// The number that Ostler appends to its information for [`LearnerInfo::knows_secrets`].
const KNOWS_SECRETS: i32 = i32::from_be_bytes(*b"Ostl");
/// The number that Ostler appends after it, or after 0, for [`LearnerInfo::moves_in_place`].
const MOVES_IN_PLACE: i32 = i32::from_be_bytes(*b"Epoc");

/// A packet, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A learner forwards a client's write or sync, or the begin or end of a session, to the leader.
    Request {
        /// The client's session.
        session: SessionId,
        /// The xid that the client gave to the request.
        cxid: i32,
        /// The operation code.
        code: i32,
        /// The body of the request, as the client sent it.
        body: Cow<'a, [u8]>,
        /// The identities that the client has proved.
        ids: Vec<Id>,
    },
    /// The leader proposes a transaction. The follower logs and acknowledges it.
    Proposal {
        /// The zxid of the transaction.
        zxid: Zxid,
        /// Header, txn and digest, as they are logged.
        record: Cow<'a, [u8]>,
    },
    /// The sender has the transaction with this zxid on its disk.
    Ack(Zxid),
    /// A quorum has acknowledged the transaction with this zxid.
    Commit(Zxid),
    /// A heartbeat of the leader, or a learner's answer to it.
    Ping {
        /// The zxid of the leader's last proposal.
        zxid: Zxid,
        /// In the answer: the sessions that were heard of since the last answer, with their timeouts in ms. `None` in
        /// the leader's heartbeat.
        touched: Option<Vec<(SessionId, i32)>>,
    },
    /// A learner asks whether a session lives, since its client has connected to the learner.
    Revalidate {
        /// The session that the client resumes.
        session: SessionId,
        /// The negotiated timeout in ms.
        timeout_ms: i32,
    },
    /// The leader's answer to [`Packet::Revalidate`].
    Revalidated {
        /// The session that the learner asked about.
        session: SessionId,
        /// Whether the session lives.
        valid: bool,
    },
    /// A request of this session was stopped, because the client has moved to another server. Upstream has no such
    /// packet. Java reads it as an answer that the session lives, which is true, and ignores an answer that it did not
    /// ask for.
    SessionMoved(SessionId),
    /// The answer to a forwarded sync: everything that was proposed before it has been sent.
    Sync,
    /// Proposal and commit in one packet, for observers.
    Inform {
        /// The zxid of the transaction.
        zxid: Zxid,
        /// Header, txn and digest, as in a proposal.
        record: Cow<'a, [u8]>,
    },
    /// The commit of a reconfiguration. From here on the new configuration counts.
    CommitAndActivate {
        /// The zxid of the transaction.
        zxid: Zxid,
        /// The server that will lead in the new configuration.
        leader: ServerId,
    },
    /// Proposal and commit of a reconfiguration in one packet, for observers.
    InformAndActivate {
        /// The zxid of the transaction.
        zxid: Zxid,
        /// The server that will lead in the new configuration.
        leader: ServerId,
        /// Header, txn and digest, as in a proposal.
        record: Cow<'a, [u8]>,
    },
    /// The learner has got the leader's history. The epoch begins when a quorum has acknowledged this packet.
    NewLeader {
        /// The new epoch.
        epoch: Epoch,
        /// The text of the leader's configuration.
        config: Cow<'a, str>,
    },
    /// The first packet of a follower.
    FollowerInfo {
        /// The follower's accepted epoch.
        accepted: Epoch,
        /// The follower's information about itself.
        info: LearnerInfo,
    },
    /// The first packet of an observer.
    ObserverInfo {
        /// The observer's accepted epoch.
        accepted: Epoch,
        /// The observer's information about itself.
        info: LearnerInfo,
    },
    /// The epoch has begun. The learner may serve clients.
    UpToDate,
    /// The learner's log is a beginning of the leader's history. The missing transactions up to this zxid follow.
    Diff(Zxid),
    /// The learner must cut its log after this zxid.
    Trunc(Zxid),
    /// A whole tree follows, with this zxid as the last.
    Snap(Zxid),
    /// The leader proposes its new epoch.
    LeaderInfo {
        /// The proposed epoch.
        epoch: Epoch,
        /// The leader's protocol version.
        protocol: i32,
    },
    /// The learner accepts the proposed epoch.
    AckEpoch {
        /// The last transaction in the learner's log.
        last: Zxid,
        /// The learner's current epoch. `None` if it had accepted the proposed epoch before: then it does not count for
        /// the quorum.
        current: Option<Epoch>,
    },
}

/// The reason why a stream cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The packet type is unknown.
    #[error("there is no packet type {0}")]
    Type(i32),
    /// The data, or an identity, is longer than the limit.
    #[error("a packet with {0} bytes of data")]
    Length(i32),
    /// The data does not have the form of the packet's type.
    #[error("the data of a packet of type {0} is malformed")]
    Data(i32),
}

/// The result of looking for a packet at the front of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum PacketSplit<'a> {
    /// A whole packet, and its size in bytes.
    Packet(Packet<'a>, usize),
    /// The packet is not complete yet.
    Incomplete,
    /// The bytes are not a packet. The connection must be closed.
    Bad(PacketError),
}

/// Looks at the front of `bytes` for a packet with at most `limit` bytes of data. `to_leader` is the direction: some
/// types have the same number in both directions.
pub fn split(bytes: &[u8], limit: usize, to_leader: bool) -> PacketSplit<'_> {
    let mut r = Reader::new(bytes);
    match read_parts(&mut r, limit) {
        Ok(Some((code, zxid, data, ids))) => match Packet::decode(code, zxid, data, ids, to_leader) {
            Ok(packet) => PacketSplit::Packet(packet, bytes.len() - r.rest().len()),
            Err(JuteError::UnknownType(code)) => PacketSplit::Bad(PacketError::Type(code)),
            Err(_) => PacketSplit::Bad(PacketError::Data(code)),
        },
        Ok(None) => PacketSplit::Incomplete,
        Err(error) => PacketSplit::Bad(error),
    }
}

/// Type, zxid, data and identities of a packet.
type RawPacket<'a> = (i32, Zxid, Option<&'a [u8]>, Vec<Id>);

fn read_parts<'a>(r: &mut Reader<'a>, limit: usize) -> Result<Option<RawPacket<'a>>, PacketError> {
    let (Ok(code), Ok(zxid)) = (r.i32(), r.i64()) else { return Ok(None) };
    if !(REQUEST..=INFORMANDACTIVATE).contains(&code) {
        return Err(PacketError::Type(code));
    }
    let Some(data) = read_buffer(r, limit)? else { return Ok(None) };
    let Ok(count) = r.i32() else { return Ok(None) };
    if count < -1 || count as i64 > IDS_MAX as i64 {
        return Err(PacketError::Data(code));
    }
    let mut ids = Vec::new();
    for _ in 0..count.max(0) {
        let Some(scheme) = read_buffer(r, limit)? else { return Ok(None) };
        let Some(id) = read_buffer(r, limit)? else { return Ok(None) };
        let text = |bytes: Option<&[u8]>| stored_text(bytes.unwrap_or_default()).into_owned();
        ids.push(Id { scheme: text(scheme), id: text(id) });
    }
    Ok(Some((code, Zxid::from_wire(zxid), data, ids)))
}

/// `None` if bytes are missing, `Some(None)` for null.
#[expect(clippy::option_option, reason = "incomplete and null are different results")]
fn read_buffer<'a>(r: &mut Reader<'a>, limit: usize) -> Result<Option<Option<&'a [u8]>>, PacketError> {
    let Ok(length) = r.i32() else { return Ok(None) };
    match usize::try_from(length) {
        Err(_) if length == -1 => Ok(Some(None)),
        Ok(size) if size <= limit => Ok(r.take(size).ok().map(Some)),
        _ => Err(PacketError::Length(length)),
    }
}

const REQUEST: i32 = 1;
const PROPOSAL: i32 = 2;
const ACK: i32 = 3;
const COMMIT: i32 = 4;
const PING: i32 = 5;
const REVALIDATE: i32 = 6;
const SYNC: i32 = 7;
const INFORM: i32 = 8;
const COMMITANDACTIVATE: i32 = 9;
const NEWLEADER: i32 = 10;
const FOLLOWERINFO: i32 = 11;
const UPTODATE: i32 = 12;
const DIFF: i32 = 13;
const TRUNC: i32 = 14;
const SNAP: i32 = 15;
const OBSERVERINFO: i32 = 16;
const LEADERINFO: i32 = 17;
const ACKEPOCH: i32 = 18;
const INFORMANDACTIVATE: i32 = 19;

/// The zxid of packets that have none.
const NONE: i64 = -1;

/// A Java server without data that does not trust its empty database sends -1 for its epochs and its last zxid. It has
/// no history, so this reads as zero. Its promise does not count: that follows from -1 for its current epoch.
fn known(zxid: Zxid) -> Zxid {
    if zxid.to_wire() < 0 { Zxid::ZERO } else { zxid }
}

impl<'a> Packet<'a> {
    fn decode(
        code: i32,
        zxid: Zxid,
        data: Option<&'a [u8]>,
        ids: Vec<Id>,
        to_leader: bool,
    ) -> Result<Packet<'a>, JuteError> {
        let bytes = data.unwrap_or_default();
        let mut r = Reader::new(bytes);
        Ok(match code {
            REQUEST => {
                let (session, cxid, code) = (SessionId(r.i64()?), r.i32()?, r.i32()?);
                Packet::Request { session, cxid, code, body: r.rest().into(), ids }
            }
            PROPOSAL => Packet::Proposal { zxid, record: bytes.into() },
            ACK => Packet::Ack(zxid),
            COMMIT => Packet::Commit(zxid),
            PING if to_leader => {
                let mut touched = Vec::with_capacity(bytes.len() / 12);
                while !r.rest().is_empty() {
                    touched.push((SessionId(r.i64()?), r.i32()?));
                }
                Packet::Ping { zxid, touched: Some(touched) }
            }
            PING => Packet::Ping { zxid, touched: None },
            REVALIDATE if to_leader => {
                Packet::Revalidate { session: SessionId(r.i64()?), timeout_ms: r.i32()? }
            }
            REVALIDATE => {
                let (session, valid) = (SessionId(r.i64()?), r.bool()?);
                match r.rest() {
                    [] => Packet::Revalidated { session, valid },
                    _ => Packet::SessionMoved(session),
                }
            }
            SYNC => Packet::Sync,
            INFORM => Packet::Inform { zxid, record: bytes.into() },
            COMMITANDACTIVATE => Packet::CommitAndActivate { zxid, leader: ServerId(r.i64()?) },
            INFORMANDACTIVATE => {
                Packet::InformAndActivate { zxid, leader: ServerId(r.i64()?), record: r.rest().into() }
            }
            NEWLEADER => Packet::NewLeader { epoch: zxid.epoch(), config: String::from_utf8_lossy(bytes) },
            FOLLOWERINFO => {
                Packet::FollowerInfo { accepted: known(zxid).epoch(), info: LearnerInfo::read(bytes)? }
            }
            OBSERVERINFO => {
                Packet::ObserverInfo { accepted: known(zxid).epoch(), info: LearnerInfo::read(bytes)? }
            }
            UPTODATE => Packet::UpToDate,
            DIFF => Packet::Diff(zxid),
            TRUNC => Packet::Trunc(zxid),
            SNAP => Packet::Snap(zxid),
            // Older protocols have no such packet. Without data the version is taken to be the first that has it.
            LEADERINFO => {
                let protocol = if bytes.is_empty() { PROTOCOL_VERSION } else { r.i32()? };
                Packet::LeaderInfo { epoch: zxid.epoch(), protocol }
            }
            ACKEPOCH => {
                Packet::AckEpoch { last: known(zxid), current: u32::try_from(r.i32()?).ok().map(Epoch) }
            }
            _ => return Err(JuteError::UnknownType(code)),
        })
    }

    /// Appends the packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Packet::Request { session, cxid, code, body, ids } => {
                begin(out, REQUEST, NONE);
                out.length(16 + body.len());
                out.i64(session.0);
                out.i32(*cxid);
                out.i32(*code);
                out.raw(body);
                out.length(ids.len());
                for id in ids {
                    out.string(&id.scheme);
                    out.string(&id.id);
                }
            }
            Packet::Proposal { zxid, record } => whole(out, PROPOSAL, zxid.to_wire(), Some(record)),
            Packet::Ack(zxid) => whole(out, ACK, zxid.to_wire(), None),
            Packet::Commit(zxid) => whole(out, COMMIT, zxid.to_wire(), None),
            Packet::Ping { zxid, touched: None } => whole(out, PING, zxid.to_wire(), None),
            Packet::Ping { zxid, touched: Some(touched) } => {
                begin(out, PING, zxid.to_wire());
                out.length(12 * touched.len());
                for (session, timeout_ms) in touched {
                    out.i64(session.0);
                    out.i32(*timeout_ms);
                }
                out.i32(-1);
            }
            Packet::Revalidate { session, timeout_ms } => {
                begin(out, REVALIDATE, NONE);
                out.length(12);
                out.i64(session.0);
                out.i32(*timeout_ms);
                out.i32(-1);
            }
            Packet::Revalidated { session, valid } => {
                begin(out, REVALIDATE, NONE);
                out.length(9);
                out.i64(session.0);
                out.bool(*valid);
                out.i32(-1);
            }
            Packet::SessionMoved(session) => {
                begin(out, REVALIDATE, NONE);
                out.length(10);
                out.i64(session.0);
                out.bool(true);
                out.bool(true);
                out.i32(-1);
            }
            Packet::Sync => whole(out, SYNC, 0, None),
            Packet::Inform { zxid, record } => whole(out, INFORM, zxid.to_wire(), Some(record)),
            Packet::CommitAndActivate { zxid, leader } => {
                whole(out, COMMITANDACTIVATE, zxid.to_wire(), Some(&leader.0.to_be_bytes()));
            }
            Packet::InformAndActivate { zxid, leader, record } => {
                begin(out, INFORMANDACTIVATE, zxid.to_wire());
                out.length(8 + record.len());
                out.i64(leader.0);
                out.raw(record);
                out.i32(-1);
            }
            Packet::NewLeader { epoch, config } => {
                whole(out, NEWLEADER, Zxid::new(*epoch, 0).to_wire(), Some(config.as_bytes()));
            }
            Packet::FollowerInfo { accepted, info } => info.write(out, FOLLOWERINFO, *accepted),
            Packet::ObserverInfo { accepted, info } => info.write(out, OBSERVERINFO, *accepted),
            Packet::UpToDate => whole(out, UPTODATE, NONE, None),
            Packet::Diff(zxid) => whole(out, DIFF, zxid.to_wire(), None),
            Packet::Trunc(zxid) => whole(out, TRUNC, zxid.to_wire(), None),
            Packet::Snap(zxid) => whole(out, SNAP, zxid.to_wire(), None),
            Packet::LeaderInfo { epoch, protocol } => {
                let zxid = Zxid::new(*epoch, 0).to_wire();
                whole(out, LEADERINFO, zxid, Some(&protocol.to_be_bytes()));
            }
            Packet::AckEpoch { last, current } => {
                let current = current.map_or(-1, |epoch| epoch.0 as i32);
                whole(out, ACKEPOCH, last.to_wire(), Some(&current.to_be_bytes()));
            }
        }
    }
}

fn begin(out: &mut Vec<u8>, code: i32, zxid: i64) {
    out.i32(code);
    out.i64(zxid);
}

fn whole(out: &mut Vec<u8>, code: i32, zxid: i64, data: Option<&[u8]>) {
    begin(out, code, zxid);
    out.buffer(data);
    out.i32(-1);
}

impl LearnerInfo {
    /// Older learners send nothing, the server id only, or server id and protocol version.
    fn read(bytes: &[u8]) -> Result<LearnerInfo, JuteError> {
        let mut r = Reader::new(bytes);
        let server = if bytes.is_empty() { None } else { Some(ServerId(r.i64()?)) };
        let protocol = if bytes.len() >= 12 { r.i32()? } else { 0 };
        let config_version = if bytes.len() >= 20 { r.i64()? as u64 } else { 0 };
        let knows_secrets = bytes.len() >= 24 && r.i32()? == KNOWS_SECRETS;
        let moves_in_place = bytes.len() >= 28 && r.i32()? == MOVES_IN_PLACE;
        Ok(LearnerInfo { server, protocol, config_version, knows_secrets, moves_in_place })
    }

    fn write(&self, out: &mut Vec<u8>, code: i32, accepted: Epoch) {
        let zxid = Zxid::new(accepted, 0).to_wire();
        let Some(server) = self.server else {
            return whole(out, code, zxid, None);
        };
        begin(out, code, zxid);
        // Earlier versions of Ostler look for the first number only.
        let numbers = match (self.knows_secrets, self.moves_in_place) {
            (false, false) => 0,
            (true, false) => 1,
            (_, true) => 2,
        };
        out.length(20 + 4 * numbers);
        out.i64(server.0);
        out.i32(self.protocol);
        out.i64(self.config_version as i64);
        if numbers > 0 {
            out.i32(if self.knows_secrets { KNOWS_SECRETS } else { 0 });
        }
        if self.moves_in_place {
            out.i32(MOVES_IN_PLACE);
        }
        out.i32(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const LIMIT: usize = 1 << 20;

    fn bytes(packet: &Packet<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        packet.write(&mut out);
        out
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn the_handshake_has_the_bytes_of_java() {
        let info = LearnerInfo {
            server: Some(ServerId(3)),
            protocol: PROTOCOL_VERSION,
            config_version: 0,
            knows_secrets: false,
            moves_in_place: false,
        };
        for (packet, expected) in [
            (
                Packet::FollowerInfo { accepted: Epoch(0), info },
                "0000000b 0000000000000000 00000014 0000000000000003 00010000 0000000000000000 ffffffff",
            ),
            (
                Packet::LeaderInfo { epoch: Epoch(1), protocol: PROTOCOL_VERSION },
                "00000011 0000000100000000 00000004 00010000 ffffffff",
            ),
            (
                Packet::AckEpoch { last: Zxid(5), current: Some(Epoch(0)) },
                "00000012 0000000000000005 00000004 00000000 ffffffff",
            ),
            (Packet::Diff(Zxid(5)), "0000000d 0000000000000005 ffffffff ffffffff"),
            (
                Packet::NewLeader { epoch: Epoch(1), config: "v".into() },
                "0000000a 0000000100000000 00000001 76 ffffffff",
            ),
            (Packet::Ack(Zxid::new(Epoch(1), 0)), "00000003 0000000100000000 ffffffff ffffffff"),
            (Packet::UpToDate, "0000000c ffffffffffffffff ffffffff ffffffff"),
            (Packet::Ping { zxid: Zxid(7), touched: None }, "00000005 0000000000000007 ffffffff ffffffff"),
            (
                Packet::Ping { zxid: Zxid(7), touched: Some(vec![]) },
                "00000005 0000000000000007 00000000 ffffffff",
            ),
        ] {
            assert_eq!(bytes(&packet), hex(expected), "{packet:?}");
        }
    }

    #[test]
    fn what_only_ostler_says_comes_after_the_bytes_of_java_and_in_a_fixed_order() {
        let java = "0000000000000003 00010000 0000000000000000";
        for (knows_secrets, moves_in_place, more) in
            [(true, false, "4f73746c"), (false, true, "00000000 45706f63"), (true, true, "4f73746c 45706f63")]
        {
            let info = LearnerInfo {
                server: Some(ServerId(3)),
                protocol: PROTOCOL_VERSION,
                config_version: 0,
                knows_secrets,
                moves_in_place,
            };
            let expected = hex(&alloc::format!("{java} {more}"));
            let written = bytes(&Packet::FollowerInfo { accepted: Epoch(0), info });
            assert_eq!(written[16..16 + expected.len()], expected);
        }
    }

    #[test]
    fn every_packet_is_read_as_it_was_written_and_incomplete_before_its_end() {
        let ids = vec![Id::new("ip", "127.0.0.1")];
        let info = LearnerInfo {
            server: Some(ServerId(3)),
            protocol: 1,
            config_version: 2,
            knows_secrets: false,
            moves_in_place: false,
        };
        let of = |knows_secrets, moves_in_place| LearnerInfo { knows_secrets, moves_in_place, ..info };
        let (zxid, leader, session) = (Zxid(9), ServerId(2), SessionId(8));
        let record = || Cow::from(&b"record"[..]);
        let touched = Some(vec![(session, 4000)]);
        for (packet, to_leader) in [
            (Packet::Request { session, cxid: 1, code: 5, body: record(), ids }, true),
            (Packet::Proposal { zxid, record: record() }, false),
            (Packet::Ack(zxid), true),
            (Packet::Commit(zxid), false),
            (Packet::Ping { zxid, touched }, true),
            (Packet::Ping { zxid, touched: None }, false),
            (Packet::Revalidate { session, timeout_ms: 5 }, true),
            (Packet::Revalidated { session, valid: true }, false),
            (Packet::SessionMoved(session), false),
            (Packet::Sync, false),
            (Packet::Inform { zxid, record: record() }, false),
            (Packet::CommitAndActivate { zxid, leader }, false),
            (Packet::InformAndActivate { zxid, leader, record: record() }, false),
            (Packet::NewLeader { epoch: Epoch(4), config: "version=0".into() }, false),
            (Packet::FollowerInfo { accepted: Epoch(4), info }, true),
            (Packet::ObserverInfo { accepted: Epoch(4), info }, true),
            (Packet::ObserverInfo { accepted: Epoch(4), info: of(true, false) }, true),
            (Packet::FollowerInfo { accepted: Epoch(4), info: of(false, true) }, true),
            (Packet::FollowerInfo { accepted: Epoch(4), info: of(true, true) }, true),
            (Packet::UpToDate, false),
            (Packet::Diff(zxid), false),
            (Packet::Trunc(zxid), false),
            (Packet::Snap(zxid), false),
            (Packet::LeaderInfo { epoch: Epoch(4), protocol: 1 }, false),
            (Packet::AckEpoch { last: zxid, current: None }, true),
        ] {
            let mut bytes = bytes(&packet);
            let whole = bytes.len();
            for end in 0..whole {
                assert_eq!(split(&bytes[..end], LIMIT, to_leader), PacketSplit::Incomplete, "{packet:?}");
            }
            bytes.extend(b"next");
            assert_eq!(split(&bytes, LIMIT, to_leader), PacketSplit::Packet(packet, whole));
        }
    }

    #[test]
    fn negative_epochs_and_zxids_of_an_untrusted_empty_server_read_as_zero() {
        let info = LearnerInfo {
            server: Some(ServerId(3)),
            protocol: PROTOCOL_VERSION,
            config_version: 0,
            knows_secrets: false,
            moves_in_place: false,
        };
        for (text, packet) in [
            (
                "0000000b ffffffff00000000 00000014 0000000000000003 00010000 0000000000000000 ffffffff",
                Packet::FollowerInfo { accepted: Epoch(0), info },
            ),
            (
                "00000012 ffffffffffffffff 00000004 ffffffff ffffffff",
                Packet::AckEpoch { last: Zxid::ZERO, current: None },
            ),
        ] {
            let bytes = hex(text);
            assert_eq!(split(&bytes, LIMIT, true), PacketSplit::Packet(packet, bytes.len()));
        }
    }

    #[test]
    fn malformed_packets_are_refused_before_they_are_complete() {
        for (text, error) in [
            ("00000014 0000000000000000", PacketError::Type(20)),
            ("00000002 0000000000000000 7fffffff", PacketError::Length(i32::MAX)),
            ("00000002 0000000000000000 fffffffe", PacketError::Length(-2)),
            ("00000003 0000000000000000 ffffffff 7fffffff", PacketError::Data(3)),
            ("00000005 0000000000000000 00000003 000000 ffffffff", PacketError::Data(5)),
        ] {
            assert_eq!(split(&hex(text), LIMIT, true), PacketSplit::Bad(error), "{text}");
        }
    }
}
