//! The double barrier: a number of processes enter it together and leave it together.
//!
//! Each member is an ephemeral znode below the barrier's znode. A member that sees enough members creates `ready`, in
//! one multi that checks that those members still exist. So a member that gives up before that is not counted, and a
//! member that gives up later sees `ready`. Leaving works as in Curator: all members but the first delete their znodes
//! and wait for the first, which leaves last.
//!
//! A barrier is used in rounds, and a slow member can find members of the next round. So each entry has a znode of its
//! own, and a member that has deleted its znode waits only for members that were there before the deletion.

use crate::until_answered::{disconnected, fired, is_transient, pause, until_answered};
use ostler_client::{Client, Error, ErrorCode, Result, Session, SessionId, Version, Watch, Zxid, paths};
use std::time::Duration;
use uuid::Uuid;

const READY: &str = "ready";

/// A barrier that a number of processes enter together and leave together. Curator's `DistributedDoubleBarrier`;
/// processes with Curator can be among the members.
///
/// [`enter`](DistributedDoubleBarrier::enter) returns once there are enough members, or the barrier is open already.
/// [`leave`](DistributedDoubleBarrier::leave) returns once all members have left.
///
/// A member whose session ends while it waits to enter joins again. If its session ends later, the other members see it
/// leave. When this value, or a future of `enter`, is dropped, the member leaves in the background.
#[derive(Debug)]
pub struct DistributedDoubleBarrier {
    client: Client,
    path: String,
    members: usize,
    own: String,
    /// The session in which this member's znode was created, while the znode may exist.
    joined: Option<SessionId>,
    /// Members with a newer zxid have come after this member's znode was deleted.
    left_at: Option<Zxid>,
}

/// The next step of a member that wants to enter, by the names below the barrier.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    Open,
    /// Open the barrier: there are these members, which must still exist then.
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

/// The next step of a member that wants to leave, by the names below the barrier.
#[derive(Debug, PartialEq, Eq)]
enum Exit<'a> {
    /// The member's znode is gone: it waits for the members that are left.
    Gone,
    /// Only this member is left.
    Last,
    /// This member is the first and leaves last: it waits for the named one to leave.
    First { waits_for: &'a str },
    /// This member deletes its znode now, and then waits for the others, the first one above all.
    Other,
}

fn exit<'a>(names: &'a [String], own: &str) -> Exit<'a> {
    let members = members(names);
    match members[..] {
        [only] if only == own => Exit::Last,
        [first, .., last] if first == own => Exit::First { waits_for: last },
        _ if members.contains(&own) => Exit::Other,
        _ => Exit::Gone,
    }
}

/// The names of the members, in their order.
fn members(names: &[String]) -> Vec<&str> {
    let mut members: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != READY).collect();
    members.sort_unstable();
    members
}

