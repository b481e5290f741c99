//! One server's records as lines of plain English.

mod cause;
mod ending;
mod received;

use crate::{
    ballots::BallotBox,
    occasion::Part,
    records::{Moment, Search},
    timeline::{About, Line, LineKind, Mark},
    words::{capitalised, clock, whom},
};
pub(crate) use cause::cause;
pub(crate) use ending::backers;
use ostler_proto::{
    election::{Candidate, PeerState},
    id::ServerId,
};
use ostler_zab::election::{ElectionEvent, IgnoreReason, Verdict};
use received::{Answer, answer};

/// All lines of one server for one occasion, in order.
pub(crate) fn lines(part: &Part<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for search in part.searches {
        let mut teller = Teller {
            part: *part,
            search,
            backed: None,
            round: 0,
            heard: Vec::new(),
            sent: Vec::new(),
            lines: Vec::new(),
            ballots: BallotBox::new(part.server(), &part.witness.elections.voters),
        };
        teller.tell();
        lines.append(&mut teller.lines);
    }
    lines
}

/// A vote that has been told of: sender, vote, round and verdict.
type Heard = (ServerId, PeerState, Option<Candidate>, u64, Verdict);

/// Of somebody's leader it does not matter by which vote it was elected.
fn says_the_same(before: &Heard, now: &Heard) -> bool {
    let leader = |heard: &Heard| (heard.0, heard.1, heard.2.map(|vote| vote.id), heard.4);
    before == now || (now.1 != PeerState::Looking && leader(before) == leader(now))
}

/// Why one server was told a vote.
#[derive(PartialEq)]
enum Reason {
    Answer(Heard),
    NewConnection { to: ServerId, vote: Option<Candidate> },
}

impl Reason {
    fn is_again(&self, now: &Reason) -> bool {
        match (self, now) {
            (Reason::Answer(before), Reason::Answer(now)) => says_the_same(before, now),
            _ => self == now,
        }
    }
}

/// A vote that one server was sent. To send it again is no new line.
struct Sent {
    reason: Reason,
    /// Its place among the lines.
    line: usize,
    again: usize,
    last_ms: u64,
}

struct Teller<'a> {
    part: Part<'a>,
    search: &'a Search,
    /// The candidate that the server backs.
    backed: Option<Candidate>,
    round: u64,
    heard: Vec<Heard>,
    sent: Vec<Sent>,
    lines: Vec<Line>,
    ballots: BallotBox<'a>,
}

