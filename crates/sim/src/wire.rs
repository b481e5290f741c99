//! Encodes requests as a client sends them.

use ostler_proto::{
    acl::{Acl, Perms, write_acls},
    id::Xid,
    jute::Writer,
    op::{self, Op},
    request::{MultiHeader, RequestHeader},
};

/// A request without its xid: operation code and body.
#[derive(Debug, Clone)]
pub(crate) struct WireRequest {
    pub(crate) code: i32,
    pub(crate) body: Vec<u8>,
    /// The ACLs in the request, with their paths.
    pub(crate) acls: Vec<(String, Vec<Acl>)>,
}

impl WireRequest {
    pub(crate) fn new(op: Op, write: impl FnOnce(&mut Vec<u8>)) -> WireRequest {
        let mut body = Vec::new();
        write(&mut body);
        WireRequest { code: op.code(), body, acls: Vec::new() }
    }

    /// The frame's payload.
    pub(crate) fn payload(&self, xid: Xid) -> Vec<u8> {
        let mut out = Vec::new();
        RequestHeader { xid, code: self.code }.write(&mut out);
        out.extend(&self.body);
        out
    }
}

/// A create request. The default is an empty persistent znode that everybody may change.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest {
    op: Op,
    path: String,
    data: Option<Vec<u8>>,
    acls: Vec<Acl>,
    flags: i32,
    ttl_ms: i64,
}

pub(crate) fn create(path: &str) -> CreateRequest {
    let acls = vec![Acl::world(Perms::ALL)];
    CreateRequest { op: Op::Create, path: path.into(), data: Some(Vec::new()), acls, flags: 0, ttl_ms: -1 }
}

impl CreateRequest {
    pub(crate) fn data(mut self, data: &[u8]) -> CreateRequest {
        self.data = Some(data.into());
        self
    }

    pub(crate) fn no_data(mut self) -> CreateRequest {
        self.data = None;
        self
    }

    pub(crate) fn ephemeral(mut self) -> CreateRequest {
        self.flags |= 1;
        self
    }

    pub(crate) fn sequential(mut self) -> CreateRequest {
        self.flags |= 2;
        self
    }

    pub(crate) fn container(mut self) -> CreateRequest {
        (self.op, self.flags) = (Op::CreateContainer, 4);
        self
    }

    pub(crate) fn ttl(mut self, ttl_ms: i64) -> CreateRequest {
        (self.op, self.flags, self.ttl_ms) = (Op::CreateTtl, 5, ttl_ms);
        self
    }

    pub(crate) fn with_stat(mut self) -> CreateRequest {
        self.op = Op::Create2;
        self
    }

    pub(crate) fn acl(mut self, acls: &[Acl]) -> CreateRequest {
        self.acls = acls.into();
        self
    }
}

impl From<CreateRequest> for WireRequest {
    fn from(create: CreateRequest) -> WireRequest {
        let ask = WireRequest::new(create.op, |out| {
            out.string(&create.path);
            out.buffer(create.data.as_deref());
            write_acls(out, &create.acls);
            out.i32(create.flags);
            if create.op == Op::CreateTtl {
                out.i64(create.ttl_ms);
            }
        });
        WireRequest { acls: vec![(create.path, create.acls)], ..ask }
    }
}

fn path_version(op: Op, path: &str, version: i32) -> WireRequest {
    WireRequest::new(op, |out| {
        out.string(path);
        out.i32(version);
    })
}

fn path_watch(op: Op, path: &str, watch: bool) -> WireRequest {
    WireRequest::new(op, |out| {
        out.string(path);
        out.bool(watch);
    })
}

pub(crate) fn delete(path: &str) -> WireRequest {
    delete_at(path, -1)
}

pub(crate) fn delete_at(path: &str, version: i32) -> WireRequest {
    path_version(Op::Delete, path, version)
}

/// Only inside a multi.
pub(crate) fn check(path: &str, version: i32) -> WireRequest {
    path_version(Op::Check, path, version)
}

pub(crate) fn set(path: &str, data: &[u8]) -> WireRequest {
    set_at(path, Some(data), -1)
}

pub(crate) fn set_at(path: &str, data: Option<&[u8]>, version: i32) -> WireRequest {
    WireRequest::new(Op::SetData, |out| {
        out.string(path);
        out.buffer(data);
        out.i32(version);
    })
}

pub(crate) fn set_acl(path: &str, acls: &[Acl], version: i32) -> WireRequest {
    let ask = WireRequest::new(Op::SetAcl, |out| {
        out.string(path);
        write_acls(out, acls);
        out.i32(version);
    });
    WireRequest { acls: vec![(path.into(), acls.into())], ..ask }
}

pub(crate) fn get_acl(path: &str) -> WireRequest {
    WireRequest::new(Op::GetAcl, |out| out.string(path))
}

