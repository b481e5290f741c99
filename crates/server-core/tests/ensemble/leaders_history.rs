//! How a learner takes over its leader's history.

use crate::{
    configurations::record,
    follower::Follower,
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    membership::Membership,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{
    DialTarget, Effect, Input, PeerMessage, PersistOp,
    quorum::{MemberMode, election_history::SearchReason},
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

fn created(session: SessionId, zxid: Zxid) -> Vec<u8> {
    let txn = Txn::CreateSession { timeout_ms: 4_000 };
    let header = TxnHeader { session, cxid: 0, zxid, time_ms: 0, code: txn.code() };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    bytes
}

fn last_search(member: &Member) -> SearchReason {
    member.server.elections().unwrap().searches.last().unwrap().why
}

/// Two records are logged, and none is known to be committed. The leader is lost.
fn with_two_logged(ensemble: &Membership) -> Member {
    let mut member = Member::start(ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let link = member.follows(&[2, 3], ensemble, 2);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 2, ensemble);
    for counter in [1, 2] {
        let zxid = at(2, counter);
        member.hears_proposal(link, zxid, created(SessionId(counter.into()), zxid));
    }
    member.loses(link);
    assert_eq!(member.server.tree().last_processed(), Zxid::ZERO);
    member
}

fn sessions(member: &Member) -> Vec<i64> {
    (1..=4).filter(|id| member.server.tree().has_session(SessionId(*id))).collect()
}

/// The next leader has them as well, or one of them.
#[test]
fn logged_transactions_of_the_leaders_history_are_applied() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    for (first, kept) in
        [(Packet::Diff(at(2, 2)), 2), (Packet::Trunc(at(2, 2)), 2), (Packet::Trunc(at(2, 1)), 1)]
    {
        let mut member = with_two_logged(&ensemble);
        let link = member.follows(&[2, 3], &ensemble, 3);
        member.hears(link, first.clone());
        assert_eq!(member.server.tree().last_processed(), at(2, kept), "{first:?}");
        assert_eq!(sessions(&member), (1..=kept.into()).collect::<Vec<_>>());
        assert_eq!(last_search(&member), SearchReason::LeaderGone, "it goes along");
        let reloads = member.effects.iter().any(|effect| {
            matches!(effect, Effect::Persist { op: PersistOp::Truncate { reload: Some(_), .. }, .. })
        });
        assert!(!reloads, "the tree has nothing of what is taken back");
        member.hears_new_leader(link, 3, &ensemble);
        member.hears(link, Packet::UpToDate);
        assert_eq!(member.server.mode(), Some(MemberMode::Follower));
        member.hears_proposal(link, at(3, 1), created(SessionId(4), at(3, 1)));
        member.hears(link, Packet::Commit(at(3, 1)));
        assert_eq!(sessions(&member), (1..=kept.into()).chain([4]).collect::<Vec<_>>());
    }
}

#[test]
fn a_leader_that_cuts_to_what_is_not_here_is_left() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = with_two_logged(&ensemble);
    let link = member.follows(&[2, 3], &ensemble, 3);
    member.hears(link, Packet::Trunc(at(2, 5)));
    assert!(member.has_hung_up(link));
    assert_eq!(last_search(&member), SearchReason::LeaderBroken);
}

#[test]
fn a_record_with_another_number_than_its_proposal_is_no_leaders() {
    let mut follower = Follower::start_with(|_| {});
    follower.member.hears_proposal(follower.leader, at(2, 1), created(SESSION, at(2, 2)));
    assert!(follower.member.has_hung_up(follower.leader));
    assert_eq!(last_search(&follower.member), SearchReason::LeaderBroken);
    let appends = follower
        .member
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::Persist { op: PersistOp::Append { .. }, .. }));
    assert!(!appends);
}

/// One that nobody has said is new, and to which a history begins to come.
#[test]
fn an_empty_server_marks_its_data_incomplete_once_a_history_comes() {
    for (may_start_empty, incomplete, epoch, expected) in
        [(false, false, 0, 1), (false, true, 0, 0), (true, false, 0, 0), (false, false, 1, 0)]
    {
        let ensemble = config(&[1, 2, 3], at(1, 0));
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_with(&ensemble, None, fresh, epoch, |config| {
            config.may_start_empty = may_start_empty;
            config.incomplete = incomplete;
        });
        let link = member.follows(&[2, 3], &ensemble, 3);
        member.hears(link, Packet::Diff(at(2, 2)));
        for counter in [1, 2] {
            member.hears_proposal(link, at(2, counter), created(SESSION, at(2, counter)));
        }
        let marks = member
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Persist { op: PersistOp::MarkIncomplete, .. }));
        assert_eq!(marks.count(), expected, "{may_start_empty} {incomplete} {epoch}");
    }
}

