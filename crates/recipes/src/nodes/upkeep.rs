//! Keeping a znode there.

use crate::until_answered::{fired, is_transient, pause, until_answered};
use ostler_client::{
    Bytes, Client, CreateMode, Created, Error, EventKind, Result, Session, SessionId, Stat, Version,
};
use tokio::sync::watch;

/// The znode that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) mode: CreateMode,
    pub(crate) protected: bool,
    pub(crate) parents: bool,
    pub(crate) deleted_at_end: bool,
}

/// The wish of the owner.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) data: Bytes,
    /// Counts the changes of the data.
    pub(crate) version: u64,
    pub(crate) closed: bool,
}

/// How far it has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) path: Option<String>,
    pub(crate) creations: u64,
    /// The version of the wish that a server has.
    pub(crate) written: u64,
    /// The version of the wish that was last tried.
    pub(crate) tried: u64,
    /// Why it is not there.
    pub(crate) refused: Option<Error>,
    pub(crate) ended: bool,
}

/// Works until the owner is gone or the client is closed, and deletes the znode then.
pub(crate) async fn run(plan: Plan, wishes: watch::Receiver<Wish>, status: watch::Sender<Status>) {
    let mut upkeep = Upkeep { plan, wishes, status, place: None, former: None, attempted: None };
    if let Err(error) = upkeep.work().await {
        tracing::debug!(path = upkeep.plan.path, %error, "a znode is not kept any more");
    }
    upkeep.status.send_modify(|status| status.ended = true);
}

struct Upkeep {
    plan: Plan,
    wishes: watch::Receiver<Wish>,
    status: watch::Sender<Status>,
    /// Where it was created first; from then on it is always there.
    place: Option<String>,
    /// The session before this one, whose znode may still be there.
    former: Option<SessionId>,
    /// The session in which it was last created.
    attempted: Option<SessionId>,
}

/// The meaning of a znode that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It is taken over.
    Adopt,
    /// It belongs to a session that is over, and goes soon: it is replaced now.
    Replace,
}

fn judge(mode: CreateMode, owner: i64, now: SessionId, former: Option<SessionId>) -> Found {
    let is_former = former.is_some_and(|former| former.0 == owner && former != now);
    if mode.is_ephemeral() && is_former { Found::Replace } else { Found::Adopt }
}

/// Why there is nothing more to wait for.
enum Woken {
    Gone,
    /// There is data to be written: new, or such as was refused.
    Wish,
}

/// The result of writing data.
enum Written {
    Yes,
    /// It is tried again later.
    Refused,
    /// The znode has to be created again.
    Gone,
}

