//! A builder of the async client, and the client that waits for its outcome.

use super::{Client, streams::Watch};
#[cfg(feature = "gzip")]
use crate::gzip::ReadDecompressed;
use crate::{
    Acl, CreateMode, OpResult, ProtectionId, Result, Version,
    create::Create,
    delete::Delete,
    multi::{CreateOp, Multi, VersionedOp},
    multi_read::MultiRead,
    operation::Operation,
    reads::Read,
    writes::{SetAcl, SetData},
};
use std::{borrow::Cow, fmt, time::Duration};

/// An operation that is begun by [`wait`](Call::wait). It has the options of the async builder `B`, under their names.
///
/// Calls without options are begun by the method of the [`Client`] that makes them, and [`wait`](Call::wait) only waits for
/// their results: `add_auth`, `get_acl`, `get_all_children_number`, `get_ephemerals`, `sync`, `who_am_i`, `add_watch`,
/// `check_watches` and `remove_watches`. So are the calls that `send` and `watch` return.
#[must_use = "an operation has no result until wait, and most are not begun before"]
pub struct Call<'a, B: IntoFuture, Out = <B as IntoFuture>::Output> {
    client: &'a Client,
    builder: B,
    /// Makes the result of the async outcome.
    finish: fn(B::Output, &Client) -> Out,
}

impl<B: IntoFuture + fmt::Debug, Out> fmt::Debug for Call<'_, B, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.builder).finish()
    }
}

impl<'a, B: IntoFuture> Call<'a, B> {
    pub(super) fn new(client: &'a Client, builder: B) -> Call<'a, B> {
        Call { client, builder, finish: |outcome, _| outcome }
    }

    fn map<C: IntoFuture>(self, option: impl FnOnce(B) -> C) -> Call<'a, C> {
        Call::new(self.client, option(self.builder))
    }
}

impl<'a, B: IntoFuture, Out> Call<'a, B, Out> {
    pub(super) fn with(client: &'a Client, builder: B, finish: fn(B::Output, &Client) -> Out) -> Self {
        Call { client, builder, finish }
    }

    /// Hands the operation to the client, unless that is done already, and waits for its result.
    ///
    /// # Errors
    /// Those of the async operation.
    pub fn wait(self) -> Out {
        (self.finish)(self.client.block_on(self.builder), self.client)
    }
}

/// A read that sets a watch: its outcome, and the watch.
pub type WatchedRead<'a, T> = Call<'a, Operation<(T, crate::Watch)>, Result<(T, Watch)>>;

/// Options that take and return the builder.
macro_rules! options {
    ($builder:ident: $($name:ident($($argument:ident: $type:ty),*)),* $(,)?) => {
        impl<'a> Call<'a, $builder<'a>> {
            $(
                #[doc = concat!("[`", stringify!($builder), "::", stringify!($name), "`].")]
                pub fn $name(self, $($argument: $type),*) -> Self {
                    self.map(|builder| builder.$name($($argument),*))
                }
            )*
        }
    };
}

/// Hands an operation to the client without a wait.
macro_rules! sends {
    ($($builder:ident => $result:ty),* $(,)?) => {
        $(
            impl<'a> Call<'a, $builder<'a>> {
                /// Hands the operation to the client now. The call that is returned waits for its result.
                pub fn send(self) -> Call<'a, Operation<$result>> {
                    self.map($builder::send)
                }
            }
        )*
    };
}

options!(Create:
    mode(mode: CreateMode), ephemeral(), ephemeral_sequential(), sequential(), container(), ttl(ttl: Duration),
    acl(acl: impl Into<Cow<'a, [Acl]>>), without_data(), protected(), protected_as(id: ProtectionId),
    creating_parents(), creating_container_parents(), parents_acl(acl: impl Into<Cow<'a, [Acl]>>), idempotent(),
    or_set_data(), data(data: impl Into<Vec<u8>>));
options!(SetData: version(version: Version), idempotent(), data(data: impl Into<Vec<u8>>));
#[cfg(feature = "gzip")]
options!(Create: compressed());
#[cfg(feature = "gzip")]
options!(SetData: compressed());
#[cfg(feature = "gzip")]
options!(ReadDecompressed: max_size(bytes: usize));
options!(SetAcl: version(version: Version));
options!(Delete:
    version(version: Version), idempotent(), quietly(), deleting_children(), guaranteed());
options!(MultiRead: get_data(path: &str), get_children(path: &str));
sends!(
    Create => crate::Created, SetData => crate::Stat, SetAcl => crate::Stat, Delete => (),
    MultiRead => Vec<Result<crate::ReadResult>>);
#[cfg(feature = "gzip")]
sends!(ReadDecompressed => (bytes::Bytes, crate::Stat));

impl<'a> Call<'a, Delete<'a>> {
    /// [`Delete::in_background`].
    pub fn in_background(self) {
        self.builder.in_background();
    }
}

#[cfg(feature = "gzip")]
impl<'a> Call<'a, Read<'a, (bytes::Bytes, crate::Stat)>> {
    /// [`Read::decompressed`].
    pub fn decompressed(self) -> Call<'a, ReadDecompressed<'a>> {
        self.map(Read::decompressed)
    }
}

