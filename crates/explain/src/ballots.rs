//! A server's ballot box during an election, rebuilt from its record.

use crate::timeline::BallotChange;
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::election::{ElectionEvent, IgnoreReason, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// A voter's vote, as one server has it at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoxedVote {
    /// The voter.
    pub voter: ServerId,
    /// The server that it backs.
    pub candidate: ServerId,
    /// The voter's round.
    pub round: u64,
    /// The candidate's epoch.
    pub epoch: Epoch,
    /// The last zxid in the candidate's log.
    pub zxid: Zxid,
    /// Whether the server counts the vote.
    pub counts: bool,
    /// Whether the vote has come, or has changed, at this moment.
    pub changed: bool,
}

/// A server's box.
pub(crate) struct BallotBox<'a> {
    me: ServerId,
    voters: &'a [ServerId],
    round: u64,
    votes: BTreeMap<ServerId, BoxedVote>,
    /// The votes changed since the box was last looked at.
    is_changed: bool,
    is_closed: bool,
}

impl<'a> BallotBox<'a> {
    pub(crate) fn new(me: ServerId, voters: &'a [ServerId]) -> BallotBox<'a> {
        BallotBox { me, voters, round: 0, votes: BTreeMap::new(), is_changed: false, is_closed: false }
    }

    /// Takes the next event of the record. The box is closed by the end of the election.
    pub(crate) fn take(&mut self, event: &ElectionEvent) {
        match event {
            ElectionEvent::Began { round, own } => {
                self.begin(*round);
                self.put_own(*own);
            }
            ElectionEvent::Elected { .. } => self.is_closed = true,
            _ if self.is_closed => {}
            ElectionEvent::SentToAll { round, candidate } => {
                if *round > self.round {
                    self.begin(*round);
                }
                self.put_own(*candidate);
            }
            ElectionEvent::Received { from, round, candidate: Some(of), verdict, state } => {
                self.receive((*from, *state), *of, *round, *verdict);
            }
            _ => {}
        }
    }

    /// The whole box, if it has changed since the last call.
    pub(crate) fn changed(&mut self) -> BallotChange {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let rows = self.votes.values().cloned().collect();
        self.votes.values_mut().for_each(|vote| vote.changed = false);
        Some(rows)
    }

    /// Votes of earlier rounds do not count in this one.
    fn begin(&mut self, round: u64) {
        self.round = round;
        self.is_changed |= !self.votes.is_empty();
        self.votes.retain(|_, vote| vote.round >= round);
    }

    fn put_own(&mut self, own: Option<Candidate>) {
        match own {
            Some(of) if self.voters.contains(&self.me) => self.put(self.me, of, self.round, true),
            _ => self.is_changed |= self.votes.remove(&self.me).is_some(),
        }
    }

    fn receive(&mut self, (from, state): (ServerId, PeerState), of: Candidate, round: u64, verdict: Verdict) {
        let has_leader = state != PeerState::Looking;
        match verdict {
            Verdict::Adopted { later_round, .. } => {
                if later_round {
                    self.begin(round);
                }
                self.put(from, of, round, true);
                self.put_own(Some(of));
            }
            Verdict::LaterRound => {
                self.begin(round);
                self.put(from, of, round, true);
            }
            Verdict::Counted | Verdict::Worse => self.put(from, of, round, true),
            Verdict::Ignored {
                why:
                    IgnoreReason::EarlierRound
                    | IgnoreReason::LeftOut
                    | IgnoreReason::Untrusted
                    | IgnoreReason::CandidateDoesNotVote
                    | IgnoreReason::SaysTooMuchOfThisServer,
            } if !has_leader => self.put(from, of, round, false),
            Verdict::Ignored { .. } | Verdict::ElectionVoid => {}
        }
    }

    fn put(&mut self, voter: ServerId, of: Candidate, round: u64, counts: bool) {
        let Candidate { epoch, zxid, id: candidate } = of;
        let vote = BoxedVote { voter, candidate, round, epoch, zxid, counts, changed: true };
        let is_same = self
            .votes
            .get(&voter)
            .is_some_and(|before| BoxedVote { changed: true, ..before.clone() } == vote);
        if !is_same {
            self.votes.insert(voter, vote);
            self.is_changed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_zab::election::Rule;

    fn vote(zxid: u64, id: i64) -> Candidate {
        Candidate { epoch: Epoch(1), zxid: Zxid(zxid), id: ServerId(id) }
    }

    fn looking(from: i64, of: Candidate, round: u64, verdict: Verdict) -> ElectionEvent {
        let candidate = Some(of);
        ElectionEvent::Received { from: ServerId(from), state: PeerState::Looking, round, candidate, verdict }
    }

    /// Voter, candidate, counts, changed.
    fn rows(of: Option<Vec<BoxedVote>>) -> Option<Vec<(i64, i64, bool, bool)>> {
        let row = |vote: BoxedVote| (vote.voter.0, vote.candidate.0, vote.counts, vote.changed);
        Some(of?.into_iter().map(row).collect())
    }

    #[test]
    fn each_event_changes_the_box_as_the_server_counts() {
        let voters = [1, 2, 3].map(ServerId);
        let mut of = BallotBox::new(ServerId(1), &voters);
        let mut after = |event: ElectionEvent| {
            of.take(&event);
            rows(of.changed())
        };
        let (own, better) = (vote(5, 1), vote(5, 2));
        assert_eq!(after(ElectionEvent::Began { round: 2, own: Some(own) }), Some(vec![(1, 1, true, true)]));
        assert_eq!(after(ElectionEvent::SentToAll { round: 2, candidate: Some(own) }), None);
        let adopted = Verdict::Adopted { rule: Rule::LargerId, later_round: false };
        assert_eq!(after(looking(2, better, 2, adopted)), Some(vec![(1, 2, true, true), (2, 2, true, true)]));
        assert_eq!(after(looking(2, better, 2, Verdict::Counted)), None, "the same again");
        let earlier = Verdict::Ignored { why: IgnoreReason::EarlierRound };
        assert_eq!(
            after(looking(3, vote(9, 3), 1, earlier)),
            Some(vec![(1, 2, true, false), (2, 2, true, false), (3, 3, false, true)])
        );
        // The later round begins with an empty box.
        assert_eq!(after(looking(3, vote(4, 3), 7, Verdict::LaterRound)), Some(vec![(3, 3, true, true)]));
        assert_eq!(
            after(ElectionEvent::SentToAll { round: 7, candidate: Some(own) }),
            Some(vec![(1, 1, true, true), (3, 3, true, false)])
        );
        assert_eq!(after(ElectionEvent::Elected { candidate: own, votes: Vec::new() }), None);
        assert_eq!(after(looking(2, own, 7, Verdict::Counted)), None, "the box is closed");
    }

    #[test]
    fn an_observer_has_no_vote_in_its_own_box() {
        let voters = [1, 2].map(ServerId);
        let mut of = BallotBox::new(ServerId(9), &voters);
        of.take(&ElectionEvent::Began { round: 1, own: Some(vote(1, 9)) });
        assert_eq!(rows(of.changed()), None);
    }
}
