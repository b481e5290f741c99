//! Transactions as they are proposed and logged.
//!
//! A record is a `TxnHeader`, the txn of the header's type, and a `TxnDigest` if the leader computed one.

use crate::{
    acl::{Acl, read_acls, write_acls},
    id::{SessionId, Zxid},
    jute::{JuteError, Reader, Result, Writer},
    op::{self, Op},
};
use alloc::{borrow::Cow, vec::Vec};

/// The first 32 bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnHeader {
    /// The session that made the request.
    pub session: SessionId,
    /// The xid of the request; 0 for transactions of the server itself.
    pub cxid: i32,
    /// The number of the transaction.
    pub zxid: Zxid,
    /// The time of the leader's wall clock, in ms.
    pub time_ms: i64,
    /// The type of the txn that follows.
    pub code: i32,
}

impl TxnHeader {
    /// The size of the header in bytes.
    pub const SIZE: usize = 32;

    /// Reads the header.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(TxnHeader {
            session: SessionId(r.i64()?),
            cxid: r.i32()?,
            zxid: Zxid::from_wire(r.i64()?),
            time_ms: r.i64()?,
            code: r.i32()?,
        })
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i64(self.session.0);
        out.i32(self.cxid);
        out.i64(self.zxid.to_wire());
        out.i64(self.time_ms);
        out.i32(self.code);
    }
}

/// The kind of a create; most have a record format of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnCreateKind {
    /// Type 1: the reply has the path.
    Create,
    /// Type 15: the reply has path and Stat. The record is the same as of type 1.
    Create2,
    /// Type 19: a container.
    Container,
    /// Type 21: a TTL znode, with its TTL in ms.
    Ttl(i64),
}

/// The txn of a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTxn<'a> {
    /// The kind, by which the record's format differs.
    pub kind: TxnCreateKind,
    /// The path of the znode, with the number of a sequential one.
    pub path: Cow<'a, str>,
    /// The data; `None` for null.
    pub data: Option<&'a [u8]>,
    /// The ACL, as the leader has checked and completed it.
    pub acl: Cow<'a, [Acl]>,
    /// Whether the znode is an ephemeral of the header's session.
    pub ephemeral: bool,
    /// The parent's stored cversion after this create; -1 in logs of ZooKeeper 3.3, which means one more than before.
    pub parent_cversion: i32,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Txn<'a> {
    /// A session begins.
    CreateSession {
        /// The session timeout in ms.
        timeout_ms: i32,
    },
    /// A session ends, with the paths of its ephemerals at that time. `None` for the empty record: of ZooKeeper 3.5 and
    /// before, of later ones with `closeSessionTxn.enabled=false`, and of Ostler if the paths are too long for a record.
    CloseSession(Option<Vec<Cow<'a, str>>>),
    /// A znode is created.
    Create(CreateTxn<'a>),
    /// A znode is deleted.
    Delete {
        /// Whether the server deleted a container or TTL znode itself (type 20).
        reaped: bool,
        /// The path of the znode.
        path: Cow<'a, str>,
    },
    /// The data of a znode is set.
    SetData {
        /// Whether this is a reconfiguration (type 16).
        reconfig: bool,
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The new data; `None` for null.
        data: Option<&'a [u8]>,
        /// The new version.
        version: i32,
    },
    /// The ACL of a znode is set.
    SetAcl {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The new ACL.
        acl: Cow<'a, [Acl]>,
        /// The new aversion.
        version: i32,
    },
    /// A check of a version, only inside a multi.
    Check {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The expected version; -1 for any.
        version: i32,
    },
    /// A write that was refused, with its error code.
    Error(i32),
    /// The transactions of a multi, all with the same zxid.
    Multi(Vec<Txn<'a>>),
}

impl<'a> Txn<'a> {
    /// The type number.
    pub fn code(&self) -> i32 {
        match self {
            Txn::CreateSession { .. } => Op::CreateSession.code(),
            Txn::CloseSession(_) => Op::CloseSession.code(),
            Txn::Create(create) => match create.kind {
                TxnCreateKind::Create => Op::Create.code(),
                TxnCreateKind::Create2 => Op::Create2.code(),
                TxnCreateKind::Container => Op::CreateContainer.code(),
                TxnCreateKind::Ttl(_) => Op::CreateTtl.code(),
            },
            Txn::Delete { reaped: false, .. } => Op::Delete.code(),
            Txn::Delete { reaped: true, .. } => Op::DeleteContainer.code(),
            Txn::SetData { reconfig: false, .. } => Op::SetData.code(),
            Txn::SetData { reconfig: true, .. } => Op::Reconfig.code(),
            Txn::SetAcl { .. } => Op::SetAcl.code(),
            Txn::Check { .. } => Op::Check.code(),
            Txn::Error(_) => op::ERROR,
            Txn::Multi(_) => Op::Multi.code(),
        }
    }

    /// Appends the txn's own record.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Txn::CreateSession { timeout_ms } => out.i32(*timeout_ms),
            Txn::CloseSession(None) => {}
            Txn::CloseSession(Some(paths)) => {
                out.length(paths.len());
                for path in paths {
                    out.string(path);
                }
            }
            Txn::Create(create) => create.write(out),
            Txn::Delete { path, .. } => out.string(path),
            Txn::SetData { path, data, version, .. } => {
                out.string(path);
                out.buffer(*data);
                out.i32(*version);
            }
            Txn::SetAcl { path, acl, version } => {
                out.string(path);
                write_acls(out, acl);
                out.i32(*version);
            }
            Txn::Check { path, version } => {
                out.string(path);
                out.i32(*version);
            }
            Txn::Error(code) => out.i32(*code),
            Txn::Multi(txns) => {
                out.length(txns.len());
                for txn in txns {
                    out.i32(txn.code());
                    let start = crate::reply::begin_frame(out);
                    txn.write(out);
                    crate::reply::end_frame(out, start);
                }
            }
        }
    }

    /// Reads a txn of type `code`.
    pub fn read(code: i32, r: &mut Reader<'a>) -> Result<Self> {
        if code == op::ERROR {
            return Ok(Txn::Error(r.i32()?));
        }
        Ok(match Op::from_code(code).ok_or(JuteError::UnknownType(code))? {
            Op::CreateSession => Txn::CreateSession { timeout_ms: r.i32()? },
            Op::CloseSession if r.rest().is_empty() || is_digest(r.rest()) => Txn::CloseSession(None),
            Op::CloseSession => {
                let mut paths = r.vector(Reader::text)?.unwrap_or_default();
                // No znode has an empty path, and two of them look like a digest.
                paths.retain(|path| !path.is_empty());
                Txn::CloseSession(Some(paths))
            }
            Op::Create => Txn::Create(CreateTxn::read_type_1(r)?),
            Op::Create2 => Txn::Create(CreateTxn::read(TxnCreateKind::Create2, r)?),
            Op::CreateContainer => Txn::Create(CreateTxn::read(TxnCreateKind::Container, r)?),
            Op::CreateTtl => Txn::Create(CreateTxn::read(TxnCreateKind::Ttl(0), r)?),
            Op::Delete => Txn::Delete { reaped: false, path: r.text()? },
            Op::DeleteContainer => Txn::Delete { reaped: true, path: r.text()? },
            op @ (Op::SetData | Op::Reconfig) => Txn::SetData {
                reconfig: op == Op::Reconfig,
                path: r.text()?,
                data: r.buffer()?,
                version: r.i32()?,
            },
            Op::SetAcl => Txn::SetAcl { path: r.text()?, acl: read_acls(r)?.into(), version: r.i32()? },
            Op::Check => Txn::Check { path: r.text()?, version: r.i32()? },
            Op::Multi => Txn::Multi(read_multi(r)?),
            _ => return Err(JuteError::UnknownType(code)),
        })
    }
}

