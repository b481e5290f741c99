//! One server's records as lines of plain English.

use super::{
    occasion::Part,
    timeline::{Line, Mark},
    words::{capitalised, clock, duration, list, name, servers, standing, whom},
};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::ServerId,
};
use ostler_server::admin::elections::{Moment, Search};
use ostler_server_core::quorum::election_history::{SearchReason, Takeover};
use ostler_zab::{
    election::{CountedVote, ElectionEvent, IgnoreReason, Rule, Verdict},
    leading::StepDown,
    learning::HangUp,
};

/// All lines of one server for one occasion, in order.
pub(super) fn lines(part: &Part<'_>) -> Vec<Line> {
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
}

impl Teller<'_> {
    fn me(&self) -> ServerId {
        self.part.server()
    }

    fn say(&mut self, ms: u64, text: String) {
        self.say_linked(ms, text, None, None);
    }

    fn say_linked(&mut self, ms: u64, text: String, mark: Option<Mark>, after: Option<Mark>) {
        let at = self.part.wall(self.search, ms);
        self.lines.push(Line { at, server: self.me(), text: capitalised(&text), mark, after });
    }

    fn tell(&mut self) {
        self.say(0, cause(self.search));
        let mut moments = &self.search.moments[..];
        while let Some((moment, rest)) = moments.split_first() {
            // Votes that say nothing new are told of once.
            let repeats = rest.iter().take_while(|next| self.is_repeated(moment, next)).count();
            let next = &rest[repeats..];
            moments = if self.moment(moment, &rest[..repeats], next.first()) { &next[1..] } else { next };
        }
        if self.search.left_out > 0 {
            let last = self.search.moments.last().map_or(0, |last| last.ms);
            let at = self.search.elected.map_or(last, |elected| elected.ms);
            self.say(at, format!("({} votes before the last 500 were not kept)", self.search.left_out));
        }
        if self.search.left_out_since > 0 {
            let at = self.search.moments.last().map_or(0, |last| last.ms);
            let count = self.search.left_out_since;
            self.say(at, format!("({count} votes after the end, before the last 150, were not kept)"));
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
                self.say_linked(moment.ms, text, told.map(|told| self.mark(told)), None);
                return told.is_some();
            }
            ElectionEvent::SentToAll { candidate: None, .. } => {
                self.say(moment.ms, "has no vote: asks the others who leads.".into());
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
                self.say_linked(moment.ms, text, Some(mark), None);
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
                self.say_linked(moment.ms, text, answer.map(|answer| self.mark(answer.told())), None);
                return answer.is_some();
            }
            ElectionEvent::Lost { peer } => self.say(moment.ms, format!("server {peer} cannot be reached.")),
            ElectionEvent::Agreed { candidate: vote } => {
                let text = format!(
                    "a quorum votes for {}. Waits up to {} ms for a better vote.",
                    if vote.id == me { "this server".into() } else { format!("server {}", vote.id) },
                    self.part.witness.elections.settle_ms
                );
                self.say(moment.ms, text);
            }
            ElectionEvent::Elected { candidate: vote, votes: ballots } => {
                let text = self.elected(moment.ms, *vote, ballots);
                let mark = (vote.id == me).then_some(Mark::Elected(me));
                let text = if told.is_some() { format!("{text} Tells all others.") } else { text };
                self.say_linked(moment.ms, text, mark, None);
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
        self.say_linked(ms, text, Some(self.mark((round, vote))), None);
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
                self.say_linked(moment.ms, text, Some(self.mark(answer.told())), None);
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

    fn received(
        &mut self,
        ms: u64,
        (from, state, vote, round, verdict): Heard,
        told: Option<(u64, Option<Candidate>)>,
        answer: Option<Answer>,
    ) -> bool {
        let after =
            (state == PeerState::Looking).then_some(Mark::Told(from, vote.map(|vote| vote.id), round));
        let mut changed = false;
        let text = match (verdict, vote) {
            (Verdict::Ignored { why: IgnoreReason::Decided }, _) => late(from, state, vote),
            (Verdict::ElectionVoid, _) => {
                format!("{} So the election on this server is void.", late(from, state, vote))
            }
            (Verdict::Ignored { why }, _) => self.ignored(from, round, vote, why),
            (_, None) => format!("server {from} backs no candidate."),
            (Verdict::Adopted { rule, later_round }, Some(vote)) => {
                changed = true;
                let text = self.adopted(from, vote, rule, later_round.then_some(round));
                (self.backed, self.round) = (Some(vote), round);
                text
            }
            (Verdict::LaterRound, Some(vote)) => {
                changed = true;
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
            (Verdict::Counted, Some(vote)) => counted(from, state, vote),
            (Verdict::Worse, Some(vote)) => {
                let why = self.backed.map_or("no better", |backed| shortcoming(vote, backed));
                format!("keeps its vote against that of server {from} for {}: {why}.", whom(from, vote))
            }
        };
        let said = if changed { told } else { answer.map(|answer| answer.told()) };
        let text = match (changed && told.is_some(), answer) {
            (true, _) => format!("{text} Tells all others."),
            (false, Some(answer)) if verdict != EARLIER => format!("{text} {}", answer.words()),
            _ => text,
        };
        self.say_linked(ms, text, said.map(|said| self.mark(said)), after);
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
        let joins = later_round.map_or_else(String::new, |round| {
            format!("joins round {round}, which is later than its own, and ")
        });
        let to = if vote.id == me { "itself".into() } else { format!("server {}", vote.id) };
        format!(
            "server {from} votes for {}: {why}. {}",
            whom(from, vote),
            capitalised(&format!("{joins}changes its vote to {to}."))
        )
    }

    /// The end of the votes, and why it did not wait longer.
    fn elected(&self, ms: u64, vote: Candidate, ballots: &[CountedVote]) -> String {
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

    fn phases(&mut self) {
        let search = self.search;
        let Some(elected) = search.elected else { return };
        let (leader, me) = (elected.leader, self.me());
        if let Some(ms) = search.connected_ms {
            self.say_linked(
                ms,
                format!("is connected to server {leader}."),
                None,
                Some(Mark::Elected(leader)),
            );
        }
        let Some(discovered) = search.discovered else { return };
        let (ms, epoch) = (discovered.ms, discovered.epoch);
        if leader == me {
            let text = format!("a quorum promises to follow no leader of an epoch before {epoch}.");
            self.say_linked(ms, text, None, Some(Mark::Promised(epoch)));
        } else {
            let text = format!("promises server {leader} to follow no leader of an epoch before {epoch}.");
            self.say_linked(ms, text, Some(Mark::Promised(epoch)), Some(Mark::Elected(leader)));
        }
        if let Some(takeover) = search.takeover {
            let text = match takeover.takeover {
                Takeover::Truncated(to) => format!(
                    "removes the transactions after zxid {:#x}, up to {:#x}, from its log: they were never committed.",
                    to.0, search.last.0
                ),
                Takeover::Snapshot(of) => format!("gets the leader's whole tree, as of zxid {:#x}.", of.0),
            };
            self.say(takeover.ms, text);
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
            self.say_linked(ms, format!("{text} Epoch {epoch}."), mark, after);
        }
        if let Some(commit) = search.first_commit {
            let (mark, after) = match leader == me {
                true => (Some(Mark::Commit(epoch)), None),
                false => (None, Some(Mark::Commit(epoch))),
            };
            let text = format!("its first commit in this epoch: zxid {:#x}.", commit.zxid.0);
            self.say_linked(commit.ms, text, mark, after);
        }
    }
}

/// Voters whose votes were for `vote`, the one that counts them included.
pub(super) fn backers(
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
struct Answer {
    state: PeerState,
    round: u64,
    vote: Option<Candidate>,
}

impl Answer {
    fn told(self) -> (u64, Option<Candidate>) {
        (self.round, self.vote)
    }

    fn words(self) -> String {
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
fn answer(next: Option<&Moment>, peer: ServerId) -> Option<Answer> {
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
fn shortcoming(vote: Candidate, of: Candidate) -> &'static str {
    if vote.epoch < of.epoch {
        "an earlier epoch"
    } else if vote.zxid < of.zxid {
        "an earlier zxid"
    } else if vote.id < of.id {
        "a smaller id"
    } else {
        "no better"
    }
}

fn cause(search: &Search) -> String {
    let before = search.before.map_or_else(|| "the leader".into(), |id| format!("server {id}"));
    let why = match search.why {
        SearchReason::Started => "it starts.".into(),
        SearchReason::LeaderGone => match search.silent_ms {
            Some(ms) => {
                format!(
                    "the connection to {before} is gone; its last message came {} before.",
                    duration(ms as i64)
                )
            }
            None => format!("the connection to {before} is gone."),
        },
        SearchReason::ElectionVoid => format!("the others say that {before}, just elected, does not lead."),
        SearchReason::LeaderUnreachable => format!("{before}, just elected, cannot be reached."),
        SearchReason::LeaderSilent { ms } => {
            format!("{before} has said nothing for {}.", duration(ms as i64))
        }
        SearchReason::LeaderBroken => format!("{before} has sent a message that no leader sends."),
        SearchReason::Left(HangUp::StaleEpoch { proposed, accepted }) => {
            format!(
                "{before} proposes epoch {proposed}, but this server has promised epoch {accepted} to another leader, \
                 and follows no leader of an earlier epoch."
            )
        }
        SearchReason::Left(HangUp::OutOfTurn) => format!("{before} has sent a message out of turn."),
        SearchReason::Left(HangUp::Gap { last, next }) => {
            format!("{before} has sent zxid {:#x}, which does not follow {:#x}.", next.0, last.0)
        }
        SearchReason::Left(HangUp::UnmatchedCommit { expected, committed }) => {
            format!("{before} commits zxid {:#x}, but {:#x} is next.", committed.0, expected.0)
        }
        SearchReason::SteppedDown(StepDown::NoFollowers) => {
            "stops trying to lead: no quorum has connected to it.".into()
        }
        SearchReason::SteppedDown(StepDown::EpochNotAccepted) => {
            "stops trying to lead: no quorum has promised its epoch.".into()
        }
        SearchReason::SteppedDown(StepDown::NotSynchronised) => {
            "stops trying to lead: no quorum has taken over its history.".into()
        }
        SearchReason::SteppedDown(StepDown::QuorumLost) => "no longer leads: no quorum follows it.".into(),
        SearchReason::SteppedDown(StepDown::NoEpochLeft) => {
            "stops trying to lead: it has accepted the last epoch there is.".into()
        }
        SearchReason::Reconfigured => "there is a new configuration.".into(),
        SearchReason::CutBack => {
            "has cut its log back. After that the leader was lost, or it must send its whole tree.".into()
        }
        SearchReason::CounterFull => "ends its own epoch: nearly all zxids of this epoch are used.".into(),
    };
    format!("{why} Looks for a leader.")
}
