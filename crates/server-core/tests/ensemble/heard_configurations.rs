//! Which of the configurations that a member hears of come into force, and when.

use crate::{
    configurations::{leaving, record, tree_with},
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{
    election::{Candidate, PeerState},
    error::ErrorCode,
    id::{Epoch, ServerId, Zxid},
    jute::Writer,
    membership::Membership,
    op::Op,
    path,
    quorum_packet::Packet,
    stat::ExtendedTypes,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{
    CoreConfig, Effect, Input, PersistOp,
    quorum::{MemberMode, election_history::SearchReason},
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// The configurations that were saved: the version, and whether it is in force.
fn saves(member: &Member) -> Vec<(Zxid, bool)> {
    let saves = member.effects.iter().filter_map(|effect| match effect {
        Effect::Persist { op: PersistOp::SaveConfig { membership, active }, .. } => {
            Some((Zxid(membership.version), *active))
        }
        _ => None,
    });
    saves.collect()
}

fn whys(member: &Member) -> Vec<SearchReason> {
    member.server.elections().unwrap().searches.iter().map(|search| search.why).collect()
}

/// With this configuration in force, in its tree as well.
fn learner(own: &Membership) -> (Member, LinkId) {
    let mut member = Member::start(own, None, tree_with(&[own]), 1);
    let link = member.follows(&[2, 3], own, 2);
    member.hears(link, Packet::Diff(Zxid(own.version)));
    (member, link)
}

#[test]
fn with_the_history_only_a_newer_configuration_is_taken() {
    let own = config(&[1, 2, 3], at(1, 5));
    for (told, voters) in [
        (own.clone(), &[1, 2, 3][..]),
        (config(&[1, 2, 3, 9], at(1, 4)), &[1, 2, 3]),
        // The same number of other servers says nothing.
        (config(&[1, 2, 3, 9], at(1, 5)), &[1, 2, 3]),
        (config(&[1, 2, 3, 9], at(1, 6)), &[1, 2, 3, 9]),
    ] {
        let (mut member, link) = learner(&own);
        member.hears_new_leader(link, 2, &told);
        assert_eq!(member.voters(), voters, "{told}");
        let expected = if told.version > own.version { vec![(at(1, 6), false)] } else { vec![] };
        assert_eq!(saves(&member), expected, "{told}");
    }
}

/// A change is logged, and its leader may not lead yet.
#[test]
fn a_change_that_is_logged_is_in_force_when_that_is_said_and_not_when_it_is_heard_again() {
    let (own, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4], at(2, 3)));
    for told in [&own, &newest] {
        let (mut member, link) = learner(&own);
        member.hears_proposal(link, at(2, 3), record(&newest));
        member.hears_new_leader(link, 2, told);
        assert_eq!(member.saved, None, "{told}");
        assert_eq!(saves(&member), [(at(2, 3), false)]);
        assert_eq!(member.voters(), [1, 2, 3, 4]);
    }
    // It may come with the end of the history first.
    let (mut member, link) = learner(&own);
    member.hears_new_leader(link, 2, &newest);
    member.hears_proposal(link, at(2, 3), record(&newest));
    assert_eq!(saves(&member), [(at(2, 3), false)]);
}

#[test]
fn a_change_comes_into_force_once() {
    let (own, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4], at(2, 1)));
    let (mut member, link) = learner(&own);
    member.hears_proposal(link, at(2, 1), record(&newest));
    // The next one shows that this was in force where it was made.
    let last = config(&[1, 2, 3, 5], at(2, 2));
    member.hears_proposal(link, at(2, 2), record(&last));
    member.hears_new_leader(link, 2, &newest);
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.server.mode(), Some(MemberMode::Follower));
    member.hears(link, Packet::Commit(at(2, 1)));
    assert_eq!(saves(&member), [(at(2, 1), false), (at(2, 1), true), (at(2, 2), false)]);
    member.hears(link, Packet::Commit(at(2, 2)));
    assert_eq!(saves(&member).last(), Some(&(at(2, 2), true)));
    assert_eq!(saves(&member).len(), 4);
}

