//! Two-phase commit, as ZooKeeper's recipes describe it: all sites of a transaction agree to commit or to abort.
//!
//! The coordinator creates a znode for the transaction, and below it one for each site, without data. Each site writes
//! its vote to its znode. If all sites vote to commit, the decision is to commit; one vote to abort makes it an abort.
//! A site's first vote counts and cannot be changed, so all readers come to the same decision, also if the coordinator
//! dies.
//!
//! Any process can wait for the [`decision`](Transaction::decision) by watching all sites. If n sites do so, this costs
//! n² messages. With many sites, let the coordinator alone wait and [`announce`](Transaction::announce) the decision:
//! the sites wait for [`announced`](Transaction::announced), which takes one more step.
//!
//! A site that dies before it votes leaves the transaction undecided. Then a process has to call
//! [`abort_undecided`](Transaction::abort_undecided).

use crate::until_answered::{fired, until_answered};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, Error, ErrorCode, Result, Version, Watch, paths};
use std::fmt;

/// The vote of a site, and the decision of all sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vote {
    /// Commit. The znode's data is `commit`.
    Commit,
    /// Abort. The znode's data is `abort`.
    Abort,
}

impl Vote {
    fn as_bytes(self) -> &'static [u8] {
        match self {
            Vote::Commit => b"commit",
            Vote::Abort => b"abort",
        }
    }

    fn read(data: &[u8]) -> Option<Vote> {
        [Vote::Commit, Vote::Abort].into_iter().find(|vote| vote.as_bytes() == data)
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vote::Commit => "commit",
            Vote::Abort => "abort",
        })
    }
}

/// The decision that these votes make, if there are enough. `None` in the list is a site that has not voted, or whose
/// data is no vote.
fn decide(votes: &[Option<Vote>]) -> Option<Vote> {
    if votes.contains(&Some(Vote::Abort)) {
        return Some(Vote::Abort);
    }
    votes.iter().all(Option::is_some).then_some(Vote::Commit)
}

/// A transaction of several sites.
#[derive(Debug, Clone)]
pub struct Transaction {
    client: Client,
    path: String,
}

impl Transaction {
    /// Creates a transaction for these sites, in one multi. The parent of `path` must exist.
    ///
    /// # Errors
    /// `NodeExists`: there is a znode at `path`. `NoNode`: its parent is missing. Connection loss: the transaction may
    /// be created or not.
    pub async fn begin(client: &Client, path: &str, sites: &[&str]) -> Result<Transaction> {
        let mut multi = client.multi().create(path, b"");
        for site in sites {
            multi = multi.create(&paths::join(path, site), b"");
        }
        multi.await?;
        Ok(Transaction::join(client, path))
    }

    /// A handle to a transaction that another process has begun. No request is sent.
    pub fn join(client: &Client, path: &str) -> Transaction {
        Transaction { client: client.clone(), path: path.to_owned() }
    }

