//! Divides a set of items among the members of a group, so that each item has one owner.
//!
//! Curator has no such recipe; kazoo calls it `SetPartitioner`. Members are ephemeral znodes below `path/party`. Each item
//! has a mutex below `path/locks`, and its owner holds it. So no member gets an item before its former owner has released
//! it, also while the members see different lists of each other.
//!
//! ```text
//!           acquire: settled, all locks taken
//! member ----------------------------------------> Share
//!    ^                                               | ended: MembersChanged,
//!    |                    release                    v        Suspended or Lost
//!    +------------------------------------------- ShareEnd
//! ```

use crate::{
    error::{Error, Result},
    fencing::{Fence, Token},
    lock::{InterProcessMutex, MutexGuard},
    nodes::{PersistentNode, member_path},
    until_answered::{fired, pause, until_answered},
};
use futures_util::{
    StreamExt,
    future::{FutureExt, Shared, try_join_all},
    stream::FuturesUnordered,
};
use ostler_client::{Client, Watch, paths};
use std::{collections::BTreeSet, future::pending, time::Duration};
use tokio::time::timeout;

/// A member of a group that divides a set of items.
///
/// ```
/// # use ostler_recipes::partitioner::SetPartitioner;
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// let shards = ["a", "b", "c"].map(str::to_owned);
/// # let same = shards.clone();
/// let settle = Duration::from_secs(10);
/// # let settle = Duration::from_millis(5);
/// let mut member = SetPartitioner::start(&client, "/shards", "me", shards, settle)?;
/// loop {
///     let share = member.acquire().await?;
///     println!("mine now: {:?}", share.items());
///     for (shard, fence) in share.fences() {
///         // Done only as long as the shard is this member's.
///         match fence.multi().create(&format!("/done-{shard}"), b"").await {
///             Err(error) if error.is_not_held() => break, // the share has ended
///             done => drop(done?),
///         }
///     }
/// #   let other = SetPartitioner::start(&client, "/shards", "other", same.clone(), settle)?;
///     let end = share.ended().await; // work until then, and stop
///     println!("{end:?}");
///     share.release().await?;
/// #   drop(other);
/// #   return Ok(());
/// }
/// # }
/// ```
///
/// When a member is dropped, it leaves the group in the background. A [`Share`] that it has given out is held all the
/// same until the share is released or dropped: other members wait for its items.
#[derive(Debug)]
#[must_use = "a member that is dropped leaves the group"]
pub struct SetPartitioner {
    client: Client,
    path: String,
    id: String,
    items: BTreeSet<String>,
    settle: Duration,
    member: PersistentNode,
}

/// The items that a member owns. They are released in the background when this is dropped.
#[derive(Debug)]
#[must_use = "a share that is dropped is released"]
pub struct Share {
    owned: Vec<OwnedItem>,
    /// Fires when a member joins or leaves.
    members: Shared<Watch>,
}

type OwnedItem = (String, MutexGuard);

/// The reason for which a share must be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShareEnd {
    /// A member has joined or left. `RELEASE` in kazoo.
    MembersChanged,
    /// The connection is lost, and the session may be lost soon.
    Suspended,
    /// The session is lost, or an item's znode is gone or may not be read any more: other members may own items
    /// already. `FAILURE` in kazoo.
    Lost,
}

/// The items of a member: every n-th item, from its own place in the order of the n members on.
fn share_of<'a>(own: &str, members: &[String], items: &'a BTreeSet<String>) -> Option<Vec<&'a str>> {
    let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
    let place = members.iter().position(|member| *member == own)?;
    Some(items.iter().skip(place).step_by(members.len()).map(String::as_str).collect())
}

impl SetPartitioner {
    /// Joins the group at `path` as `id`, which no other member may use. All members must be given the same items.
    /// Items are used as names of znodes. The set is divided once no member has joined or left for `settle`.
    ///
    /// # Errors
    /// [`BadPath`](ostler_client::Error::BadPath), also if the id or an item has a slash in it.
    pub fn start(
        client: &Client,
        path: &str,
        id: &str,
        items: impl IntoIterator<Item = String>,
        settle: Duration,
    ) -> Result<SetPartitioner> {
        let items: BTreeSet<String> = items.into_iter().collect();
        let locks = paths::join(path, "locks");
        for item in &items {
            member_path(&locks, item)?;
        }
        let party = paths::join(path, "party");
        let member = PersistentNode::start(client, &member_path(&party, id)?, b"")?;
        let (client, path, id) = (client.clone(), path.to_owned(), id.to_owned());
        Ok(SetPartitioner { client, path, id, items, settle, member })
    }

    /// Waits until the members have settled and the former owners have released this member's items, and takes them. If
    /// the future is dropped, what it has taken is released in the background.
    ///
    /// Release or drop an earlier share first: this waits for each item of it, as for an item of another member.
    ///
    /// # Errors
    /// [`Error::Closed`]: the member has left. [`Error::Client`]: the client is closed, or a server refuses a request.
    pub async fn acquire(&mut self) -> Result<Share> {
        if self.member.is_closed() {
            return Err(Error::Closed { path: self.path.as_str().into() });
        }
        self.member.created().await?;
        loop {
            if let Some(share) = self.attempt().await? {
                return Ok(share);
            }
        }
    }

