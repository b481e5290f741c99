//! Votes that a server has received, and what it makes of them.

use super::{Heard, Teller};
use crate::{
    records::Moment,
    timeline::{About, DecidedBy, LineKind, Mark},
    words::{capitalised, name, standing, whom},
};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::ServerId,
};
use ostler_zab::election::{ElectionEvent, IgnoreReason, Rule, Verdict};

impl Teller<'_> {
    pub(super) fn received(
        &mut self,
        ms: u64,
        (from, state, vote, round, verdict): Heard,
        told: Option<(u64, Option<Candidate>)>,
        answer: Option<Answer>,
    ) -> bool {
        let after =
            (state == PeerState::Looking).then_some(Mark::Told(from, vote.map(|vote| vote.id), round));
        let (mut changed, mut about) = (false, About::only(LineKind::Receive));
        let text = match (verdict, vote) {
            (Verdict::Ignored { why: IgnoreReason::Decided }, _) => late(from, state, vote),
            (Verdict::ElectionVoid, _) => {
                format!("{} So the election on this server is void.", late(from, state, vote))
            }
            (Verdict::Ignored { why }, _) => {
                if why == IgnoreReason::EarlierRound {
                    about = about.by(DecidedBy::Round, vec!["which is over"]);
                }
                self.ignored(from, round, vote, why)
            }
            (_, None) => format!("server {from} backs no candidate."),
            (Verdict::Adopted { rule, later_round }, Some(vote)) => {
                changed = true;
                about = adopting(rule, later_round).changing(self.me(), vote.id);
                let text = self.adopted(from, vote, rule, later_round.then_some(round));
                (self.backed, self.round) = (Some(vote), round);
                text
            }
            (Verdict::LaterRound, Some(vote)) => {
                changed = true;
                about = About::only(LineKind::Change)
                    .changing(self.me(), self.me())
                    .by(DecidedBy::Round, vec!["a later one"]);
                let own = told.and_then(|(_, vote)| vote);
                (self.backed, self.round) = (own, round);
                let text = format!(
                    "joins round {round}, a later one, where server {from} votes for {}",
                    whom(from, vote),
                );
                match own {
                    Some(own) => format!("{text}. Its own vote, for {}, is better.", whom(self.me(), own)),
                    None => format!("{text}."),
                }
            }
            (Verdict::Counted, Some(vote)) => {
                about = about.changing(from, vote.id);
                counted(from, state, vote)
            }
            (Verdict::Worse, Some(vote)) => {
                about = about.changing(from, vote.id);
                let short = self.backed.and_then(|backed| shortcoming(vote, backed));
                let why = short.map_or("no better", |(_, why)| why);
                if let Some((rule, why)) = short {
                    about = about.by(rule, vec![why]);
                }
                format!("keeps its vote against that of server {from} for {}: {why}.", whom(from, vote))
            }
        };
        let said = if changed { told } else { answer.map(|answer| answer.told()) };
        let text = match (changed && told.is_some(), answer) {
            (true, _) => format!("{text} Tells all others."),
            (false, Some(answer)) if verdict != EARLIER => format!("{text} {}", answer.words()),
            _ => text,
        };
        self.say_linked((ms, about), text, said.map(|said| self.mark(said)), after);
        said.is_some()
    }

    fn ignored(&self, from: ServerId, round: u64, vote: Option<Candidate>, why: IgnoreReason) -> String {
        let why = match (why, vote) {
            (IgnoreReason::NoVoter, _) => "that server has no vote and only asks".into(),
            (IgnoreReason::BacksNobody, _) | (IgnoreReason::CandidateDoesNotVote, None) => {
                "that server backs no candidate".into()
            }
            (IgnoreReason::CandidateDoesNotVote, Some(vote)) => {
                format!("that server backs server {}, which has no vote in this ensemble", vote.id)
            }
            (IgnoreReason::EarlierRound, _) => {
                format!(
                    "that server is in round {round}, which is over; answers that the round is {}",
                    self.round
                )
            }
            (IgnoreReason::Untrusted, _) => {
                "this server's own data folder is empty or cannot be trusted, so this server does not vote"
                    .into()
            }
            (IgnoreReason::Decided, _) => "the election is over".into(),
            (IgnoreReason::AnotherEnsemble, _) => {
                "its configuration has none of this ensemble's servers, so that server is in another ensemble"
                    .into()
            }
            (IgnoreReason::LeftOut, _) => {
                "that server or its candidate has kept elections from ending again and again, or was \
                elected and could not be reached: that server is left out for some seconds"
                    .into()
            }
            (IgnoreReason::SaysTooMuchOfThisServer, _) => {
                "the vote says that this server has a later zxid in its log than is true".into()
            }
        };
        format!("does not count the message of server {from}: {why}.")
    }

    fn adopted(&self, from: ServerId, vote: Candidate, rule: Rule, later_round: Option<u64>) -> String {
        let me = self.me();
        let before = self.backed.map_or_else(String::new, |backed| {
            format!("{} {}", name(me, backed).replace("itself", "its own"), standing(backed))
        });
        let why = match rule {
            Rule::FirstHeard => "the first candidate that this server hears of".into(),
            Rule::LaterEpoch => format!("a later epoch than {before}"),
            Rule::LaterZxid => format!("the same epoch and a later zxid than {before}"),
            Rule::LargerId => "epoch and zxid are the same, so the larger id wins".into(),
        };
        let joins =
            later_round.map_or_else(String::new, |round| format!("joins round {round}, {LATER_ROUND}, and "));
        let to = if vote.id == me { "itself".into() } else { format!("server {}", vote.id) };
        format!(
            "server {from} votes for {}: {why}. {}",
            whom(from, vote),
            capitalised(&format!("{joins}changes its vote to {to}."))
        )
    }
}

