//! Votes that come after this server has elected a leader.

use super::{Election, ElectionOutput, IgnoreReason, Phase, Settled, Verdict, beats};
use crate::{quorum::Electorate, time::Mono};
use alloc::vec::Vec;
use ostler_proto::{
    election::{Notification, PeerState},
    id::ServerId,
};

impl Election {
    /// Takes in a vote that comes after this server has elected a leader.
    pub(super) fn notified_after_decision(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let is_void = self.is_voided_by(from, vote)
            || self.note_backed(from, vote, electorate) && self.is_without_quorum(electorate);
        let verdict =
            if is_void { Verdict::ElectionVoid } else { Verdict::Ignored { why: IgnoreReason::Decided } };
        self.record.received(now, from, vote, verdict);
        if vote.state == PeerState::Looking {
            self.send_to(now, from, out);
        }
        if is_void {
            out.push(ElectionOutput::LookAgain);
        }
    }

    /// Whether the vote shows that the elected server will not lead: it looks for a leader in a later round, or has
    /// lost its data. Without this check the server would wait for up to `initLimit`, as upstream does, if the
    /// connection breaks silently.
    fn is_voided_by(&self, from: ServerId, vote: &Notification) -> bool {
        let Phase::Settled(Settled { candidate: Some(own), backed_since: Some(_), round, .. }) = &self.phase
        else {
            return false;
        };
        from == own.id
            && match vote.candidate {
                None => vote.state == PeerState::Looking,
                // In a later round the sender may even lead again.
                Some(_) => vote.state != PeerState::Observing && vote.round > *round,
            }
    }

    /// Notes which candidate a voter backs since this server has elected one. If the voter's vote was late, the others may
    /// have elected another candidate, or may follow a leader of an earlier round again. Returns whether it was noted.
    fn note_backed(&mut self, from: ServerId, vote: &Notification, electorate: &Electorate) -> bool {
        let Phase::Settled(settled) = &mut self.phase else { return false };
        let (Some(own), Some(backed_since), Some(candidate)) =
            (settled.candidate, &mut settled.backed_since, vote.candidate)
        else {
            return false;
        };
        match vote.state {
            PeerState::Observing => false,
            // The sender has not heard of this election, or has not counted the votes yet.
            PeerState::Looking if vote.round < settled.round => false,
            // The sender will back this server's leader once it hears of it.
            PeerState::Looking
                if vote.round == settled.round && beats(candidate, Some(own), electorate).is_none() =>
            {
                backed_since.remove(&from);
                false
            }
            _ => {
                backed_since.insert(from, candidate.id);
                true
            }
        }
    }

    /// Whether too many voters back another candidate: the others are not a quorum.
    fn is_without_quorum(&self, electorate: &Electorate) -> bool {
        let Phase::Settled(Settled { candidate: Some(own), backed_since: Some(backed), .. }) = &self.phase
        else {
            return false;
        };
        !electorate.is_quorum(|server| backed.get(&server).is_none_or(|backed| *backed == own.id))
    }
}