/// Whether the rest of a closeSession is a digest and not a list. With `closeSessionTxn.enabled=false` Java logs a digest
/// behind the empty form. A list of this length would be of two empty paths, which no znode has.
fn is_digest(rest: &[u8]) -> bool {
    rest.len() == DIGEST_SIZE && rest.starts_with(&DIGEST_VERSION.to_be_bytes())
}

/// A multi inside a multi is refused, so the depth is bounded.
fn read_multi<'a>(r: &mut Reader<'a>) -> Result<Vec<Txn<'a>>> {
    let txns = r.vector(|r| {
        let code = r.i32()?;
        let record = r.buffer()?.ok_or(JuteError::Null)?;
        if code == Op::Multi.code() {
            return Err(JuteError::UnknownType(code));
        }
        Txn::read(code, &mut Reader::new(record))
    })?;
    Ok(txns.unwrap_or_default())
}

impl<'a> CreateTxn<'a> {
    fn write(&self, out: &mut Vec<u8>) {
        out.string(&self.path);
        out.buffer(self.data);
        write_acls(out, &self.acl);
        if matches!(self.kind, TxnCreateKind::Create | TxnCreateKind::Create2) {
            out.bool(self.ephemeral);
        }
        out.i32(self.parent_cversion);
        if let TxnCreateKind::Ttl(ttl_ms) = self.kind {
            out.i64(ttl_ms);
        }
    }

    fn read(kind: TxnCreateKind, r: &mut Reader<'a>) -> Result<Self> {
        let mut create = CreateTxn {
            kind,
            path: r.text()?,
            data: r.buffer()?,
            acl: read_acls(r)?.into(),
            ephemeral: false,
            parent_cversion: -1,
        };
        if matches!(kind, TxnCreateKind::Create | TxnCreateKind::Create2) {
            create.ephemeral = r.bool()?;
        }
        create.parent_cversion = r.i32()?;
        if let TxnCreateKind::Ttl(_) = kind {
            create.kind = TxnCreateKind::Ttl(r.i64()?);
        }
        Ok(create)
    }

