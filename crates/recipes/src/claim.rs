//! An ephemeral znode by which one process claims something, such as an item of a queue.

use crate::until_answered::{is_transient, pause, until_answered};
use ostler_client::{Client, Multi, Result, Session};
use uuid::Uuid;

/// A claim that this process holds. The znode is deleted in the background when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    session: Session,
    path: String,
    /// The znode's data: a random text by which this process recognizes its own znode.
    token: String,
    /// Whether the znode must be deleted when this is dropped.
    held: bool,
}

impl Claim {
    /// Creates the znode, or returns `None` if another process has it. Missing parents are created as containers.
    pub(crate) async fn take(client: &Client, path: &str) -> Result<Option<Claim>> {
        let token = Uuid::new_v4().to_string();
        let mut tries = 0;
        // The claim of an attempt whose reply was lost. A znode of a lost session is deleted with it.
        let mut unanswered: Option<Claim> = None;
        loop {
            let session = client.session().await?;
            let earlier = unanswered.take().filter(|claim| claim.session.id() == session.id());
            let is_repeated = earlier.is_some();
            // From here on the znode may exist.
            let mut claim = earlier.unwrap_or_else(|| Claim {
                session,
                path: path.to_owned(),
                token: token.clone(),
                held: true,
            });
            let create = claim.session.create(path, &token).ephemeral().idempotent();
            match create.creating_container_parents().await {
                Ok(_) => return Ok(Some(claim)),
                Err(error) if error.is_node_exists() && is_repeated => match claim.is_there().await {
                    Ok(true) => return Ok(Some(claim)),
                    Ok(false) => {
                        claim.held = false;
                        return Ok(None);
                    }
                    Err(error) if error.is_session_over() => {}
                    Err(error) => return Err(error),
                },
                Err(error) if error.is_node_exists() => {
                    claim.held = false;
                    return Ok(None);
                }
                Err(error) if is_transient(&error) || error.is_session_over() => unanswered = Some(claim),
                Err(error) => return Err(error),
            }
            tries += 1;
            pause(tries).await;
        }
    }

    /// Whether the znode exists and this process created it.
    async fn is_there(&self) -> Result<bool> {
        // Without sync the server may not have applied the create, or the deletion, yet.
        until_answered(&self.session, || self.session.sync(&self.path)).await?;
        match until_answered(&self.session, || self.session.get_data(&self.path)).await {
            Ok((data, _)) => Ok(data == self.token),
            Err(error) if error.is_no_node() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Repeats `ask`, a request that deletes the znode, until it is answered; `None` if the znode is gone. A request
    /// without an answer may have deleted the znode. A znode that exists after that belongs to another process.
    async fn delete_by<T, F>(&self, mut is_there: bool, ask: impl Fn() -> F) -> Result<Option<T>>
    where
        F: IntoFuture<Output = Result<T>>,
    {
        let mut tries = 0;
        loop {
            if !is_there && !self.is_there().await? {
                return Ok(None);
            }
            match ask().await {
                Err(error) if is_transient(&error) => {}
                answer => return answer.map(Some),
            }
            is_there = false;
            tries += 1;
            pause(tries).await;
            self.session.wait_connected().await?;
        }
    }

    /// Deletes the znode if it exists.
    async fn remove(&self) -> Result<()> {
        match self.delete_by(false, || self.session.delete(&self.path).quietly()).await {
            Err(error) if error.is_session_over() || error.is_closed() => Ok(()),
            removed => removed.map(|_| ()),
        }
    }

    /// Deletes the znode together with the operations that `add` adds, in one multi. Returns false if the znode has
    /// gone with its session before: then nothing was done.
    pub(crate) async fn release(mut self, add: impl for<'a> Fn(Multi<'a>) -> Multi<'a>) -> Result<bool> {
        let multi = || add(self.session.multi().delete(&self.path).and());
        let done = match self.delete_by(true, multi).await {
            Err(error) if error.is_session_over() => false,
            // A znode was deleted by another client.
            Err(error) if error.is_no_node() => {
                self.remove().await?;
                true
            }
            released => released.map(|_| true)?,
        };
        self.held = false;
        Ok(done)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if std::mem::take(&mut self.held) {
            let (session, path, token) = (self.session.clone(), self.path.clone(), self.token.clone());
            let left = Claim { session, path, token, held: false };
            self.session.runtime().spawn(async move {
                // If this fails, the session is over and the znode is deleted with it.
                let _ = left.remove().await;
            });
        }
    }
}
