//! The end of an election, and the phases after it.

use super::{Heard, Teller};
use crate::{
    records::Moment,
    timeline::{About, LineKind, Mark},
    words::{list, name, servers},
};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::ServerId,
};
use ostler_server_core::quorum::election_history::Takeover;
use ostler_zab::election::{CountedVote, ElectionEvent, Verdict};

impl Teller<'_> {
    /// The end of the votes, and why it did not wait longer.
    pub(super) fn elected(&self, ms: u64, vote: Candidate, ballots: &[CountedVote]) -> String {
        let (me, elections) = (self.me(), &self.part.witness.elections);
        if let Some(sayers) = self.joined(ms, vote) {
            let is_backed = self.backed == Some(vote);
            let say = if sayers.len() == 1 { "says" } else { "say" };
            let sayers = servers(&sayers);
            return match vote.id == me {
                true => {
                    let own = if is_backed { " and its own vote" } else { "" };
                    format!("leads, because a quorum follows it already: {sayers}{own}.")
                }
                false => {
                    let own = if is_backed { ", and this server votes for it" } else { "" };
                    let leader = vote.id;
                    format!(
                        "{sayers} {say} that server {leader} leads{own}: a quorum, so there is nothing to elect."
                    )
                }
            };
        }
        let backers = backers(me, &elections.voters, vote, ballots);
        let others: Vec<ServerId> =
            elections.voters.iter().copied().filter(|voter| !backers.contains(voter)).collect();
        let agreed = self.search.moments.iter().rev().find_map(|moment| match moment.event {
            ElectionEvent::Agreed { .. } => Some(moment.ms),
            _ => None,
        });
        let waited = agreed.map(|agreed| ms.saturating_sub(agreed)).filter(|ms| *ms >= elections.settle_ms);
        let why = match (others.is_empty(), waited) {
            (true, _) => "all voters agree, so there is nothing to wait for".into(),
            (false, Some(waited)) => format!("{waited} ms have brought no better vote"),
            (false, None) => {
                format!(
                    "{} cannot be reached, so no better vote can come and this server does not wait",
                    servers(&others)
                )
            }
        };
        format!(
            "elects {}: {} of {} voters back{} it ({}); {why}.",
            name(me, vote),
            backers.len(),
            elections.voters.len(),
            if backers.len() == 1 { "s" } else { "" },
            list(&backers),
        )
    }

    /// The server whose vote showed that there is this leader already, if that decided: it was the last vote, in the same
    /// moment.
    fn joined(&self, ms: u64, vote: Candidate) -> Option<Vec<ServerId>> {
        let moments = &self.search.moments;
        let end = moments.iter().position(|moment| matches!(moment.event, ElectionEvent::Elected { .. }))?;
        let Moment { ms: last, event: ElectionEvent::Received { state, verdict: Verdict::Counted, .. } } =
            moments[..end].last()?
        else {
            return None;
        };
        if *last != ms || !matches!(state, PeerState::Leading | PeerState::Following) {
            return None;
        }
        let says = |heard: &&Heard| {
            matches!(heard.1, PeerState::Leading | PeerState::Following)
                && heard.2.is_some_and(|of| of.id == vote.id)
        };
        let mut sayers: Vec<ServerId> = self.heard.iter().filter(says).map(|heard| heard.0).collect();
        sayers.sort_unstable();
        sayers.dedup();
        Some(sayers)
    }

    pub(super) fn phases(&mut self) {
        let search = self.search;
        let Some(elected) = search.elected else { return };
        let (leader, me) = (elected.leader, self.me());
        if let Some(ms) = search.connected_ms {
            let text = format!("is connected to server {leader}.");
            self.say_linked((ms, About::only(LineKind::Follow)), text, None, Some(Mark::Elected(leader)));
        }
        let Some(discovered) = search.discovered else { return };
        let (ms, epoch) = (discovered.ms, discovered.epoch);
        if leader == me {
            let text = format!("a quorum promises to follow no leader of an epoch before {epoch}.");
            let about = About::only(LineKind::Lead);
            self.say_linked((ms, about), text, None, Some(Mark::Promised(epoch)));
        } else {
            let text = format!("promises server {leader} to follow no leader of an epoch before {epoch}.");
            let (about, promised) = (About::only(LineKind::Follow), Mark::Promised(epoch));
            self.say_linked((ms, about), text, Some(promised), Some(Mark::Elected(leader)));
        }
        if let Some(takeover) = search.takeover {
            let text = match takeover.takeover {
                Takeover::Truncated(to) => format!(
                    "removes the transactions after zxid {:#x}, up to {:#x}, from its log: they were never committed.",
                    to.0, search.last.0
                ),
                Takeover::Snapshot(of) => format!("gets the leader's whole tree, as of zxid {:#x}.", of.0),
            };
            self.say(takeover.ms, About::only(LineKind::Synced), text);
        }
        if let Some(ms) = search.synchronised_ms {
            let (text, mark, after) = if leader == me {
                let text = "a quorum has its history on disk: leads, and serves clients.";
                (text, Some(Mark::Begun(epoch)), None)
            } else {
                (
                    "has the leader's history on disk: follows, and serves clients.",
                    None,
                    Some(Mark::Begun(epoch)),
                )
            };
            let about = About::only(LineKind::Serving);
            self.say_linked((ms, about), format!("{text} Epoch {epoch}."), mark, after);
        }
        if let Some(commit) = search.first_commit {
            let (mark, after) = match leader == me {
                true => (Some(Mark::Commit(epoch)), None),
                false => (None, Some(Mark::Commit(epoch))),
            };
            let text = format!("its first commit in this epoch: zxid {:#x}.", commit.zxid.0);
            self.say_linked((commit.ms, About::only(LineKind::Serving)), text, mark, after);
        }
    }
}

/// Voters whose votes were for `vote`, the one that counts them included.
pub(crate) fn backers(
    me: ServerId,
    voters: &[ServerId],
    vote: Candidate,
    ballots: &[CountedVote],
) -> Vec<ServerId> {
    let others = ballots.iter().filter(|ballot| ballot.candidate.id == vote.id).map(|ballot| ballot.voter);
    let mut backers: Vec<ServerId> = others.chain(voters.contains(&me).then_some(me)).collect();
    backers.sort_unstable();
    backers.dedup();
    backers
}
