//! The history that a leader sends to a learner.

use crate::member::{Member, SESSION, at, config};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{Effect, Input, PeerMessage, PersistOp, quorum::MemberMode};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// A leader of five whose followers have these numbers. It has committed two and proposed a third.
fn leader(followers: &[i64]) -> Member {
    let ensemble = config(&[1, 2, 3, 4, 5], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(followers, &ensemble, 2);
    for _ in 0..3 {
        member.request(followers[0], Op::CreateSession, &4_000_i32.to_be_bytes());
    }
    for follower in followers {
        member.hears(LinkId(*follower as u64), Packet::Ack(at(2, 2)));
    }
    member
}

fn info(server: i64) -> LearnerInfo {
    let config_version = config(&[1, 2, 3, 4, 5], at(1, 0)).version;
    LearnerInfo {
        server: Some(ServerId(server)),
        protocol: PROTOCOL_VERSION,
        config_version,
        knows_secrets: false,
        moves_in_place: false,
    }
}

/// A learner comes with a history up to here.
fn comes(member: &mut Member, server: i64, link: LinkId, observes: bool, last: Zxid) {
    let (accepted, info) = (Epoch(1), info(server));
    member.hears(
        link,
        if observes {
            Packet::ObserverInfo { accepted, info }
        } else {
            Packet::FollowerInfo { accepted, info }
        },
    );
    member.hears(link, Packet::AckEpoch { last, current: Some(Epoch(1)) });
}

/// In a few words, after the epoch.
fn told(member: &Member, link: LinkId) -> Vec<String> {
    let told = member.effects.iter().filter_map(|effect| match effect {
        Effect::ToPeer { link: to, message } if *to == link => Some(match message {
            PeerMessage::Packet(Packet::LeaderInfo { .. }) => return None,
            PeerMessage::Packet(Packet::NewLeader { .. }) => "new leader".to_owned(),
            PeerMessage::Packet(Packet::Diff(through)) => format!("diff {}", through.counter()),
            PeerMessage::Packet(Packet::Trunc(to)) => format!("trunc {}", to.counter()),
            PeerMessage::Packet(Packet::Commit(zxid)) => format!("commit {}", zxid.counter()),
            PeerMessage::History(records) => {
                let counters: Vec<u32> = records.iter().map(|(zxid, _)| zxid.counter()).collect();
                format!("history {counters:?}")
            }
            PeerMessage::Proposal(zxid, _) => format!("proposal {}", zxid.counter()),
            PeerMessage::Inform(zxid, _) => format!("inform {}", zxid.counter()),
            PeerMessage::Snapshot(tree) => format!("tree {}", tree.zxid.counter()),
            other => format!("{other:?}"),
        }),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_learner_is_sent_what_it_lacks_and_nothing_else() {
    let link = LinkId(9);
    for (last, history) in [
        (at(2, 2), &["diff 2"][..]),
        (at(2, 1), &["diff 2", "history [2]"]),
        (at(2, 3), &["trunc 2"]),
        (at(3, 0), &["tree 2"]),
    ] {
        let mut member = leader(&[2, 3]);
        comes(&mut member, 4, link, false, last);
        assert_eq!(told(&member, link), [history, &["proposal 3", "new leader"]].concat(), "{last}");
        let mut member = leader(&[2, 3]);
        comes(&mut member, 4, link, true, last);
        assert_eq!(told(&member, link), [history, &["new leader"]].concat(), "{last}, it observes");
    }
}

#[test]
fn a_learner_in_synchronization_gets_later_proposals() {
    for observes in [false, true] {
        let (mut member, link) = (leader(&[2, 3]), LinkId(9));
        comes(&mut member, 4, link, observes, at(2, 2));
        member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
        for follower in [2, 3] {
            member.hears(LinkId(follower), Packet::Ack(at(2, 4)));
        }
        let expected = if observes {
            &["diff 2", "new leader", "inform 3", "inform 4"][..]
        } else {
            &["diff 2", "proposal 3", "new leader", "proposal 4", "commit 3", "commit 4"]
        };
        assert_eq!(told(&member, link), expected);
    }
}

/// While the log on disk is read for it, all that it gets after that waits. A tree of then has what was committed meanwhile.
#[test]
fn proposals_that_come_while_the_log_is_read_follow_it() {
    let (link, last) = (LinkId(9), at(1, 2));
    for found in [false, true] {
        let mut tree = Tree::fresh(ExtendedTypes::default());
        tree.begin_epoch(at(1, 5));
        let ensemble = config(&[1, 2, 3, 4, 5], at(1, 0));
        let mut member = Member::start(&ensemble, None, tree, 1);
        member.leads_with(&[2, 3], &ensemble, 2);
        comes(&mut member, 4, link, false, last);
        assert_eq!(told(&member, link), [""; 0]);
        let search_id = member.effects.iter().find_map(|effect| match effect {
            Effect::ReadLog { search_id, link: of, after, through } => {
                assert_eq!((*of, *after, *through), (link, last, at(1, 5)));
                Some(*search_id)
            }
            _ => None,
        });
        let search_id = search_id.unwrap();
        for counter in [1, 2] {
            member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
            if counter == 1 {
                [2, 3].into_iter().for_each(|of| member.hears(LinkId(of), Packet::Ack(at(2, 1))));
            }
        }
        let record = ostler_zab::Record(std::sync::Arc::from(&b"record"[..]));
        let records = [3, 4, 5].map(|counter| (at(1, counter), record.clone())).to_vec();
        let read = found.then_some(ostler_server_core::LogPart { before: Some(last), records });
        member.step(Input::LogRead { link, search_id: search_id + 1, read: None });
        assert_eq!(told(&member, link), [""; 0], "that was asked in another epoch");
        member.step(Input::LogRead { link, search_id, read });
        let expected = if found {
            &["diff 5", "history [3, 4, 5]", "new leader", "proposal 1", "commit 1", "proposal 2"][..]
        } else {
            &["tree 1", "new leader", "proposal 2"]
        };
        assert_eq!(told(&member, link), expected);
    }
}

/// The tree is of the moment at which it is sent: no commit of before comes after it.
#[test]
fn a_tree_in_place_of_the_log_has_all_that_was_committed_meanwhile() {
    let (link, ensemble) = (LinkId(9), config(&[1, 2, 3, 4, 5], at(1, 0)));
    let mut tree = Tree::fresh(ExtendedTypes::default());
    tree.begin_epoch(at(1, 5));
    let mut member = Member::start(&ensemble, None, tree, 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    comes(&mut member, 4, link, false, at(1, 2));
    for counter in [1, 2] {
        member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
        [2, 3].into_iter().for_each(|of| member.hears(LinkId(of), Packet::Ack(at(2, counter))));
    }
    member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
    let search_id = member.effects.iter().find_map(|effect| match effect {
        Effect::ReadLog { search_id, .. } => Some(*search_id),
        _ => None,
    });
    member.step(Input::LogRead { link, search_id: search_id.unwrap(), read: None });
    assert_eq!(told(&member, link), ["tree 2", "new leader", "proposal 3"]);
}

/// A whole tree takes the place of all that a learner has, with what it has acknowledged.
#[test]
fn a_learner_that_gets_a_tree_does_not_count_until_it_acknowledges_again() {
    let mut member = leader(&[2, 3, 4]);
    member.hears(LinkId(2), Packet::Ack(at(2, 3)));
    member.loses(LinkId(2));
    let again = LinkId(9);
    comes(&mut member, 2, again, false, at(3, 0));
    assert_eq!(told(&member, again), ["tree 2", "proposal 3", "new leader"]);
    member.hears(LinkId(3), Packet::Ack(at(2, 3)));
    assert!(!member.has_told(3, &Packet::Commit(at(2, 3))), "1 and 3 have it");
    member.hears(again, Packet::Ack(at(2, 0)));
    member.hears(again, Packet::Ack(at(2, 3)));
    assert!(member.has_told(3, &Packet::Commit(at(2, 3))));
}

/// It may have promised it to another leader of that epoch.
#[test]
fn a_promise_of_an_epoch_accepted_before_does_not_count() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let fresh = || Tree::fresh(ExtendedTypes::default());
    let mut member = Member::start(&ensemble, None, fresh(), 2);
    let leader = member.follows(&[2, 3], &ensemble, 2);
    let promise = |current| Packet::AckEpoch { last: Zxid::ZERO, current };
    assert!(member.has_told(leader.0 as i64, &promise(None)));
    let mut member = Member::start(&ensemble, None, fresh(), 2);
    let leader = member.follows(&[2, 3], &ensemble, 3);
    assert!(member.has_told(leader.0 as i64, &promise(Some(Epoch(2)))));

    let mut member = Member::start(&ensemble, None, fresh(), 1);
    assert!(member.get_elected_by(&[2, 3], &ensemble));
    for id in [2, 3] {
        let (link, config_version) = (LinkId(id), ensemble.version);
        let info = LearnerInfo { config_version, ..info(id as i64) };
        member.hears(link, Packet::FollowerInfo { accepted: Epoch(1), info });
        member.hears(link, promise(None));
        member.hears(link, Packet::Ack(at(2, 0)));
    }
    assert_ne!(member.server.mode(), Some(MemberMode::Leader));
    let epochs = |effect: &Effect| matches!(effect, Effect::Persist { op: PersistOp::SaveCurrent(_), .. });
    assert!(!member.effects.iter().any(epochs));
    assert_eq!(member.vote().candidate.map(|own| own.id), Some(ServerId(1)));
    assert!(!member.server.tree().has_session(SESSION));
}
