//! Requests of clients, as a server reads them. They borrow from their frame. The client's side is in
//! `request/write.rs`.

mod write;

use crate::{
    acl::RawAcl,
    id::Xid,
    jute::{JuteError, Reader, Result, Writer},
    op::{self, Op},
};
use alloc::{borrow::Cow, vec::Vec};

/// The header of a request: every frame after the handshake begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// The number of the request, which the reply has too.
    pub xid: Xid,
    /// The operation code as the client sent it; it may be unknown.
    pub code: i32,
}

impl RequestHeader {
    /// Splits a frame's payload into header and body.
    pub fn read(payload: &[u8]) -> Result<(Self, &[u8])> {
        let mut r = Reader::new(payload);
        Ok((RequestHeader { xid: Xid(r.i32()?), code: r.i32()? }, r.rest()))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i32(self.xid.0);
        out.i32(self.code);
    }
}

/// create, create2, createContainer and createTTL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create<'a> {
    /// The operation: one of the four.
    pub op: Op,
    /// The path of the znode. For a sequential znode the number is appended to it.
    pub path: Cow<'a, str>,
    /// The data; `None` for null, which is different from empty.
    pub data: Option<&'a [u8]>,
    /// The ACL as the client sent it, not checked yet; `None` for null.
    pub acl: Option<Vec<RawAcl<'a>>>,
    /// The number of the create mode.
    pub flags: i32,
    /// The TTL in ms; -1 for operations without a TTL.
    pub ttl_ms: i64,
}

impl<'a> Create<'a> {
    fn read(op: Op, r: &mut Reader<'a>) -> Result<Self> {
        let path = r.text()?;
        let data = r.buffer()?;
        let acl = r.vector(RawAcl::read)?;
        let flags = r.i32()?;
        let ttl_ms = if op == Op::CreateTtl { r.i64()? } else { -1 };
        Ok(Create { op, path, data, acl, flags, ttl_ms })
    }
}

/// delete and check: a znode and the version that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathVersion<'a> {
    /// The path of the znode.
    pub path: Cow<'a, str>,
    /// The expected version; -1 for any.
    pub version: i32,
}

impl<'a> PathVersion<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(PathVersion { path: r.text()?, version: r.i32()? })
    }

    fn read_check(r: &mut Reader<'a>) -> Result<Self> {
        Ok(PathVersion { path: null_is_invalid(r)?, version: r.i32()? })
    }
}

/// setData, setACL and check answer a null path with BadArguments, as any invalid path: so null reads as empty here.
/// For other operations a null path makes the body malformed.
fn null_is_invalid<'a>(r: &mut Reader<'a>) -> Result<Cow<'a, str>> {
    Ok(r.string()?.unwrap_or_default())
}

/// reconfig: a change of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconfig<'a> {
    /// The servers to add or change: `server.N=spec`, joined by commas.
    pub joining: Option<Cow<'a, str>>,
    /// The ids of the servers to remove, joined by commas.
    pub leaving: Option<Cow<'a, str>>,
    /// The whole new list of servers, in place of the two others.
    pub members: Option<Cow<'a, str>>,
    /// The version that the configuration must have; -1 for any.
    pub current_config: i64,
}

/// setData.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetData<'a> {
    /// The path of the znode.
    pub path: Cow<'a, str>,
    /// The new data; `None` for null.
    pub data: Option<&'a [u8]>,
    /// The expected version; -1 for any.
    pub version: i32,
}

impl<'a> SetData<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(SetData { path: null_is_invalid(r)?, data: r.buffer()?, version: r.i32()? })
    }
}

/// exists, getData, getChildren and getChildren2: a read that can set a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathWatch<'a> {
    /// The path of the znode.
    pub path: Cow<'a, str>,
    /// Whether to set a one-shot watch.
    pub watch: bool,
}

impl<'a> PathWatch<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(PathWatch { path: r.text()?, watch: r.bool()? })
    }
}

/// setWatches and setWatches2: the watches of a client that has reconnected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetWatches<'a> {
    /// The last zxid that the client has seen. It is compared as a signed number, so -1 is before all others.
    pub relative_zxid: i64,
    /// The paths with a watch set by getData.
    pub data: Vec<Cow<'a, str>>,
    /// The paths with a watch set by exists, where there was no znode.
    pub exist: Vec<Cow<'a, str>>,
    /// The paths with a watch set by getChildren.
    pub child: Vec<Cow<'a, str>>,
    /// The paths with a persistent watch; only in setWatches2.
    pub persistent: Vec<Cow<'a, str>>,
    /// The paths with a persistent recursive watch; only in setWatches2.
    pub persistent_recursive: Vec<Cow<'a, str>>,
}

