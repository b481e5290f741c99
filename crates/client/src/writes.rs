//! Operations that write: setData, setACL and reconfig.

use crate::{
    client::{Client, checked},
    error::Result,
    operation::{Call, Direct, Operation, OperationContext, ReplyError, finish, spanned},
    outcome::Reply,
    reads,
    retry::Tries,
    version::Version,
};
use bytes::Bytes;
use ostler_client_core::Chroot;
use ostler_proto::{
    acl::{Acl, RawAcl},
    jute::Reader,
    request::{self, Request},
    stat::Stat,
};
use std::{borrow::Cow, future::IntoFuture};

/// A setData: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is set until it is awaited"]
pub struct SetData<'a> {
    client: &'a Client,
    path: &'a str,
    data: Cow<'a, [u8]>,
    version: Version,
    idempotent: bool,
    compressed: bool,
}

impl SetData<'_> {
    /// Sets the data only if the znode has this version; any version by default.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Replaces the data by bytes that the setData owns, such as a `Vec`, a `String` or [`Bytes`]: for one that outlives
    /// what they were made from.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = Cow::Owned(data.into());
        self
    }

    /// Compresses the data when it is sent, as Curator's `compressed`. See [`gzip`](crate::gzip). Needs the feature `gzip`.
    #[cfg(feature = "gzip")]
    pub fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Tries again after connection loss. If the znode then has this data and the next version, the first try counts as
    /// done.
    ///
    /// With [`Version::Any`], the default, a repeated try overwrites what another client has set since the first one.
    /// [`Version::Exactly`] prevents that.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Hands the operation to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<Stat> {
        if let Err(error) = checked(self.path) {
            return Operation::refused(error);
        }
        let context = self.client.context("setData", self.path);
        if !self.version.is_possible() {
            return Operation::refused(context.bad_version());
        }
        let data = packed(self.data, self.compressed);
        let first = set_data(self.client, self.path, &data, self.version);
        if !self.idempotent {
            let (client, span) = (self.client.clone(), context.span());
            return Operation::direct(Direct {
                call: first,
                client,
                context,
                decode: decode_stat,
                repeat: None,
                span,
            });
        }
        let (client, version) = (self.client.clone(), self.version);
        let data = Bytes::copy_from_slice(&data);
        spanned(
            context.span(),
            async move { set_until_known(&client, &context, &data, version, first).await },
        )
    }
}

impl IntoFuture for SetData<'_> {
    type Output = Result<Stat>;
    type IntoFuture = Operation<Stat>;

    fn into_future(self) -> Operation<Stat> {
        self.send()
    }
}

/// The bytes to send: the data, or the compressed data.
#[cfg(feature = "gzip")]
pub(crate) fn packed(data: Cow<'_, [u8]>, compressed: bool) -> Cow<'_, [u8]> {
    match compressed {
        true => Cow::Owned(crate::gzip::compress(&data)),
        false => data,
    }
}

/// The bytes to send. Without the feature `gzip` nothing is compressed.
#[cfg(not(feature = "gzip"))]
pub(crate) fn packed(data: Cow<'_, [u8]>, _: bool) -> Cow<'_, [u8]> {
    data
}

fn set_data(client: &Client, path: &str, data: &[u8], version: Version) -> Call {
    let (path, version) = (client.chroot.absolute(path), version.number());
    client.call(&Request::SetData(request::SetData { path, data: Some(data), version }))
}

fn decode_stat(reply: Reply, _: &Chroot) -> std::result::Result<Stat, ReplyError> {
    Ok(Stat::read(&mut Reader::new(&reply.ok()?.body))?)
}

async fn stat(call: Call, context: &OperationContext) -> Result<Stat> {
    finish(call, context, |reply| decode_stat(reply, &Chroot::none())).await
}

async fn set_until_known(
    client: &Client,
    context: &OperationContext,
    data: &Bytes,
    version: Version,
    first: Call,
) -> Result<Stat> {
    let mut tries = Tries::of(client);
    let mut call = first;
    loop {
        match stat(call, context).await {
            Err(error) if error.is_bad_version() && tries.may_be_done => {
                let (found, stat) =
                    client.get_data(&context.path).await.map_err(|error| tries.ended(error))?;
                return match (stat.version == version.number().wrapping_add(1), found == *data) {
                    (true, true) => Ok(stat),
                    // Another client's write has set this version.
                    (true, false) => Err(error),
                    (false, _) => Err(tries.ended(error)),
                };
            }
            Err(error) => tries.wait(error).await?,
            set => return set,
        }
        call = set_data(client, &context.path, data, version);
    }
}

/// A setACL: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is set until it is awaited"]
pub struct SetAcl<'a> {
    client: &'a Client,
    path: &'a str,
    acl: &'a [Acl],
    version: Version,
}

impl SetAcl<'_> {
    /// Sets the ACL only if it has this version (`aversion` of the Stat); any version by default.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Hands the operation to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<Stat> {
        if let Err(error) = checked(self.path) {
            return Operation::refused(error);
        }
        let context = self.client.context("setACL", self.path);
        if !self.version.is_possible() {
            return Operation::refused(context.bad_version());
        }
        let acl = self.acl.iter().map(|entry| RawAcl {
            perms: entry.perms,
            scheme: Some(entry.id.scheme.as_str().into()),
            id: Some(entry.id.id.as_str().into()),
        });
        let path = self.client.chroot.absolute(self.path);
        let request = Request::SetAcl { path, acl: Some(acl.collect()), version: self.version.number() };
        let call = self.client.call(&request);
        let (client, span) = (self.client.clone(), context.span());
        Operation::direct(Direct { call, client, context, decode: decode_stat, repeat: None, span })
    }
}