/// `init` and `sync` of the members here.
const PATIENCE_MS: u64 = 15_000;

#[test]
fn a_leader_lives_whose_own_tree_begins_to_come_or_moves() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    for own in [true, false] {
        for begins in [true, false] {
            let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
            let leader = member.follows(&[2, 3], &ensemble, 2);
            member.passes(PATIENCE_MS - 2_000);
            let link = if own { leader } else { LinkId(77) };
            member.step(if begins { Input::SnapBegins { link } } else { Input::StreamMoves { link } });
            member.passes(4_000);
            assert_eq!(member.has_hung_up(leader), !own, "its own: {own}, begins: {begins}");
        }
    }
}

/// The change that sends the leader away, which names the next one.
fn hears_that_three_goes(follower: &mut Follower, names: i64) {
    let newest = config(&[1, 2], at(2, 1));
    follower.member.hears_proposal(follower.leader, at(2, 1), record(&newest));
    let leader = ServerId(names);
    follower.member.hears(follower.leader, Packet::CommitAndActivate { zxid: at(2, 1), leader });
    assert_eq!(follower.member.voters(), [1, 2]);
}

fn dials(member: &Member) -> Vec<DialTarget> {
    let dials = member.effects.iter().filter_map(|effect| match effect {
        Effect::Dial { to, .. } => Some(*to),
        _ => None,
    });
    dials.collect()
}

#[test]
fn a_follower_goes_to_the_leader_that_the_leaving_one_names() {
    let three = DialTarget::Leader(ServerId(3));
    let mut follower = Follower::start_with(|_| {});
    hears_that_three_goes(&mut follower, 2);
    assert!(follower.member.has_hung_up(follower.leader));
    assert_eq!(last_search(&follower.member), SearchReason::Reconfigured);
    assert_eq!(dials(&follower.member), [three, DialTarget::Leader(ServerId(2))]);
    let mut follower = Follower::start_with(|_| {});
    hears_that_three_goes(&mut follower, 3);
    assert!(!follower.member.has_hung_up(follower.leader), "it names itself");
    assert_eq!(dials(&follower.member), [three]);
}

#[test]
fn observers_of_an_observer_master_get_the_next_leaders_name() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let link = LinkId(54);
    let config_version = config(&[1, 2, 3], at(1, 0)).version;
    let info = LearnerInfo {
        server: Some(ServerId(4)),
        protocol: PROTOCOL_VERSION,
        config_version,
        knows_secrets: false,
        moves_in_place: false,
    };
    follower.member.step(Input::ObserverCalls { link });
    follower.member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info });
    follower.member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
    follower.member.hears(link, Packet::Ack(at(2, 0)));
    hears_that_three_goes(&mut follower, 2);
    let named = follower.member.effects.iter().find_map(|effect| match effect {
        Effect::ToPeer {
            link: to,
            message: PeerMessage::Packet(Packet::InformAndActivate { leader, .. }),
        } if *to == link => Some(leader.0),
        _ => None,
    });
    assert_eq!(named, Some(2));
}

/// An observer of 3.
fn observer() -> (Member, LinkId, Membership) {
    let mut ensemble = config(&[2, 3], at(1, 0));
    let mut me = ensemble.servers[&ServerId(2)].clone();
    me.observer = true;
    ensemble.servers.insert(ServerId(1), me);
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 2, &ensemble);
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.server.mode(), Some(MemberMode::Observer));
    (member, link, ensemble)
}

#[test]
fn an_observer_takes_what_it_is_told_is_committed() {
    let (mut member, link, ensemble) = observer();
    assert_eq!(member.vote().candidate, None, "it votes for nobody");
    assert_eq!(member.server.summary().stats.elections.election_ms.count, 0, "nor is it elected");
    member.hears(link, Packet::Inform { zxid: at(2, 1), record: created(SESSION, at(2, 1)).into() });
    assert!(member.server.tree().has_session(SESSION));
    let of = member.server.summary().stats.writes;
    assert_eq!((of.proposals_received, of.commits_received), (0, 1), "nobody proposes anything to it");
    let newest = Membership { version: at(2, 2).0, ..ensemble };
    let (zxid, leader, record) = (at(2, 2), ServerId(3), record(&newest).into());
    member.hears(link, Packet::InformAndActivate { zxid, leader, record });
    assert_eq!(member.saved, Some(newest));
    assert!(!member.has_hung_up(link));
}