impl Upkeep {
    async fn work(&mut self) -> Result<()> {
        let mut tries = 0;
        while let Some(session) = self.session().await? {
            let error = match self.establish(&session).await {
                Ok(path) => match self.keep(&session, &path).await {
                    Ok(()) => {
                        tries = 0;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if error.is_closed() {
                return Err(error);
            }
            if !error.is_session_over() && !is_transient(&error) {
                let tried = self.wishes.borrow().version;
                self.status.send_modify(|status| {
                    status.refused = Some(error);
                    status.tried = tried;
                });
            }
            tries += 1;
            self.pause_or_close(tries).await;
        }
        self.clean_up().await
    }

    /// A session to work in; `None` once the owner is gone.
    async fn session(&mut self) -> Result<Option<Session>> {
        let mut wishes = self.wishes.clone();
        tokio::select! {
            biased;
            _ = wishes.wait_for(|wish| wish.closed) => Ok(None),
            session = self.plan.client.session() => session.map(Some),
        }
    }

    async fn pause_or_close(&mut self, tries: u32) {
        let mut wishes = self.wishes.clone();
        tokio::select! {
            () = pause(tries) => {}
            // The owner being gone is as good.
            _ = wishes.wait_for(|wish| wish.closed) => {}
        }
    }

    /// Has the znode be there, with the data of the wish.
    async fn establish(&mut self, session: &Session) -> Result<String> {
        if self.attempted.is_some_and(|attempted| attempted != session.id()) {
            self.former = self.attempted;
        }
        self.attempted = Some(session.id());
        let wish = self.wishes.borrow_and_update().clone();
        let path = loop {
            let error = match self.create(session, &wish.data).await {
                Ok(made) => break made.path,
                Err(error) if error.is_node_exists() => error,
                Err(error) => return Err(error),
            };
            let Some(place) = self.fixed_place() else { return Err(error) };
            let Some(stat) = session.exists(&place).await? else { continue };
            if self.plan.mode.is_ephemeral() && stat.ephemeral_owner == 0 {
                tracing::warn!(place, "it is there already and not ephemeral: it will stay");
            }
            match judge(self.plan.mode, stat.ephemeral_owner, session.id(), self.former) {
                // Whether it is gone or was changed, the next try to create it tells.
                Found::Replace => drop(delete(session, &place, &stat).await?),
                Found::Adopt => match session.set_data(&place, &wish.data).idempotent().await {
                    Err(error) if error.is_no_node() => {}
                    set => {
                        set?;
                        break place;
                    }
                },
            }
        };
        self.place = Some(path.clone());
        self.status.send_modify(|status| {
            status.path = Some(path.clone());
            status.creations += 1;
            status.written = wish.version;
            status.tried = wish.version;
            status.refused = None;
        });
        Ok(path)
    }

    /// The name it has for certain. One with a number or an id is known after the first creation.
    fn fixed_place(&self) -> Option<String> {
        let free = !self.plan.mode.is_sequential() && !self.plan.protected;
        self.place.clone().or_else(|| free.then(|| self.plan.path.clone()))
    }

    async fn create(&self, session: &Session, data: &[u8]) -> Result<Created> {
        let place = self.fixed_place();
        let mut create = match &place {
            Some(place) => session.create(place, data).mode(unnumbered(self.plan.mode)).idempotent(),
            None => session.create(&self.plan.path, data).mode(self.plan.mode).protected(),
        };
        if self.plan.parents {
            create = create.creating_container_parents();
        }
        create.await
    }

    /// Returns when it has to be created again, or the owner is gone.
    async fn keep(&mut self, session: &Session, path: &str) -> Result<()> {
        let mut refusals = 0;
        while !self.wishes.borrow().closed {
            let is_unwritten = self.status.borrow().written < self.wishes.borrow().version;
            let mut wishes = self.wishes.clone();
            let woken = tokio::select! {
                gone = is_gone(&self.plan.client, path) => {
                    gone?;
                    Woken::Gone
                }
                () = session.ended(), if self.plan.mode.is_ephemeral() => Woken::Gone,
                changed = wishes.changed() => match changed {
                    Ok(()) => Woken::Wish,
                    Err(_) => return Ok(()),
                },
                () = pause(refusals.max(1)), if is_unwritten => Woken::Wish,
            };
            let wish = self.wishes.borrow_and_update().clone();
            match woken {
                Woken::Gone => return Ok(()),
                Woken::Wish if wish.closed => return Ok(()),
                Woken::Wish => match self.write(session, path, &wish).await? {
                    Written::Yes => refusals = 0,
                    Written::Refused => refusals += 1,
                    Written::Gone => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// Writes the wish's data.
    async fn write(&self, session: &Session, path: &str, wish: &Wish) -> Result<Written> {
        match until_answered(session, || session.set_data(path, &wish.data)).await {
            Ok(_) => {
                self.status.send_modify(|status| {
                    status.written = wish.version;
                    status.tried = wish.version;
                    status.refused = None;
                });
                Ok(Written::Yes)
            }
            Err(error) if error.is_closed() => Err(error),
            Err(error) if error.is_no_node() || error.is_session_over() => Ok(Written::Gone),
            Err(error) => {
                self.status.send_modify(|status| {
                    status.tried = wish.version;
                    status.refused = Some(error);
                });
                Ok(Written::Refused)
            }
        }
    }

    async fn clean_up(&self) -> Result<()> {
        let Some(place) = self.fixed_place().filter(|_| self.plan.deleted_at_end) else { return Ok(()) };
        let client = &self.plan.client;
        let own: Vec<i64> = [self.attempted, self.former].into_iter().flatten().map(|own| own.0).collect();
        let (mut seen, mut tries) = (None, 0);
        loop {
            // The server may be one that has not seen it come.
            until_answered(client, || client.sync(&place)).await?;
            let Some(stat) = until_answered(client, || client.exists(&place)).await? else { return Ok(()) };
            // A znode that comes after a delete without an answer belongs to another owner.
            let is_other = *seen.get_or_insert(stat.czxid) != stat.czxid;
            if is_other || (self.plan.mode.is_ephemeral() && !own.contains(&stat.ephemeral_owner)) {
                return Ok(());
            }
            match delete(client, &place, &stat).await {
                Ok(Deleted::Changed) => {}
                Err(error) if is_transient(&error) => {}
                deleted => return deleted.map(drop),
            }
            tries += 1;
            pause(tries).await;
            client.wait_connected().await?;
        }
    }
}

/// The result of deleting a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    Gone,
    /// It is another by now, or somebody has set its data: that needs another look.
    Changed,
}

/// Deletes a znode, unless it is another by now. Not to be repeated without another look.
async fn delete(client: &Client, path: &str, stat: &Stat) -> Result<Deleted> {
    match client.delete(path).version(Version::Exactly(stat.version)).quietly().await {
        Err(error) if error.is_bad_version() => Ok(Deleted::Changed),
        deleted => deleted.map(|()| Deleted::Gone),
    }
}

/// Waits until the znode is gone.
async fn is_gone(client: &Client, path: &str) -> Result<()> {
    loop {
        let (found, changed) = until_answered(client, || client.exists(path).watch()).await?;
        if found.is_none() {
            return Ok(());
        }
        match changed.await {
            Ok(event) if event.kind == EventKind::NodeDeleted => return Ok(()),
            event => fired(event)?,
        }
    }
}

/// The mode for a name that has its number already.
fn unnumbered(mode: CreateMode) -> CreateMode {
    match mode {
        CreateMode::EphemeralSequential => CreateMode::Ephemeral,
        CreateMode::PersistentSequential => CreateMode::Persistent,
        CreateMode::PersistentSequentialWithTtl(ttl) => CreateMode::PersistentWithTtl(ttl),
        mode => mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ephemeral_of_a_former_session_is_replaced() {
        let (now, former) = (SessionId(7), Some(SessionId(5)));
        for (mode, owner, expected) in [
            (CreateMode::Ephemeral, 7, Found::Adopt),
            (CreateMode::Ephemeral, 5, Found::Replace),
            (CreateMode::Ephemeral, 6, Found::Adopt),
            (CreateMode::Ephemeral, 0, Found::Adopt),
            (CreateMode::EphemeralSequential, 5, Found::Replace),
            (CreateMode::Persistent, 5, Found::Adopt),
            (CreateMode::Persistent, 0, Found::Adopt),
        ] {
            assert_eq!(judge(mode, owner, now, former), expected, "{mode:?} {owner}");
        }
        assert_eq!(judge(CreateMode::Ephemeral, 7, now, Some(now)), Found::Adopt);
    }
}
