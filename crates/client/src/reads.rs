//! Operations that read: getData, exists, getChildren, getACL, sync and the like.

use crate::{
    client::{Client, checked},
    error::Result,
    operation::{Decode, Direct, MakeRequest, Operation, ReplyError, finish, retried, spanned},
    watch::{self, Watch},
};
use bytes::Bytes;
use ostler_client_core::Chroot;
use ostler_proto::{
    acl::{Acl, Id, read_acls},
    error::ErrorCode,
    jute::Reader,
    path,
    reply::{read_identities, read_strings},
    request::{PathWatch, Request},
    stat::Stat,
};
use std::{borrow::Cow, fmt, future::IntoFuture};

type Decoded<T> = std::result::Result<T, ReplyError>;

/// A read operation: its name, and the functions that make its request and decode its reply.
pub(crate) struct ReadKind<T> {
    pub(crate) operation: &'static str,
    pub(crate) request: MakeRequest,
    pub(crate) decode: Decode<T>,
}

impl<T> Clone for ReadKind<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadKind<T> {}

/// A read of one znode: await it, or call [`watch`](Read::watch) to set a watch as well.
#[must_use = "no request is sent until it is awaited"]
pub struct Read<'a, T> {
    client: Cow<'a, Client>,
    path: &'a str,
    kind: ReadKind<T>,
}

impl<T> fmt::Debug for Read<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.kind.operation).field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(feature = "gzip")]
impl<T> Read<'_, T> {
    pub(crate) fn path(&self) -> &str {
        self.path
    }
}

impl<T: Send + 'static> Read<'_, T> {
    /// Hands the read to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<T> {
        self.client.read(self.path, self.kind)
    }

    /// Reads, and sets a watch for the next change of what was read. No change between the two is missed. If `exists`
    /// finds no znode, the watch is for its creation. The request is handed to the client now, by this call.
    pub fn watch(self) -> Operation<(T, Watch)> {
        self.client.read_and_watch(self.path, self.kind)
    }
}

impl<T: Send + 'static> IntoFuture for Read<'_, T> {
    type Output = Result<T>;
    type IntoFuture = Operation<T>;

    fn into_future(self) -> Operation<T> {
        self.send()
    }
}

const GET_DATA: ReadKind<(Bytes, Stat)> = ReadKind {
    operation: "getData",
    request: |path, watch| Request::GetData(PathWatch { path, watch }),
    decode: |reply, _| data(&reply.ok()?.body),
};

const EXISTS: ReadKind<Option<Stat>> = ReadKind {
    operation: "exists",
    request: |path, watch| Request::Exists(PathWatch { path, watch }),
    decode: |reply, _| {
        if reply.error == ErrorCode::NoNode.code() {
            return Ok(None);
        }
        Ok(Some(Stat::read(&mut Reader::new(&reply.ok()?.body))?))
    },
};

const GET_CHILDREN: ReadKind<Vec<String>> = ReadKind {
    operation: "getChildren",
    request: |path, watch| Request::GetChildren(PathWatch { path, watch }),
    decode: |reply, _| Ok(read_strings(&mut Reader::new(&reply.ok()?.body))?),
};

const GET_CHILDREN2: ReadKind<(Vec<String>, Stat)> = ReadKind {
    operation: "getChildren2",
    request: |path, watch| Request::GetChildren2(PathWatch { path, watch }),
    decode: |reply, _| {
        let body = reply.ok()?.body;
        let mut r = Reader::new(&body);
        Ok((read_strings(&mut r)?, Stat::read(&mut r)?))
    },
};

const GET_ACL: ReadKind<(Vec<Acl>, Stat)> = ReadKind {
    operation: "getACL",
    request: |path, _| Request::GetAcl(path),
    decode: |reply, _| {
        let body = reply.ok()?.body;
        let mut r = Reader::new(&body);
        Ok((read_acls(&mut r)?, Stat::read(&mut r)?))
    },
};

const GET_ALL_CHILDREN_NUMBER: ReadKind<u32> = ReadKind {
    operation: "getAllChildrenNumber",
    request: |path, _| Request::GetAllChildrenNumber(path),
    decode: |reply, _| Ok(Reader::new(&reply.ok()?.body).i32()?.max(0) as u32),
};

const GET_EPHEMERALS: ReadKind<Vec<String>> = ReadKind {
    operation: "getEphemerals",
    request: |prefix, _| Request::GetEphemerals { prefix: Some(prefix) },
    decode: |reply, chroot| {
        let paths = read_strings(&mut Reader::new(&reply.ok()?.body))?;
        // If the prefix is the root's own path, it also matches siblings of the root, such as `/app2` for `/app`.
        let ours = paths.into_iter().filter(|path| chroot.contains(path));
        Ok(ours.map(|path| crate::shared::relative(chroot, path)).collect())
    },
};

const SYNC: ReadKind<()> = ReadKind {
    operation: "sync",
    request: |path, _| Request::Sync(Some(path)),
    decode: |reply, _| reply.ok().map(drop),
};

const WHO_AM_I: ReadKind<Vec<Id>> = ReadKind {
    operation: "whoAmI",
    request: |_, _| Request::WhoAmI,
    decode: |reply, _| {
        let known = read_identities(&mut Reader::new(&reply.ok()?.body))?;
        Ok(known.into_iter().map(|(scheme, user)| Id::new(scheme, user)).collect())
    },
};

