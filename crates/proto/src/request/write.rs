//! Requests, as a client writes them.

use super::{
    Create, MultiHeader, MultiOp, MultiReadOp, PathVersion, PathWatch, Request, RequestHeader, SetData,
    SetWatches,
};
use crate::{
    acl::RawAcl,
    id::Xid,
    jute::Writer,
    op::Op,
    reply::{begin_frame, end_frame},
};
use alloc::{borrow::Cow, vec::Vec};

impl Request<'_> {
    /// The operation on the wire. `None` for `Malformed` and `Unimplemented`, which no client sends.
    pub fn op(&self) -> Option<Op> {
        Some(match self {
            Request::Create(create) => create.op,
            Request::Delete(_) => Op::Delete,
            Request::Exists(_) => Op::Exists,
            Request::GetData(_) => Op::GetData,
            Request::SetData(_) => Op::SetData,
            Request::GetAcl(_) => Op::GetAcl,
            Request::SetAcl { .. } => Op::SetAcl,
            Request::GetChildren(_) => Op::GetChildren,
            Request::GetChildren2(_) => Op::GetChildren2,
            Request::Sync(_) => Op::Sync,
            Request::Ping => Op::Ping,
            Request::Multi(_) => Op::Multi,
            Request::MultiRead { .. } => Op::MultiRead,
            Request::Reconfig(_) => Op::Reconfig,
            Request::CheckWatches { .. } => Op::CheckWatches,
            Request::RemoveWatches { .. } => Op::RemoveWatches,
            Request::Auth { .. } => Op::Auth,
            Request::Sasl(_) => Op::Sasl,
            Request::SetWatches(set) => set.op(),
            Request::AddWatch { .. } => Op::AddWatch,
            Request::GetEphemerals { .. } => Op::GetEphemerals,
            Request::GetAllChildrenNumber(_) => Op::GetAllChildrenNumber,
            Request::WhoAmI => Op::WhoAmI,
            Request::CloseSession => Op::CloseSession,
            Request::Malformed(_) | Request::Unimplemented => return None,
        })
    }

    /// Appends the whole frame. `Malformed` and `Unimplemented` have no bytes, and append nothing.
    pub fn write_frame(&self, xid: Xid, out: &mut Vec<u8>) {
        let Some(op) = self.op() else { return };
        let start = begin_frame(out);
        RequestHeader { xid, code: op.code() }.write(out);
        self.write_body(out);
        end_frame(out, start);
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match self {
            Request::Create(create) => create.write(out),
            Request::Delete(delete) => delete.write(out),
            Request::Exists(read)
            | Request::GetData(read)
            | Request::GetChildren(read)
            | Request::GetChildren2(read) => read.write(out),
            Request::SetData(set) => set.write(out),
            Request::GetAcl(path) | Request::GetAllChildrenNumber(path) => out.string(path),
            Request::SetAcl { path, acl, version } => {
                out.string(path);
                write_raw_acls(out, acl.as_deref());
                out.i32(*version);
            }
            Request::Sync(path) => write_text(out, path.as_ref()),
            Request::Multi(ops) => write_multi(out, ops),
            Request::MultiRead { ops, .. } => write_multi_read(out, ops),
            Request::Reconfig(change) => {
                write_text(out, change.joining.as_ref());
                write_text(out, change.leaving.as_ref());
                write_text(out, change.members.as_ref());
                out.i64(change.current_config);
            }
            Request::CheckWatches { path, kind }
            | Request::RemoveWatches { path, kind }
            | Request::AddWatch { path, mode: kind } => {
                out.string(path);
                out.i32(*kind);
            }
            Request::Auth { scheme, auth } => {
                // The type, which servers ignore.
                out.i32(0);
                write_text(out, scheme.as_ref());
                out.buffer(*auth);
            }
            Request::Sasl(token) => out.buffer(Some(token)),
            Request::SetWatches(set) => set.write(out),
            Request::GetEphemerals { prefix } => write_text(out, prefix.as_ref()),
            Request::Ping
            | Request::WhoAmI
            | Request::CloseSession
            | Request::Malformed(_)
            | Request::Unimplemented => {}
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: Option<&Cow<'_, str>>) {
    match text {
        Some(text) => out.string(text),
        None => out.buffer(None),
    }
}

fn write_raw_acls(out: &mut Vec<u8>, acl: Option<&[RawAcl<'_>]>) {
    let Some(entries) = acl else { return out.i32(-1) };
    out.length(entries.len());
    for entry in entries {
        out.i32(entry.perms.0);
        write_text(out, entry.scheme.as_ref());
        write_text(out, entry.id.as_ref());
    }
}

impl Create<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.string(&self.path);
        out.buffer(self.data);
        write_raw_acls(out, self.acl.as_deref());
        out.i32(self.flags);
        if self.op == Op::CreateTtl {
            out.i64(self.ttl_ms);
        }
    }
}

impl PathVersion<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.string(&self.path);
        out.i32(self.version);
    }
}

impl PathWatch<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.string(&self.path);
        out.bool(self.watch);
    }
}

impl SetData<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.string(&self.path);
        out.buffer(self.data);
        out.i32(self.version);
    }
}

impl SetWatches<'_> {
    /// setWatches, as long as no persistent watch needs setWatches2: servers before 3.6 do not have that one.
    fn op(&self) -> Op {
        match self.persistent.is_empty() && self.persistent_recursive.is_empty() {
            true => Op::SetWatches,
            false => Op::SetWatches2,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.i64(self.relative_zxid);
        write_paths(out, &self.data);
        write_paths(out, &self.exist);
        write_paths(out, &self.child);
        if self.op() == Op::SetWatches2 {
            write_paths(out, &self.persistent);
            write_paths(out, &self.persistent_recursive);
        }
    }
}

