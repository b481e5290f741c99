//! Reads, and all other requests that are answered from this server's own state. Also how many bytes of answers may
//! wait.

use crate::{
    connections::{Conn, Phase},
    context::Context,
    effect::{CloseReason, Effect},
    input::{ClientRequest, ConnId, Mono, RequestHead},
    requests::{
        access, auth,
        multi_read::{self, ReadsLeft},
        watches::WatchesLeft,
    },
    server::Server,
    work,
};
use alloc::{boxed::Box, string::String, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{
    acl::{Acl, Perms, write_acls},
    error::ErrorCode,
    id::{Xid, Zxid},
    reply::{Body, OpResult, Reply},
    request::{MultiReadOp, PathWatch, Request},
    stat::{Stat, StatPersisted},
    strings::SharedStrings,
};
use ostler_tree::{Znode, watch::WatchTarget};

pub(crate) type Answer = Result<Body, ErrorCode>;

/// The most bytes of data and names in the answer of a multiRead.
pub(crate) const MULTI_READ_MAX: usize = 64 << 20;

/// The most bytes that one connection may be answered with at once, for example all reads that waited behind a write.
/// The shell takes only as many requests as stay well below it, see [`Server::reserved_bytes`].
const ANSWERED_MAX: usize = 2 * MULTI_READ_MAX;

/// Shorter lists are not kept.
const KEEP_LIST_FROM: usize = 16 << 10;

/// The most operations of a multiRead that are looked up to estimate the size of its answer.
const LOOKED_UP_MAX: usize = multi_read::SHORT_MAX;

/// A longer answer does not fit into a frame.
const FRAME_MAX: usize = i32::MAX as usize - 1024;

/// The last long list of children that was asked for.
#[derive(Debug)]
pub(crate) struct SharedList {
    path: ArcStr,
    czxid: Zxid,
    pzxid: Zxid,
    cversion: i32,
    names: SharedStrings,
}

impl SharedList {
    /// Whether this is the present list of a znode. Every change of the list changes one of the three numbers.
    fn is_of(&self, node: &Znode) -> bool {
        let stat = &node.stat;
        self.path == node.path
            && (self.czxid, self.pzxid, self.cversion) == (stat.czxid, stat.pzxid, stat.cversion)
    }
}

impl Server {
    /// Serves a request that has nothing to wait for.
    pub(crate) fn serve(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        request: &ClientRequest<'_>,
        arrived: Mono,
    ) {
        let age_ms = cx.now.mono.0.saturating_sub(arrived.0) + u64::from(request.waited_us) / 1000;
        if self.slow.is_slow(age_ms) || self.is_traced(conn, request.xid.0) {
            self.note_slow_read(cx, conn, request, arrived);
        }
        match request.request {
            Request::Unimplemented => return self.refuse_unknown(cx, conn, request.xid),
            Request::CloseSession => return self.close_local(cx, conn, request, arrived),
            Request::SetWatches(_) => {
                let head = request.head(arrived);
                let all = (request.payload.into(), WatchesLeft::of(request.payload));
                return self.set_watches(cx, conn, head, all);
            }
            _ => {}
        }
        if let Some(reads) = ReadsLeft::of(request, arrived, 0) {
            return self.read_many(cx, conn, Box::new(reads));
        }
        let answer = self.read(conn, &request.request);
        let xid = if matches!(request.request, Request::Ping) { Xid::PING } else { request.xid };
        self.answer_read(cx, conn, RequestHead { xid, ..request.head(arrived) }, answer);
    }

    /// Answers a read. Closes the connection if too many bytes were answered at once.
    pub(crate) fn answer_read(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        head: RequestHead,
        answer: Answer,
    ) {
        // Most answers have no such bytes, and need no look-up of the connection.
        let size = answer.as_ref().map_or(0, Body::size);
        if size > 0
            && let Some(state) = self.connections.get_mut(conn)
        {
            if state.answered > ANSWERED_MAX {
                return self.close(cx, conn, CloseReason::Protocol);
            }
            state.answered += size;
        }
        self.stats.read_latency_ms.add(head.age_ms(cx.now.mono));
        self.reply(cx, conn, head, answer);
    }

    /// An unknown operation. As in upstream, the answer has zxid -1, and the connection is closed.
    fn refuse_unknown(&mut self, cx: &mut Context<'_>, conn: ConnId, xid: Xid) {
        self.stats.packets_sent += 1;
        let reply = Reply { xid, zxid: None, result: Err(ErrorCode::Unimplemented) };
        cx.effects.push(Effect::Reply { conn, reply });
        self.close(cx, conn, CloseReason::Protocol);
    }

    fn read(&mut self, conn: ConnId, request: &Request<'_>) -> Answer {
        match request {
            Request::GetData(read) => self.get_data(conn, read),
            Request::Exists(read) => self.exists(conn, read),
            Request::GetChildren(read) => {
                self.get_children(conn, read).map(|(names, _)| Body::Children(names))
            }
            Request::GetChildren2(read) => {
                self.get_children(conn, read).map(|(names, stat)| Body::ChildrenStat(names, stat))
            }
            Request::GetAcl(path) => self.get_acl(conn, path),
            Request::GetAllChildrenNumber(path) => {
                self.readable(conn, path)?;
                // For the empty path upstream counts the root's entry under its other name, too.
                let extra = usize::from(path.is_empty());
                Ok(Body::Count((self.tree.count_below(path) + extra) as i32))
            }
            Request::GetEphemerals { prefix } => self.get_ephemerals(conn, prefix.as_deref()),
            Request::WhoAmI => Ok(self.who_am_i(conn)),
            Request::MultiRead { ops, broken } => {
                let (mut results, mut size) = (Vec::with_capacity(ops.len()), 0);
                for op in ops {
                    self.work.add(work::REQUEST);
                    let result = self.multi_read_op(conn, op);
                    size += result.size();
                    results.push(result);
                    if size > MULTI_READ_MAX {
                        break;
                    }
                }
                multi_read_answer(results, size, *broken)
            }
            Request::Ping => Ok(Body::None),
            Request::Sync(path) => Ok(sync_body(path.as_deref())),
            Request::AddWatch { path, mode } => self.add_watch(conn, path, *mode),
            Request::CheckWatches { path, kind } => self.check_watches(conn, path, *kind),
            Request::RemoveWatches { path, kind } => self.remove_watches(conn, path, *kind),
            _ => Err(ErrorCode::MarshallingError),
        }
    }

    /// About how many bytes the answers to a connection's waiting requests will have, with the identities that go along
    /// with each forwarded request. The caller should not read more requests while this is large: all of them are
    /// answered at once.
    pub fn reserved_bytes(&self, conn: ConnId) -> usize {
        self.connections.get(conn).map_or(0, Conn::reserved_bytes)
    }

    /// The same for all connections together, without identities.
    pub fn reserved_bytes_of_all(&self) -> usize {
        self.connections.reserved()
    }

    /// About how many bytes of the tree a read would be answered with now: data, names and lists.
    pub fn answer_size(&self, conn: ConnId, request: &Request<'_>) -> usize {
        match request {
            Request::GetData(read) => self.tree.get(&read.path).map_or(0, Znode::data_len),
            Request::GetChildren(read) | Request::GetChildren2(read) => self.list_size(&read.path),
            Request::GetAcl(path) => {
                let acl = self.tree.get(path).and_then(|node| self.tree.acl(node));
                acl.map_or(0, |list| list.size())
            }
            Request::GetEphemerals { .. } => {
                let session = self.connections.session(conn).unwrap_or_default();
                self.tree.ephemerals(session).encoded_len()
            }
            Request::MultiRead { ops, .. } => {
                // Many operations are not looked up: this is the longest possible answer.
                if ops.len() > LOOKED_UP_MAX {
                    return MULTI_READ_MAX;
                }
                let mut size = 0;
                self.work.add(ops.len());
                for op in ops {
                    size += match op {
                        MultiReadOp::GetData(path) => self.tree.get(path).map_or(0, Znode::data_len),
                        MultiReadOp::GetChildren(path) => self.list_size(path),
                    };
                    if size > MULTI_READ_MAX {
                        break;
                    }
                }
                size
            }
            _ => 0,
        }
    }

    fn list_size(&self, path: &str) -> usize {
        let Some(node) = self.tree.get(path) else { return 0 };
        self.tree.names_size(&node.path)
    }

    /// The znode, if it exists and the caller may read it.
    fn readable(&self, conn: ConnId, path: &str) -> Result<&Znode, ErrorCode> {
        let node = self.tree.get(path).ok_or(ErrorCode::NoNode)?;
        self.check_access(conn, &self.tree.acl(node), Perms::READ)?;
        Ok(node)
    }

    fn get_data(&mut self, conn: ConnId, read: &PathWatch<'_>) -> Answer {
        let node = self.readable(conn, &read.path)?;
        let (data, stat) = (node.data.clone(), self.tree.stat(node));
        self.stats.namespaces.count_read(&read.path, data.as_ref().map_or(0, |data| data.len()));
        let body = Body::Data(data, stat);
        if read.watch {
            self.watches.add_standard(WatchTarget::Data, &read.path, conn.watcher());
        }
        Ok(body)
    }

    /// A missing znode can be watched, too. An existing one must be readable (upstream 3.9.2 and later).
    fn exists(&mut self, conn: ConnId, read: &PathWatch<'_>) -> Answer {
        if read.path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let stat = match self.readable(conn, &read.path) {
            Ok(node) => {
                let stat = self.tree.stat(node);
                self.stats.namespaces.count_read(&read.path, 0);
                Ok(Body::Stat(stat))
            }
            Err(ErrorCode::NoNode) => Err(ErrorCode::NoNode),
            Err(refused) => return Err(refused),
        };
        if read.watch {
            self.watches.add_standard(WatchTarget::Data, &read.path, conn.watcher());
        }
        stat
    }

    fn get_children(
        &mut self,
        conn: ConnId,
        read: &PathWatch<'_>,
    ) -> Result<(SharedStrings, Stat), ErrorCode> {
        let node = self.readable(conn, &read.path)?;
        if self.tree.names_size(&node.path) > FRAME_MAX {
            return Err(ErrorCode::MarshallingError);
        }
        let answer = (self.share_children(node), self.tree.stat(node));
        let names = bytes_of_names(&answer.0, node);
        self.stats.namespaces.count_read(&read.path, names);
        if read.watch {
            self.watches.add_standard(WatchTarget::Children, &read.path, conn.watcher());
        }
        Ok(answer)
    }

    fn kept_list(&self, node: &Znode) -> Option<SharedStrings> {
        let kept = self.last_list.borrow();
        kept.as_ref().filter(|list| list.is_of(node)).map(|list| list.names.clone())
    }

    /// The names of a znode's children. The last long list is kept, so that repeated requests for it share the bytes.
    pub(crate) fn share_children(&self, node: &Znode) -> SharedStrings {
        if let Some(kept) = self.kept_list(node) {
            return kept;
        }
        let (names, pieces) = self.tree.shared_children(&node.path);
        self.work.add(pieces / work::NAMES);
        if names.size() >= KEEP_LIST_FROM {
            let StatPersisted { czxid, pzxid, cversion, .. } = node.stat;
            let list = SharedList { path: node.path.clone(), czxid, pzxid, cversion, names: names.clone() };
            self.last_list.replace(Some(list));
        }
        names
    }

    /// Needs READ or ADMIN; without ADMIN the hashes of digest ids are hidden.
    fn get_acl(&mut self, conn: ConnId, path: &str) -> Answer {
        let node = self.tree.get(path).ok_or(ErrorCode::NoNode)?;
        let acl = self.tree.acl(node);
        self.check_access(conn, &acl, Perms(Perms::READ.0 | Perms::ADMIN.0))?;
        let admin = self.check_access(conn, &acl, Perms::ADMIN).is_ok();
        let mut out = Vec::with_capacity(acl.as_ref().map_or(64, |list| list.size()));
        match &acl {
            None => write_acls(&mut out, &[Acl::world(Perms::ALL)]),
            Some(list) if admin => write_acls(&mut out, list),
            Some(list) => access::write_masked(&mut out, list),
        }
        self.work.add(acl.map_or(0, |list| list.len()) / work::NAMES);
        Ok(Body::Acl(out, self.tree.stat(node)))
    }

    /// The caller's own ephemerals. The prefix is compared as text: "/a" covers "/ab" too.
    fn get_ephemerals(&self, conn: ConnId, prefix: Option<&str>) -> Answer {
        // Java's trim, which removes all characters up to the space, decides whether the prefix means all paths. The
        // comparison uses the prefix as sent.
        let means_all = |prefix: &str| matches!(prefix.trim_matches(|c| c <= ' '), "" | "/");
        let prefix = prefix.filter(|prefix| !means_all(prefix)).unwrap_or("/");
        let session = self.connections.session(conn).unwrap_or_default();
        let all = self.tree.ephemerals(session);
        self.work.add(all.parts() / work::NAMES);
        let paths = all.share_prefix(prefix);
        if paths.size() > FRAME_MAX { Err(ErrorCode::MarshallingError) } else { Ok(Body::Paths(paths)) }
    }

    fn who_am_i(&self, conn: ConnId) -> Body {
        let ids = self.connections.get(conn).map_or(&[][..], |state| state.ids.all());
        let shown = ids.iter().map(|id| (String::from(&*id.scheme), auth::user_name(id)));
        Body::Identities(shown.collect())
    }

    pub(crate) fn multi_read_op(&mut self, conn: ConnId, op: &MultiReadOp<'_>) -> OpResult {
        let (MultiReadOp::GetData(path) | MultiReadOp::GetChildren(path)) = op;
        let (result, bytes) = match (self.readable(conn, path), op) {
            (Err(error), _) => return OpResult::Error(error.code()),
            (Ok(node), MultiReadOp::GetData(_)) => {
                (OpResult::GetData(node.data.clone(), self.tree.stat(node)), node.data_len())
            }
            (Ok(node), MultiReadOp::GetChildren(_)) => {
                let names = self.share_children(node);
                let bytes = bytes_of_names(&names, node);
                (OpResult::GetChildren(names), bytes)
            }
        };
        self.stats.namespaces.count_read(path, bytes);
        result
    }

    /// Whether a connection's handshake is done and its requests are taken.
    pub fn is_open(&self, conn: ConnId) -> bool {
        self.connections.get(conn).is_some_and(|state| matches!(state.phase, Phase::Open { .. }))
    }
}

/// The answer of a multiRead; an error if it is too large. A request of a few kilobytes can ask for gigabytes.
pub(crate) fn multi_read_answer(results: Vec<OpResult>, size: usize, broken: bool) -> Answer {
    match (size > MULTI_READ_MAX, broken) {
        (true, _) => Err(ErrorCode::MarshallingError),
        (false, true) => Ok(Body::BrokenMultiRead(results)),
        (false, false) => Ok(Body::Multi(results)),
    }
}

/// The bytes of the names in an encoded list, without the lengths and the count.
fn bytes_of_names(list: &SharedStrings, node: &Znode) -> usize {
    list.size().saturating_sub(4 + 4 * node.num_children as usize)
}

/// The answer of a sync: the path that it was sent with.
pub(crate) fn sync_body(path: Option<&str>) -> Body {
    path.map_or(Body::Null, |path| Body::Path(path.into()))
}
