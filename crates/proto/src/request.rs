//! Requests as clients send them, borrowed from their frame.

mod write;

use crate::{
    acl::RawAcl,
    id::Xid,
    jute::{JuteError, Reader, Result, Writer},
    op::{self, Op},
};
use alloc::{borrow::Cow, vec::Vec};

/// Request header: what every frame after the handshake begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// Echoed in the reply.
    pub xid: Xid,
    /// Operation code as sent; it may be unknown.
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
    /// Which of the four.
    pub op: Op,
    /// The znode; a sequential one gets its number appended.
    pub path: Cow<'a, str>,
    /// Null and empty are different.
    pub data: Option<&'a [u8]>,
    /// As sent, unchecked.
    pub acl: Option<Vec<RawAcl<'a>>>,
    /// Create mode number.
    pub flags: i32,
    /// Milliseconds; -1 for operations that carry none.
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

/// A path and the version it must have; -1 fits any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathVersion<'a> {
    /// The znode.
    pub path: Cow<'a, str>,
    /// Expected version.
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

/// setData, setACL and check call a null path a bad argument, as they do any invalid path; elsewhere a null
/// path is a body that does not decode.
fn null_is_invalid<'a>(r: &mut Reader<'a>) -> Result<Cow<'a, str>> {
    Ok(r.string()?.unwrap_or_default())
}

/// A change of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconfig<'a> {
    /// Servers to add or change: `server.N=spec`, joined by commas.
    pub joining: Option<Cow<'a, str>>,
    /// Ids of servers to remove, joined by commas.
    pub leaving: Option<Cow<'a, str>>,
    /// All servers, in place of both.
    pub members: Option<Cow<'a, str>>,
    /// The version that is to be changed; -1 for any.
    pub current_config: i64,
}

/// setData.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetData<'a> {
    /// The znode.
    pub path: Cow<'a, str>,
    /// New data.
    pub data: Option<&'a [u8]>,
    /// Expected version.
    pub version: i32,
}

impl<'a> SetData<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(SetData { path: null_is_invalid(r)?, data: r.buffer()?, version: r.i32()? })
    }
}

/// A read that may leave a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathWatch<'a> {
    /// The znode.
    pub path: Cow<'a, str>,
    /// Leave a one-shot watch.
    pub watch: bool,
}

impl<'a> PathWatch<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(PathWatch { path: r.text()?, watch: r.bool()? })
    }
}

/// setWatches and setWatches2: what a client watches, after it has reconnected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetWatches<'a> {
    /// The last change that the client knows of; compared as a signed number, so that -1 is before all.
    pub relative_zxid: i64,
    /// Paths of each kind of watch.
    pub data: Vec<Cow<'a, str>>,
    pub exist: Vec<Cow<'a, str>>,
    pub child: Vec<Cow<'a, str>>,
    pub persistent: Vec<Cow<'a, str>>,
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
    Create(Create<'a>),
    Delete(PathVersion<'a>),
    SetData(SetData<'a>),
    Check(PathVersion<'a>),
}

/// A read inside a multiRead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiReadOp<'a> {
    GetData(Cow<'a, str>),
    GetChildren(Cow<'a, str>),
}

/// A decoded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    Create(Create<'a>),
    Delete(PathVersion<'a>),
    Exists(PathWatch<'a>),
    GetData(PathWatch<'a>),
    SetData(SetData<'a>),
    GetAcl(Cow<'a, str>),
    SetAcl {
        path: Cow<'a, str>,
        acl: Option<Vec<RawAcl<'a>>>,
        version: i32,
    },
    GetChildren(PathWatch<'a>),
    GetChildren2(PathWatch<'a>),
    /// The path is echoed, null included.
    Sync(Option<Cow<'a, str>>),
    Ping,
    Multi(Vec<MultiOp<'a>>),
    MultiRead {
        /// The reads up to the first that cannot be done: a write, or a null path.
        ops: Vec<MultiReadOp<'a>>,
        /// Whether there is one.
        broken: bool,
    },
    Reconfig(Reconfig<'a>),
    CheckWatches {
        path: Cow<'a, str>,
        kind: i32,
    },
    RemoveWatches {
        path: Cow<'a, str>,
        kind: i32,
    },
    Auth {
        scheme: Option<Cow<'a, str>>,
        auth: Option<&'a [u8]>,
    },
    /// A token of the mechanism; the first may be empty, but not null.
    Sasl(&'a [u8]),
    SetWatches(SetWatches<'a>),
    AddWatch {
        path: Cow<'a, str>,
        mode: i32,
    },
    GetEphemerals {
        prefix: Option<Cow<'a, str>>,
    },
    GetAllChildrenNumber(Cow<'a, str>),
    WhoAmI,
    CloseSession,
    /// A known operation whose body does not decode.
    Malformed(Op),
    /// An operation that clients may not ask for, or that nobody knows.
    Unimplemented,
}

impl<'a> Request<'a> {
    /// Whether a quorum has to agree on it: that it is done shows that the server is not cut off. Sync does not take one.
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

    /// Decodes a body. What a client may not send (session creation, the reaper's deletes, a lone check)
    /// is `Unimplemented`: upstream lets some of it through and is hurt by it.
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

/// Header of each entry of a multi, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiHeader {
    /// Operation code, or -1 for errors and for the end.
    pub code: i32,
    /// The end of the list.
    pub done: bool,
    /// Error code.
    pub error: i32,
}

impl MultiHeader {
    /// Ends a list.
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

/// Create flags above this are out of range.
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

/// Inside a multi upstream takes the operation from the flags, not from the header: a TTL flag needs
/// type 21, a container flag makes a container, type 21 without a TTL flag is a plain create. A flag that
/// is no mode, or a null ACL, fails the whole request.
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

/// One operation of a multiRead; `None` if it has no path.
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
    fn a_create_captured_from_java_decodes() {
        let body = hex(
            "00000002 2f67 00000002 6869 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000",
        );
        let Request::Create(create) = Request::read(1, &body) else { panic!("not a create") };
        assert_eq!((&*create.path, create.data, create.flags), ("/g", Some(&b"hi"[..]), 0));
        assert_eq!(create.acl.unwrap()[0].id.as_deref(), Some("anyone"));
    }

    #[test]
    fn short_bodies_and_odd_operations_are_told_apart() {
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