impl<'a> SetWatches<'a> {
    fn read(op: Op, r: &mut Reader<'a>) -> Result<Self> {
        let paths = |r: &mut Reader<'a>| Ok(r.vector(Reader::text)?.unwrap_or_default());
        let mut set = SetWatches {
            relative_zxid: r.i64()?,
            data: paths(r)?,
            exist: paths(r)?,
            child: paths(r)?,
            ..Self::default()
        };
        if op == Op::SetWatches2 {
            set.persistent = paths(r)?;
            set.persistent_recursive = paths(r)?;
        }
        Ok(set)
    }
}

/// An operation inside a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiOp<'a> {
    /// Creates a znode.
    Create(Create<'a>),
    /// Deletes a znode.
    Delete(PathVersion<'a>),
    /// Sets a znode's data.
    SetData(SetData<'a>),
    /// Fails if the version is not the expected one.
    Check(PathVersion<'a>),
}

/// A read inside a multiRead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiReadOp<'a> {
    /// Reads the data of the znode at this path.
    GetData(Cow<'a, str>),
    /// Lists the children of the znode at this path.
    GetChildren(Cow<'a, str>),
}

/// A decoded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// Creates a znode.
    Create(Create<'a>),
    /// Deletes a znode.
    Delete(PathVersion<'a>),
    /// Asks whether there is a znode.
    Exists(PathWatch<'a>),
    /// Reads a znode's data.
    GetData(PathWatch<'a>),
    /// Sets a znode's data.
    SetData(SetData<'a>),
    /// Reads the ACL of the znode at this path.
    GetAcl(Cow<'a, str>),
    /// Sets a znode's ACL.
    SetAcl {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The ACL as the client sent it, not checked yet; `None` for null.
        acl: Option<Vec<RawAcl<'a>>>,
        /// The expected version of the ACL; -1 for any.
        version: i32,
    },
    /// Lists the names of a znode's children.
    GetChildren(PathWatch<'a>),
    /// Lists the names of a znode's children, and reads its Stat.
    GetChildren2(PathWatch<'a>),
    /// Waits for everything that is committed. The reply has the same path, also if it is null.
    Sync(Option<Cow<'a, str>>),
    /// Keeps the session alive.
    Ping,
    /// Does several writes, all or none.
    Multi(Vec<MultiOp<'a>>),
    /// Does several reads.
    MultiRead {
        /// The reads before the first operation that cannot be done: a write, or a read with a null path.
        ops: Vec<MultiReadOp<'a>>,
        /// Whether there is such an operation.
        broken: bool,
    },
    /// Changes the members of the ensemble.
    Reconfig(Reconfig<'a>),
    /// Asks whether there are watches of a kind at a path.
    CheckWatches {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The number of the watcher type.
        kind: i32,
    },
    /// Removes watches of a kind at a path.
    RemoveWatches {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The number of the watcher type.
        kind: i32,
    },
    /// Adds an identity to the session.
    Auth {
        /// The authentication scheme.
        scheme: Option<Cow<'a, str>>,
        /// The scheme's data, such as `user:password`.
        auth: Option<&'a [u8]>,
    },
    /// A token of the SASL mechanism. The first token may be empty, but not null.
    Sasl(&'a [u8]),
    /// Sets watches again after a reconnect.
    SetWatches(SetWatches<'a>),
    /// Sets a persistent watch, or a persistent recursive one.
    AddWatch {
        /// The path of the znode.
        path: Cow<'a, str>,
        /// The number of the mode: 0 for persistent, 1 for persistent recursive.
        mode: i32,
    },
    /// Lists the session's ephemerals.
    GetEphemerals {
        /// The text with which the paths begin; `None` for null.
        prefix: Option<Cow<'a, str>>,
    },
    /// Counts all znodes below this path.
    GetAllChildrenNumber(Cow<'a, str>),
    /// Lists the session's identities.
    WhoAmI,
    /// Ends the session.
    CloseSession,
    /// A known operation with a malformed body.
    Malformed(Op),
    /// An operation that is unknown, or that clients may not send.
    Unimplemented,
}

impl<'a> Request<'a> {
    /// Whether a quorum has to agree on the request. If so, its success shows that the server has a quorum. Sync needs
    /// none.
    pub fn takes_quorum(&self) -> bool {
        matches!(
            self,
            Request::Create(_)
                | Request::Delete(_)
                | Request::SetData(_)
                | Request::SetAcl { .. }
                | Request::Multi(_)
                | Request::Reconfig(_)
        )
    }

    /// Decodes the body of a request with this operation code. Operations that a client may not send are
    /// `Unimplemented`: createSession, deleteContainer, and check outside of a multi. Upstream lets some of them
    /// through, which harms it.
    pub fn read(code: i32, body: &'a [u8]) -> Request<'a> {
        match Op::from_code(code) {
            None | Some(Op::Check | Op::DeleteContainer | Op::CreateSession) => Request::Unimplemented,
            Some(op) => Self::read_body(op, body).unwrap_or(Request::Malformed(op)),
        }
    }

    fn read_body(op: Op, body: &'a [u8]) -> Result<Self> {
        let r = &mut Reader::new(body);
        Ok(match op {
            Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => {
                Request::Create(Create::read(op, r)?)
            }
            Op::Delete => Request::Delete(PathVersion::read(r)?),
            Op::Exists => Request::Exists(PathWatch::read(r)?),
            Op::GetData => Request::GetData(PathWatch::read(r)?),
            Op::SetData => Request::SetData(SetData::read(r)?),
            Op::GetAcl => Request::GetAcl(r.text()?),
            Op::SetAcl => {
                Request::SetAcl { path: null_is_invalid(r)?, acl: r.vector(RawAcl::read)?, version: r.i32()? }
            }
            Op::GetChildren => Request::GetChildren(PathWatch::read(r)?),
            Op::GetChildren2 => Request::GetChildren2(PathWatch::read(r)?),
            Op::Sync => Request::Sync(r.string()?),
            Op::Ping => Request::Ping,
            Op::Multi => Request::Multi(read_multi(r)?),
            Op::MultiRead => {
                let writes = read_multi(&mut r.clone()).is_ok_and(|ops| !ops.is_empty());
                if writes {
                    Request::MultiRead { ops: Vec::new(), broken: true }
                } else {
                    read_multi_read(r)?
                }
            }
            Op::Reconfig => Request::Reconfig(Reconfig {
                joining: r.string()?,
                leaving: r.string()?,
                members: r.string()?,
                current_config: r.i64()?,
            }),
            Op::CheckWatches => Request::CheckWatches { path: r.text()?, kind: r.i32()? },
            Op::RemoveWatches => Request::RemoveWatches { path: r.text()?, kind: r.i32()? },
            Op::Auth => {
                r.i32()?;
                Request::Auth { scheme: r.string()?, auth: r.buffer()? }
            }
            Op::Sasl => Request::Sasl(r.buffer()?.ok_or(JuteError::Null)?),
            Op::SetWatches | Op::SetWatches2 => Request::SetWatches(SetWatches::read(op, r)?),
            Op::AddWatch => Request::AddWatch { path: r.text()?, mode: r.i32()? },
            Op::GetEphemerals => Request::GetEphemerals { prefix: r.string()? },
            Op::GetAllChildrenNumber => Request::GetAllChildrenNumber(r.text()?),
            Op::WhoAmI => Request::WhoAmI,
            Op::CloseSession => Request::CloseSession,
            Op::Check | Op::DeleteContainer | Op::CreateSession => Request::Unimplemented,
        })
    }
}

/// The header before each operation of a multi, and before each result in its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiHeader {
    /// The operation code; -1 for an error and for the end of the list.
    pub code: i32,
    /// Whether this is the end of the list.
    pub done: bool,
    /// The error code; -1 in requests and at the end.
    pub error: i32,
}

impl MultiHeader {
    /// The header that ends a list.
    pub const END: MultiHeader = MultiHeader { code: op::ERROR, done: true, error: -1 };

    /// Reads a header.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(MultiHeader { code: r.i32()?, done: r.bool()?, error: r.i32()? })
    }

    /// Appends a header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.i32(self.code);
        out.bool(self.done);
        out.i32(self.error);
    }
}

/// The highest number of a create mode.
const FLAG_MAX: i32 = 6;
const CONTAINER_FLAG: i32 = 4;

/// Whether a create mode number asks for a TTL.
pub fn is_ttl_flag(flags: i32) -> bool {
    matches!(flags, 5 | 6)
}

fn read_multi<'a>(r: &mut Reader<'a>) -> Result<Vec<MultiOp<'a>>> {
    let mut ops = Vec::new();
    loop {
        let header = MultiHeader::read(r)?;
        if header.done {
            return Ok(ops);
        }
        ops.push(match Op::from_code(header.code) {
            Some(op @ (Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl)) => {
                MultiOp::Create(multi_create(Create::read(op, r)?)?)
            }
            Some(Op::Delete) => MultiOp::Delete(PathVersion::read(r)?),
            Some(Op::SetData) => MultiOp::SetData(SetData::read(r)?),
            Some(Op::Check) => MultiOp::Check(PathVersion::read_check(r)?),
            _ => return Err(JuteError::UnknownType(header.code)),
        });
    }
}

/// Inside a multi upstream takes the operation from the flags and not from the header. A TTL flag needs type 21, a
/// container flag makes a container, and type 21 without a TTL flag is a plain create. A flag that is no mode, or a
/// null ACL, makes the whole request malformed.
fn multi_create(mut create: Create<'_>) -> Result<Create<'_>> {
    if create.acl.is_none() {
        return Err(JuteError::Null);
    }
    if !(0..=FLAG_MAX).contains(&create.flags) {
        return Err(JuteError::UnknownType(create.flags));
    }
    if is_ttl_flag(create.flags) {
        if create.op != Op::CreateTtl {
            return Err(JuteError::UnknownType(create.op.code()));
        }
    } else if create.flags == CONTAINER_FLAG {
        create.op = Op::CreateContainer;
    } else if create.op == Op::CreateTtl {
        create.op = Op::Create;
        create.ttl_ms = -1;
    }
    Ok(create)
}

fn read_multi_read<'a>(r: &mut Reader<'a>) -> Result<Request<'a>> {
    let (mut ops, mut broken) = (Vec::new(), false);
    loop {
        let header = MultiHeader::read(r)?;
        if header.done {
            return Ok(Request::MultiRead { ops, broken });
        }
        match read_after(header, r)? {
            Some(op) if !broken => ops.push(op),
            _ => broken = true,
        }
    }
}

/// Reads one operation of a multiRead, header first. `None` if its path is null.
pub fn read_multi_read_op<'a>(r: &mut Reader<'a>) -> Result<Option<MultiReadOp<'a>>> {
    read_after(MultiHeader::read(r)?, r)
}

fn read_after<'a>(header: MultiHeader, r: &mut Reader<'a>) -> Result<Option<MultiReadOp<'a>>> {
    let op = Op::from_code(header.code).filter(|op| matches!(op, Op::GetData | Op::GetChildren));
    let op = op.ok_or(JuteError::UnknownType(header.code))?;
    let path = r.string()?;
    r.bool()?;
    Ok(path.map(
        |path| if op == Op::GetData { MultiReadOp::GetData(path) } else { MultiReadOp::GetChildren(path) },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn a_create_of_java_is_read() {
        let body = hex(
            "00000002 2f67 00000002 6869 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000",
        );
        let Request::Create(create) = Request::read(1, &body) else { panic!("not a create") };
        assert_eq!((&*create.path, create.data, create.flags), ("/g", Some(&b"hi"[..]), 0));
        assert_eq!(create.acl.unwrap()[0].id.as_deref(), Some("anyone"));
    }

    #[test]
    fn a_short_body_is_malformed_and_an_operation_not_for_clients_is_unimplemented() {
        assert_eq!(Request::read(4, &[0, 0]), Request::Malformed(Op::GetData));
        assert_eq!(Request::read(4, &hex("ffffffff 00")), Request::Malformed(Op::GetData));
        for code in [0, 10, 13, 20, -10, 77] {
            assert_eq!(Request::read(code, &[]), Request::Unimplemented);
        }
    }

    #[test]
    fn multi_takes_the_operation_from_the_flags() {
        let acl = || Some(Vec::new());
        let create = |op, flags| Create { op, path: "/a".into(), data: None, acl: acl(), flags, ttl_ms: -1 };
        assert_eq!(multi_create(create(Op::Create, 4)).unwrap().op, Op::CreateContainer);
        assert_eq!(multi_create(create(Op::CreateTtl, 0)).unwrap().op, Op::Create);
        assert!(multi_create(create(Op::Create2, 5)).is_err());
        assert!(multi_create(create(Op::Create, 7)).is_err());
    }
}
