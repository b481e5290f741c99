//! The member's last searches for a leader, for `elec` and `ostler explain`.

use super::Ensemble;
use crate::{
    input::{Mono, Now},
    server::Server,
};
use alloc::{collections::VecDeque, vec::Vec};
use ostler_proto::{
    election::PeerState,
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::{
    election::ElectionRecord,
    leading::{LeadingOutput, StepDown},
    learning::{HangUp, LearningOutput},
};

/// The number of searches that are kept. A member that loses its leader again and again must not fill its memory.
const KEPT: usize = 16;

/// Why a leader is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "is", rename_all = "snake_case")
)]
pub enum SearchReason {
    /// The server has started.
    Started,
    /// The connection to the leader is gone.
    LeaderGone,
    /// The elected server will not lead: the others' votes showed it before the epoch had begun. In JSON it has its
    /// earlier name, which programs read.
    #[cfg_attr(feature = "serde", serde(rename = "mistaken"))]
    ElectionVoid,
    /// No connection to the leader could be had.
    LeaderUnreachable,
    /// Nothing has come from the leader for this time.
    LeaderSilent {
        /// Milliseconds.
        ms: u64,
    },
    /// The leader sent a packet that no leader sends, or that does not fit this server's log.
    LeaderBroken,
    /// The zxids of this server's epoch were nearly used up.
    CounterFull,
    /// A new configuration: it has another leader or other voters, or this server has become a follower or an observer.
    Reconfigured,
    /// The log was cut back for a leader that was lost meanwhile, or that has to send a whole tree instead.
    CutBack,
    /// This server has left its leader, for this reason.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Left(HangUp),
    /// This server led, or was elected to lead, and has stepped down.
    #[cfg_attr(feature = "serde", serde(untagged))]
    SteppedDown(StepDown),
}

/// The change of this server's own history, if it was not only added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "how", content = "last", rename_all = "snake_case")
)]
pub enum Takeover {
    /// Everything after this zxid was removed, then the missing transactions came.
    Truncated(Zxid),
    /// A whole tree with this last zxid took its place.
    Snapshot(Zxid),
}

/// The end of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The time at which this server had elected a leader.
    pub at: Mono,
    /// The elected server.
    pub leader: ServerId,
    /// The role of this server from then on.
    pub role: PeerState,
}

/// One search for a leader, up to the first commit of the epoch that it led to. Each phase has a time once it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The reason for the search.
    pub why: SearchReason,
    /// The beginning. All other times are on the same monotonic clock.
    pub began: Now,
    /// The leader before, if there was one.
    pub before: Option<ServerId>,
    /// When that leader was last heard of; a leader never hears of itself.
    pub last_word: Option<Mono>,
    /// The last transaction in the log.
    pub last: Zxid,
    /// The record of the votes.
    pub votes: ElectionRecord,
    /// The result of the votes.
    pub elected: Option<Outcome>,
    /// When a learner had its connection to the leader.
    pub connected: Option<Mono>,
    /// When a learner promised the epoch, or a leader had the promises of a quorum.
    pub discovered: Option<(Mono, Epoch)>,
    /// The change of a learner's own history, if it was not only added to.
    pub takeover: Option<(Mono, Takeover)>,
    /// When the epoch had begun and the server took part in it.
    pub synchronised: Option<Mono>,
    /// The first transaction that was committed here after that.
    pub first_commit: Option<(Mono, Zxid)>,
}

/// A member's last elections.
#[derive(Debug, Clone)]
pub struct Elections {
    /// The member.
    pub me: ServerId,
    /// The voters.
    pub voters: Vec<ServerId>,
    /// How long an election waits for a better vote, in milliseconds.
    pub settle_ms: u64,
    /// The oldest first; the last one may be under way.
    pub searches: Vec<Search>,
}

/// A time in which this server took part in one epoch, on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochTime {
    /// The leader.
    pub leader: ServerId,
    /// Its epoch; the last one, if the leader moved on in place.
    pub epoch: Epoch,
    /// The begin, in milliseconds since 1970.
    pub from_ms: i64,
    /// The end; `None` if it goes on.
    pub to_ms: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct ElectionHistory {
    searches: VecDeque<Search>,
    /// Whether the last search has come to votes. Then the election's record is about it.
    votes: bool,
}

