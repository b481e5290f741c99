//! One member of an ensemble. The test says what it hears of the others. Its disk is done with everything at once, or waits.

use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, SessionId, Zxid},
    membership::Membership,
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{
    CoreConfig, Effect, EnsembleConfig, Input, Now, PeerMessage, PersistOp, Server,
    input::Mono,
    quorum::{LocalSessions, MemberMode, ObserverOptions},
};
use ostler_tree::Tree;
use ostler_zab::{
    ElectionTiming, EpochLength, HistoryLimits, PersistSeq,
    leading::{LeadingTiming, LinkId},
};
use std::borrow::Cow;

pub(crate) const ME: i64 = 1;
/// Of every client.
pub(crate) const SESSION: SessionId = SessionId(7);
const SETTLE_MS: u64 = 200;

/// A zxid, which is the version of a change, too.
pub(crate) fn at(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

/// A configuration in which these vote.
pub(crate) fn config(voters: &[i64], version: Zxid) -> Membership {
    let lines = voters.iter().map(|id| format!("server.{id}=h{id}:1:2:participant;h{id}:3\n"));
    Membership { version: version.0, ..Membership::parse(&lines.collect::<String>()).unwrap() }
}

/// With this as the last transaction, and nothing in it.
pub(crate) fn tree_at(last: Zxid) -> Tree {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    if last > Zxid::ZERO {
        tree.begin_epoch(last);
    }
    tree
}

pub(crate) struct Member {
    pub(crate) server: Server,
    pub(crate) ms: u64,
    links: u64,
    pub(crate) effects: Vec<Effect>,
    /// In force, as it is on disk.
    pub(crate) saved: Option<Membership>,
    /// Nothing reaches the disk before [`Member::disk_catches_up`].
    pub(crate) disk_waits: bool,
    unsaved: Option<PersistSeq>,
}

impl Member {
    pub(crate) fn start(
        membership: &Membership,
        pending: Option<&Membership>,
        tree: Tree,
        epoch: u32,
    ) -> Member {
        Member::start_with(membership, pending, tree, epoch, |_| {})
    }

    pub(crate) fn start_with(
        membership: &Membership,
        pending: Option<&Membership>,
        tree: Tree,
        epoch: u32,
        adjust: impl FnOnce(&mut EnsembleConfig),
    ) -> Member {
        let core = CoreConfig { reconfig: true, ..CoreConfig::default() };
        Member::start_as(core, membership, pending, tree, epoch, adjust)
    }

    pub(crate) fn start_as(
        core: CoreConfig,
        membership: &Membership,
        pending: Option<&Membership>,
        tree: Tree,
        epoch: u32,
        adjust: impl FnOnce(&mut EnsembleConfig),
    ) -> Member {
        let core = CoreConfig { server: ServerId(ME), skip_acl: true, ..core };
        let mut ensemble = EnsembleConfig {
            membership: membership.clone(),
            pending: pending.cloned(),
            election: ElectionTiming { settle: SETTLE_MS, ..ElectionTiming::default() },
            timing: LeadingTiming { init: 10_000, sync: 5_000 },
            refuse_others: true,
            voters_min: 2,
            observing: ObserverOptions::default(),
            epoch: EpochLength { in_place: None, ..EpochLength::default() },
            history: HistoryLimits { records: 100, bytes: 1 << 20 },
            local_sessions: LocalSessions::Off,
            read_only_after_ms: None,
            may_start_empty: true,
            incomplete: false,
            accepted: Epoch(epoch),
            current: Epoch(epoch),
            log_from: Zxid::ZERO,
        };
        adjust(&mut ensemble);
        let server = Server::member(core, ensemble, tree, 0, Now::default());
        let effects = Vec::new();
        let mut member =
            Member { server, ms: 0, links: 0, effects, saved: None, disk_waits: false, unsaved: None };
        member.step(Input::Deadline);
        member
    }

    pub(crate) fn step(&mut self, input: Input<'_>) {
        self.ms += 1;
        let now = Now { mono: Mono(self.ms), ..Now::default() };
        let mut effects = Vec::new();
        self.server.step(now, input, &mut effects);
        while let Some(effect) = (!effects.is_empty()).then(|| effects.remove(0)) {
            if let Effect::Persist { seq, op } = &effect {
                if let PersistOp::SaveConfig { membership, active: true } = op {
                    self.saved = Some(membership.clone());
                }
                if self.disk_waits {
                    self.unsaved = Some(*seq);
                } else {
                    self.server.step(now, Input::Persisted(*seq), &mut effects);
                }
            }
            self.effects.push(effect);
        }
        self.server.invariants();
    }

    pub(crate) fn disk_catches_up(&mut self) {
        self.disk_waits = false;
        if let Some(seq) = self.unsaved.take() {
            self.step(Input::Persisted(seq));
        }
    }

    /// Time passes; it is woken when it asks to be.
    pub(crate) fn passes(&mut self, ms: u64) {
        let end = self.ms + ms;
        while self.server.next_deadline().0 <= end {
            self.ms = self.server.next_deadline().0.max(self.ms + 1) - 1;
            self.step(Input::Deadline);
        }
        self.ms = end;
    }

    /// Whether it has proposed the end of the session.
    pub(crate) fn has_given_up_the_session(&self) -> bool {
        self.effects.iter().any(|effect| {
            let Effect::Persist { op: PersistOp::Append { record, .. }, .. } = effect else { return false };
            let read = TxnRecord::read(&record.0).unwrap();
            read.header.session == SESSION && matches!(read.txn, Txn::CloseSession(_))
        })
    }

    /// The voters of the electorate.
    pub(crate) fn voters(&self) -> Vec<i64> {
        self.server.elections().unwrap().voters.iter().map(|id| id.0).collect()
    }

    /// The last vote that it has sent.
    pub(crate) fn vote(&self) -> Notification {
        let sent = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::SendVote { notification, .. } => Some(notification.clone()),
            _ => None,
        });
        sent.unwrap()
    }

    pub(crate) fn hears_vote(
        &mut self,
        from: i64,
        state: PeerState,
        for_whom: Candidate,
        under: &Membership,
    ) {
        let round = if state == PeerState::Looking { self.vote().round } else { 1_000 };
        let config = under.to_string();
        let notification =
            Notification { state, candidate: Some(for_whom), round, version: NOTIFICATION_VERSION, config };
        self.step(Input::Vote { from: ServerId(from), notification });
    }

    /// Another server that looks for a leader has data.
    pub(crate) fn hears_of_data(&mut self) {
        let other = Candidate { epoch: Epoch(1), zxid: at(1, 3), id: ServerId(2) };
        self.hears_vote(2, PeerState::Looking, other, &config(&[1, 2, 3], at(1, 0)));
    }

    /// Whether it is elected when these back it, who have the configuration that they are said to have.
    pub(crate) fn get_elected_by(&mut self, others: &[i64], under: &Membership) -> bool {
        for other in others {
            let own = self.vote().candidate.unwrap();
            self.hears_vote(*other, PeerState::Looking, own, under);
        }
        self.ms += SETTLE_MS;
        self.step(Input::Deadline);
        self.vote().state == PeerState::Leading
    }

    /// These follow the last of them, and so does this one. It gets as far as its leader's epoch.
    pub(crate) fn follows(&mut self, servers: &[i64], under: &Membership, epoch: u32) -> LinkId {
        let leader = *servers.last().unwrap();
        let candidate = Candidate { epoch: Epoch(epoch), zxid: at(epoch, 0), id: ServerId(leader) };
        for server in servers {
            let state = if *server == leader { PeerState::Leading } else { PeerState::Following };
            self.hears_vote(*server, state, candidate, under);
        }
        let dialled = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Dial { search_id, .. } => Some(*search_id),
            _ => None,
        });
        self.links += 1;
        let link = LinkId(self.links);
        self.step(Input::LeaderLink { search_id: dialled.unwrap(), link });
        self.hears(link, Packet::LeaderInfo { epoch: Epoch(epoch), protocol: PROTOCOL_VERSION });
        link
    }

    pub(crate) fn hears(&mut self, link: LinkId, packet: Packet<'_>) {
        self.step(Input::Peer { link, packet });
    }

    pub(crate) fn hears_proposal(&mut self, link: LinkId, zxid: Zxid, record: Vec<u8>) {
        self.hears(link, Packet::Proposal { zxid, record: Cow::Owned(record) });
    }

    pub(crate) fn hears_new_leader(&mut self, link: LinkId, epoch: u32, config: &Membership) {
        self.hears(link, Packet::NewLeader { epoch: Epoch(epoch), config: config.to_string().into() });
    }

    pub(crate) fn loses(&mut self, link: LinkId) {
        self.step(Input::PeerGone { link });
    }

    pub(crate) fn has_hung_up(&self, link: LinkId) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::HangUp(of) if *of == link))
    }

    /// It leads an epoch which these follow, whose links have their numbers.
    pub(crate) fn leads_with(&mut self, followers: &[i64], under: &Membership, epoch: u32) {
        assert!(self.get_elected_by(followers, under));
        for follower in followers {
            let info = LearnerInfo {
                server: Some(ServerId(*follower)),
                protocol: PROTOCOL_VERSION,
                config_version: under.version,
                knows_secrets: false,
                moves_in_place: true,
            };
            self.hears(LinkId(*follower as u64), Packet::FollowerInfo { accepted: Epoch(epoch - 1), info });
        }
        let last = self.server.tree().last_processed();
        for follower in followers {
            let current = Some(Epoch(epoch - 1));
            self.hears(LinkId(*follower as u64), Packet::AckEpoch { last, current });
        }
        for follower in followers {
            self.hears(LinkId(*follower as u64), Packet::Ack(at(epoch, 0)));
        }
        assert_eq!(self.server.mode(), Some(MemberMode::Leader));
    }

    /// A client of a follower asks for something.
    pub(crate) fn request(&mut self, follower: i64, op: Op, body: &[u8]) {
        let (session, cxid, code) = (SESSION, 1, op.code());
        let packet = Packet::Request { session, cxid, code, body: Cow::Borrowed(body), ids: Vec::new() };
        self.hears(LinkId(follower as u64), packet);
    }

    /// The packets that it has sent to a follower.
    pub(crate) fn has_told(&self, follower: i64, packet: &Packet<'_>) -> bool {
        self.place_of(follower, packet).is_some()
    }

    /// After how much else it has told a follower of this.
    pub(crate) fn place_of(&self, follower: i64, packet: &Packet<'_>) -> Option<usize> {
        self.effects.iter().position(|effect| {
            matches!(
                effect,
                Effect::ToPeer { link, message: PeerMessage::Packet(told) }
                    if *link == LinkId(follower as u64) && told == packet
            )
        })
    }
}
