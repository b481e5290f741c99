//! A znode's Stat: as stored (and hashed into the digest), and as clients see it.

use crate::{
    id::{SessionId, Zxid},
    jute::{Reader, Result, Writer},
};
use alloc::vec::Vec;

/// How long a znode's TTL may be: 40 bits of milliseconds.
pub const TTL_MAX_MS: i64 = 0x00ff_ffff_ffff;
const CONTAINER: i64 = i64::MIN;
const TTL_MARK: u64 = 0xff00_0000_0000_0000;

/// The stored owner field, which also encodes containers and TTLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EphemeralOwner(pub i64);

/// What kind of znode an owner field means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Stays until it is deleted.
    Persistent,
    /// Goes with its session.
    Ephemeral(SessionId),
    /// Is deleted some time after its last child.
    Container,
    /// Is deleted when unchanged and childless for so many milliseconds.
    Ttl(i64),
}

/// How owner fields with a set top byte are read (`extendedTypesEnabled`, `emulate353TTLNodes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtendedTypes {
    /// TTL nodes exist.
    pub enabled: bool,
    /// Read the owner format of ZooKeeper 3.5.3, which used the top bit alone.
    pub emulate_353: bool,
}

impl ExtendedTypes {
    /// The greatest id that a server of the ensemble may have: it is the top byte of its sessions' ids, and those of a greater
    /// one would mark TTL nodes. An ephemeral of such a session would outlive it. `None` where nothing is marked so.
    pub fn server_id_max(self) -> Option<i64> {
        self.enabled.then_some(if self.emulate_353 { 0x7f } else { 0xfe })
    }

    /// Whether a server may have this id.
    pub fn allow_server(self, id: i64) -> bool {
        self.server_id_max().is_none_or(|max| (0..=max).contains(&id))
    }
}

impl EphemeralOwner {
    /// Of a persistent znode.
    pub const NONE: EphemeralOwner = EphemeralOwner(0);
    /// Of a container.
    pub const CONTAINER: EphemeralOwner = EphemeralOwner(CONTAINER);

    /// Of a TTL node. `ttl_ms` must be within 1..=[`TTL_MAX_MS`].
    pub fn ttl(ttl_ms: i64) -> EphemeralOwner {
        EphemeralOwner((TTL_MARK | ttl_ms as u64) as i64)
    }

    /// What the field means.
    pub fn kind(self, types: ExtendedTypes) -> NodeKind {
        match self.0 {
            0 => NodeKind::Persistent,
            CONTAINER => NodeKind::Container,
            raw if types.enabled && types.emulate_353 && raw < 0 => NodeKind::Ttl(raw & TTL_MAX_MS),
            // Bits 40 to 55 are reserved and 0 in a TTL owner; other values are sessions of server 255,
            // which configuration forbids together with extended types.
            raw if types.enabled && raw as u64 & TTL_MARK == TTL_MARK => NodeKind::Ttl(raw & TTL_MAX_MS),
            raw => NodeKind::Ephemeral(SessionId(raw)),
        }
    }
}

/// What snapshots and digests contain of a znode besides path, data and ACL: 60 bytes.
///
/// Packed, so that it takes no more in memory: a million znodes have one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, packed(4))]
pub struct StatPersisted {
    /// Zxid of the create.
    pub czxid: Zxid,
    /// Zxid of the create or the last setData.
    pub mzxid: Zxid,
    /// Wall clock of the create, ms.
    pub ctime: i64,
    /// Wall clock of the create or the last setData, ms.
    pub mtime: i64,
    /// Count of setData.
    pub version: i32,
    /// Count of children ever created; clients see [`Stat::cversion`] instead.
    pub cversion: i32,
    /// Count of setACL.
    pub aversion: i32,
    /// Owner, container or TTL mark.
    pub ephemeral_owner: EphemeralOwner,
    /// Zxid of the create or the last create or delete of a child.
    pub pzxid: Zxid,
}

impl StatPersisted {
    /// Of a znode created now.
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

/// A znode's Stat as clients see it: 68 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Zxid of the create.
    pub czxid: Zxid,
    /// Zxid of the create or the last setData.
    pub mzxid: Zxid,
    /// Wall clock of the create, ms.
    pub ctime: i64,
    /// Wall clock of the create or the last setData, ms.
    pub mtime: i64,
    /// Count of setData.
    pub version: i32,
    /// Count of creates and deletes of children.
    pub cversion: i32,
    /// Count of setACL.
    pub aversion: i32,
    /// The owning session; 0 for containers and TTL nodes too.
    pub ephemeral_owner: i64,
    /// Bytes of data; 0 for null.
    pub data_length: i32,
    /// Direct children.
    pub num_children: i32,
    /// Zxid of the create or the last create or delete of a child.
    pub pzxid: Zxid,
}

impl Stat {
    /// Bytes on the wire.
    pub const SIZE: usize = 68;

    /// What a client sees of a stored stat. The stored cversion counts creates only; a client sees creates
    /// and deletes, which is twice the creates less the children still there.
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
    fn owners_mean_what_upstream_means() {
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
    fn clients_see_creates_and_deletes_in_cversion() {
        let stored = StatPersisted { cversion: 5, ..StatPersisted::default() };
        assert_eq!(Stat::of(&stored, 0, 2, TTL_ON).cversion, 8);
    }
}
