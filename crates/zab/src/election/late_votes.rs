//! Votes that come when this server has decided already.

use super::{Election, ElectionOutput, Phase, Verdict, Why, beats};
use crate::{quorum::Electorate, time::Mono};
use alloc::vec::Vec;
use ostler_proto::{
    election::{Notification, PeerState},
    id::ServerId,
};

impl Election {
    /// A vote has come after the election.
    pub(super) fn notified_late(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let is_mistaken = self.is_mistaken(from, vote, electorate);
        let verdict = if is_mistaken { Verdict::Mistaken } else { Verdict::Ignored(Why::Decided) };
        self.record.received(now, from, vote, verdict);
        if vote.state == PeerState::Looking {
            self.tell(now, from, out);
        }
        if is_mistaken {
            out.push(ElectionOutput::Mistaken);
        }
    }

    /// Whether a vote that comes after the election says that what was decided will not be. Where that was decided
    /// without a vote that was late, the others may have gone another way, or have gone back to a leader of before,
    /// whatever they have said in this round; and the connection on which a leader gives up may be cut without a word.
    /// Without this, as upstream, everybody waits for as long as a reign may take to begin.
    fn is_mistaken(&mut self, from: ServerId, vote: &Notification, electorate: &Electorate) -> bool {
        let Phase::Settled(settled) = &mut self.phase else { return false };
        let (Some(own), Some(doubts)) = (settled.candidate, &mut settled.doubts) else { return false };
        let Some(candidate) = vote.candidate else {
            // It has begun anew, and lost what it was elected for.
            return from == own.id && vote.state == PeerState::Looking;
        };
        match vote.state {
            PeerState::Observing => false,
            // It has begun anew. It may even lead again.
            _ if from == own.id && vote.round > settled.round => true,
            // It has not heard of this election, or not counted the votes yet.
            PeerState::Looking if vote.round < settled.round => false,
            // If it has not heard of this server's leader yet, it will back that one.
            PeerState::Looking
                if vote.round == settled.round && beats(candidate, Some(own), electorate).is_none() =>
            {
                doubts.remove(&from);
                false
            }
            _ => {
                doubts.insert(from, candidate.id);
                !electorate.is_quorum(|server| doubts.get(&server).is_none_or(|backed| *backed == own.id))
            }
        }
    }
}