    /// Leaves the group, and waits until that is done: the other members divide the items anew. Release the share first;
    /// its items stay this member's until then. Further callers wait for the same.
    pub async fn close(&self) {
        self.member.close().await;
    }

    /// Tries once; `None` if the members have changed meanwhile.
    async fn attempt(&self) -> Result<Option<Share>> {
        let party = paths::join(&self.path, "party");
        let look = || self.client.get_children(&party).watch();
        let (names, mut members) = match until_answered(&self.client, look).await {
            // Another client has deleted the members' parent; this member creates it again with its own znode.
            Err(error) if error.is_no_node() => {
                pause(1).await;
                return Ok(None);
            }
            found => found?,
        };
        if let Ok(changed) = timeout(self.settle, &mut members).await {
            fired(changed)?;
            return Ok(None);
        }
        let Some(items) = share_of(&self.id, &names, &self.items) else {
            // This member's session has ended, and it is about to join again.
            fired(members.await)?;
            return Ok(None);
        };
        let taking = try_join_all(items.into_iter().map(|item| self.take(item)));
        tokio::select! {
            biased;
            changed = &mut members => {
                fired(changed)?;
                Ok(None)
            }
            owned = taking => Ok(Some(Share { owned: owned?, members: members.shared() })),
        }
    }

    /// Takes an item as soon as its former owner releases it.
    async fn take(&self, item: &str) -> Result<OwnedItem> {
        let lock =
            InterProcessMutex::new(&self.client, &paths::join(&paths::join(&self.path, "locks"), item));
        let mut tries = 0;
        loop {
            match lock.acquire().await {
                Err(error) if error.is_retryable() => {
                    tries += 1;
                    pause(tries).await;
                }
                guard => return Ok((item.to_owned(), guard?)),
            }
        }
    }
}

impl Share {
    /// The items of this share.
    pub fn items(&self) -> Vec<&str> {
        self.owned.iter().map(|(item, _)| item.as_str()).collect()
    }

    /// The items of this share, each with its fence.
    pub fn fences(&self) -> impl Iterator<Item = (&str, &Fence)> {
        self.owned.iter().map(|(item, guard)| (item.as_str(), guard.fence()))
    }

    /// The fence of an item, for transactions that are done only as long as this member owns it. `None` if the item is
    /// not in this share.
    pub fn fence(&self, item: &str) -> Option<&Fence> {
        self.fences().find(|(owned, _)| *owned == item).map(|(_, fence)| fence)
    }

    /// The fencing token of an item: a number that grows from owner to owner, by which another store can refuse writes
    /// of a former owner. `None` if the item is not in this share.
    pub fn token(&self, item: &str) -> Option<Token> {
        self.fence(item).map(Fence::token)
    }

    /// Whether all items are still held, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.owned.iter().all(|(_, guard)| guard.is_held())
    }

    /// Waits until the share must be released, and returns the reason. This sets a watch at each item's znode.
    pub async fn ended(&self) -> ShareEnd {
        let end = tokio::select! {
            biased;
            _ = self.members.clone() => ShareEnd::MembersChanged,
            () = self.suspended() => ShareEnd::Suspended,
            () = self.item_lost() => match self.suspended().now_or_never() {
                Some(()) => ShareEnd::Suspended,
                None => ShareEnd::Lost,
            },
        };
        if self.is_held() { end } else { ShareEnd::Lost }
    }

    async fn suspended(&self) {
        match self.owned.first() {
            Some((_, guard)) => guard.session().suspended().await,
            // An empty share cannot be lost: only the members matter.
            None => pending().await,
        }
    }

    /// Waits until one of the items is [lost](Fence::lost).
    async fn item_lost(&self) {
        let mut lost: FuturesUnordered<_> = self.fences().map(|(_, fence)| fence.lost()).collect();
        if lost.next().await.is_none() {
            pending().await
        }
    }

    /// Releases the items, and waits until that is done. If the future is dropped, the release goes on in the
    /// background.
    ///
    /// # Errors
    /// The client's errors. The items are released nevertheless: that goes on in the background.
    pub async fn release(self) -> Result<()> {
        try_join_all(self.owned.into_iter().map(|(_, guard)| guard.release())).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_one_owner() {
        let set = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let items: BTreeSet<String> = set("5 1 4 2 3").into_iter().collect();
        let check = |own, members: &str, expected: Option<&str>| {
            let share = share_of(own, &set(members), &items).map(|share| share.join(" "));
            assert_eq!(share.as_deref(), expected, "{own} of {members}");
        };
        check("a", "a", Some("1 2 3 4 5"));
        check("b", "c a b", Some("2 5"));
        check("c", "c a b", Some("3"));
        check("f", "a b c d e f", Some(""));
        check("x", "a b", None);
        for members in ["a", "b a", "c b a", "a b c d e f g"] {
            let members = set(members);
            let mut owned: Vec<&str> =
                members.iter().flat_map(|own| share_of(own, &members, &items).unwrap()).collect();
            owned.sort_unstable();
            assert_eq!(owned, ["1", "2", "3", "4", "5"]);
        }
    }
}
