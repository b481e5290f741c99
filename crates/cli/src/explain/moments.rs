//! One server's records as lines of plain English.

use super::{
    occasion::Part,
    timeline::{Line, Mark},
    words::{capitalised, clock, duration, list, name, servers, standing, whom},
};
use ostler_server::admin::elections::{
    BallotOf, Better, Cause, How, Ignored, Judged, Moment, Search, State, Vote, What,
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
type Heard = (i64, State, Option<Vote>, u64, Judged);

/// Of somebody's leader it does not matter by which vote it was elected.
fn says_the_same(before: &Heard, now: &Heard) -> bool {
    let leader = |heard: &Heard| (heard.0, heard.1, heard.2.map(|vote| vote.id), heard.4);
    before == now || (now.1 != State::Looking && leader(before) == leader(now))
}

/// Why one server was told a vote.
#[derive(PartialEq)]
enum Reason {
    Answer(Heard),
    NewConnection { to: i64, vote: Option<Vote> },
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
    backed: Option<Vote>,
    round: u64,
    heard: Vec<Heard>,
    sent: Vec<Sent>,
    lines: Vec<Line>,
}

impl Teller<'_> {
    fn me(&self) -> i64 {
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
        matches!((&moment.what, &next.what), (What::Told { .. }, What::Told { .. }))
            && moment.what == next.what
    }

    /// Tells of one moment, and of its repetitions. Whether `next` was told of as well: that everybody learns of a new
    /// vote.
    fn moment(&mut self, moment: &Moment, repeats: &[Moment], next: Option<&Moment>) -> bool {
        let me = self.me();
        let told = match next.map(|next| &next.what) {
            Some(What::Told { round, vote }) => Some((*round, *vote)),
            _ => None,
        };
        match &moment.what {
            What::Began { round, own } => {
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
            What::Told { vote: None, .. } => {
                self.say(moment.ms, "has no vote: asks the others who leads.".into());
            }
            What::Told { round, vote } => {
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
            What::ToldOne { to, vote, round, .. } => self.told_one(moment.ms, *to, *vote, *round),
            What::Received { from, .. } => return self.vote_came(moment, told, answer(next, *from)),
            What::Reached { peer } => {
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
            What::Lost { peer } => self.say(moment.ms, format!("server {peer} cannot be reached.")),
            What::Agreed { vote } => {
                let text = format!(
                    "a quorum votes for {}. Waits up to {} ms for a better vote.",
                    if vote.id == me { "this server".into() } else { format!("server {}", vote.id) },
                    self.part.witness.elections.settle_ms
                );
                self.say(moment.ms, text);
            }
            What::Elected { vote, ballots } => {
                let text = self.elected(moment.ms, *vote, ballots);
                let mark = (vote.id == me).then_some(Mark::Elected(me));
                let text = if told.is_some() { format!("{text} Tells all others.") } else { text };
                self.say_linked(moment.ms, text, mark, None);
                return told.is_some();
            }
        }
        false
    }

    fn told_one(&mut self, ms: u64, to: i64, vote: Option<Vote>, round: u64) {
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
        told: Option<(u64, Option<Vote>)>,
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
        let What::Received { from, state, round, vote, verdict } = moment.what else { return None };
        // A server that asks long after the end has an election of its own.
        let is_over = self.search.synchronised_ms.is_some_and(|ms| moment.ms > ms);
        let only_asks = matches!(verdict, Judged::Ignored { why: Ignored::Decided | Ignored::NoVoter });
        if is_over && only_asks && state == State::Looking {
            return Some((from, state, None, 0, verdict));
        }
        Some((from, state, vote, round, verdict))
    }

    fn mark(&self, (round, vote): (u64, Option<Vote>)) -> Mark {
        Mark::Told(self.me(), vote.map(|vote| vote.id), round)
    }

    fn received(
        &mut self,
        ms: u64,
        (from, state, vote, round, verdict): Heard,
        told: Option<(u64, Option<Vote>)>,
        answer: Option<Answer>,
    ) -> bool {
        let after = (state == State::Looking).then_some(Mark::Told(from, vote.map(|vote| vote.id), round));
        let mut changed = false;
        let text = match (verdict, vote) {
            (Judged::Ignored { why: Ignored::Decided }, _) => late(from, state, vote),
            (Judged::ElectionVoid, _) => {
                format!("{} So the election on this server is void.", late(from, state, vote))
            }
            (Judged::Ignored { why }, _) => self.ignored(from, round, vote, why),
            (_, None) => format!("server {from} backs no candidate."),
            (Judged::Adopted { rule, later_round }, Some(vote)) => {
                changed = true;
                let text = self.adopted(from, vote, rule, later_round.then_some(round));
                (self.backed, self.round) = (Some(vote), round);
                text
            }
            (Judged::LaterRound, Some(vote)) => {
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
            (Judged::Counted, Some(vote)) => counted(from, state, vote),
            (Judged::Worse, Some(vote)) => {
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

    fn ignored(&self, from: i64, round: u64, vote: Option<Vote>, why: Ignored) -> String {
        let why = match (why, vote) {
            (Ignored::NoVoter, _) => "that server has no vote and only asks".into(),
            (Ignored::BacksNobody, _) | (Ignored::CandidateDoesNotVote, None) => {
                "that server backs no candidate".into()
            }
            (Ignored::CandidateDoesNotVote, Some(vote)) => {
                format!("that server backs server {}, which has no vote in this ensemble", vote.id)
            }
            (Ignored::EarlierRound, _) => {
                format!(
                    "that server is in round {round}, which is over; answers that the round is {}",
                    self.round
                )
            }
            (Ignored::Untrusted, _) => {
                "this server's own data folder is empty or cannot be trusted, so this server does not vote"
                    .into()
            }
            (Ignored::Decided, _) => "the election is over".into(),
            (Ignored::AnotherEnsemble, _) => {
                "its configuration has none of this ensemble's servers, so that server is in another ensemble"
                    .into()
            }
            (Ignored::LeftOut, _) => {
                "that server or its candidate has kept elections from ending again and again, or was \
                elected and could not be reached: that server is left out for some seconds"
                    .into()
            }
            (Ignored::SaysTooMuchOfThisServer, _) => {
                "the vote says that this server has a later zxid in its log than is true".into()
            }
        };
        format!("does not count the message of server {from}: {why}.")
    }

    fn adopted(&self, from: i64, vote: Vote, rule: Better, later_round: Option<u64>) -> String {
        let me = self.me();
        let before = self.backed.map_or_else(String::new, |backed| {
            format!("{} {}", name(me, backed).replace("itself", "its own"), standing(backed))
        });
        let why = match rule {
            Better::FirstHeard => "the first candidate that this server hears of".into(),
            Better::LaterEpoch => format!("a later epoch than {before}"),
            Better::LaterZxid => format!("the same epoch and a later zxid than {before}"),
            Better::LargerId => "epoch and zxid are the same, so the larger id wins".into(),
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
    fn elected(&self, ms: u64, vote: Vote, ballots: &[BallotOf]) -> String {
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
        let others: Vec<i64> =
            elections.voters.iter().copied().filter(|voter| !backers.contains(voter)).collect();
        let agreed = self.search.moments.iter().rev().find_map(|moment| match moment.what {
            What::Agreed { .. } => Some(moment.ms),
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
    fn joined(&self, ms: u64, vote: Vote) -> Option<Vec<i64>> {
        let moments = &self.search.moments;
        let end = moments.iter().position(|moment| matches!(moment.what, What::Elected { .. }))?;
        let Moment { ms: last, what: What::Received { state, verdict: Judged::Counted, .. } } =
            moments[..end].last()?
        else {
            return None;
        };
        if *last != ms || !matches!(state, State::Leading | State::Following) {
            return None;
        }
        let says = |heard: &&Heard| {
            matches!(heard.1, State::Leading | State::Following) && heard.2.is_some_and(|of| of.id == vote.id)
        };
        let mut sayers: Vec<i64> = self.heard.iter().filter(says).map(|heard| heard.0).collect();
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
            let text = match takeover.how {
                How::Truncated => format!(
                    "removes the transactions after zxid {:#x}, up to {:#x}, from its log: they were never committed.",
                    takeover.last.0, search.last.0
                ),
                How::Snapshot => format!("gets the leader's whole tree, as of zxid {:#x}.", takeover.last.0),
            };
            self.say(takeover.ms, text);
        }
        if let Some(ms) = search.synchronised_ms {
            let (text, mark, after) = if leader == me {
                let text = "a quorum has its history on disk: leads, and serves clients.";
                (text, Some(Mark::Epoch(epoch)), None)
            } else {
                (
                    "has the leader's history on disk: follows, and serves clients.",
                    None,
                    Some(Mark::Epoch(epoch)),
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
pub(super) fn backers(me: i64, voters: &[i64], vote: Vote, ballots: &[BallotOf]) -> Vec<i64> {
    let others = ballots.iter().filter(|ballot| ballot.vote.id == vote.id).map(|ballot| ballot.voter);
    let mut backers: Vec<i64> = others.chain(voters.contains(&me).then_some(me)).collect();
    backers.sort_unstable();
    backers.dedup();
    backers
}

fn counted(from: i64, state: State, vote: Vote) -> String {
    match state {
        State::Looking => {
            format!("counts the vote of server {from} for {}: the same candidate.", name(from, vote))
        }
        State::Leading => format!("server {from} says that it leads."),
        State::Following | State::Observing => {
            format!("server {from} says that server {} leads.", vote.id)
        }
    }
}

/// A vote that comes after the end.
fn late(from: i64, state: State, vote: Option<Vote>) -> String {
    match vote {
        None => format!("server {from} looks for a leader."),
        Some(vote) if state == State::Looking => {
            format!("server {from} votes for {}.", whom(from, vote))
        }
        Some(vote) => counted(from, state, vote),
    }
}

/// The votes that one server got.
#[derive(Debug, Clone, Copy)]
struct Answer {
    state: State,
    round: u64,
    vote: Option<Vote>,
}

impl Answer {
    fn told(self) -> (u64, Option<Vote>) {
        (self.round, self.vote)
    }

    fn words(self) -> String {
        match (self.state, self.vote) {
            (_, None) => "Answers that it backs no candidate.".into(),
            (State::Looking, Some(_)) => "Answers with its vote.".into(),
            (State::Leading, Some(_)) => "Answers that it leads.".into(),
            (State::Following | State::Observing, Some(vote)) => {
                format!("Answers that server {} leads.", vote.id)
            }
        }
    }
}

/// The next moment, if it is that this server was told something.
fn answer(next: Option<&Moment>, peer: i64) -> Option<Answer> {
    match next?.what {
        What::ToldOne { to, state, round, vote } if to == peer => Some(Answer { state, round, vote }),
        _ => None,
    }
}

/// Its line says what is answered.
const EARLIER: Judged = Judged::Ignored { why: Ignored::EarlierRound };

/// In what a vote falls short of another.
fn shortcoming(vote: Vote, of: Vote) -> &'static str {
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
        Cause::Started => "it starts.".into(),
        Cause::LeaderGone => match search.silent_ms {
            Some(ms) => {
                format!(
                    "the connection to {before} is gone; its last message came {} before.",
                    duration(ms as i64)
                )
            }
            None => format!("the connection to {before} is gone."),
        },
        Cause::ElectionVoid => format!("the others say that {before}, just elected, does not lead."),
        Cause::LeaderUnreachable => format!("{before}, just elected, cannot be reached."),
        Cause::LeaderSilent { ms } => format!("{before} has said nothing for {}.", duration(ms as i64)),
        Cause::LeaderBroken => format!("{before} has sent a message that no leader sends."),
        Cause::StaleEpoch { proposed, accepted } => {
            format!(
                "{before} proposes epoch {proposed}, but this server has promised epoch {accepted} to another leader, \
                 and follows no leader of an earlier epoch."
            )
        }
        Cause::OutOfTurn => format!("{before} has sent a message out of turn."),
        Cause::Gap { last, next } => {
            format!("{before} has sent zxid {:#x}, which does not follow {:#x}.", next.0, last.0)
        }
        Cause::UnmatchedCommit { expected, committed } => {
            format!("{before} commits zxid {:#x}, but {:#x} is next.", committed.0, expected.0)
        }
        Cause::NoFollowers => "stops trying to lead: no quorum has connected to it.".into(),
        Cause::EpochNotAccepted => "stops trying to lead: no quorum has promised its epoch.".into(),
        Cause::NotSynchronised => "stops trying to lead: no quorum has taken over its history.".into(),
        Cause::QuorumLost => "no longer leads: no quorum follows it.".into(),
        Cause::NoEpochLeft => "stops trying to lead: it has accepted the last epoch there is.".into(),
        Cause::Reconfigured => "there is a new configuration.".into(),
        Cause::CutBack => {
            "has cut its log back. After that the leader was lost, or it must send its whole tree.".into()
        }
        Cause::CounterFull => "ends its own epoch: nearly all zxids of this epoch are used.".into(),
    };
    format!("{why} Looks for a leader.")
}