impl Teller<'_> {
    fn me(&self) -> ServerId {
        self.part.server()
    }

    fn say(&mut self, ms: u64, about: About, text: String) {
        self.say_linked((ms, about), text, None, None);
    }

    fn say_linked(
        &mut self,
        (ms, about): (u64, About),
        text: String,
        mark: Option<Mark>,
        after: Option<Mark>,
    ) {
        let (at, server) = (self.part.wall(self.search, ms), self.me());
        let text = capitalised(&text);
        self.lines.push(Line { at, server, text, mark, after, about, ballots: None });
    }

    fn tell(&mut self) {
        self.say(
            0,
            About::only(cause::kind(self.search)),
            format!("{} Looks for a leader.", cause(self.search)),
        );
        let mut moments = &self.search.moments[..];
        while let Some((moment, rest)) = moments.split_first() {
            // Votes that say nothing new are told of once.
            let repeats = rest.iter().take_while(|next| self.is_repeated(moment, next)).count();
            let next = &rest[repeats..];
            let told = self.lines.len();
            let takes_next = self.moment(moment, &rest[..repeats], next.first());
            let taken = if takes_next { next.first() } else { None };
            [moment].into_iter().chain(taken).for_each(|moment| self.ballots.take(&moment.event));
            if let Some(line) = self.lines.get_mut(told..).and_then(<[Line]>::last_mut) {
                line.ballots = self.ballots.changed();
                // A vote that came again has changed nothing.
                if line.ballots.is_none() && line.about.kind == LineKind::Receive {
                    line.about.changed = None;
                }
            }
            moments = if takes_next { &next[1..] } else { next };
        }
        if self.search.left_out > 0 {
            let last = self.search.moments.last().map_or(0, |last| last.ms);
            let at = self.search.elected.map_or(last, |elected| elected.ms);
            let text = format!("({} votes before the last 500 were not kept)", self.search.left_out);
            self.say(at, About::only(LineKind::Unknown), text);
        }
        if self.search.left_out_since > 0 {
            let at = self.search.moments.last().map_or(0, |last| last.ms);
            let count = self.search.left_out_since;
            let text = format!("({count} votes after the end, before the last 150, were not kept)");
            self.say(at, About::only(LineKind::Unknown), text);
        }
        self.count_repetitions();
        self.phases();
        // Votes may come after the end.
        self.lines.sort_by_key(|line| line.at);
    }

    fn count_repetitions(&mut self) {
        for Sent { line, again, last_ms, .. } in self.sent.iter().filter(|sent| sent.again > 0) {
            let at = clock(self.part.wall(self.search, *last_ms));
            let text = match again {
                1 => format!(" Once more at {at}."),
                _ => format!(" {again} times more until {at}."),
            };
            self.lines[*line].text += &text;
        }
    }

    /// Counts a vote that was sent for the same reason before. Returns false if there was none.
    fn count_repeated(&mut self, ms: u64, reason: &Reason) -> bool {
        let before = self.sent.iter_mut().find(|sent| sent.reason.is_again(reason));
        if let Some(sent) = before {
            (sent.again, sent.last_ms) = (sent.again + 1, ms);
            return true;
        }
        false
    }

    /// The line that comes next is about a vote that is sent.
    fn note_sent(&mut self, ms: u64, reason: Reason) {
        self.sent.push(Sent { reason, line: self.lines.len(), again: 0, last_ms: ms });
    }

    fn is_repeated(&self, moment: &Moment, next: &Moment) -> bool {
        matches!(
            (&moment.event, &next.event),
            (ElectionEvent::SentToAll { .. }, ElectionEvent::SentToAll { .. })
        ) && moment.event == next.event
    }

    /// Tells of one moment, and of its repetitions. Whether `next` was told of as well: that everybody learns of a new
    /// vote.
    fn moment(&mut self, moment: &Moment, repeats: &[Moment], next: Option<&Moment>) -> bool {
        let me = self.me();
        let told = match next.map(|next| &next.event) {
            Some(ElectionEvent::SentToAll { round, candidate: vote }) => Some((*round, *vote)),
            _ => None,
        };
        match &moment.event {
            ElectionEvent::Began { round, own } => {
                (self.backed, self.round) = (*own, *round);
                let text = match own {
                    Some(vote) => {
                        format!("votes for {}, and tells all others. Round {round}.", whom(me, *vote))
                    }
                    None => "has no vote: asks the others who leads.".into(),
                };
                let about = voting(me, *own);
                self.say_linked((moment.ms, about), text, told.map(|told| self.mark(told)), None);
                return told.is_some();
            }
            ElectionEvent::SentToAll { candidate: None, .. } => {
                let text = "has no vote: asks the others who leads.".into();
                self.say(moment.ms, About::only(LineKind::Vote), text);
            }
            ElectionEvent::SentToAll { round, candidate: vote } => {
                let until = repeats.last().map(|last| clock(self.part.wall(self.search, last.ms)));
                let text = match until {
                    Some(until) => {
                        format!("repeats its vote, {} times until {until}.", repeats.len() + 1)
                    }
                    None => "repeats its vote.".into(),
                };
                let mark = self.mark((*round, *vote));
                self.say_linked((moment.ms, About::only(LineKind::Vote)), text, Some(mark), None);
            }
            ElectionEvent::SentToOne { to, candidate: vote, round, .. } => {
                self.told_one(moment.ms, *to, *vote, *round)
            }
            ElectionEvent::Received { from, .. } => return self.vote_came(moment, told, answer(next, *from)),
            ElectionEvent::Reached { peer } => {
                let answer = answer(next, *peer);
                let told = match answer {
                    Some(Answer { vote: Some(_), .. }) => ", and gets the vote",
                    Some(Answer { vote: None, .. }) => ", and is asked who leads",
                    None => "",
                };
                let text = format!("server {peer} can be reached now{told}.");
                let about = About::only(LineKind::Receive);
                let mark = answer.map(|answer| self.mark(answer.told()));
                self.say_linked((moment.ms, about), text, mark, None);
                return answer.is_some();
            }
            ElectionEvent::Lost { peer } => {
                let text = format!("server {peer} cannot be reached.");
                self.say(moment.ms, About::only(LineKind::Receive), text);
            }
            ElectionEvent::Agreed { candidate: vote } => {
                let text = format!(
                    "a quorum votes for {}. Waits up to {} ms for a better vote.",
                    if vote.id == me { "this server".into() } else { format!("server {}", vote.id) },
                    self.part.witness.elections.settle_ms
                );
                self.say(moment.ms, About::only(LineKind::Decide), text);
            }
            ElectionEvent::Elected { candidate: vote, votes: ballots } => {
                let text = self.elected(moment.ms, *vote, ballots);
                let mark = (vote.id == me).then_some(Mark::Elected(me));
                let text = if told.is_some() { format!("{text} Tells all others.") } else { text };
                self.say_linked((moment.ms, About::only(LineKind::Decide)), text, mark, None);
                return told.is_some();
            }
        }
        false
    }

    fn told_one(&mut self, ms: u64, to: ServerId, vote: Option<Candidate>, round: u64) {
        let reason = Reason::NewConnection { to, vote };
        if self.count_repeated(ms, &reason) {
            return;
        }
        self.note_sent(ms, reason);
        let text = match vote {
            Some(vote) => {
                format!("tells server {to} its vote, for {}, on a new connection.", whom(self.me(), vote))
            }
            None => format!("asks server {to} who leads, on a new connection."),
        };
        self.say_linked((ms, About::only(LineKind::Vote)), text, Some(self.mark((round, vote))), None);
    }

    /// A vote was received. Whether the next moment was told of as well: what was said then.
    fn vote_came(
        &mut self,
        moment: &Moment,
        told: Option<(u64, Option<Candidate>)>,
        answer: Option<Answer>,
    ) -> bool {
        let Some(heard) = self.heard_at(moment) else { return false };
        let is_known = self.heard.iter().any(|before| says_the_same(before, &heard));
        if answer.is_some() && self.count_repeated(moment.ms, &Reason::Answer(heard)) {
            return true;
        }
        if let Some(answer) = answer {
            self.note_sent(moment.ms, Reason::Answer(heard));
            if is_known {
                let text = format!("server {} says the same again. {}", heard.0, answer.words());
                let about = About::only(LineKind::Receive);
                self.say_linked((moment.ms, about), text, Some(self.mark(answer.told())), None);
                return true;
            }
        }
        if is_known {
            return false;
        }
        self.heard.push(heard);
        self.received(moment.ms, heard, told, answer)
    }

    fn heard_at(&self, moment: &Moment) -> Option<Heard> {
        let ElectionEvent::Received { from, state, round, candidate: vote, verdict } = moment.event else {
            return None;
        };
        // A server that asks long after the end has an election of its own.
        let is_over = self.search.synchronised_ms.is_some_and(|ms| moment.ms > ms);
        let only_asks =
            matches!(verdict, Verdict::Ignored { why: IgnoreReason::Decided | IgnoreReason::NoVoter });
        if is_over && only_asks && state == PeerState::Looking {
            return Some((from, state, None, 0, verdict));
        }
        Some((from, state, vote, round, verdict))
    }

    fn mark(&self, (round, vote): (u64, Option<Candidate>)) -> Mark {
        Mark::Told(self.me(), vote.map(|vote| vote.id), round)
    }
}

/// A vote for oneself, or none.
fn voting(me: ServerId, own: Option<Candidate>) -> About {
    let about = About::only(LineKind::Vote);
    match own {
        Some(own) => about.changing(me, own.id),
        None => about,
    }
}
