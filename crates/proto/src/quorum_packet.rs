//! What leader and learners tell each other on the quorum port.
//!
//! A stream is packets one after the other, without any length in front: type, zxid, data, authinfo.

use crate::{
    acl::Id,
    id::{Epoch, ServerId, SessionId, Zxid},
    jute::{JuteError, Reader, Writer, stored_text},
};
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The protocol that both sides speak (`0x10000`: the one with LEADERINFO).
pub const PROTOCOL_VERSION: i32 = 0x10000;
/// Nothing that a client's request carries has more identities; upstream sends a handful.
const IDS_MAX: usize = 10_000;

/// Who a learner says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnerInfo {
    /// Its number; `None` from an observer that has none.
    pub server: Option<ServerId>,
    /// Its protocol.
    pub protocol: i32,
    /// The version of the configuration that it uses.
    pub config_version: u64,
    /// It can judge session passwords that are made with a secret. Servers of other makes neither can nor say so, and do not
    /// look at what is said after the rest.
    pub knows_secrets: bool,
}

/// Ostler's own word behind a learner's information.
const KNOWS_SECRETS: i32 = i32::from_be_bytes(*b"Ostl");

/// A packet, by its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A client's write, or its sync, or the making or closing of a session, for the leader to decide on.
    Request {
        /// Whose.
        session: SessionId,
        /// The client's number for it.
        cxid: i32,
        /// The operation.
        code: i32,
        /// As the client sent it.
        body: Cow<'a, [u8]>,
        /// Who the client has proved to be.
        ids: Vec<Id>,
    },
    /// To be logged and acknowledged.
    Proposal {
        /// Its place.
        zxid: Zxid,
        /// Header, txn and digest, as they are logged.
        record: Cow<'a, [u8]>,
    },
    /// It is on the sender's disk.
    Ack(Zxid),
    /// A quorum has it.
    Commit(Zxid),
    /// A heartbeat.
    Ping {
        /// The leader's last proposal.
        zxid: Zxid,
        /// The learner's answer: sessions heard of since the last one, with their timeouts.
        touched: Option<Vec<(SessionId, i32)>>,
    },
    /// A client has come back with this session.
    Revalidate {
        /// Which.
        session: SessionId,
        /// The timeout that was agreed on, ms.
        timeout_ms: i32,
    },
    /// Whether it lives.
    Revalidated {
        /// Which.
        session: SessionId,
        /// The answer.
        valid: bool,
    },
    /// What came of a session was stopped, for its client has moved on to another server. Upstream does not know this; for
    /// Java it says that the session lives, which is so, and if nobody has asked that is nothing.
    SessionMoved(SessionId),
    /// All that was proposed before a forwarded sync has been sent.
    Sync,
    /// Proposal and commit in one, for observers.
    Inform {
        /// Its place.
        zxid: Zxid,
        /// As in a proposal.
        record: Cow<'a, [u8]>,
    },
    /// The commit of a reconfiguration.
    CommitAndActivate {
        /// Its place.
        zxid: Zxid,
        /// Who shall lead under it.
        leader: ServerId,
    },
    /// The same, for observers.
    InformAndActivate {
        /// Its place.
        zxid: Zxid,
        /// Who shall lead under it.
        leader: ServerId,
        /// As in a proposal.
        record: Cow<'a, [u8]>,
    },
    /// The history before is the leader's; its epoch begins when a quorum has acknowledged this.
    NewLeader {
        /// The epoch.
        epoch: Epoch,
        /// Its configuration.
        config: Cow<'a, str>,
    },
    /// A follower's first word.
    FollowerInfo {
        /// The highest epoch that it has accepted.
        accepted: Epoch,
        /// Who.
        info: LearnerInfo,
    },
    /// An observer's first word.
    ObserverInfo {
        /// The highest epoch that it has accepted.
        accepted: Epoch,
        /// Who.
        info: LearnerInfo,
    },
    /// The epoch has begun: clients may be served.
    UpToDate,
    /// What the learner has is the beginning of what follows.
    Diff(Zxid),
    /// Everything after this is to be taken off the log.
    Trunc(Zxid),
    /// A whole tree follows, then this zxid is the last.
    Snap(Zxid),
    /// The epoch that is proposed.
    LeaderInfo {
        /// Which.
        epoch: Epoch,
        /// The leader's protocol.
        protocol: i32,
    },
    /// The epoch is accepted.
    AckEpoch {
        /// The last transaction in the learner's log.
        last: Zxid,
        /// The epoch of the leader whose history it has; `None` if it had accepted the epoch before.
        current: Option<Epoch>,
    },
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A type that does not exist.
    #[error("there is no packet type {0}")]
    Type(i32),
    /// Data longer than the limit.
    #[error("a packet with {0} bytes of data")]
    Length(i32),
    /// Data that does not fit the type.
    #[error("the data of a packet of type {0} is malformed")]
    Data(i32),
}

