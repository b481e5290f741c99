//! A znode's Stat as it is stored and hashed into the digest, and as clients see it.

use crate::{
    id::{SessionId, Zxid},
    jute::{Reader, Result, Writer},
};
use alloc::vec::Vec;

/// The longest TTL of a znode, in ms: 40 bits.
pub const TTL_MAX_MS: i64 = 0x00ff_ffff_ffff;
const CONTAINER: i64 = i64::MIN;
const TTL_MARK: u64 = 0xff00_0000_0000_0000;

/// The stored owner field. It has the session of an ephemeral, the mark of a container, or the TTL of a TTL znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EphemeralOwner(pub i64);

/// The kind of a znode, as its owner field tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// The znode stays until a client deletes it.
    Persistent,
    /// The znode is deleted with this session.
    Ephemeral(SessionId),
    /// The znode is deleted some time after its last child.
    Container,
    /// The znode is deleted if it has no children and is not changed for this time, in ms.
    Ttl(i64),
}

/// How owner fields with a set top byte are read (`extendedTypesEnabled`, `emulate353TTLNodes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtendedTypes {
    /// Whether there are TTL znodes.
    pub enabled: bool,
    /// Whether owner fields of ZooKeeper 3.5.3 are TTLs too. They have the top bit alone set.
    pub emulate_353: bool,
}

impl ExtendedTypes {
    /// The greatest server id that the ensemble may have. The server id is the top byte of session ids, and with a
    /// greater one an ephemeral would be taken for a TTL znode and outlive its session. `None` without TTL znodes: no
    /// limit.
    pub fn server_id_max(self) -> Option<i64> {
        self.enabled.then_some(if self.emulate_353 { 0x7f } else { 0xfe })
    }

    /// Whether a server may have this id, see [`ExtendedTypes::server_id_max`].
    pub fn allows_server(self, id: i64) -> bool {
        self.server_id_max().is_none_or(|max| (0..=max).contains(&id))
    }
}

impl EphemeralOwner {
    /// The owner field of a persistent znode.
    pub const NONE: EphemeralOwner = EphemeralOwner(0);
    /// The owner field of a container.
    pub const CONTAINER: EphemeralOwner = EphemeralOwner(CONTAINER);

    /// The owner field of a TTL znode. `ttl_ms` must be within 1..=[`TTL_MAX_MS`].
    pub fn ttl(ttl_ms: i64) -> EphemeralOwner {
        EphemeralOwner((TTL_MARK | ttl_ms as u64) as i64)
    }

    /// The kind of the znode with this owner field.
    pub fn kind(self, types: ExtendedTypes) -> NodeKind {
        match self.0 {
            0 => NodeKind::Persistent,
            CONTAINER => NodeKind::Container,
            raw if types.enabled && types.emulate_353 && raw < 0 => NodeKind::Ttl(raw & TTL_MAX_MS),
            // Bits 40 to 55 are reserved and 0 in a TTL owner. Other values would be sessions of server 255, which the
            // configuration forbids if there are TTL znodes.
            raw if types.enabled && raw as u64 & TTL_MARK == TTL_MARK => NodeKind::Ttl(raw & TTL_MAX_MS),
            raw => NodeKind::Ephemeral(SessionId(raw)),
        }
    }
}

/// The Stat of a znode as snapshots store it and digests include it: 60 bytes.
///
/// Packed, so that it takes 60 bytes in memory too: each of a million znodes has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, packed(4))]
pub struct StatPersisted {
    /// The zxid of the create.
    pub czxid: Zxid,
    /// The zxid of the create or the last setData.
    pub mzxid: Zxid,
    /// The time of the create by the leader's wall clock, in ms since 1970.
    pub ctime: i64,
    /// The time of the create or the last setData by the leader's wall clock, in ms since 1970.
    pub mtime: i64,
    /// The number of setData.
    pub version: i32,
    /// The number of children that were ever created. Clients see [`Stat::cversion`] instead.
    pub cversion: i32,
    /// The number of setACL.
    pub aversion: i32,
    /// The session of an ephemeral, or the mark of a container or TTL znode.
    pub ephemeral_owner: EphemeralOwner,
    /// The zxid of the create, or of the last create or delete of a child.
    pub pzxid: Zxid,
}

impl StatPersisted {
    /// The Stat of a new znode.
    pub fn created(zxid: Zxid, time_ms: i64, owner: EphemeralOwner) -> Self {
        StatPersisted {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time_ms,
            mtime: time_ms,
            ephemeral_owner: owner,
            ..Self::default()
        }
    }

    /// Appends the 60 bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i64(self.czxid.to_wire());
        out.i64(self.mzxid.to_wire());
        out.i64(self.ctime);
        out.i64(self.mtime);
        out.i32(self.version);
        out.i32(self.cversion);
        out.i32(self.aversion);
        out.i64(self.ephemeral_owner.0);
        out.i64(self.pzxid.to_wire());
    }

    /// Reads the 60 bytes.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(StatPersisted {
            czxid: Zxid::from_wire(r.i64()?),
            mzxid: Zxid::from_wire(r.i64()?),
            ctime: r.i64()?,
            mtime: r.i64()?,
            version: r.i32()?,
            cversion: r.i32()?,
            aversion: r.i32()?,
            ephemeral_owner: EphemeralOwner(r.i64()?),
            pzxid: Zxid::from_wire(r.i64()?),
        })
    }
}