impl DistributedDoubleBarrier {
    /// The barrier at `path`, which opens with this number of members.
    pub fn new(client: &Client, path: &str, members: usize) -> DistributedDoubleBarrier {
        DistributedDoubleBarrier {
            client: client.clone(),
            path: path.to_owned(),
            members: members.max(1),
            own: String::new(),
            joined: None,
            left_at: None,
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

    /// Waits until there are enough members, at most for `limit`. Returns false if there are not: then this process is
    /// no member any more, and the barrier was not opened with it.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// Those of [`enter`](DistributedDoubleBarrier::enter). [`Error::ConnectionLoss`]: there is no connection at the
    /// limit, so it is not known whether the barrier was opened with this member. It leaves in the background.
    pub async fn enter_within(&mut self, limit: Duration) -> Result<bool> {
        let mut entering = Entering { barrier: self, done: false };
        let Ok(entered) = tokio::time::timeout(limit, entering.wait()).await else {
            let (client, path) = (entering.barrier.client.clone(), entering.barrier.path.as_str().into());
            return tokio::select! {
                biased;
                given_up = entering.give_up() => given_up,
                () = disconnected(&client) => Err(Error::ConnectionLoss { operation: "enter", path }),
            };
        };
        entering.done = entered.is_ok();
        entered.map(|()| true)
    }

    /// Waits until all members have left. Members that come after this one has left do not count.
    ///
    /// # Errors
    /// [`Error::Closed`]; a server's refusal.
    pub async fn leave(&mut self) -> Result<()> {
        while let Some(gone) = self.step_out().await? {
            fired(gone.await)?;
        }
        Ok(())
    }

    /// Waits until all members have left, at most for `limit`. Returns false if some have not, and can be called again.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// Those of [`leave`](DistributedDoubleBarrier::leave).
    pub async fn leave_within(&mut self, limit: Duration) -> Result<bool> {
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

    /// All names below the barrier, and the last transaction that has created or deleted one of them.
    async fn names(&self) -> Result<(Vec<String>, Zxid)> {
        match until_answered(&self.client, || self.client.get_children_and_stat(&self.path)).await {
            Err(error) if error.is_no_node() => Ok((Vec::new(), Zxid::default())),
            listed => listed.map(|(names, stat)| (names, stat.pzxid)),
        }
    }

    /// Creates this member's znode in this session, unless it exists.
    async fn join(&mut self, session: &Session) -> Result<()> {
        if self.joined.is_none() {
            // A deletion of the former znode may be under way.
            self.own = Uuid::new_v4().to_string();
        }
        self.left_at = None;
        let own = self.own_path();
        let mut tries = 0;
        loop {
            let former = self.joined.replace(session.id());
            let made = session.create(&own, b"").ephemeral().idempotent().creating_container_parents().await;
            match made {
                Ok(_) => return Ok(()),
                Err(error) if error.is_node_exists() => match session.exists(&own).await? {
                    Some(stat) if stat.ephemeral_owner == session.id().0 => return Ok(()),
                    // The znode belongs to an old session that the server has not ended yet.
                    Some(_) => session.delete(&own).quietly().idempotent().await?,
                    None => {}
                },
                Err(error) if is_transient(&error) && session.is_alive() => {}
                Err(error) => {
                    self.joined = self.joined.or(former);
                    return Err(error);
                }
            }
            tries += 1;
            pause(tries).await;
        }
    }

    /// Deletes this member's znode, if it exists.
    async fn quit(&mut self) -> Result<()> {
        if self.joined.is_some() {
            let own = self.own_path();
            until_answered(&self.client, || self.client.delete(&own).quietly()).await?;
            self.joined = None;
        }
        Ok(())
    }

    /// Takes one step towards leaving. Returns the watch to wait for before the next step; `None` when all have left.
    async fn step_out(&mut self) -> Result<Option<Watch>> {
        loop {
            let (names, listed_at) = self.names().await?;
            match exit(&names, &self.own) {
                Exit::Last => {
                    if self.close().await? {
                        return Ok(None);
                    }
                }
                Exit::First { waits_for } => {
                    if let Some((gone, _)) = self.watch(waits_for).await? {
                        return Ok(Some(gone));
                    }
                }
                Exit::Other => {
                    self.left_at = Some(listed_at);
                    self.quit().await?;
                    return self.others(&names, listed_at).await;
                }
                Exit::Gone => {
                    self.joined = None;
                    let left_at = *self.left_at.get_or_insert(listed_at);
                    return self.others(&names, left_at).await;
                }
            }
        }
    }

    /// Deletes this member's znode, the last one, together with `ready`. Members that come now begin a new round.
    /// Returns false if the names must be read again.
    async fn close(&mut self) -> Result<bool> {
        let (own, ready) = (self.own_path(), self.ready());
        let delete = || self.client.multi().delete(&own).delete(&ready).send();
        match until_answered(&self.client, delete).await {
            Err(error) if error.is_no_node() => {
                self.quit().await?;
                Ok(false)
            }
            closed => {
                closed?;
                self.joined = None;
                Ok(true)
            }
        }
    }

    /// A watch of another member that was there when this one left; `None` if all of them have left.
    async fn others(&self, names: &[String], left_at: Zxid) -> Result<Option<Watch>> {
        for member in members(names).into_iter().filter(|name| *name != self.own) {
            match self.watch(member).await? {
                Some((gone, came_at)) if came_at <= left_at => return Ok(Some(gone)),
                // This member is gone, or belongs to the next round.
                _ => {}
            }
        }
        if names.iter().any(|name| name == READY) {
            self.clear(left_at).await?;
        }
        Ok(None)
    }

    /// Deletes the `ready` of this round, because the last member died before it could.
    async fn clear(&self, left_at: Zxid) -> Result<()> {
        let ready = self.ready();
        match until_answered(&self.client, || self.client.exists(&ready)).await? {
            Some(stat) if stat.czxid <= left_at => {
                until_answered(&self.client, || self.client.delete(&ready).quietly()).await
            }
            _ => Ok(()),
        }
    }

    /// A watch of a member, and the zxid of the transaction that created its znode; `None` if it is gone.
    async fn watch(&self, member: &str) -> Result<Option<(Watch, Zxid)>> {
        let path = paths::join(&self.path, member);
        let (found, gone) = until_answered(&self.client, || self.client.exists(&path).watch()).await?;
        Ok(found.map(|stat| (gone, stat.czxid)))
    }
}

impl Drop for DistributedDoubleBarrier {
    fn drop(&mut self) {
        if self.joined.is_some() {
            self.client.delete(&self.own_path()).in_background();
        }
    }
}

/// An attempt to enter. If it is dropped before it has entered, it deletes its member's znode.
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
                Err(error) if error.is_session_over() => {}
                entered => return entered,
            }
        }
    }

    async fn in_session(&mut self, session: &Session) -> Result<()> {
        self.barrier.join(session).await?;
        let (ready, own) = (self.barrier.ready(), self.barrier.own_path());
        loop {
            // The watch comes first, so that it fires for changes after the list below was read.
            let (open, opened) = until_answered(session, || session.exists(&ready).watch()).await?;
            if open.is_some() {
                return Ok(());
            }
            let names = until_answered(session, || session.get_children(&self.barrier.path)).await?;
            if !names.contains(&self.barrier.own) {
                // Another client has deleted the znode: this member joins again.
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
                Entry::TooFew => {
                    let (there, gone) = until_answered(session, || session.exists(&own).watch()).await?;
                    if there.is_some() {
                        tokio::select! {
                            // After any result the names are read again, which shows whether the session is over.
                            _ = opened => {}
                            _ = gone => {}
                            () = session.ended() => {}
                        }
                    }
                }
            }
        }
    }

    /// Opens the barrier, if all members that were counted still exist.
    async fn open(&self, session: &Session, members: &[&str]) -> Result<bool> {
        let mut multi = session.multi();
        for member in members {
            multi = multi.check(&paths::join(&self.barrier.path, member), Version::Any);
        }
        match multi.create(&self.barrier.ready(), b"").await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::NodeExists) => Ok(true),
            // A member has given up, or the reply is lost. The next list of names shows what happened.
            Err(error) if error.is_no_node() || is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends this process's membership, unless the barrier was opened with it.
    async fn give_up(mut self) -> Result<bool> {
        if self.barrier.joined.is_none() {
            return Ok(false);
        }
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
    fn members_enter_when_there_are_enough_or_the_barrier_is_open() {
        assert_eq!(entry(&names(""), 1), Entry::TooFew);
        assert_eq!(entry(&names("b"), 2), Entry::TooFew);
        assert_eq!(entry(&names("b a"), 2), Entry::Enough(vec!["a", "b"]));
        assert_eq!(entry(&names("c b a"), 2), Entry::Enough(vec!["a", "b"]));
        // Netflix/curator 99: `ready` is no member.
        assert_eq!(entry(&names("b ready"), 3), Entry::Open);
    }

    #[test]
    fn first_member_leaves_last() {
        assert_eq!(exit(&names(""), "b"), Exit::Gone);
        assert_eq!(exit(&names("ready"), "b"), Exit::Gone);
        assert_eq!(exit(&names("ready b"), "b"), Exit::Last);
        assert_eq!(exit(&names("c b d"), "b"), Exit::First { waits_for: "d" });
        assert_eq!(exit(&names("c b d"), "c"), Exit::Other);
        // It has gone already.
        assert_eq!(exit(&names("a"), "b"), Exit::Gone);
    }
}