impl IntoFuture for SetAcl<'_> {
    type Output = Result<Stat>;
    type IntoFuture = Operation<Stat>;

    fn into_future(self) -> Operation<Stat> {
        self.send()
    }
}

/// A change of the ensemble: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is changed until it is awaited"]
pub struct Reconfig<'a> {
    client: &'a Client,
    change: request::Reconfig<'a>,
}

impl<'a> Reconfig<'a> {
    /// The servers to add or change: `server.N=host:port:port;port`, separated by commas.
    pub fn joining(mut self, servers: &'a str) -> Self {
        self.change.joining = Some(servers.into());
        self
    }

    /// The ids of the servers to remove, separated by commas.
    pub fn leaving(mut self, servers: &'a str) -> Self {
        self.change.leaving = Some(servers.into());
        self
    }

    /// The whole new list of servers, instead of [`joining`](Reconfig::joining) and [`leaving`](Reconfig::leaving).
    pub fn members(mut self, servers: &'a str) -> Self {
        self.change.members = Some(servers.into());
        self
    }

    /// Changes the ensemble only if its configuration has this version; -1, the default, is any version. The text of the
    /// configuration shows it after `version=`, in hexadecimal.
    pub fn config_version(mut self, version: i64) -> Self {
        self.change.current_config = version;
        self
    }

    /// Hands the operation to the client now; [`IntoFuture`] does the same.
    pub fn send(self) -> Operation<(Bytes, Stat)> {
        let call = self.client.call(&Request::Reconfig(self.change));
        let context = self.client.context("reconfig", ostler_proto::path::CONFIG);
        spanned(context.span(), async move {
            finish(call, &context, |reply| reads::data(&reply.ok()?.body)).await
        })
    }
}

impl IntoFuture for Reconfig<'_> {
    type Output = Result<(Bytes, Stat)>;
    type IntoFuture = Operation<(Bytes, Stat)>;

    fn into_future(self) -> Operation<(Bytes, Stat)> {
        self.send()
    }
}

impl Client {
    /// Sets a znode's data; returns the new Stat. The data is borrowed; [`data`](SetData::data) takes bytes that the
    /// setData owns.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// # client.create("/config", b"v1").await?;
    /// use ostler_client::Version;
    ///
    /// let stat = client.set_data("/config", b"v2").await?;
    /// client.set_data("/config", b"v3").version(Version::Exactly(stat.version)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoNode`; `BadVersion`; `NoAuth` without WRITE. [`Error::ConnectionLoss`](crate::Error::ConnectionLoss), unless
    /// it is [`idempotent`](SetData::idempotent): the data may be set or not.
    pub fn set_data<'a>(&'a self, path: &'a str, data: &'a (impl AsRef<[u8]> + ?Sized)) -> SetData<'a> {
        SetData {
            client: self,
            path,
            data: Cow::Borrowed(data.as_ref()),
            version: Version::Any,
            idempotent: false,
            compressed: false,
        }
    }

    /// Sets a znode's ACL; returns the new Stat.
    ///
    /// # Errors
    /// `NoNode`; `BadVersion`; `InvalidAcl`; `NoAuth` without ADMIN.
    /// [`Error::ConnectionLoss`](crate::Error::ConnectionLoss): the ACL may be set or not.
    pub fn set_acl<'a>(&'a self, path: &'a str, acl: &'a [Acl]) -> SetAcl<'a> {
        SetAcl { client: self, path, acl, version: Version::Any }
    }

    /// Changes the ensemble; returns the new configuration and the Stat of its znode.
    ///
    /// # Errors
    /// `ReconfigDisabled`; `NewConfigNoQuorum`; `ReconfigInProgress`; `BadVersion`; `BadArguments`; `NoAuth`.
    pub fn reconfig(&self) -> Reconfig<'_> {
        let change = request::Reconfig { joining: None, leaving: None, members: None, current_config: -1 };
        Reconfig { client: self, change }
    }
}