/// The Stat of a znode as clients see it: 68 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stat {
    /// The zxid of the create.
    pub czxid: Zxid,
    /// The zxid of the create or the last setData.
    pub mzxid: Zxid,
    /// The time of the create by the leader's wall clock, in ms since 1970.
    pub ctime: i64,
    /// The time of the create or the last setData by the leader's wall clock, in ms since 1970.
    pub mtime: i64,
    /// The number of setData.
    pub version: i32,
    /// The number of creates and deletes of children.
    pub cversion: i32,
    /// The number of setACL.
    pub aversion: i32,
    /// The session of an ephemeral; 0 for all others. A text in JSON, as all sessions.
    #[cfg_attr(feature = "serde", serde(with = "owner_as_text"))]
    pub ephemeral_owner: i64,
    /// The length of the data in bytes; 0 for null.
    pub data_length: i32,
    /// The number of direct children.
    pub num_children: i32,
    /// The zxid of the create, or of the last create or delete of a child.
    pub pzxid: Zxid,
}

#[cfg(feature = "serde")]
mod owner_as_text {
    use crate::id::SessionId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(owner: &i64, to: S) -> Result<S::Ok, S::Error> {
        SessionId(*owner).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<i64, D::Error> {
        SessionId::deserialize(from).map(|owner| owner.0)
    }
}

impl Stat {
    /// The size in bytes.
    pub const SIZE: usize = 68;

    /// The session that owns the znode, if it is ephemeral; `None` for all others, containers and TTL znodes among them.
    pub fn owner(&self) -> Option<SessionId> {
        match self.ephemeral_owner {
            0 | CONTAINER => None,
            session => Some(SessionId(session)),
        }
    }

    /// The client's view of a stored Stat. The stored cversion counts creates only. A client sees the number of creates
    /// and deletes: twice the creates less the children that are there.
    #[doc(hidden)]
    pub fn of(stored: &StatPersisted, data_length: usize, num_children: u32, types: ExtendedTypes) -> Stat {
        let owner = match stored.ephemeral_owner.kind(types) {
            NodeKind::Ephemeral(session) => session.0,
            _ => 0,
        };
        Stat {
            czxid: stored.czxid,
            mzxid: stored.mzxid,
            ctime: stored.ctime,
            mtime: stored.mtime,
            version: stored.version,
            cversion: stored.cversion.wrapping_mul(2).wrapping_sub(num_children as i32),
            aversion: stored.aversion,
            ephemeral_owner: owner,
            data_length: data_length as i32,
            num_children: num_children as i32,
            pzxid: stored.pzxid,
        }
    }

    /// Appends the 68 bytes.
    #[doc(hidden)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i64(self.czxid.to_wire());
        out.i64(self.mzxid.to_wire());
        out.i64(self.ctime);
        out.i64(self.mtime);
        out.i32(self.version);
        out.i32(self.cversion);
        out.i32(self.aversion);
        out.i64(self.ephemeral_owner);
        out.i32(self.data_length);
        out.i32(self.num_children);
        out.i64(self.pzxid.to_wire());
    }

    /// Reads the 68 bytes.
    #[doc(hidden)]
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Stat {
            czxid: Zxid::from_wire(r.i64()?),
            mzxid: Zxid::from_wire(r.i64()?),
            ctime: r.i64()?,
            mtime: r.i64()?,
            version: r.i32()?,
            cversion: r.i32()?,
            aversion: r.i32()?,
            ephemeral_owner: r.i64()?,
            data_length: r.i32()?,
            num_children: r.i32()?,
            pzxid: Zxid::from_wire(r.i64()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL_ON: ExtendedTypes = ExtendedTypes { enabled: true, emulate_353: false };

    #[test]
    fn an_owner_field_means_the_same_kind_as_in_upstream() {
        let off = ExtendedTypes::default();
        assert_eq!(EphemeralOwner(0).kind(off), NodeKind::Persistent);
        assert_eq!(EphemeralOwner::CONTAINER.kind(off), NodeKind::Container);
        assert_eq!(EphemeralOwner::ttl(5).kind(TTL_ON), NodeKind::Ttl(5));
        assert_eq!(
            EphemeralOwner::ttl(5).kind(off),
            NodeKind::Ephemeral(SessionId(EphemeralOwner::ttl(5).0))
        );
        let emulate = ExtendedTypes { enabled: true, emulate_353: true };
        assert_eq!(EphemeralOwner(i64::MIN + 9).kind(emulate), NodeKind::Ttl(9));
        assert_eq!(EphemeralOwner::ttl(5).kind(emulate), NodeKind::Ttl(5));
    }

    #[test]
    fn only_an_ephemeral_has_an_owner() {
        let owner = |stored, types| {
            let stored = StatPersisted { ephemeral_owner: stored, ..StatPersisted::default() };
            Stat::of(&stored, 0, 0, types).owner()
        };
        assert_eq!(owner(EphemeralOwner(7), TTL_ON), Some(SessionId(7)));
        for none in [EphemeralOwner::NONE, EphemeralOwner::CONTAINER, EphemeralOwner::ttl(5)] {
            assert_eq!(owner(none, TTL_ON), None);
        }
        assert_eq!(Stat { ephemeral_owner: CONTAINER, ..Stat::default() }.owner(), None);
    }

    #[test]
    fn the_cversion_of_clients_counts_creates_and_deletes() {
        let stored = StatPersisted { cversion: 5, ..StatPersisted::default() };
        assert_eq!(Stat::of(&stored, 0, 2, TTL_ON).cversion, 8);
    }
}