/// That number is the epoch's, and no change that anybody has made.
#[test]
fn a_number_that_came_with_the_history_is_not_in_force_because_a_change_follows() {
    let first = config(&[1, 2, 3], Zxid::ZERO);
    let (numbered, newest) = (config(&[1, 2, 3], at(4, 0)), config(&[1, 2, 3, 5], at(4, 1)));
    let mut member = Member::start(&first, None, Tree::fresh(ExtendedTypes::default()), 0);
    let link = member.follows(&[2, 3], &first, 4);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 4, &numbered);
    member.hears_proposal(link, at(4, 1), record(&newest));
    assert_eq!(member.saved, None);
}

/// The transaction to which a leader cuts stays, and with it a change.
#[test]
fn a_change_that_is_cut_back_is_none_any_more() {
    let (own, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4], at(2, 1)));
    for (to, voters) in [(at(2, 1), &[1, 2, 3, 4][..]), (at(1, 1), &[1, 2, 3])] {
        let (mut member, link) = learner(&own);
        member.hears_proposal(link, at(2, 1), record(&newest));
        member.loses(link);
        let link = member.follows(&[2, 3], &own, 3);
        member.hears(link, Packet::Trunc(to));
        assert_eq!(member.voters(), voters, "{to}");
    }
}

#[test]
fn a_change_that_a_whole_tree_does_not_show_is_none_any_more() {
    let (own, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4], at(2, 1)));
    for (shown, voters) in [(&newest, &[1, 2, 3, 4][..]), (&own, &[1, 2, 3])] {
        let (mut member, link) = learner(&own);
        member.hears_proposal(link, at(2, 1), record(&newest));
        member.loses(link);
        let link = member.follows(&[2, 3], &own, 3);
        member.step(Input::Snap { link, tree: Box::new(tree_with(&[shown])) });
        assert_eq!(member.voters(), voters, "{shown}");
        assert_eq!(saves(&member), [(at(2, 1), false)]);
    }
}

#[test]
fn a_start_goes_on_with_a_saved_change_that_is_newer_and_in_the_log() {
    let (old, new) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 4, 5], at(1, 2)));
    let same = config(&[1, 6, 7], at(1, 1));
    let both: &[&Membership] = &[&old, &new];
    for (own, saved, tree, voters) in [
        (&old, &new, both, &[1, 2, 3, 4, 5][..]),
        (&old, &new, &both[..1], &[1, 2, 3]),
        (&new, &old, both, &[1, 4, 5]),
        (&old, &same, both, &[1, 2, 3]),
    ] {
        let member = Member::start(own, Some(saved), tree_with(tree), 1);
        assert_eq!(member.voters(), voters, "{own} {saved}");
    }
}

fn looking_vote(id: i64) -> Candidate {
    Candidate { epoch: Epoch(1), zxid: at(1, 1), id: ServerId(id) }
}

#[test]
fn a_looking_server_takes_a_newer_configuration_from_votes_and_looks_again_if_servers_changed() {
    let own = config(&[1, 2, 3], at(1, 1));
    for (told, in_force, searches) in [
        (config(&[1, 2, 3], at(1, 0)), None, 1),
        (config(&[1, 2, 3], at(1, 4)), Some(at(1, 4).0), 1),
        (config(&[1, 2, 4], at(1, 4)), Some(at(1, 4).0), 2),
    ] {
        let mut member = Member::start(&own, None, tree_with(&[&own]), 1);
        member.hears_vote(2, PeerState::Looking, looking_vote(1), &told);
        assert_eq!(member.saved.as_ref().map(|saved| saved.version), in_force);
        assert_eq!(whys(&member)[1..], [SearchReason::Reconfigured][..searches - 1], "{told}");
        // Where nothing changes, that vote counts.
        member.passes(300);
        assert_eq!(member.vote().state == PeerState::Leading, searches == 1, "{told}");
    }
}

/// Otherwise any caller of the election port could put a list of servers into force, even one of itself alone.
#[test]
fn a_newer_configuration_counts_in_the_vote_of_a_voter_only() {
    let own = config(&[1, 2, 3], at(1, 1));
    let newer = config(&[1, 2, 3, 4], at(1, 4));
    let mut with_an_observer = config(&[1, 2, 3, 5], at(1, 1));
    with_an_observer.servers.get_mut(&ServerId(5)).unwrap().observer = true;
    for (own, from, counts) in [(&own, 2, true), (&own, 4, false), (&with_an_observer, 5, false)] {
        let mut member = Member::start(own, None, tree_with(&[own]), 1);
        member.hears_vote(from, PeerState::Looking, looking_vote(from), &newer);
        assert_eq!(
            member.saved.as_ref().map(|saved| saved.version),
            counts.then_some(newer.version),
            "{from}"
        );
        assert_eq!(member.voters() == [1, 2, 3, 4], counts, "{from}");
    }
}