/// What the bytes at the front of a stream are.
#[derive(Debug, PartialEq, Eq)]
pub enum PacketSplit<'a> {
    /// A whole packet of so many bytes.
    Packet(Packet<'a>, usize),
    /// More bytes are needed.
    Incomplete,
    /// The stream is broken.
    Bad(PacketError),
}

/// Looks at the front of `bytes` for a packet whose data have at most `limit` bytes. `to_leader` tells
/// apart what has one number in both directions.
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

type Parts<'a> = (i32, Zxid, Option<&'a [u8]>, Vec<Id>);

fn read_parts<'a>(r: &mut Reader<'a>, limit: usize) -> Result<Option<Parts<'a>>, PacketError> {
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

/// `None` where bytes are missing, `Some(None)` for null.
#[expect(clippy::option_option, reason = "missing and null are different things here")]
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

/// No zxid.
const NONE: i64 = -1;

/// A Java server that has no data, and is not told that this is right, says -1 for its epochs and its last zxid. It has
/// nothing; that its promise does not count it says by -1 for its current epoch.
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
            // Before 0x10000 there was no such packet; one without data is taken for the first.
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
    /// Old learners send less: nothing, only the number, or number and protocol.
    fn read(bytes: &[u8]) -> Result<LearnerInfo, JuteError> {
        let mut r = Reader::new(bytes);
        let server = if bytes.is_empty() { None } else { Some(ServerId(r.i64()?)) };
        let protocol = if bytes.len() >= 12 { r.i32()? } else { 0 };
        let config_version = if bytes.len() >= 20 { r.i64()? as u64 } else { 0 };
        let knows_secrets = bytes.len() >= 24 && r.i32()? == KNOWS_SECRETS;
        Ok(LearnerInfo { server, protocol, config_version, knows_secrets })
    }

    fn write(&self, out: &mut Vec<u8>, code: i32, accepted: Epoch) {
        let zxid = Zxid::new(accepted, 0).to_wire();
        let Some(server) = self.server else {
            return whole(out, code, zxid, None);
        };
        begin(out, code, zxid);
        out.length(if self.knows_secrets { 24 } else { 20 });
        out.i64(server.0);
        out.i32(self.protocol);
        out.i64(self.config_version as i64);
        if self.knows_secrets {
            out.i32(KNOWS_SECRETS);
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
    fn every_packet_survives_its_bytes_and_is_whole_only_at_its_end() {
        let ids = vec![Id::new("ip", "127.0.0.1")];
        let info =
            LearnerInfo { server: Some(ServerId(3)), protocol: 1, config_version: 2, knows_secrets: false };
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
            (
                Packet::ObserverInfo {
                    accepted: Epoch(4),
                    info: LearnerInfo { knows_secrets: true, ..info },
                },
                true,
            ),
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
    fn who_does_not_trust_that_it_has_nothing_has_nothing() {
        let info = LearnerInfo {
            server: Some(ServerId(3)),
            protocol: PROTOCOL_VERSION,
            config_version: 0,
            knows_secrets: false,
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
    fn broken_streams_are_told_before_memory_is_spent_on_them() {
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