    /// Votes for a site. Returns the vote that counts: the site's earlier vote if there is one.
    ///
    /// # Errors
    /// `NoNode`: there is no such site, or the transaction has ended. `BadVersion`: the site's znode has data that is
    /// no vote.
    pub async fn vote(&self, site: &str, vote: Vote) -> Result<Vote> {
        let path = paths::join(&self.path, site);
        let set = || self.client.set_data(&path, vote.as_bytes()).version(Version::Exactly(0)).idempotent();
        match until_answered(&self.client, set).await {
            Ok(_) => Ok(vote),
            Err(error) if error.is_bad_version() => {
                let (data, _) = until_answered(&self.client, || self.client.get_data(&path)).await?;
                // Other data counts as no vote, and its version keeps a vote out.
                Vote::read(&data).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Votes to abort for each site that has not voted. Returns the decision.
    ///
    /// # Errors
    /// `NoNode`: the transaction has ended.
    pub async fn abort_undecided(&self) -> Result<Vote> {
        let mut votes = Vec::new();
        for site in self.sites().await? {
            votes.push(Some(self.vote(&site, Vote::Abort).await?));
        }
        Ok(decide(&votes).unwrap_or(Vote::Abort))
    }

    /// Waits until there are enough votes for a decision.
    ///
    /// # Errors
    /// `NoNode`: the transaction has ended; [`Error::Closed`].
    pub async fn decision(&self) -> Result<Vote> {
        // The list of sites never changes. If a site is deleted from here on, the read below fails.
        let sites = self.sites().await?;
        loop {
            let (mut votes, mut waiting) =
                (Vec::with_capacity(sites.len()), FuturesUnordered::<Watch>::new());
            for site in &sites {
                let path = paths::join(&self.path, site);
                let ((data, _), voted) =
                    until_answered(&self.client, || self.client.get_data(&path).watch()).await?;
                let vote = Vote::read(&data);
                if vote.is_none() {
                    waiting.push(voted);
                }
                votes.push(vote);
            }
            if let Some(decision) = decide(&votes) {
                return Ok(decision);
            }
            if let Some(voted) = waiting.next().await {
                fired(voted)?;
            }
        }
    }

    /// Waits for the decision and writes it to the transaction's znode, for processes that wait for
    /// [`announced`](Transaction::announced).
    ///
    /// # Errors
    /// Those of [`decision`](Transaction::decision).
    pub async fn announce(&self) -> Result<Vote> {
        let decision = self.decision().await?;
        until_answered(&self.client, || self.client.set_data(&self.path, decision.as_bytes())).await?;
        Ok(decision)
    }

    /// Waits until the decision is [announced](Transaction::announce).
    ///
    /// # Errors
    /// `NoNode`: the transaction has ended; [`Error::Closed`].
    pub async fn announced(&self) -> Result<Vote> {
        loop {
            let look = || self.client.get_data(&self.path).watch();
            let ((data, _), changed) = until_answered(&self.client, look).await?;
            if let Some(decision) = Vote::read(&data) {
                return Ok(decision);
            }
            fired(changed.await)?;
        }
    }

    /// Deletes the transaction's znodes, once all sites know the decision. One multi deletes them all, unless a site
    /// has children or the multi is too large for a request; then they are deleted one by one. A process that reads the
    /// transaction meanwhile gets `NoNode`.
    ///
    /// # Errors
    /// Those of delete, except `NoNode`.
    pub async fn end(&self) -> Result<()> {
        match until_answered(&self.client, || self.end_at_once()).await {
            // Another process ends it, or it takes more than one request.
            Err(error)
                if error.is_no_node() || error.is_not_empty() || matches!(error, Error::TooLarge { .. }) => {}
            ended => return ended,
        }
        let delete = || self.client.delete(&self.path).deleting_children().quietly();
        until_answered(&self.client, delete).await
    }

    async fn end_at_once(&self) -> Result<()> {
        let mut multi = self.client.multi();
        for site in self.client.get_children(&self.path).await? {
            multi = multi.delete(&paths::join(&self.path, &site)).and();
        }
        multi.delete(&self.path).await.map(drop)
    }

    /// All sites. `NoNode` if some were deleted: then another process is ending the transaction, and the votes of the
    /// remaining sites decide nothing.
    async fn sites(&self) -> Result<Vec<String>> {
        let list = || self.client.get_children_and_stat(&self.path);
        let (sites, stat) = until_answered(&self.client, list).await?;
        // cversion counts creations and deletions of children, so it is larger if one was deleted.
        if stat.cversion != stat.num_children {
            let path = self.path.as_str().into();
            return Err(Error::Server { code: ErrorCode::NoNode, operation: "getChildren2", path });
        }
        Ok(sites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_decide() {
        let (yes, no) = (Some(Vote::Commit), Some(Vote::Abort));
        for (votes, decision) in [
            (vec![yes, yes], yes),
            (vec![yes, None], None),
            (vec![None, no], no),
            (vec![no, yes], no),
            (vec![], yes),
        ] {
            assert_eq!(decide(&votes), decision, "{votes:?}");
        }
        assert_eq!((Vote::read(b"commit"), Vote::read(b"")), (yes, None));
    }
}