    /// Logs of ZooKeeper 3.3 have no parent cversion at the end of type 1.
    fn read_type_1(r: &mut Reader<'a>) -> Result<Self> {
        let start = r.clone();
        let whole = Self::read(TxnCreateKind::Create, r);
        if whole != Err(JuteError::Truncated) {
            return whole;
        }
        *r = start;
        Ok(CreateTxn {
            kind: TxnCreateKind::Create,
            path: r.text()?,
            data: r.buffer()?,
            acl: read_acls(r)?.into(),
            ephemeral: r.bool()?,
            parent_cversion: -1,
        })
    }
}

/// The version of the digests that Ostler computes.
pub const DIGEST_VERSION: i32 = 2;

/// The size of a digest: version and sum.
const DIGEST_SIZE: usize = 12;

/// The leader's digest of the tree after a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnDigest {
    /// The version of the digest; only [`DIGEST_VERSION`] is compared.
    pub version: i32,
    /// The sum of the digests of all znodes.
    pub tree: u64,
}

/// A whole record, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnRecord<'a> {
    /// Session, zxid and time of the transaction.
    pub header: TxnHeader,
    /// The change of the tree.
    pub txn: Txn<'a>,
    /// The digest of the tree after the transaction, if the record has one.
    pub digest: Option<TxnDigest>,
}

impl<'a> TxnRecord<'a> {
    /// Reads a whole record. If twelve bytes are left behind the txn, they are a digest, as in upstream.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let header = TxnHeader::read(&mut r)?;
        let txn = Txn::read(header.code, &mut r)?;
        let digest = match (r.i32(), r.i64()) {
            (Ok(version), Ok(tree)) => Some(TxnDigest { version, tree: tree as u64 }),
            _ => None,
        };
        Ok(TxnRecord { header, txn, digest })
    }

    /// Appends the whole record.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.header.write(out);
        self.txn.write(out);
        if let Some(digest) = self.digest {
            out.i32(digest.version);
            out.i64(digest.tree as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::Perms;
    use alloc::vec;

    fn header(code: i32) -> TxnHeader {
        TxnHeader { session: SessionId(7), cxid: 1, zxid: Zxid(2), time_ms: 3, code }
    }

    #[test]
    fn every_txn_is_read_as_it_was_written() {
        let acl = vec![Acl::world(Perms::ALL)];
        let create = |kind| {
            let ephemeral = kind == TxnCreateKind::Create;
            Txn::Create(CreateTxn {
                kind,
                path: "/a".into(),
                data: Some(b"x"),
                acl: acl.clone().into(),
                ephemeral,
                parent_cversion: 4,
            })
        };
        let all = vec![
            Txn::CreateSession { timeout_ms: 9 },
            Txn::CloseSession(Some(vec!["/e".into()])),
            create(TxnCreateKind::Create),
            create(TxnCreateKind::Create2),
            create(TxnCreateKind::Container),
            create(TxnCreateKind::Ttl(77)),
            Txn::Delete { reaped: true, path: "/a".into() },
            Txn::SetData { reconfig: false, path: "/a".into(), data: None, version: 3 },
            Txn::SetAcl { path: "/a".into(), acl: acl.clone().into(), version: 3 },
            Txn::Error(-101),
            Txn::Multi(vec![Txn::Check { path: "/a".into(), version: 1 }, Txn::Error(-2)]),
        ];
        for txn in all {
            let digest = Some(TxnDigest { version: 2, tree: 5 });
            let record = TxnRecord { header: header(txn.code()), txn, digest };
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(TxnRecord::read(&bytes), Ok(record));
        }
    }

    /// Java with `closeSessionTxn.enabled=false` writes it so.
    #[test]
    fn the_digest_behind_a_close_session_without_a_list_is_not_its_list() {
        let record = |paths| TxnRecord {
            header: header(-11),
            txn: Txn::CloseSession(paths),
            digest: Some(TxnDigest { version: DIGEST_VERSION, tree: 0x0123_4567_89ab_cdef }),
        };
        for paths in [None, Some(vec![]), Some(vec!["/e".into()]), Some(vec!["/e".into(), "/f".into()])] {
            let record = record(paths);
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(TxnRecord::read(&bytes), Ok(record));
        }
    }

    #[test]
    fn a_create_of_zookeeper_3_3_without_parent_cversion_is_read() {
        let mut bytes = Vec::new();
        header(1).write(&mut bytes);
        bytes.string("/a");
        bytes.buffer(None);
        write_acls(&mut bytes, &[]);
        bytes.bool(true);
        let Txn::Create(create) = TxnRecord::read(&bytes).unwrap().txn else { panic!("not a create") };
        assert!(create.ephemeral);
        assert_eq!(create.parent_cversion, -1);
    }
}