impl ElectionHistory {
    fn begin(&mut self, search: Search) {
        if self.searches.len() == KEPT {
            self.searches.pop_front();
        }
        self.searches.push_back(search);
        self.votes = false;
    }

    /// To be called as votes begin.
    pub(super) fn votes_begin(&mut self) {
        self.votes = true;
    }

    fn current(&mut self) -> Option<&mut Search> {
        self.searches.back_mut()
    }

    pub(super) fn connected(&mut self, at: Mono) {
        if let Some(search) = self.current() {
            search.connected = Some(at);
        }
    }

    fn discovered(&mut self, at: Mono, epoch: Epoch) {
        if let Some(search) = self.current() {
            search.discovered = Some((at, epoch));
        }
    }

    fn takeover(&mut self, at: Mono, what: Takeover) {
        if let Some(search) = self.current() {
            search.takeover = Some((at, what));
        }
    }

    fn synchronised(&mut self, at: Mono) {
        if let Some(search) = self.current() {
            search.synchronised = Some(at);
        }
    }

    /// The epochs in which this server took part, the oldest first.
    fn epoch_times(&self) -> Vec<EpochTime> {
        let ends = self.searches.iter().skip(1).map(|next| Some(next.began.wall_ms)).chain([None]);
        let times = self.searches.iter().zip(ends).filter_map(|(search, to_ms)| {
            let (leader, epoch) = (search.elected?.leader, search.discovered?.1);
            let after = search.synchronised?.0.saturating_sub(search.began.mono.0);
            let from_ms = search.began.wall_ms.saturating_add_unsigned(after);
            Some(EpochTime { leader, epoch, from_ms, to_ms })
        });
        times.collect()
    }

    pub(super) fn serves_since(&self) -> Option<Mono> {
        self.searches.back()?.synchronised
    }

    fn committed(&mut self, at: Mono, zxid: Zxid) {
        if let Some(search) = self.current()
            && search.synchronised.is_some()
            && search.first_commit.is_none()
        {
            search.first_commit = Some((at, zxid));
        }
    }
}

impl Ensemble {
    /// To be called as soon as the leader is known.
    pub(super) fn note_elected(&mut self, at: Mono, leader: ServerId) {
        let role = match (leader == self.me, self.is_observer()) {
            (true, _) => PeerState::Leading,
            (false, false) => PeerState::Following,
            (false, true) => PeerState::Observing,
        };
        if let Some(search) = self.election_history.current() {
            search.elected = Some(Outcome { at, leader, role });
        }
    }
}

impl Server {
    /// To be called while the role is still the old one.
    pub(super) fn note_search(&mut self, now: Now, why: SearchReason) {
        let last = self.durable_state().last;
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let last_word = ensemble.role.learner().map(|learner| learner.heard);
        // The next election begins a record of its own.
        if ensemble.election_history.votes
            && let Some(last) = ensemble.election_history.current()
        {
            last.votes = ensemble.election.record().clone();
        }
        ensemble.election_history.begin(Search {
            why,
            began: now,
            before: ensemble.leader(),
            last_word,
            last,
            votes: ElectionRecord::default(),
            elected: None,
            connected: None,
            discovered: None,
            takeover: None,
            synchronised: None,
            first_commit: None,
        });
    }