fn write_paths(out: &mut Vec<u8>, paths: &[Cow<'_, str>]) {
    out.length(paths.len());
    for path in paths {
        out.string(path);
    }
}

fn write_multi_header(out: &mut Vec<u8>, op: Op) {
    MultiHeader { code: op.code(), done: false, error: -1 }.write(out);
}

fn write_multi(out: &mut Vec<u8>, ops: &[MultiOp<'_>]) {
    for op in ops {
        match op {
            MultiOp::Create(create) => {
                write_multi_header(out, create.op);
                create.write(out);
            }
            MultiOp::Delete(delete) => {
                write_multi_header(out, Op::Delete);
                delete.write(out);
            }
            MultiOp::SetData(set) => {
                write_multi_header(out, Op::SetData);
                set.write(out);
            }
            MultiOp::Check(check) => {
                write_multi_header(out, Op::Check);
                check.write(out);
            }
        }
    }
    MultiHeader::END.write(out);
}

fn write_multi_read(out: &mut Vec<u8>, ops: &[MultiReadOp<'_>]) {
    for op in ops {
        let (op, path) = match op {
            MultiReadOp::GetData(path) => (Op::GetData, path),
            MultiReadOp::GetChildren(path) => (Op::GetChildren, path),
        };
        write_multi_header(out, op);
        out.string(path);
        out.bool(false);
    }
    MultiHeader::END.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{acl::Perms, request::Reconfig};
    use alloc::vec;

    fn acl() -> Option<Vec<RawAcl<'static>>> {
        Some(vec![RawAcl { perms: Perms::ALL, scheme: Some("world".into()), id: Some("anyone".into()) }])
    }

    fn create(op: Op, flags: i32, ttl_ms: i64) -> Create<'static> {
        Create { op, path: "/a".into(), data: Some(b"x"), acl: acl(), flags, ttl_ms }
    }

    fn check() -> PathVersion<'static> {
        PathVersion { path: "/a".into(), version: 3 }
    }

    #[test]
    fn a_server_reads_every_request_that_a_client_writes() {
        let watch = || PathWatch { path: "/a".into(), watch: true };
        let set = || SetData { path: "/a".into(), data: None, version: -1 };
        let set_watches = SetWatches {
            relative_zxid: 7,
            data: vec!["/d".into()],
            exist: vec!["/e".into()],
            ..Default::default()
        };
        let requests = [
            Request::Create(create(Op::Create, 1, -1)),
            Request::Create(create(Op::Create2, 3, -1)),
            Request::Create(create(Op::CreateTtl, 5, 99)),
            Request::Create(create(Op::CreateContainer, 4, -1)),
            Request::Delete(check()),
            Request::Exists(watch()),
            Request::GetData(watch()),
            Request::SetData(set()),
            Request::GetAcl("/a".into()),
            Request::SetAcl { path: "/a".into(), acl: acl(), version: 2 },
            Request::GetChildren(watch()),
            Request::GetChildren2(watch()),
            Request::Sync(Some("/a".into())),
            Request::Ping,
            Request::Multi(vec![
                MultiOp::Create(create(Op::Create2, 0, -1)),
                MultiOp::Delete(check()),
                MultiOp::SetData(set()),
                MultiOp::Check(check()),
            ]),
            Request::MultiRead {
                ops: vec![MultiReadOp::GetData("/a".into()), MultiReadOp::GetChildren("/b".into())],
                broken: false,
            },
            Request::Reconfig(Reconfig {
                joining: Some("server.1=a:1:2".into()),
                leaving: None,
                members: None,
                current_config: -1,
            }),
            Request::CheckWatches { path: "/a".into(), kind: 1 },
            Request::RemoveWatches { path: "/a".into(), kind: 3 },
            Request::Auth { scheme: Some("digest".into()), auth: Some(b"bob:pw") },
            Request::Sasl(b"token"),
            Request::SetWatches(SetWatches { persistent: vec!["/p".into()], ..set_watches.clone() }),
            Request::SetWatches(set_watches),
            Request::AddWatch { path: "/a".into(), mode: 1 },
            Request::GetEphemerals { prefix: None },
            Request::GetAllChildrenNumber("/".into()),
            Request::WhoAmI,
            Request::CloseSession,
        ];
        for request in requests {
            let mut out = Vec::new();
            request.write_frame(Xid(5), &mut out);
            let (header, body) = RequestHeader::read(&out[4..]).unwrap();
            assert_eq!(out.len() - 4, i32::from_be_bytes(out[..4].try_into().unwrap()) as usize);
            assert_eq!((header.xid, Some(header.code)), (Xid(5), request.op().map(Op::code)));
            assert_eq!(Request::read(header.code, body), request);
        }
    }

    #[test]
    fn a_digest_packet_has_the_bytes_of_java() {
        let mut out = Vec::new();
        Request::Auth { scheme: Some("digest".into()), auth: Some(b"bob:pw") }
            .write_frame(Xid::AUTH, &mut out);
        let mut expected = vec![0, 0, 0, 0x20, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0x64, 0, 0, 0, 0, 0, 0, 0, 6];
        expected.extend(b"digest\0\0\0\x06bob:pw");
        assert_eq!(out, expected);
    }
}