/// Its leader had the change in its log, so it may have been made, and who came with it decides too.
#[test]
fn a_newer_configuration_counts_in_the_vote_of_a_voter_of_the_change_that_is_logged() {
    let (own, logged) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 4], at(1, 3)));
    let newest = config(&[1, 4, 5], at(1, 6));
    let mut member = Member::start(&own, Some(&logged), tree_with(&[&own, &logged]), 1);
    member.hears_vote(4, PeerState::Looking, looking_vote(4), &newest);
    assert_eq!(member.saved.as_ref().map(|saved| saved.version), Some(newest.version));
}

#[test]
fn a_server_with_a_leader_or_without_reconfig_takes_no_configuration_from_votes() {
    let own = config(&[1, 2, 3], at(1, 0));
    let newer = config(&[1, 2, 4], at(1, 4));
    let mut follower = Follower::start_with(|_| {});
    follower.member.hears_vote(2, PeerState::Looking, looking_vote(2), &newer);
    assert_eq!((follower.member.saved.clone(), follower.member.voters()), (None, vec![1, 2, 3]));
    assert_eq!(follower.member.server.mode(), Some(MemberMode::Follower));
    let core = CoreConfig { reconfig: false, ..CoreConfig::default() };
    let fresh = Tree::fresh(ExtendedTypes::default());
    let mut member = Member::start_as(core, &own, None, fresh, 1, |_| {});
    member.hears_vote(2, PeerState::Looking, looking_vote(2), &newer);
    assert_eq!((&member.saved, member.voters()), (&None, vec![1, 2, 3]));
    assert_eq!(whys(&member), [SearchReason::Started]);
}

/// The configuration in the tree may be newer than the file, which is written later.
#[test]
fn an_epoch_begins_with_the_newest_that_the_tree_or_the_file_has() {
    let (old, new) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4], at(1, 3)));
    for (own, tree, in_force) in [(&old, &new, Some(&new)), (&new, &old, None), (&new, &new, None)] {
        let mut member = Member::start(own, None, tree_with(&[tree]), 1);
        member.leads_with(&[2, 3], own, 2);
        assert_eq!(member.saved.as_ref(), in_force, "{own} {tree}");
        assert_eq!(member.voters(), [1, 2, 3, 4]);
        let shown = member.server.tree().get(path::CONFIG).unwrap();
        assert_eq!(shown.data.as_deref(), Some(new.to_string().as_bytes()), "{own} {tree}");
    }
}

/// As upstream's transaction: without the check of a version.
#[test]
fn a_change_is_proposed_for_any_version_of_its_znode() {
    let own = config(&[1, 2, 3], at(1, 1));
    let mut member = Member::start(&own, None, tree_with(&[&own]), 1);
    member.leads_with(&[2, 3], &own, 2);
    member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
    member.request(2, Op::Reconfig, &leaving("3"));
    let logged = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.clone()),
        _ => None,
    });
    let logged = logged.unwrap();
    let Txn::SetData { reconfig: true, version, .. } = TxnRecord::read(&logged).unwrap().txn else {
        panic!("it is a change")
    };
    assert_eq!(version, -1);
    // Its znode has that version then, as upstream's has, and what comes after it is checked against that.
    let mut body = Vec::new();
    body.string(path::CONFIG);
    body.buffer(None);
    body.i32(1);
    member.request(2, Op::SetData, &body);
    let logged = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.clone()),
        _ => None,
    });
    let refused = Txn::Error(ErrorCode::BadVersion.code());
    assert_eq!(TxnRecord::read(&logged.unwrap()).unwrap().txn, refused);
    for link in [2, 3] {
        member.hears(LinkId(link), Packet::Ack(at(2, 2)));
    }
    assert_eq!(member.voters(), [1, 2]);
    assert_eq!(member.server.tree().digest_mismatches(), 0, "it is what was foreseen");
}
