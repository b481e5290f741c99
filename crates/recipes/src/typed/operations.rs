//! Operations with typed znodes.

use super::{Codec, Error, Result, Typed};
use crate::versioned::VersionedValue;
use ostler_client::{Acl, Bytes, Create, CreateMode, Created, SetData, Stat, Version};
use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A create of a typed znode: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is created until it is awaited"]
pub struct TypedCreate<'a>(Result<Create<'a>>);

impl<'a> TypedCreate<'a> {
    fn map(self, set: impl FnOnce(Create<'a>) -> Create<'a>) -> Self {
        TypedCreate(self.0.map(set))
    }

    /// The kind of the znode; persistent by default.
    pub fn mode(self, mode: CreateMode) -> Self {
        self.map(|create| create.mode(mode))
    }

    /// The znode's ACL. The default is [`ClientBuilder::default_acl`](ostler_client::ClientBuilder::default_acl).
    pub fn acl(self, acl: impl Into<Vec<Acl>>) -> Self {
        self.map(|create| create.acl(acl.into()))
    }

    /// Creates missing parents as persistent znodes without a value.
    pub fn creating_parents(self) -> Self {
        self.map(Create::creating_parents)
    }

    /// If the znode exists already, sets its value instead. Curator's `set`.
    pub fn or_update(self) -> Self {
        self.map(Create::or_set_data)
    }

    /// Tries again after connection loss: see [`Create::idempotent`](ostler_client::Create::idempotent).
    pub fn idempotent(self) -> Self {
        self.map(Create::idempotent)
    }
}

impl<'a> IntoFuture for TypedCreate<'a> {
    type Output = Result<Created>;
    type IntoFuture = Work<'a, Created>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.0?.await?) })
    }
}

/// An update of a typed znode: set its options, then await it.
#[derive(Debug)]
#[must_use = "nothing is updated until it is awaited"]
pub struct TypedUpdate<'a>(Result<SetData<'a>>);

impl TypedUpdate<'_> {
    /// Updates only if the znode has this version; any version by default.
    pub fn version(self, version: Version) -> Self {
        TypedUpdate(self.0.map(|set| set.version(version)))
    }

    /// Tries again after connection loss: see [`SetData::idempotent`](ostler_client::SetData::idempotent).
    pub fn idempotent(self) -> Self {
        TypedUpdate(self.0.map(SetData::idempotent))
    }
}

impl<'a> IntoFuture for TypedUpdate<'a> {
    type Output = Result<Stat>;
    type IntoFuture = Work<'a, Stat>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.0?.await?) })
    }
}

impl<T, C: Codec<T>> Typed<T, C> {
    /// Creates the znode with a value.
    ///
    /// # Errors
    /// [`Error::Encode`]; those of [`Client::create`](ostler_client::Client::create).
    pub fn create(&self, value: &T) -> TypedCreate<'_> {
        TypedCreate(self.encoded(value).map(|data| self.client.create(&self.path, b"").data(data)))
    }

    /// Sets the value of the znode, which must exist.
    ///
    /// # Errors
    /// [`Error::Encode`]; those of [`Client::set_data`](ostler_client::Client::set_data).
    pub fn update(&self, value: &T) -> TypedUpdate<'_> {
        TypedUpdate(self.encoded(value).map(|data| self.client.set_data(&self.path, b"").data(data)))
    }

    /// Reads the value.
    ///
    /// # Errors
    /// [`Error::Decode`]; those of [`Client::get_data`](ostler_client::Client::get_data).
    pub async fn read(&self) -> Result<VersionedValue<T>> {
        let (data, stat) = self.client.get_data(&self.path).await?;
        Ok(VersionedValue { value: self.decoded(&data)?, stat })
    }

    /// Reads the value; `None` if the znode does not exist.
    ///
    /// # Errors
    /// Those of [`read`](Typed::read) but `NoNode`.
    pub async fn read_if_exists(&self) -> Result<Option<VersionedValue<T>>> {
        match self.read().await {
            Err(Error::Client(error)) if error.is_no_node() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Deletes the znode if it has this version. It must have no children.
    ///
    /// # Errors
    /// Those of [`Client::delete`](ostler_client::Client::delete).
    pub async fn delete(&self, version: Version) -> Result<()> {
        Ok(self.client.delete(&self.path).version(version).await?)
    }

    /// The znode's children, as znodes with values of the same type. Their values are not read.
    ///
    /// # Errors
    /// Those of [`Client::get_children`](ostler_client::Client::get_children).
    pub async fn children(&self) -> Result<Vec<Typed<T, C>>> {
        let names = self.client.get_children(&self.path).await?;
        Ok(names.iter().map(|name| self.child(name)).collect())
    }

    fn encoded(&self, value: &T) -> Result<Vec<u8>> {
        self.codec.encode(value).map_err(|cause| Error::Encode { path: self.path.clone(), cause })
    }

    fn decoded(&self, data: &Bytes) -> Result<T> {
        self.codec.decode(data).map_err(|cause| Error::Decode { path: self.path.clone(), cause })
    }
}
