//! A barrier that a number of processes enter and leave together.
//!
//! Each member is an ephemeral znode below the barrier's. The one that sees enough members creates `ready`, in one
//! multi with checks that those members still are there; so a member that gives up before that is not counted, and
//! one that gives up after that sees `ready`. Leaving is upstream's: all but the first delete their znodes and wait
//! for the first to go, which goes last.

use crate::until_answered::{passes, pause, until_answered};
use ostler_client::{Client, Error, ErrorCode, Result, Session, SessionId, Watch, paths};
use std::time::Duration;
use uuid::Uuid;

const READY: &str = "ready";

/// A barrier that a number of processes enter together, and leave together. Curator's `DistributedDoubleBarrier`.
///
/// [`enter`](DistributedDoubleBarrier::enter) returns once there are enough members, or the barrier is open already;
/// [`leave`](DistributedDoubleBarrier::leave) returns once all have left. Curator's processes can be among the members.
///
/// A member whose session ends while it waits to enter joins anew. One whose session ends after that has left as far as
/// the others can see. Dropped, and when an `enter` is dropped, it leaves in the background.
#[derive(Debug)]
pub struct DistributedDoubleBarrier {
    client: Client,
    path: String,
    members: usize,
    own: String,
    /// The session in which the own znode was created, while it may be there.
    joined: Option<SessionId>,
}

/// What the names below a barrier mean to one who wants to enter.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    Open,
    /// Enough members, who must still be there when it is opened.
    Enough(Vec<&'a str>),
    TooFew,
}

fn entry(names: &[String], members: usize) -> Entry<'_> {
    if names.iter().any(|name| name == READY) {
        return Entry::Open;
    }
    if names.len() < members {
        return Entry::TooFew;
    }
    let mut found: Vec<&str> = names.iter().map(String::as_str).collect();
    found.sort_unstable();
    found.truncate(members);
    Entry::Enough(found)
}

/// What the names below a barrier mean to one who wants to leave.
#[derive(Debug, PartialEq, Eq)]
enum Exit<'a> {
    /// All have left.
    Done,
    /// Only this one is left.
    Last,
    /// This is the first, and goes last: it waits for that one to go.
    First { waits_for: &'a str },
    /// This one goes now, and then waits for the first to go.
    Other { waits_for: &'a str },
}

fn exit<'a>(names: &'a [String], own: &str) -> Exit<'a> {
    let mut members: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != READY).collect();
    members.sort_unstable();
    match members[..] {
        [] => Exit::Done,
        [only] if only == own => Exit::Last,
        [first, .., last] if first == own => Exit::First { waits_for: last },
        [first, ..] => Exit::Other { waits_for: first },
    }
}

impl DistributedDoubleBarrier {
    /// The barrier at `path`, for so many members.
    pub fn new(client: &Client, path: &str, members: usize) -> DistributedDoubleBarrier {
        DistributedDoubleBarrier {
            client: client.clone(),
            path: path.to_owned(),
            members: members.max(1),
            own: Uuid::new_v4().to_string(),
            joined: None,
        }
    }

    /// Waits until there are enough members, or the barrier is open.
    ///
    /// # Errors
    /// [`Error::Closed`]; a server's refusal.
    pub async fn enter(&mut self) -> Result<()> {
        let entered = Entering { barrier: self, done: false };
        entered.run().await
    }

    /// Waits until there are enough members, but no longer than `limit`. False if there are not: then this one is no
    /// member any more, and nobody has entered because of it.
    ///
    /// # Errors
    /// Those of [`enter`](DistributedDoubleBarrier::enter).
    pub async fn enter_at_most(&mut self, limit: Duration) -> Result<bool> {
        let mut entering = Entering { barrier: self, done: false };
        let Ok(entered) = tokio::time::timeout(limit, entering.wait()).await else {
            return entering.give_up().await;
        };
        entering.done = entered.is_ok();
        entered.map(|()| true)
    }

    /// Waits until all have left.
    ///
    /// # Errors
    /// [`Error::Closed`]; a server's refusal.
    pub async fn leave(&mut self) -> Result<()> {
        let ready = self.ready();
        while let Some(gone) = self.step_out().await? {
            gone.await?;
        }
        until_answered(&self.client, || self.client.delete(&ready).quietly()).await
    }

