//! Membership of a group whose members know each other.

use crate::{
    cache::{PathChildrenCache, PathEvents},
    nodes::{Creations, PersistentNode},
};
use ostler_client::{Bytes, Client, Error, Result, paths};
use std::collections::BTreeMap;

/// The path of a member's znode. A path with more levels is refused: it could be below another member's znode.
pub(crate) fn member_path(group: &str, id: &str) -> Result<String> {
    let path = paths::join(group, id);
    if id.contains('/') || !paths::is_valid(&path) {
        return Err(Error::BadPath { path: path.into() });
    }
    Ok(path)
}

/// Membership of a group: an ephemeral znode below the group's znode, and a cache of the other members. Curator's
/// `GroupMember`.
///
/// The list of members is a little old, and does not change without a connection. A member that has died stays in the
/// list until its session has expired. Two members with the same id share one znode, and set each other's data.
///
/// [`close`](GroupMember::close) leaves the group and waits for that. When this is dropped, the member leaves in the
/// background.
#[derive(Debug)]
#[must_use = "a member that is dropped leaves the group"]
pub struct GroupMember {
    id: String,
    node: PersistentNode,
    cache: PathChildrenCache,
}

impl GroupMember {
    /// Joins the group at `path` as `id`, with data that the other members can read.
    ///
    /// # Errors
    /// [`Error::BadPath`], also if the id has a slash in it.
    pub fn start(client: &Client, path: &str, id: &str, data: impl AsRef<[u8]>) -> Result<GroupMember> {
        let node = PersistentNode::start(client, &member_path(path, id)?, data)?;
        Ok(GroupMember { id: id.to_owned(), node, cache: PathChildrenCache::start(client, path)? })
    }

    /// Waits until this member has joined and knows the other members.
    ///
    /// # Errors
    /// Those of [`PersistentNode::created`].
    pub async fn joined(&self) -> Result<()> {
        self.node.created().await?;
        self.cache.initialized().await
    }

    /// The members and their data, by id. This member is always among them.
    pub fn members(&self) -> BTreeMap<String, Bytes> {
        let others = self.cache.children();
        let mut members: BTreeMap<String, Bytes> =
            others.iter().map(|node| (node.name().to_owned(), node.data.clone())).collect();
        members.entry(self.id.clone()).or_insert_with(|| self.node.data());
        members
    }

    /// A stream of members that join, leave and change their data.
    pub fn events(&self) -> PathEvents {
        self.cache.events()
    }

    /// Sets this member's data, and waits until that is done.
    ///
    /// # Errors
    /// Those of [`PersistentNode::set_data`].
    pub async fn set_data(&self, data: impl AsRef<[u8]>) -> Result<()> {
        self.node.set_data(data).await
    }

    /// A stream with an item each time that this member has joined again, for example after its session has ended.
    pub fn joins(&self) -> Creations {
        self.node.creations()
    }

    /// Leaves the group, and waits until that is done. The list of members stays as it was. Further callers wait for the
    /// same.
    pub async fn close(&self) {
        self.cache.close().await;
        self.node.close().await;
    }
}