pub(crate) fn get(path: &str) -> WireRequest {
    path_watch(Op::GetData, path, false)
}

pub(crate) fn get_and_watch(path: &str) -> WireRequest {
    path_watch(Op::GetData, path, true)
}

pub(crate) fn exists(path: &str) -> WireRequest {
    path_watch(Op::Exists, path, false)
}

pub(crate) fn exists_and_watch(path: &str) -> WireRequest {
    path_watch(Op::Exists, path, true)
}

pub(crate) fn children(path: &str) -> WireRequest {
    path_watch(Op::GetChildren, path, false)
}

pub(crate) fn children_and_watch(path: &str) -> WireRequest {
    path_watch(Op::GetChildren, path, true)
}

pub(crate) fn children2(path: &str, watch: bool) -> WireRequest {
    path_watch(Op::GetChildren2, path, watch)
}

pub(crate) fn sync(path: &str) -> WireRequest {
    WireRequest::new(Op::Sync, |out| out.string(path))
}

pub(crate) fn ping() -> WireRequest {
    WireRequest::new(Op::Ping, |_| ())
}

pub(crate) fn close_session() -> WireRequest {
    WireRequest::new(Op::CloseSession, |_| ())
}

/// A request with an unknown operation code.
pub(crate) fn unknown() -> WireRequest {
    WireRequest { code: 77, body: Vec::new(), acls: Vec::new() }
}

pub(crate) fn auth(scheme: &str, proof: &[u8]) -> WireRequest {
    WireRequest::new(Op::Auth, |out| {
        out.i32(0);
        out.string(scheme);
        out.buffer(Some(proof));
    })
}

/// A token of a login.
pub(crate) fn sasl(token: &[u8]) -> WireRequest {
    WireRequest::new(Op::Sasl, |out| out.buffer(Some(token)))
}

/// addWatch with a persistent watch.
pub(crate) fn watch_always(path: &str, recursive: bool) -> WireRequest {
    WireRequest::new(Op::AddWatch, |out| {
        out.string(path);
        out.i32(recursive.into());
    })
}

/// removeWatches; kinds are 1 children, 2 data, 3 any, 4 persistent, 5 recursive.
pub(crate) fn remove_watches(path: &str, kind: i32) -> WireRequest {
    path_version(Op::RemoveWatches, path, kind)
}

pub(crate) fn check_watches(path: &str, kind: i32) -> WireRequest {
    path_version(Op::CheckWatches, path, kind)
}

/// A reconfiguration: configuration lines of servers that join, and ids of servers that leave.
pub(crate) fn reconfig(joining: Option<&str>, leaving: Option<&str>) -> WireRequest {
    WireRequest::new(Op::Reconfig, |out| {
        for list in [joining, leaving, None] {
            match list {
                Some(list) => out.string(list),
                None => out.buffer(None),
            }
        }
        out.i64(-1);
    })
}

/// A reconfiguration by the whole list of servers.
pub(crate) fn reconfig_as_a_whole(list: &str) -> WireRequest {
    WireRequest::new(Op::Reconfig, |out| {
        out.buffer(None);
        out.buffer(None);
        out.string(list);
        out.i64(-1);
    })
}

/// The paths that a client watches, for `setWatches` after a reconnect.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedPaths<'a> {
    pub(crate) data: &'a [&'a str],
    pub(crate) exist: &'a [&'a str],
    pub(crate) child: &'a [&'a str],
    pub(crate) persistent: &'a [&'a str],
    pub(crate) recursive: &'a [&'a str],
}

/// setWatches with the last zxid that the client has seen. It has one-shot watches only.
pub(crate) fn set_one_shot_watches(seen: i64, watched: &WatchedPaths<'_>) -> WireRequest {
    WireRequest::new(Op::SetWatches, |out| {
        out.i64(seen);
        for paths in [watched.data, watched.exist, watched.child] {
            out.length(paths.len());
            paths.iter().for_each(|path| out.string(path));
        }
    })
}

/// setWatches2 with the last zxid that the client has seen.
pub(crate) fn set_watches(seen: i64, watched: &WatchedPaths<'_>) -> WireRequest {
    WireRequest::new(Op::SetWatches2, |out| {
        out.i64(seen);
        for paths in [watched.data, watched.exist, watched.child, watched.persistent, watched.recursive] {
            out.length(paths.len());
            for path in paths {
                out.string(path);
            }
        }
    })
}

pub(crate) fn multi(asks: &[WireRequest]) -> WireRequest {
    let acls = asks.iter().flat_map(|ask| ask.acls.clone()).collect();
    let ask = WireRequest::new(Op::Multi, |out| {
        for ask in asks {
            MultiHeader { code: ask.code, done: false, error: op::ERROR }.write(out);
            out.extend(&ask.body);
        }
        MultiHeader::END.write(out);
    });
    WireRequest { acls, ..ask }
}
