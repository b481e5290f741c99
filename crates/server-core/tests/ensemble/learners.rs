//! A server that follows a leader, or tries to connect to it.

use crate::{
    configurations::tree_with,
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{DIGEST_VERSION, Txn, TxnDigest, TxnHeader, TxnRecord},
};
use ostler_server_core::{Effect, Input, PeerMessage, PersistOp};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// `init` and `sync` of the members here.
const PATIENCE_MS: u64 = 15_000;

fn said_who_it_is(member: &Member) -> &Packet<'static> {
    let said = member.effects.iter().find_map(|effect| match effect {
        Effect::ToPeer { message: PeerMessage::Packet(packet), .. } => Some(packet),
        _ => None,
    });
    said.unwrap()
}

/// At 10 MB/s 300 MB take longer than all the patience there is, and would be sent again and again.
#[test]
fn a_tree_may_take_as_long_as_it_goes_on_coming() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    member.step(Input::SnapBegins { link });
    for _ in 0..10 {
        member.passes(PATIENCE_MS / 2);
        member.step(Input::StreamMoves { link });
    }
    assert!(!member.has_hung_up(link));
    member.passes(PATIENCE_MS * 2);
    assert!(member.has_hung_up(link));
}

/// A change that adds a voter counts on that it has what is committed: upstream's rule, by which it must follow before.
/// A server that is listed as an observer follows as an observer.
#[test]
fn a_server_outside_the_configuration_follows_without_a_vote() {
    for (listed, follows) in [(false, true), (true, false)] {
        let mut ensemble = config(&[2, 3], at(1, 0));
        if listed {
            let mut me = ensemble.servers[&ServerId(2)].clone();
            me.observer = true;
            ensemble.servers.insert(ServerId(1), me);
        }
        let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
        member.follows(&[2, 3], &ensemble, 2);
        let said = said_who_it_is(&member);
        assert_eq!(matches!(said, Packet::FollowerInfo { .. }), follows, "{said:?}");
        assert_eq!(matches!(said, Packet::ObserverInfo { .. }), !follows, "{said:?}");
    }
}

fn begun_with(zxid: Zxid) -> Tree {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    tree.begin_epoch(zxid);
    tree
}

fn told_as_last(member: &Member) -> Zxid {
    let told = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::ToPeer { message: PeerMessage::Packet(Packet::AckEpoch { last, .. }), .. } => Some(*last),
        _ => None,
    });
    told.unwrap()
}

/// The transactions that stay may be in a tree only, which has later ones than the leader. So the leader's whole tree has
/// to take its place. The next leader may be one that has all of them.
#[test]
fn a_learner_that_cannot_cut_its_log_keeps_it_and_asks_for_a_tree() {
    let (ensemble, last) = (config(&[1, 2, 3], at(1, 0)), at(5, 0));
    let mut member = Member::start(&ensemble, None, begun_with(last), 5);
    let link = member.follows(&[2, 3], &ensemble, 6);
    assert_eq!(told_as_last(&member), last);
    member.hears(link, Packet::Trunc(at(4, 1)));
    let search_id = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Truncate { reload, .. }, .. } => *reload,
        _ => None,
    });
    member.step(Input::Reloaded { search_id: search_id.unwrap(), tree: Box::new(begun_with(last)) });
    assert!(member.has_hung_up(link));
    let vote = member.vote().candidate.unwrap();
    assert_eq!((vote.epoch.0, vote.zxid, vote.id), (5, last, ServerId(1)));
    let link = member.follows(&[2, 3], &ensemble, 6);
    assert_eq!(told_as_last(&member), at(7, 0), "no leader knows an epoch after its own");
    member.loses(link);
    member.follows(&[2, 3], &ensemble, 6);
    assert_eq!(told_as_last(&member), last);
}

/// It has said what it has, and can say nothing more before it is answered.
#[test]
fn a_learner_that_waits_for_the_log_is_not_refused_as_silent() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, begun_with(at(1, 5)), 1);
    member.leads_with(&[2], &ensemble, 2);
    let (two, three) = (LinkId(2), LinkId(3));
    let info = LearnerInfo {
        server: Some(ServerId(3)),
        protocol: PROTOCOL_VERSION,
        config_version: ensemble.version,
        knows_secrets: false,
        moves_in_place: false,
    };
    member.hears(three, Packet::FollowerInfo { accepted: Epoch(1), info });
    member.hears(three, Packet::AckEpoch { last: at(1, 2), current: Some(Epoch(1)) });
    let asked = |effect: &Effect| matches!(effect, Effect::ReadLog { link, .. } if *link == three);
    assert!(member.effects.iter().any(asked), "memory does not reach back so far");
    for _ in 0..PATIENCE_MS / 1_000 + 2 {
        member.hears(two, Packet::Ping { zxid: at(2, 0), touched: Some(Vec::new()) });
        member.passes(1_000);
    }
    assert!(!member.has_hung_up(three));
}

/// A Java leader sends its tree while it changes, so transactions up to the border may be in it, or not yet. From there on
/// the digests have to be right again: by them an operator learns that two servers have different trees.
#[test]
fn digests_count_again_once_the_whole_of_a_leaders_tree_has_come() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    member.step(Input::Snap { link, tree: Box::new(tree_with(&[&config(&[1, 2, 3], at(1, 5))])) });
    let hears_of_session = |member: &mut Member, zxid: Zxid| {
        let txn = Txn::CreateSession { timeout_ms: 4_000 };
        let header = TxnHeader { session: SESSION, cxid: 0, zxid, time_ms: 0, code: txn.code() };
        let wrong = Some(TxnDigest { version: DIGEST_VERSION, tree: 1 });
        let mut bytes = Vec::new();
        TxnRecord { header, txn, digest: wrong }.write(&mut bytes);
        member.hears_proposal(link, zxid, bytes);
    };
    hears_of_session(&mut member, at(2, 1));
    member.hears(link, Packet::Commit(at(2, 1)));
    member.hears_new_leader(link, 2, &ensemble);
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.server.tree().last_processed(), at(2, 1));
    assert_eq!(member.server.tree().digest_mismatches(), 0, "it may have been in the tree already");
    hears_of_session(&mut member, at(2, 2));
    member.hears(link, Packet::Commit(at(2, 2)));
    assert_eq!(member.server.tree().digest_mismatches(), 1);
}