/// Reads a body of data and Stat. The data shares the body's memory.
pub(crate) fn data(body: &Bytes) -> Decoded<(Bytes, Stat)> {
    let mut r = Reader::new(body);
    let data = r.buffer()?.unwrap_or_default();
    let stat = Stat::read(&mut r)?;
    Ok((body.slice_ref(data), stat))
}

impl Client {
    /// Reads a znode's data and Stat. A znode without data reads as one with empty data.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// # client.create("/config", b"").await?;
    /// let (data, stat) = client.get_data("/config").await?;
    /// let ((data, stat), changed) = client.get_data("/config").watch().await?;
    /// client.set_data("/config", b"new").await?;
    /// assert_eq!(changed.await?.path, "/config");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoNode`; `NoAuth` without READ.
    pub fn get_data<'a>(&'a self, path: &'a str) -> Read<'a, (Bytes, Stat)> {
        Read { client: Cow::Borrowed(self), path, kind: GET_DATA }
    }

    /// Reads a znode's Stat; `None` if the znode does not exist. Curator's `checkExists`.
    ///
    /// # Errors
    /// `NoAuth` without READ, from servers since 3.8.4 and 3.9.2.
    pub fn exists<'a>(&'a self, path: &'a str) -> Read<'a, Option<Stat>> {
        Read { client: Cow::Borrowed(self), path, kind: EXISTS }
    }

    /// Reads the names of a znode's children, in no order.
    ///
    /// # Errors
    /// `NoNode`; `NoAuth` without READ.
    pub fn get_children<'a>(&'a self, path: &'a str) -> Read<'a, Vec<String>> {
        Read { client: Cow::Borrowed(self), path, kind: GET_CHILDREN }
    }

    /// Reads the names of a znode's children, in no order, and its Stat: `getChildren2`.
    ///
    /// # Errors
    /// `NoNode`; `NoAuth` without READ.
    pub fn get_children_and_stat<'a>(&'a self, path: &'a str) -> Read<'a, (Vec<String>, Stat)> {
        Read { client: Cow::Borrowed(self), path, kind: GET_CHILDREN2 }
    }

    /// Reads a znode's ACL and Stat. Digests are masked for a client without ADMIN. The request is handed to the client
    /// now, by this call.
    ///
    /// # Errors
    /// `NoNode`; `NoAuth` without READ and ADMIN.
    pub fn get_acl(&self, path: &str) -> Operation<(Vec<Acl>, Stat)> {
        self.read(path, GET_ACL)
    }

    /// Reads the number of znodes below one, at any depth. The request is handed to the client now, by this call.
    ///
    /// # Errors
    /// `NoNode`; `NoAuth` without READ.
    pub fn get_all_children_number(&self, path: &str) -> Operation<u32> {
        self.read(path, GET_ALL_CHILDREN_NUMBER)
    }

    /// Reads the paths of this session's ephemeral znodes that begin with the text `prefix`. The request is handed to
    /// the client now, by this call.
    pub fn get_ephemerals(&self, prefix: &str) -> Operation<Vec<String>> {
        self.read(prefix, GET_EPHEMERALS)
    }

    /// Brings the server that this client is connected to up to date: later reads are no older than the moment of this
    /// call, by which the request is handed to the client. The path has no effect, and need not exist.
    pub fn sync(&self, path: &str) -> Operation<()> {
        self.read(path, SYNC)
    }

    /// Reads the identities that the server has for this connection. The `id` of each is a user's name, without the
    /// digest of its password. The request is handed to the client now, by this call.
    pub fn who_am_i(&self) -> Operation<Vec<Id>> {
        self.read("/", WHO_AM_I)
    }

    /// Reads the ensemble's configuration, as text, and the Stat of its znode. With [`watch`](Read::watch) the event's path
    /// is `/zookeeper/config`, whatever the root of this handle is.
    ///
    /// # Errors
    /// `NoAuth` without READ on that znode.
    pub fn get_config(&self) -> Read<'_, (Bytes, Stat)> {
        Read { client: Cow::Owned(self.unrooted()), path: path::CONFIG, kind: GET_DATA }
    }

    /// This handle without a chroot.
    pub(crate) fn unrooted(&self) -> Client {
        Client { chroot: Chroot::none(), ..self.clone() }
    }

    fn read<T: Send + 'static>(&self, path: &str, kind: ReadKind<T>) -> Operation<T> {
        if let Err(error) = checked(path) {
            return Operation::refused(error);
        }
        let context = self.context(kind.operation, path);
        let call = self.call(&(kind.request)(self.chroot.absolute(path), false));
        let span = context.span();
        let repeat = Some(kind.request);
        Operation::direct(Direct { call, client: self.clone(), context, decode: kind.decode, repeat, span })
    }

    fn read_and_watch<T: Send + 'static>(&self, path: &str, kind: ReadKind<T>) -> Operation<(T, Watch)> {
        if let Err(error) = checked(path) {
            return Operation::refused(error);
        }
        let context = self.context(kind.operation, path);
        let client = self.clone();
        let ask = move |path: &str| {
            let pending = watch::one_shot(client.shared(), &client.chroot, path);
            let request = (kind.request)(client.chroot.absolute(path), true);
            (client.call_with_watch(&request, pending.guard.id()), pending)
        };
        let first = ask(path);
        let client = self.clone();
        spanned(context.span(), async move {
            let attempt = async |(call, pending): (_, watch::PendingWatch<Watch>)| {
                let read = finish(call, &context, |reply| (kind.decode)(reply, &client.chroot)).await?;
                Ok((read, pending.set()))
            };
            retried(&client, attempt(first), || attempt(ask(&context.path))).await
        })
    }
}
