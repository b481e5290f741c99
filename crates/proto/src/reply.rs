//! Replies of a server: header and body, written as whole frames. The client's side is in `reply/read.rs`.

mod read;

pub use read::{OpOutcome, read_identities, read_outcomes, read_strings};

use crate::{
    error::ErrorCode,
    id::{Xid, Zxid},
    jute::{Reader, Result, Writer},
    op::{self, Op},
    request::MultiHeader,
    shared::SharedBytes,
    stat::Stat,
    strings::SharedStrings,
};
use alloc::{string::String, vec::Vec};

/// A znode's data, shared with the tree. `None` is null, which is different from empty.
pub type Data = Option<SharedBytes>;

/// The result of one operation of a multi or multiRead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// create, and createTTL with the flag of another mode: the path.
    Create(String),
    /// create2, createTTL, createContainer: the path and its Stat.
    Create2(String, Stat),
    /// The znode is deleted.
    Delete,
    /// The data is set; the new Stat.
    SetData(Stat),
    /// The version is the expected one.
    Check,
    /// The data and the Stat.
    GetData(Data, Stat),
    /// The names of the children.
    GetChildren(SharedStrings),
    /// The operation was not done: its error code, or 0 if only a later operation failed.
    Error(i32),
}

/// The body of a successful reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// No body: the reply is a header.
    None,
    /// create: the path of the new znode. sync: the path of the request.
    Path(String),
    /// create2, createContainer, createTTL: the path and the Stat of the new znode.
    PathStat(String, Stat),
    /// exists, setData, setACL.
    Stat(Stat),
    /// getData.
    Data(Data, Stat),
    /// getChildren.
    Children(SharedStrings),
    /// getChildren2.
    ChildrenStat(SharedStrings, Stat),
    /// getACL. The list is an encoded vector.
    Acl(Vec<u8>, Stat),
    /// getAllChildrenNumber.
    Count(i32),
    /// getEphemerals.
    Paths(SharedStrings),
    /// addWatch: success is an error record with the code 0.
    WatchAdded,
    /// whoAmI: scheme and user of each identity.
    Identities(Vec<(String, String)>),
    /// A null buffer: the path of a sync without a path.
    Null,
    /// sasl: the server's token. `None` if no mechanism is configured, a failed login is tolerated, or the last token of
    /// the mechanism is empty.
    Token(Option<Vec<u8>>),
    /// sasl: the login has failed. The reply has this error and a null token.
    RefusedLogin(ErrorCode),
    /// multi and multiRead.
    Multi(Vec<OpResult>),
    /// A multiRead that stops at an operation that cannot be done. It is the only reply with both an error and a body.
    BrokenMultiRead(Vec<OpResult>),
}

impl Body {
    /// About how many bytes of memory the body takes beside the tree. A znode's data takes none, since it is shared.
    pub fn size(&self) -> usize {
        match self {
            Body::Children(names) | Body::ChildrenStat(names, _) | Body::Paths(names) => names.size(),
            Body::Acl(list, _) => list.len(),
            Body::Multi(results) | Body::BrokenMultiRead(results) => results.iter().map(OpResult::size).sum(),
            _ => 0,
        }
    }
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request.
    pub xid: Xid,
    /// The server's last zxid. `None` for unknown operations, for which upstream sends -1.
    pub zxid: Option<Zxid>,
    /// The body, or the error. A reply with an error has no body.
    pub result: core::result::Result<Body, ErrorCode>,
}

/// Reserves room for a frame's length. The result is the start that [`end_frame`] needs.
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    out.i32(0);
    out.len()
}

/// Fills in the length of the frame begun at `start`.
pub fn end_frame(out: &mut [u8], start: usize) {
    let length = i32::try_from(out.len() - start).expect("a frame's length fits in 31 bits");
    out[start - 4..start].copy_from_slice(&length.to_be_bytes());
}

impl Reply {
    /// Appends the whole frame.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        let start = begin_frame(out);
        self.write_header(out);
        if let Ok(body) = &self.result {
            body.write(out);
        }
        end_frame(out, start);
    }

    /// Appends the header alone, for a caller that writes the frame in parts.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        out.i32(self.xid.0);
        out.i64(self.zxid.map_or(-1, Zxid::to_wire));
        out.i32(match &self.result {
            Ok(Body::BrokenMultiRead(_)) => ErrorCode::MarshallingError.code(),
            Ok(Body::RefusedLogin(code)) => code.code(),
            Ok(_) => 0,
            Err(code) => code.code(),
        });
    }
}

