//! A znode that is there as long as somebody wants it to be.

use crate::nodes::upkeep::{self, Plan, Status, Wish};
use ostler_client::{Bytes, Client, CreateMode, Error, Result, paths};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::sync::watch;

/// A znode that is there as long as this is: it is created again when its session ends or somebody deletes it.
/// Curator's `PersistentNode`.
///
/// Whoever watches the znode sees it go and come back when the session ends. While there is no connection it is not
/// known whether it is there.
///
/// If there is a znode of that name already, it is taken over and its data set, whoever has made it; but one that is
/// ephemeral and belongs to an earlier session of this node is replaced at once, so that it does not vanish with that
/// session later.
///
/// [`close`](PersistentNode::close) deletes it and waits for that. Dropped, it is deleted in the background.
#[derive(Debug)]
pub struct PersistentNode {
    wish: watch::Sender<Wish>,
    status: watch::Receiver<Status>,
    /// That it could not be created was told.
    refusal_told: AtomicBool,
}

/// Describes a [`PersistentNode`]; [`start`](PersistentNodeBuilder::start) makes it.
#[derive(Debug, Clone)]
#[must_use = "nothing is created until start"]
pub struct PersistentNodeBuilder {
    pub(crate) plan: Plan,
    data: Bytes,
}

/// The times that a [`PersistentNode`] is created, for one reader.
#[derive(Debug)]
pub struct Creations {
    status: watch::Receiver<Status>,
    seen: u64,
}

impl Creations {
    /// Waits until the znode is created after the last call, and gives its path; several creations can be told as one.
    /// `None` once the node or the client is closed.
    pub async fn next(&mut self) -> Option<String> {
        let seen = self.seen;
        let status = self.status.wait_for(|status| status.creations > seen).await.ok()?;
        self.seen = status.creations;
        status.path.clone()
    }
}

impl PersistentNodeBuilder {
    /// Puts an id into the name, as [`Create::protected`](ostler_client::Create::protected) does. Sequential ones
    /// always have it.
    pub fn protected(mut self) -> Self {
        self.plan.protected = true;
        self
    }

    /// Does not create the znodes above, which are containers otherwise: while they are missing, so is this.
    pub fn without_parents(mut self) -> Self {
        self.plan.parents = false;
        self
    }

    /// Begins to keep it there.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> Result<PersistentNode> {
        if !paths::is_valid(&self.plan.path) {
            return Err(Error::BadPath { path: self.plan.path.into() });
        }
        let (wish, wishes) = watch::channel(Wish { data: self.data, version: 1, closed: false });
        let (tell, status) = watch::channel(Status::default());
        let runtime = self.plan.client.runtime().clone();
        runtime.spawn(upkeep::run(self.plan, wishes, tell));
        Ok(PersistentNode { wish, status, refusal_told: AtomicBool::new(false) })
    }
}

impl PersistentNode {
    /// Begins to describe one. The mode is one of those that stay or of those that go with the session.
    pub fn builder(
        client: &Client,
        mode: CreateMode,
        path: &str,
        data: impl AsRef<[u8]>,
    ) -> PersistentNodeBuilder {
        let plan = Plan {
            client: client.clone(),
            path: path.to_owned(),
            mode,
            protected: mode.is_sequential(),
            parents: true,
            deleted_at_end: true,
        };
        PersistentNodeBuilder { plan, data: Bytes::copy_from_slice(data.as_ref()) }
    }

    /// An ephemeral one.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(client: &Client, path: &str, data: impl AsRef<[u8]>) -> Result<PersistentNode> {
        PersistentNode::builder(client, CreateMode::Ephemeral, path, data).start()
    }

    /// Waits until it is there for the first time; gives its path.
    ///
    /// # Errors
    /// The server's refusal, `NoAuth` say, once: it is tried again and again nevertheless, and another call waits for
    /// that. [`Error::Closed`].
    pub async fn created(&self) -> Result<String> {
        let mut status = self.status.clone();
        let told = self.refusal_told.load(SeqCst);
        let settled =
            |status: &Status| status.creations > 0 || status.refused.is_some() && !told || status.ended;
        let status = status.wait_for(settled).await.map_err(|_| Error::Closed)?;
        match (&status.path, &status.refused) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(error)) if !told => {
                self.refusal_told.store(true, SeqCst);
                Err(error.clone())
            }
            (None, _) => Err(Error::Closed),
        }
    }

    /// Where it is, with what the server and protection have added to the name; the same after each creation. `None`
    /// before the first.
    pub fn path(&self) -> Option<String> {
        self.status.borrow().path.clone()
    }

    /// The data that it has, or will have.
    pub fn data(&self) -> Bytes {
        self.wish.borrow().data.clone()
    }

    /// Sets its data, also before it is created, and waits until a server has it. Dropped, it is set all the same.
    ///
    /// # Errors
    /// The server's refusal; it is tried again and again nevertheless. [`Error::Closed`].
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

    /// The creations from now on, the first one included if it is still to come.
    pub fn creations(&self) -> Creations {
        Creations { status: self.status.clone(), seen: self.status.borrow().creations }
    }

    /// Deletes it, and waits until it is gone. Dropped, this goes on in the background.
    pub async fn close(self) {
        self.finish().await;
    }

    /// The same, for a node that others look at as well.
    pub(crate) async fn finish(&self) {
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