    pub(super) fn note_leading(&mut self, now: Now, output: &LeadingOutput) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        match output {
            // A quorum has promised to follow no earlier epoch.
            LeadingOutput::SaveCurrent(epoch) => ensemble.election_history.discovered(now.mono, *epoch),
            LeadingOutput::Established(_) => ensemble.election_history.synchronised(now.mono),
            _ => {}
        }
    }

    pub(super) fn note_learning(&mut self, now: Now, output: &LearningOutput) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let at = now.mono;
        match output {
            // A promise to a leader that moves on in place is no part of an election.
            LearningOutput::AckEpoch { .. } if ensemble.following().is_none() => {
                ensemble.election_history.discovered(at, ensemble.accepted);
            }
            LearningOutput::Truncate(to) => ensemble.election_history.takeover(at, Takeover::Truncated(*to)),
            LearningOutput::Install(of) => ensemble.election_history.takeover(at, Takeover::Snapshot(*of)),
            LearningOutput::Serve(_) => ensemble.election_history.synchronised(at),
            _ => {}
        }
    }

    pub(crate) fn note_commit(&mut self, now: Now, zxid: Zxid) {
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.election_history.committed(now.mono, zxid);
        }
    }

    /// The last epochs in which this member took part, the oldest first; none for a standalone server.
    pub fn epoch_times(&self) -> Vec<EpochTime> {
        let Some(ensemble) = self.role.ensemble() else { return Vec::new() };
        let mut times = ensemble.election_history.epoch_times();
        if let Some(last) = times.last_mut().filter(|last| last.to_ms.is_none()) {
            last.epoch = last.epoch.max(ensemble.begun);
        }
        times
    }

    /// A number that changes with each event of an election and each phase: whoever shows elections looks again.
    pub fn election_progress(&self) -> u64 {
        let Some(ensemble) = self.role.ensemble() else { return 0 };
        let Some(last) = ensemble.election_history.searches.back() else { return 0 };
        let votes = ensemble.election.record();
        let events = votes.entries.len() + votes.left_out + votes.left_out_since;
        let phases = [
            last.elected.is_some(),
            last.connected.is_some(),
            last.discovered.is_some(),
            last.synchronised.is_some(),
            last.first_commit.is_some(),
        ];
        let phases = phases.into_iter().filter(|is_over| *is_over).count();
        ensemble.search_id << 36 | (events as u64 & 0xffff_ffff) << 4 | phases as u64
    }

    /// This member's last elections; `None` for a standalone server.
    pub fn elections(&self) -> Option<Elections> {
        let ensemble = self.role.ensemble()?;
        let mut searches: Vec<Search> = ensemble.election_history.searches.iter().cloned().collect();
        if let Some(last) = searches.last_mut().filter(|_| ensemble.election_history.votes) {
            last.votes = ensemble.election.record().clone();
        }
        Some(Elections {
            me: ensemble.me,
            voters: ensemble.electorate.voters().into_iter().collect(),
            settle_ms: ensemble.config.election.settle,
            searches,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ObserverOptions;
    use super::*;
    use crate::{CoreConfig, Effect, EnsembleConfig, Input, PersistOp, context::Context};
    use alloc::{format, string::String};
    use ostler_proto::{
        election::{NOTIFICATION_VERSION, Notification},
        membership::Membership,
    };
    use ostler_tree::Tree;
    use ostler_zab::{
        ElectionTiming, EpochLength, HistoryLimits, election::ElectionEvent, leading::LeadingTiming,
    };

    const WALL_MS: i64 = 1_800_000_000_000;

    fn at(ms: u64) -> Now {
        Now { mono: Mono(ms), wall_ms: WALL_MS + ms as i64, us: 0 }
    }

    fn member(voters: &[i64]) -> Server {
        let core = CoreConfig { server: ServerId(1), ..CoreConfig::default() };
        let servers = voters.iter().map(|id| format!("server.{id}=10.0.0.{id}:2888:3888\n"));
        let ensemble = EnsembleConfig {
            local_sessions: crate::quorum::LocalSessions::Off,
            read_only_after_ms: None,
            membership: Membership::parse(&servers.collect::<String>()).unwrap(),
            pending: None,
            election: ElectionTiming::default(),
            timing: LeadingTiming { init: 1_000, sync: 500 },
            refuse_others: true,
            voters_min: 2,
            observing: ObserverOptions::default(),
            epoch: EpochLength::default(),
            history: HistoryLimits { records: 100, bytes: 1 << 20 },
            may_start_empty: false,
            incomplete: false,
            accepted: Epoch(3),
            current: Epoch(3),
            log_from: Zxid::ZERO,
        };
        let tree = Tree::fresh(core.types);
        Server::member(core, ensemble, tree, 0, at(0))
    }

    /// Lets the disk be done with everything, a millisecond after it was asked. The last moment.
    fn settle(server: &mut Server, mut effects: Vec<Effect>, mut ms: u64) -> u64 {
        while !effects.is_empty() {
            ms += 1;
            for effect in core::mem::take(&mut effects) {
                if let Effect::Persist { seq, op } = effect {
                    assert!(matches!(op, PersistOp::SaveAccepted(_) | PersistOp::SaveCurrent(_)));
                    server.step(at(ms), Input::Persisted(seq), &mut effects);
                }
            }
        }
        ms
    }

    fn look_again(server: &mut Server, now: Now) {
        server.look(&mut Context { now, effects: &mut Vec::new() }, SearchReason::CounterFull);
    }

    #[test]
    fn a_voter_of_its_own_goes_through_all_phases() {
        let mut server = member(&[1]);
        let mut effects = Vec::new();
        server.step(at(10), Input::Deadline, &mut effects);
        let end = settle(&mut server, effects, 10);
        let elections = server.elections().unwrap();
        assert_eq!((elections.me, elections.voters), (ServerId(1), Vec::from([ServerId(1)])));
        let [search] = &elections.searches[..] else { panic!("{:#?}", elections.searches) };
        assert_eq!((search.why, search.began, search.before), (SearchReason::Started, at(10), None));
        let outcome = Outcome { at: Mono(10), leader: ServerId(1), role: PeerState::Leading };
        assert_eq!(search.elected, Some(outcome));
        assert!(matches!(search.votes.entries[0].event, ElectionEvent::Began { round: 1, .. }));
        let (discovered, epoch) = search.discovered.unwrap();
        assert_eq!(epoch, Epoch(4));
        let synchronised = search.synchronised.unwrap();
        assert!(Mono(10) < discovered && discovered < synchronised && synchronised <= Mono(end));
        assert_eq!(search.first_commit, None, "nobody has written");
        let led = |to_ms| {
            let from_ms = WALL_MS + synchronised.0 as i64;
            Vec::from([EpochTime { leader: ServerId(1), epoch: Epoch(4), from_ms, to_ms }])
        };
        assert_eq!(server.epoch_times(), led(None));

        server.note_commit(at(91), Zxid::new(Epoch(4), 1));
        server.note_commit(at(92), Zxid::new(Epoch(4), 2));
        let first = server.elections().unwrap().searches[0].first_commit;
        assert_eq!(first, Some((Mono(91), Zxid::new(Epoch(4), 1))), "the first of this epoch");
        look_again(&mut server, at(200));
        assert_eq!(server.epoch_times(), led(Some(WALL_MS + 200)));
    }

    #[test]
    fn votes_are_shown_while_the_election_goes_on() {
        let mut server = member(&[1, 2, 3]);
        let mut effects = Vec::new();
        server.step(at(10), Input::Deadline, &mut effects);
        let before = server.election_progress();
        server.step(at(12), Input::ElectionLink { peer: ServerId(3), up: false }, &mut effects);
        assert_ne!(server.election_progress(), before);
        let searches = server.elections().unwrap().searches;
        assert_eq!(searches[0].elected, None);
        let last = &searches[0].votes.entries.last().unwrap().event;
        assert_eq!(*last, ElectionEvent::Lost { peer: ServerId(3) });
    }

    #[test]
    fn votes_sent_after_the_election_belong_to_its_search() {
        let mut server = member(&[1]);
        let mut effects = Vec::new();
        server.step(at(10), Input::Deadline, &mut effects);
        let end = settle(&mut server, effects, 10);
        let vote = Notification {
            state: PeerState::Looking,
            candidate: None,
            round: 1,
            version: NOTIFICATION_VERSION,
            config: String::new(),
        };
        let mut effects = Vec::new();
        server.step(at(end + 1), Input::Vote { from: ServerId(4), notification: vote }, &mut effects);
        let is_told = |search: &Search| {
            let last = &search.votes.entries.last().unwrap().event;
            matches!(last, ElectionEvent::SentToOne { to: ServerId(4), state: PeerState::Leading, .. })
        };
        assert!(is_told(&server.elections().unwrap().searches[0]));
        look_again(&mut server, at(end + 2));
        let searches = server.elections().unwrap().searches;
        assert!(is_told(&searches[0]), "also once the next has begun");
        assert!(!is_told(&searches[1]));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut server = member(&[1]);
        let mut effects = Vec::new();
        server.step(at(0), Input::Deadline, &mut effects);
        for ms in 1..=100 {
            look_again(&mut server, at(ms));
        }
        let searches = server.elections().unwrap().searches;
        assert_eq!(searches.len(), KEPT);
        assert_eq!(searches[0].began, at(100 - KEPT as u64 + 1));
        assert_eq!(searches[0].before, Some(ServerId(1)));
    }

    #[test]
    fn a_lone_server_has_none() {
        let core = CoreConfig::default();
        let tree = Tree::fresh(core.types);
        assert!(Server::new(core, tree, 0, at(0)).elections().is_none());
    }
}
