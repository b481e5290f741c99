//! A persistent node: a znode that is created again when its session ends or another client deletes it.

use crate::nodes::upkeep::{self, Plan, Status, Wish};
use crate::polled::PolledWatch;
use futures_util::Stream;
use ostler_client::{Bytes, Client, CreateMode, Error, Result, paths};
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::watch;

/// A znode, ephemeral by default, that exists as long as this value: it is created again when its session ends or another
/// client deletes it. Curator's `PersistentNode`.
///
/// When the session ends, a watch of the znode sees a deletion and a creation. Without a connection it is not known
/// whether the znode exists.
///
/// If a znode with that name exists already, it is taken over and its data is set. If it is ephemeral and belongs to an
/// earlier session of this value, it is replaced at once, because it would be deleted with that session.
///
/// [`close`](PersistentNode::close) deletes the znode and waits for that. When this is dropped, the znode is deleted in
/// the background.
#[derive(Debug)]
#[must_use = "a node that is dropped is deleted"]
pub struct PersistentNode {
    wish: watch::Sender<Wish>,
    status: watch::Receiver<Status>,
}

/// Options of a [`PersistentNode`]; [`start`](PersistentNodeBuilder::start) creates it.
#[derive(Debug, Clone)]
#[must_use = "nothing is created until start"]
pub struct PersistentNodeBuilder {
    pub(crate) plan: Plan,
    data: Bytes,
}

/// The creations of a [`PersistentNode`]'s znode, for one reader.
#[derive(Debug)]
pub struct Creations {
    status: PolledWatch<Status>,
    seen: u64,
}

impl Creations {
    /// Waits until the znode has been created since the last call, and returns its path. Several creations can be
    /// reported as one. `None` once the node or the client is closed.
    pub async fn next(&mut self) -> Option<String> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        loop {
            {
                let status = self.status.borrow_and_update();
                if status.creations > self.seen {
                    self.seen = status.creations;
                    return Poll::Ready(status.path.clone());
                }
            }
            if ready!(self.status.poll_changed(cx)).is_none() {
                return Poll::Ready(None);
            }
        }
    }
}

impl Stream for Creations {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.poll(cx)
    }
}

impl PersistentNodeBuilder {
    /// The kind of the znode; [`CreateMode::Ephemeral`] by default.
    pub fn mode(mut self, mode: CreateMode) -> Self {
        self.plan.mode = mode;
        self
    }

    /// Puts an id into the name, as [`Create::protected`](ostler_client::Create::protected) does. Sequential nodes
    /// always have it.
    pub fn protected(mut self) -> Self {
        self.plan.protected = true;
        self
    }

    /// Does not create missing parents. While they are missing, the znode is not created. By default they are created
    /// as containers.
    pub fn without_parents(mut self) -> Self {
        self.plan.parents = false;
        self
    }

    /// Starts to create the znode and to keep it.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(mut self) -> Result<PersistentNode> {
        self.plan.protected |= self.plan.mode.is_sequential();
        if !paths::is_valid(&self.plan.path) {
            return Err(Error::BadPath { path: self.plan.path.into() });
        }
        let (wish, wishes) = watch::channel(Wish { data: self.data, version: 1, closed: false });
        let (tell, status) = watch::channel(Status::default());
        let runtime = self.plan.client.runtime().clone();
        runtime.spawn(upkeep::run(self.plan, wishes, tell));
        Ok(PersistentNode { wish, status })
    }
}

impl PersistentNode {
    /// Options of a persistent node.
    pub fn builder(client: &Client, path: &str, data: impl AsRef<[u8]>) -> PersistentNodeBuilder {
        let plan = Plan {
            client: client.clone(),
            path: path.to_owned(),
            mode: CreateMode::Ephemeral,
            protected: false,
            parents: true,
            deleted_at_end: true,
        };
        PersistentNodeBuilder { plan, data: Bytes::copy_from_slice(data.as_ref()) }
    }

    /// Starts a persistent node whose znode is ephemeral.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn start(client: &Client, path: &str, data: impl AsRef<[u8]>) -> Result<PersistentNode> {
        PersistentNode::builder(client, path, data).start()
    }

    /// Waits until the znode is created for the first time; returns its path.
    ///
    /// # Errors
    /// The server's last refusal, for example `NoAuth`. The creation is tried again in the background, and until it
    /// succeeds each call returns the refusal at once: to wait for it nevertheless, use
    /// [`creations`](PersistentNode::creations). [`Error::Closed`].
    pub async fn created(&self) -> Result<String> {
        let mut status = self.status.clone();
        let settled = |status: &Status| status.creations > 0 || status.refused.is_some() || status.ended;
        let status = status.wait_for(settled).await.map_err(|_| Error::Closed)?;
        match (&status.path, &status.refused) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(Error::Closed),
        }
    }

    /// The znode's path, including the digits of a sequential name and the id of a protected one. It is the same after
    /// each creation. `None` before the first one.
    pub fn path(&self) -> Option<String> {
        self.status.borrow().path.clone()
    }

    /// The data that the znode has, or will have.
    pub fn data(&self) -> Bytes {
        self.wish.borrow().data.clone()
    }

    /// Sets the znode's data, also before its creation, and waits until that is done. If the future is dropped, the
    /// data is set in the background.
    ///
    /// # Errors
    /// The server's refusal; the write is tried again nevertheless. [`Error::Closed`].
    pub async fn set_data(&self, data: impl AsRef<[u8]>) -> Result<()> {
        let mut version = 0;
        self.wish.send_modify(|wish| {
            wish.data = Bytes::copy_from_slice(data.as_ref());
            wish.version += 1;
            version = wish.version;
        });
        let mut status = self.status.clone();
        let settled = |status: &Status| {
            status.written >= version || status.refused.is_some() && status.tried >= version || status.ended
        };
        let status = status.wait_for(settled).await.map_err(|_| Error::Closed)?;
        match &status.refused {
            _ if status.written >= version => Ok(()),
            Some(error) => Err(error.clone()),
            None => Err(Error::Closed),
        }
    }

    /// A stream of the creations from now on. It includes the first one if that is still to come.
    pub fn creations(&self) -> Creations {
        Creations { status: PolledWatch::new(self.status.clone()), seen: self.status.borrow().creations }
    }

    /// Whether the node was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.wish.borrow().closed
    }

    /// Deletes the znode, and waits for that. If the future is dropped, the deletion goes on in the background. Further
    /// callers wait for the same.
    pub async fn close(&self) {
        self.wish.send_modify(|wish| wish.closed = true);
        // An error means that whoever could say so is gone.
        let _ = self.status.clone().wait_for(|status| status.ended).await;
    }
}

impl Drop for PersistentNode {
    fn drop(&mut self) {
        self.wish.send_modify(|wish| wish.closed = true);
    }
}