impl Body {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::None => {}
            Body::Path(path) => out.string(path),
            Body::PathStat(path, stat) => {
                out.string(path);
                stat.write(out);
            }
            Body::Stat(stat) => stat.write(out),
            Body::Data(data, stat) => {
                out.buffer(data.as_deref());
                stat.write(out);
            }
            Body::Children(names) | Body::Paths(names) => names.write(out),
            Body::ChildrenStat(names, stat) => {
                names.write(out);
                stat.write(out);
            }
            Body::Acl(acls, stat) => {
                out.raw(acls);
                stat.write(out);
            }
            Body::Count(count) => out.i32(*count),
            Body::WatchAdded => out.i32(0),
            Body::Identities(ids) => {
                out.length(ids.len());
                for (scheme, user) in ids {
                    out.string(scheme);
                    out.string(user);
                }
            }
            Body::Token(token) => out.buffer(token.as_deref()),
            Body::Null | Body::RefusedLogin(_) => out.buffer(None),
            Body::Multi(results) | Body::BrokenMultiRead(results) => {
                for result in results {
                    result.write(out);
                }
                MultiHeader::END.write(out);
            }
        }
    }
}

impl OpResult {
    /// The size of the data or names in bytes.
    pub fn size(&self) -> usize {
        match self {
            OpResult::GetData(data, _) => data.as_ref().map_or(0, |data| data.len()),
            OpResult::GetChildren(names) => names.size(),
            _ => 0,
        }
    }

    /// Appends the result.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_before(out);
        match self {
            OpResult::GetData(Some(data), _) => out.raw(data),
            OpResult::GetChildren(names) => names.write(out),
            _ => {}
        }
        self.write_after(out);
    }

    /// Appends the part of the result that follows its data or names.
    pub fn write_after(&self, out: &mut Vec<u8>) {
        if let OpResult::GetData(_, stat) = self {
            stat.write(out);
        }
    }

    /// Appends the part of the result before its data or names, or the whole result if it has none.
    pub fn write_before(&self, out: &mut Vec<u8>) {
        let header = |code: i32, error| MultiHeader { code, done: false, error };
        match self {
            OpResult::Create(path) => {
                header(Op::Create.code(), 0).write(out);
                out.string(path);
            }
            OpResult::Create2(path, stat) => {
                header(Op::Create2.code(), 0).write(out);
                out.string(path);
                stat.write(out);
            }
            OpResult::Delete => header(Op::Delete.code(), 0).write(out),
            OpResult::SetData(stat) => {
                header(Op::SetData.code(), 0).write(out);
                stat.write(out);
            }
            OpResult::Check => header(Op::Check.code(), 0).write(out),
            OpResult::GetData(data, _) => {
                header(Op::GetData.code(), 0).write(out);
                match data {
                    Some(data) => out.length(data.len()),
                    None => out.buffer(None),
                }
            }
            OpResult::GetChildren(_) => header(Op::GetChildren.code(), 0).write(out),
            OpResult::Error(code) => {
                header(op::ERROR, *code).write(out);
                out.i32(*code);
            }
        }
    }
}

/// A reply's header, as a client reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The number of the request, or -1 for watch events.
    pub xid: Xid,
    /// The server's last zxid.
    pub zxid: i64,
    /// The error code; 0 for success.
    pub error: i32,
}

impl ReplyHeader {
    /// The size of the header in bytes.
    pub const SIZE: usize = 16;

    /// Reads the header. The rest of the reader is the body.
    pub fn read(r: &mut Reader<'_>) -> Result<Self> {
        Ok(ReplyHeader { xid: Xid(r.i32()?), zxid: r.i64()?, error: r.i32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_failed_multi_has_the_bytes_of_java() {
        let reply = Reply {
            xid: Xid(5),
            zxid: Some(Zxid(0x27)),
            result: Ok(Body::Multi(vec![OpResult::Error(-103), OpResult::Error(-2)])),
        };
        let mut out = Vec::new();
        reply.write_frame(&mut out);
        let mut expected = vec![0, 0, 0, 0x33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x27, 0, 0, 0, 0];
        for code in [0x99, 0xfe] {
            expected.extend([0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, code, 0xff, 0xff, 0xff, code]);
        }
        expected.extend([0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(out, expected);
    }

    #[test]
    fn an_error_reply_is_a_header_alone() {
        let mut out = Vec::new();
        Reply { xid: Xid(2), zxid: None, result: Err(ErrorCode::Unimplemented) }.write_frame(&mut out);
        assert_eq!(out.len(), 20);
        assert_eq!(out[4 + 4..4 + 12], [0xff; 8]);
    }
}