    /// Waits until all have left, but no longer than `limit`; false if some have not. It can be called again.
    ///
    /// # Errors
    /// Those of [`leave`](DistributedDoubleBarrier::leave).
    pub async fn leave_at_most(&mut self, limit: Duration) -> Result<bool> {
        match tokio::time::timeout(limit, self.leave()).await {
            Ok(left) => left.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn ready(&self) -> String {
        paths::join(&self.path, READY)
    }

    fn own_path(&self) -> String {
        paths::join(&self.path, &self.own)
    }

    async fn names(&self) -> Result<Vec<String>> {
        match until_answered(&self.client, || self.client.get_children(&self.path)).await {
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            names => names,
        }
    }

    /// Has the own znode be there, in this session.
    async fn join(&mut self, session: &Session) -> Result<()> {
        let own = self.own_path();
        let mut tries = 0;
        loop {
            let former = self.joined.replace(session.id());
            let made = session.create(&own, b"").ephemeral().idempotent().creating_container_parents().await;
            match made {
                Ok(_) => return Ok(()),
                Err(error) if error.is_node_exists() => match session.exists(&own).await? {
                    Some(stat) if stat.ephemeral_owner == session.id().0 => return Ok(()),
                    // Of a session that is over, and that the server has not ended yet.
                    Some(_) => session.delete(&own).quietly().idempotent().await?,
                    None => {}
                },
                Err(error) if passes(&error) && session.is_alive() => {}
                Err(error) => {
                    self.joined = self.joined.or(former);
                    return Err(error);
                }
            }
            tries += 1;
            pause(tries).await;
        }
    }

    /// Deletes the own znode, if it is there.
    async fn quit(&mut self) -> Result<()> {
        if self.joined.is_some() {
            let own = self.own_path();
            until_answered(&self.client, || self.client.delete(&own).quietly()).await?;
            self.joined = None;
        }
        Ok(())
    }

    /// A step towards leaving; gives what to wait for before the next one, `None` when all have left.
    async fn step_out(&mut self) -> Result<Option<Watch>> {
        loop {
            let names = self.names().await?;
            let waits_for = match exit(&names, &self.own) {
                Exit::Done => return Ok(None),
                Exit::Last => {
                    self.quit().await?;
                    return Ok(None);
                }
                Exit::First { waits_for } => waits_for,
                Exit::Other { waits_for } => {
                    self.quit().await?;
                    waits_for
                }
            };
            let path = paths::join(&self.path, waits_for);
            let (found, gone) = until_answered(&self.client, || self.client.exists(&path).watch()).await?;
            if found.is_some() {
                return Ok(Some(gone));
            }
        }
    }
}

impl Drop for DistributedDoubleBarrier {
    fn drop(&mut self) {
        if self.joined.is_some() {
            self.client.delete(&self.own_path()).in_background();
        }
    }
}

/// An attempt to enter. Dropped before it is done, it leaves no member.
struct Entering<'a> {
    barrier: &'a mut DistributedDoubleBarrier,
    done: bool,
}

impl Entering<'_> {
    async fn run(mut self) -> Result<()> {
        self.wait().await?;
        self.done = true;
        Ok(())
    }

    async fn wait(&mut self) -> Result<()> {
        loop {
            let session = self.barrier.client.session().await?;
            match self.in_session(&session).await {
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) if error.is_session_over() => {}
                entered => return entered,
            }
        }
    }

    async fn in_session(&mut self, session: &Session) -> Result<()> {
        let ready = self.barrier.ready();
        self.barrier.join(session).await?;
        loop {
            // The watch first: what is not seen below is told by it.
            let (open, opened) = until_answered(session, || session.exists(&ready).watch()).await?;
            if open.is_some() {
                return Ok(());
            }
            let names = until_answered(session, || session.get_children(&self.barrier.path)).await?;
            if !names.contains(&self.barrier.own) {
                // Deleted by somebody: it joins again.
                self.barrier.join(session).await?;
                continue;
            }
            match entry(&names, self.barrier.members) {
                Entry::Open => return Ok(()),
                Entry::Enough(members) => {
                    if self.open(session, &members).await? {
                        return Ok(());
                    }
                }
                Entry::TooFew => tokio::select! {
                    opened = opened => drop(opened?),
                    () = session.ended() => {}
                },
            }
        }
    }

    /// Opens the barrier, if all who were counted still are members.
    async fn open(&self, session: &Session, members: &[&str]) -> Result<bool> {
        let mut multi = session.multi();
        for member in members {
            multi = multi.check(&paths::join(&self.barrier.path, member), -1);
        }
        match multi.create(&self.barrier.ready(), b"").commit().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::NodeExists) => Ok(true),
            // One has given up; or the reply is lost, and the next look tells.
            Err(error) if error.is_no_node() || passes(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stops to be a member, unless the barrier has been opened with it.
    async fn give_up(mut self) -> Result<bool> {
        let ready = self.barrier.ready();
        self.barrier.quit().await?;
        let client = self.barrier.client.clone();
        // Its own delete is done, so this server knows of everything before it.
        let entered = until_answered(&client, || client.exists(&ready)).await?.is_some();
        if entered {
            let session = client.session().await?;
            self.barrier.join(&session).await?;
        }
        self.done = entered;
        Ok(entered)
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        if !self.done && self.barrier.joined.take().is_some() {
            self.barrier.client.delete(&self.barrier.own_path()).in_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn who_may_enter() {
        assert_eq!(entry(&names(""), 1), Entry::TooFew);
        assert_eq!(entry(&names("b"), 2), Entry::TooFew);
        assert_eq!(entry(&names("b a"), 2), Entry::Enough(vec!["a", "b"]));
        assert_eq!(entry(&names("c b a"), 2), Entry::Enough(vec!["a", "b"]));
        // Netflix/curator 99: `ready` is no member.
        assert_eq!(entry(&names("b ready"), 3), Entry::Open);
    }

    #[test]
    fn who_leaves_when() {
        assert_eq!(exit(&names(""), "b"), Exit::Done);
        assert_eq!(exit(&names("ready"), "b"), Exit::Done);
        assert_eq!(exit(&names("ready b"), "b"), Exit::Last);
        assert_eq!(exit(&names("c b d"), "b"), Exit::First { waits_for: "d" });
        assert_eq!(exit(&names("c b d"), "c"), Exit::Other { waits_for: "b" });
        // It has gone already.
        assert_eq!(exit(&names("a"), "b"), Exit::Other { waits_for: "a" });
    }
}