#[cfg(feature = "gzip")]
impl<'a> Call<'a, ReadDecompressed<'a>> {
    /// Reads, and sets a watch for the next change: [`ReadDecompressed::watch`].
    pub fn watch(self) -> WatchedRead<'a, (bytes::Bytes, crate::Stat)> {
        watched(self.client, self.builder.watch())
    }
}

/// The call of a read that sets a watch, which then blocks as well.
fn watched<'a, T: Send + 'static>(
    client: &'a Client,
    read: Operation<(T, crate::Watch)>,
) -> WatchedRead<'a, T> {
    Call::with(client, read, |read, client| {
        let (read, watch) = read?;
        Ok((read, Watch::new(client, watch)))
    })
}

impl<'a, T: Send + 'static> Call<'a, Read<'a, T>> {
    /// Hands the read to the client now. The call that is returned waits for its result.
    pub fn send(self) -> Call<'a, Operation<T>> {
        self.map(Read::send)
    }

    /// Reads, and sets a watch for the next change of what was read: [`Read::watch`].
    pub fn watch(self) -> WatchedRead<'a, T> {
        watched(self.client, self.builder.watch())
    }
}

impl<'a, Last> Call<'a, Multi<'a, Last>> {
    /// Hands the operations to the client now. The call that is returned waits for their results.
    pub fn send(self) -> Call<'a, Operation<Vec<OpResult>>> {
        self.map(Multi::send)
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.builder.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.builder.is_empty()
    }

    /// [`Multi::and`].
    pub fn and(self) -> Call<'a, Multi<'a>> {
        self.map(Multi::and)
    }

    /// [`Multi::check`].
    pub fn check(self, path: &str, version: Version) -> Call<'a, Multi<'a>> {
        self.map(|multi| multi.check(path, version))
    }

    /// [`Multi::create`].
    pub fn create(self, path: &str, data: impl AsRef<[u8]>) -> Call<'a, Multi<'a, CreateOp>> {
        self.map(|multi| multi.create(path, data))
    }

    /// [`Multi::delete`].
    pub fn delete(self, path: &str) -> Call<'a, Multi<'a, VersionedOp>> {
        self.map(|multi| multi.delete(path))
    }

    /// [`Multi::set_data`].
    pub fn set_data(self, path: &str, data: impl AsRef<[u8]>) -> Call<'a, Multi<'a, VersionedOp>> {
        self.map(|multi| multi.set_data(path, data))
    }
}

impl<'a> Call<'a, Multi<'a, CreateOp>> {
    /// [`Multi::mode`].
    pub fn mode(self, mode: CreateMode) -> Self {
        self.map(|multi| multi.mode(mode))
    }

    /// [`Multi::ephemeral`].
    pub fn ephemeral(self) -> Self {
        self.map(Multi::ephemeral)
    }

    /// [`Multi::ephemeral_sequential`].
    pub fn ephemeral_sequential(self) -> Self {
        self.map(Multi::ephemeral_sequential)
    }

    /// [`Multi::sequential`].
    pub fn sequential(self) -> Self {
        self.map(Multi::sequential)
    }

    /// [`Multi::container`].
    pub fn container(self) -> Self {
        self.map(Multi::container)
    }

    /// [`Multi::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|multi| multi.ttl(ttl))
    }

    /// [`Multi::without_data`].
    pub fn without_data(self) -> Self {
        self.map(Multi::without_data)
    }

    /// [`Multi::acl`].
    pub fn acl<'c>(self, acl: impl Into<Cow<'c, [Acl]>>) -> Self {
        self.map(|multi| multi.acl(acl))
    }
}

impl<'a> Call<'a, Multi<'a, VersionedOp>> {
    /// [`Multi::version`].
    pub fn version(self, version: Version) -> Self {
        self.map(|multi| multi.version(version))
    }
}
