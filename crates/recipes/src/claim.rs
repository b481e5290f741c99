//! A znode that says that somebody has something.

use crate::until_answered::{passes, pause, until_answered};
use ostler_client::{Client, Error, Multi, Result, Session, Zxid};
use tokio::runtime::Handle;
use uuid::Uuid;

/// An ephemeral znode that says that its maker has something. Dropped, it is deleted in the background.
#[derive(Debug)]
pub(crate) struct Claim {
    session: Session,
    path: String,
    /// Its data, by which it is known to be this one.
    token: String,
    zxid: Zxid,
    held: bool,
}

impl Claim {
    /// `None` if somebody else has it. The znodes above are created as containers.
    pub(crate) async fn take(client: &Client, path: &str) -> Result<Option<Claim>> {
        let token = Uuid::new_v4().to_string();
        let mut tries = 0;
        loop {
            let session = client.session().await?;
            // From here on it may be there.
            let mut claim =
                Claim { session, path: path.to_owned(), token: token.clone(), zxid: Zxid(0), held: true };
            let create = claim.session.create(path, &token).ephemeral().idempotent();
            match create.creating_container_parents().await {
                Ok(made) => {
                    claim.zxid = made.stat.czxid;
                    return Ok(Some(claim));
                }
                Err(error) if error.is_node_exists() => {
                    claim.held = false;
                    return Ok(None);
                }
                Err(Error::Closed) => return Err(Error::Closed),
                // What a lost session has made goes with it; in a living one the next try finds it.
                Err(error) if passes(&error) || error.is_session_over() => claim.held = false,
                Err(error) => return Err(error),
            }
            tries += 1;
            pause(tries).await;
        }
    }

    /// The session that it lives as long as.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The transaction that made it.
    pub(crate) fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Gives it back, and does what `add` adds in the same multi. False if it has gone with its session before: then
    /// nothing was done.
    pub(crate) async fn release(mut self, add: impl for<'a> Fn(Multi<'a>) -> Multi<'a>) -> Result<bool> {
        let session = self.session.clone();
        let multi = || add(session.multi().delete(&self.path, -1));
        let done = match until_answered(&session, multi).await {
            Err(error) if error.is_session_over() && !matches!(error, Error::Closed) => false,
            // A try whose reply was lost has done it; or something was removed by hand.
            Err(error) if error.is_no_node() => {
                remove(&session, &self.path, &self.token).await?;
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
        if self.held
            && let Ok(runtime) = Handle::try_current()
        {
            let (session, path, token) = (self.session.clone(), self.path.clone(), self.token.clone());
            runtime.spawn(async move {
                // In another session it is gone by itself.
                let _ = remove(&session, &path, &token).await;
            });
        }
    }
}

/// Deletes a claim if it is this one.
async fn remove(session: &Session, path: &str, token: &str) -> Result<()> {
    let removed = async {
        let (data, stat) = until_answered(session, || session.get_data(path)).await?;
        if data != token {
            return Ok(());
        }
        until_answered(session, || session.delete(path).version(stat.version).quietly()).await
    };
    match removed.await {
        Err(error) if error.is_no_node() || error.is_session_over() => Ok(()),
        removed => removed,
    }
}