fn counted(from: ServerId, state: PeerState, vote: Candidate) -> String {
    match state {
        PeerState::Looking => {
            format!("counts the vote of server {from} for {}: the same candidate.", name(from, vote))
        }
        PeerState::Leading => format!("server {from} says that it leads."),
        PeerState::Following | PeerState::Observing => {
            format!("server {from} says that server {} leads.", vote.id)
        }
    }
}

/// A vote that comes after the end.
fn late(from: ServerId, state: PeerState, vote: Option<Candidate>) -> String {
    match vote {
        None => format!("server {from} looks for a leader."),
        Some(vote) if state == PeerState::Looking => {
            format!("server {from} votes for {}.", whom(from, vote))
        }
        Some(vote) => counted(from, state, vote),
    }
}

/// The votes that one server got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) state: PeerState,
    pub(super) round: u64,
    pub(super) vote: Option<Candidate>,
}

impl Answer {
    pub(super) fn told(self) -> (u64, Option<Candidate>) {
        (self.round, self.vote)
    }

    pub(super) fn words(self) -> String {
        match (self.state, self.vote) {
            (_, None) => "Answers that it backs no candidate.".into(),
            (PeerState::Looking, Some(_)) => "Answers with its vote.".into(),
            (PeerState::Leading, Some(_)) => "Answers that it leads.".into(),
            (PeerState::Following | PeerState::Observing, Some(vote)) => {
                format!("Answers that server {} leads.", vote.id)
            }
        }
    }
}

/// The next moment, if it is that this server was told something.
pub(super) fn answer(next: Option<&Moment>, peer: ServerId) -> Option<Answer> {
    match next?.event {
        ElectionEvent::SentToOne { to, state, round, candidate: vote } if to == peer => {
            Some(Answer { state, round, vote })
        }
        _ => None,
    }
}

/// Its line says what is answered.
const EARLIER: Verdict = Verdict::Ignored { why: IgnoreReason::EarlierRound };

/// In what a vote falls short of another.
fn shortcoming(vote: Candidate, of: Candidate) -> Option<(DecidedBy, &'static str)> {
    if vote.epoch < of.epoch {
        Some((DecidedBy::Epoch, "an earlier epoch"))
    } else if vote.zxid < of.zxid {
        Some((DecidedBy::Zxid, "an earlier zxid"))
    } else if vote.id < of.id {
        Some((DecidedBy::Id, "a smaller id"))
    } else {
        None
    }
}

/// A change of this server's vote by a rule. The words are those of [`Teller::adopted`].
fn adopting(rule: Rule, later_round: bool) -> About {
    let about = About::only(LineKind::Change);
    let (decided_by, words) = match rule {
        Rule::LaterEpoch => (DecidedBy::Epoch, "a later epoch"),
        Rule::LaterZxid => (DecidedBy::Zxid, "a later zxid"),
        Rule::LargerId => (DecidedBy::Id, "the larger id wins"),
        Rule::FirstHeard if later_round => return about.by(DecidedBy::Round, vec![LATER_ROUND]),
        Rule::FirstHeard => return about,
    };
    let highlights = if later_round { vec![words, LATER_ROUND] } else { vec![words] };
    about.by(decided_by, highlights)
}

const LATER_ROUND: &str = "which is later than its own";
