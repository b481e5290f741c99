//! Two-phase commit, as ZooKeeper's recipes describe it: all sites of a transaction agree to commit or to abort.
//!
//! The coordinator creates a znode for the transaction and one below it for each site, without data. Each site writes
//! its vote there, once. With all votes for it the decision is to commit, with one against it to abort. Votes are writes
//! that only the first succeeds with, so everybody who looks comes to the same decision, whatever becomes of the
//! coordinator.
//!
//! Anybody can wait for the [`decision`](Transaction::decision) by watching all sites: n sites that all do so cost n²
//! messages. With many sites the coordinator alone should, and [`announce`](Transaction::announce) it: the sites wait
//! for [`announced`](Transaction::announced), which is one step slower.
//!
//! A site that dies before it votes leaves the transaction undecided. Somebody has to decide then, by
//! [`abort_undecided`](Transaction::abort_undecided).

use crate::until_answered::{fired, until_answered};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::{Client, Error, ErrorCode, Result, Watch, paths};
use std::fmt;

/// What a site wants, and what all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vote {
    /// `commit`
    Commit,
    /// `abort`
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

/// What some votes decide. Data that is no vote is none.
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
    /// Creates a transaction for these sites, all of it or nothing. The znode above must be there.
    ///
    /// # Errors
    /// `NodeExists`; `NoNode`; connection loss: it may be created or not.
    pub async fn begin(client: &Client, path: &str, sites: &[&str]) -> Result<Transaction> {
        let mut multi = client.multi().create(path, b"");
        for site in sites {
            multi = multi.create(&paths::join(path, site), b"");
        }
        multi.commit().await?;
        Ok(Transaction::join(client, path))
    }

    /// A transaction that somebody has begun.
    pub fn join(client: &Client, path: &str) -> Transaction {
        Transaction { client: client.clone(), path: path.to_owned() }
    }

    /// Votes for a site. Gives the vote that counts: another one if the site has voted before.
    ///
    /// # Errors
    /// `NoNode`: there is no such site, or the transaction is over. `BadVersion`: something that is no vote is written
    /// there.
    pub async fn vote(&self, site: &str, vote: Vote) -> Result<Vote> {
        let path = paths::join(&self.path, site);
        let set = || self.client.set_data(&path, vote.as_bytes()).version(0).idempotent();
        match until_answered(&self.client, set).await {
            Ok(_) => Ok(vote),
            Err(error) if error.is_bad_version() => {
                let (data, _) = until_answered(&self.client, || self.client.get_data(&path)).await?;
                // What else is written there counts as no vote, and none can be cast any more.
                Vote::read(&data).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Votes to abort for each site that has not voted; gives the decision that stands then.
    ///
    /// # Errors
    /// `NoNode`: the transaction is over.
    pub async fn abort_undecided(&self) -> Result<Vote> {
        let mut votes = Vec::new();
        for site in self.sites().await? {
            votes.push(Some(self.vote(&site, Vote::Abort).await?));
        }
        Ok(decide(&votes).unwrap_or(Vote::Abort))
    }

    /// Waits for the votes that decide.
    ///
    /// # Errors
    /// `NoNode`: the transaction is over; [`Error::Closed`].
    pub async fn decision(&self) -> Result<Vote> {
        // The sites never change, and one that goes from here on is found to be gone below.
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

    /// Waits for the votes that decide, and writes the decision down for those who wait for it only.
    ///
    /// # Errors
    /// Those of [`decision`](Transaction::decision).
    pub async fn announce(&self) -> Result<Vote> {
        let decision = self.decision().await?;
        until_answered(&self.client, || self.client.set_data(&self.path, decision.as_bytes())).await?;
        Ok(decision)
    }

    /// Waits for the decision to be written down.
    ///
    /// # Errors
    /// `NoNode`: the transaction is over; [`Error::Closed`].
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

    /// Deletes the transaction, once everybody knows the decision: all of it or nothing, unless there is more below the
    /// sites or it is larger than a request may be. Who looks when a part of it is gone finds that it is over.
    ///
    /// # Errors
    /// Those of delete but `NoNode`.
    pub async fn end(&self) -> Result<()> {
        match until_answered(&self.client, || self.end_at_once()).await {
            // It is over, or it takes more than one request.
            Err(error)
                if error.is_no_node() || error.is_not_empty() || matches!(error, Error::TooLarge { .. }) => {}
            ended => return ended,
        }
        let delete = || self.client.delete(&self.path).deleting_children_if_needed().quietly();
        until_answered(&self.client, delete).await
    }

    async fn end_at_once(&self) -> Result<()> {
        let mut multi = self.client.multi();
        for site in self.client.get_children(&self.path).await? {
            multi = multi.delete(&paths::join(&self.path, &site), -1);
        }
        multi.delete(&self.path, -1).commit().await.map(drop)
    }

    /// All sites. When some are gone somebody is ending the transaction, and the votes of the others decide nothing: it
    /// is over for those who look now.
    async fn sites(&self) -> Result<Vec<String>> {
        let list = || self.client.get_children_and_stat(&self.path);
        let (sites, stat) = until_answered(&self.client, list).await?;
        // It counts the children that have come and those that have gone.
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
