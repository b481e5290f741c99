//! The quorums that decide at a member while the ensemble is reconfigured.

use crate::member::{ME, Member, SESSION, at, config};
use ostler_proto::{
    election::{Candidate, PeerState},
    error::ErrorCode,
    id::{Epoch, ServerId, Zxid},
    jute::Writer,
    membership::Membership,
    op::Op,
    path,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{CoreConfig, Effect, Input, PeerMessage, PersistOp, quorum::MemberMode};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// The transaction of a change.
pub(crate) fn record(of: &Membership) -> Vec<u8> {
    let (zxid, text) = (Zxid(of.version), of.to_string());
    let header = TxnHeader { session: SESSION, cxid: 1, zxid, time_ms: 0, code: Op::Reconfig.code() };
    let data = Some(text.as_bytes());
    let txn = Txn::SetData { reconfig: true, path: path::CONFIG.into(), data, version: -1 };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    bytes
}

/// A tree that these changes have made.
pub(crate) fn tree_with(changes: &[&Membership]) -> Tree {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    for change in changes {
        tree.apply(&TxnRecord::read(&record(change)).unwrap(), &mut Vec::new());
    }
    tree
}

/// A leader proposes a change when the one before it is in force. So whoever logs the second knows that of the first,
/// and does not ask those whom the first has sent away.
#[test]
fn the_change_before_the_last_in_the_log_is_in_force() {
    let oldest = config(&[1, 2, 3], at(1, 1));
    let (between, newest) = (config(&[1, 2, 3, 4, 5], at(1, 2)), config(&[1, 2, 3], at(1, 3)));
    let mut member = Member::start(&oldest, None, tree_with(&[&oldest]), 1);
    let link = member.follows(&[2, 3], &oldest, 1);
    member.hears(link, Packet::Diff(at(1, 2)));
    member.hears_proposal(link, Zxid(between.version), record(&between));
    member.hears(link, Packet::Commit(at(1, 2)));
    assert_eq!(member.saved, None, "its leader may not lead yet, and have it only in its log");
    member.hears_proposal(link, Zxid(newest.version), record(&newest));
    assert_eq!(member.saved, Some(between.clone()), "before the second is logged");
    member.hears_new_leader(link, 1, &between);
    member.loses(link);
    assert_eq!(member.vote().config, between.to_string());
    assert!(!member.get_elected_by(&[2], &oldest), "a quorum of the oldest and of the newest");
    assert!(member.get_elected_by(&[2, 4], &between));
}

#[test]
fn a_change_that_is_logged_needs_both_quorums() {
    let (oldest, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 4, 5], at(1, 2)));
    let mut member = Member::start(&oldest, None, tree_with(&[&oldest]), 1);
    let link = member.follows(&[2, 3], &oldest, 1);
    member.hears(link, Packet::Diff(at(1, 2)));
    member.hears_proposal(link, Zxid(newest.version), record(&newest));
    member.hears_new_leader(link, 1, &oldest);
    member.loses(link);
    assert_eq!(member.voters(), [1, 2, 3, 4, 5]);
    assert_eq!(member.vote().config, oldest.to_string());
    assert!(!member.get_elected_by(&[2], &oldest), "a quorum of the one");
    assert!(member.get_elected_by(&[4], &oldest), "and of the other");
}

/// A configuration that could not be kept would end this server at its commit, and so it would every other in the same
/// place.
#[test]
fn a_leader_that_could_not_keep_a_change_refuses_it() {
    for keeps_config in [true, false] {
        let own = config(&[1, 2, 3], Zxid::ZERO);
        let core = CoreConfig { reconfig: true, keeps_config, ..CoreConfig::default() };
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_as(core, &own, None, fresh, 1, |_| {});
        member.leads_with(&[2, 3], &own, 2);
        assert_eq!(member.saved.as_ref().map(|saved| saved.version), Some(at(2, 0).0), "the first number");
        member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
        member.effects.clear();
        member.request(2, Op::Reconfig, &leaving("3"));
        let logged = member.effects.iter().find_map(|effect| match effect {
            Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.clone()),
            _ => None,
        });
        let logged = logged.unwrap();
        match TxnRecord::read(&logged).unwrap().txn {
            Txn::SetData { reconfig: true, .. } => assert!(keeps_config),
            Txn::Error(code) => {
                assert!(!keeps_config, "{code}");
                assert_eq!(code, ErrorCode::ReconfigDisabled.code());
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A server that never was in an ensemble may know others than those who are, and no transaction tells it of them.
#[test]
fn a_new_server_takes_the_configuration_in_force_at_its_leader_even_during_a_change() {
    let own = config(&[1, 2, 3, 4], Zxid::ZERO);
    let (first, newest) = (config(&[2, 3, 5], at(4, 0)), config(&[1, 2, 3], at(4, 1)));
    let mut member = Member::start(&own, None, Tree::fresh(ExtendedTypes::default()), 4);
    let link = member.follows(&[2, 4, 3], &own, 4);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_proposal(link, Zxid(newest.version), record(&newest));
    member.hears_new_leader(link, 4, &first);
    assert_eq!(member.saved, Some(first));
    assert_eq!(member.voters(), [1, 2, 3, 5]);
}

/// A server whose part another configuration changes while it is brought up to date goes on in its new part.
#[test]
fn a_learner_that_loses_its_vote_during_synchronization_looks_again() {
    let oldest = config(&[1, 2, 3], at(1, 1));
    let (mut between, newest) = (config(&[2, 3, 4], at(1, 2)), config(&[2, 3], at(1, 3)));
    let mut observing = oldest.servers[&ServerId(ME)].clone();
    observing.observer = true;
    between.servers.insert(ServerId(ME), observing);
    let mut member = Member::start(&oldest, None, tree_with(&[&oldest]), 1);
    let link = member.follows(&[2, 3], &oldest, 1);
    member.hears(link, Packet::Diff(at(1, 2)));
    member.hears_proposal(link, Zxid(between.version), record(&between));
    member.hears(link, Packet::Commit(at(1, 2)));
    member.hears_proposal(link, Zxid(newest.version), record(&newest));
    member.hears_new_leader(link, 1, &between);
    member.hears(link, Packet::UpToDate);
    assert!(member.has_hung_up(link), "it is no follower any more");
    member.follows(&[2, 3], &between, 1);
    let info = LearnerInfo {
        server: Some(ServerId(ME)),
        protocol: PROTOCOL_VERSION,
        config_version: between.version,
        knows_secrets: false,
        moves_in_place: false,
    };
    let expected = Packet::ObserverInfo { accepted: Epoch(1), info };
    let says_so = |effect: &Effect| matches!(effect, Effect::ToPeer { message: PeerMessage::Packet(packet), .. } if *packet == expected);
    assert!(member.effects.iter().any(says_so));
}

/// An epoch that never began had a number for the first configuration. Another may begin with a lower one, which an
/// earlier epoch had given and a leader had saved.
#[test]
fn the_first_configuration_has_the_number_that_the_epoch_begins_with() {
    let first = config(&[1, 2, 3], Zxid::ZERO);
    let mut member = Member::start(&first, None, Tree::fresh(ExtendedTypes::default()), 0);
    let numbered = |epoch: u32| config(&[1, 2, 3], at(epoch, 0));
    let link = member.follows(&[2, 3], &first, 4);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 4, &numbered(4));
    member.loses(link);
    let link = member.follows(&[3, 2], &first, 5);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 5, &numbered(3));
    assert_eq!(member.saved, None, "nobody has agreed yet");
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.server.mode(), Some(MemberMode::Follower));
    assert_eq!(member.saved, Some(numbered(3)));
}

/// A configuration that was only numbered has the servers of the first one. It must not follow the one that replaced
/// them.
#[test]
fn a_number_that_nobody_agreed_on_does_not_outlast_a_change_that_votes_bring() {
    let first = config(&[1, 2, 3], Zxid::ZERO);
    let mut member = Member::start(&first, None, Tree::fresh(ExtendedTypes::default()), 0);
    let link = member.follows(&[2, 3], &first, 4);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 4, &config(&[1, 2, 3], at(4, 0)));
    member.loses(link);
    let changed = config(&[1, 4, 5], at(3, 9));
    let other = Candidate { epoch: Epoch(3), zxid: at(3, 9), id: ServerId(4) };
    member.hears_vote(2, PeerState::Looking, other, &changed);
    assert_eq!(member.saved, Some(changed.clone()));
    assert_eq!(member.voters(), [1, 4, 5]);
    let link = member.follows(&[4, 5], &changed, 5);
    member.hears(link, Packet::Diff(Zxid::ZERO));
    member.hears_new_leader(link, 5, &changed);
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.saved, Some(changed));
}

/// As upstream has it: a number that was saved is taken up again, while the configuration has none.
#[test]
fn a_start_takes_up_a_saved_number_while_the_configuration_has_none() {
    let (first, saved) = (config(&[1, 2, 3], Zxid::ZERO), config(&[1, 2, 3], at(3, 0)));
    let told = |membership: &Membership| {
        let tree = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start(membership, Some(&saved), tree, 4);
        let own = member.vote().candidate.unwrap();
        assert!(member.get_elected_by(&[2], membership), "{own:?}");
        let link = LinkId(100);
        let info = LearnerInfo {
            server: Some(ServerId(2)),
            protocol: PROTOCOL_VERSION,
            config_version: membership.version,
            knows_secrets: false,
            moves_in_place: false,
        };
        member.hears(link, Packet::FollowerInfo { accepted: Epoch(4), info });
        member.hears(link, Packet::AckEpoch { last: Zxid::ZERO, current: Some(Epoch(4)) });
        let told = member.effects.iter().rev().find_map(|effect| match effect {
            Effect::ToPeer { message: PeerMessage::Packet(Packet::NewLeader { config, .. }), .. } => {
                Some(Membership::parse(config).unwrap())
            }
            _ => None,
        });
        told.unwrap().version
    };
    assert_eq!(told(&first), saved.version);
    let agreed = config(&[1, 2, 3], at(2, 0));
    assert_eq!(told(&agreed), agreed.version, "another number is in force");
}

/// Votes bring a configuration that is in force elsewhere. A change that is logged here after it may still commit, also
/// by this server's acknowledgement.
#[test]
fn a_change_that_votes_bring_keeps_what_is_logged_after_it() {
    let oldest = config(&[1, 2, 3], at(1, 1));
    let (between, newest) = (config(&[1, 2, 3, 4], at(1, 5)), config(&[1, 2, 5, 6], at(1, 9)));
    let mut member = Member::start(&oldest, Some(&newest), tree_with(&[&oldest, &newest]), 1);
    assert_eq!(member.voters(), [1, 2, 3, 5, 6]);
    let other = Candidate { epoch: Epoch(1), zxid: at(1, 5), id: ServerId(4) };
    member.hears_vote(3, PeerState::Looking, other, &between);
    assert_eq!(member.saved, Some(between.clone()));
    assert_eq!(member.voters(), [1, 2, 3, 4, 5, 6]);
    assert!(!member.get_elected_by(&[2, 3], &between), "no quorum of what is logged");
    assert!(member.get_elected_by(&[2, 3, 5], &between));
}

/// One that is logged before it is over.
#[test]
fn a_change_that_votes_bring_replaces_what_is_logged_before_it() {
    let oldest = config(&[1, 2, 3], at(1, 1));
    let (between, newest) = (config(&[1, 2, 3, 4], at(1, 5)), config(&[1, 2, 5], at(1, 9)));
    let mut member = Member::start(&oldest, Some(&between), tree_with(&[&oldest, &between]), 1);
    assert_eq!(member.voters(), [1, 2, 3, 4]);
    let other = Candidate { epoch: Epoch(1), zxid: at(1, 5), id: ServerId(5) };
    member.hears_vote(4, PeerState::Looking, other, &newest);
    assert_eq!(member.voters(), [1, 2, 5]);
}

/// Before its epoch a leader may bring a whole tree with a change that only its log has. A learner that lacks the configuration
/// before it could not ask for a quorum of that one, so it is refused until it has heard of it.
#[test]
fn a_learner_with_an_old_configuration_gets_no_change_that_may_not_commit() {
    let (oldest, between) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 2, 3, 4, 5], at(1, 2)));
    let newest = config(&[1, 2, 3], at(1, 3));
    let info = |server: i64, of: &Membership| {
        let (server, protocol) = (Some(ServerId(server)), PROTOCOL_VERSION);
        let info = LearnerInfo {
            server,
            protocol,
            config_version: of.version,
            knows_secrets: false,
            moves_in_place: false,
        };
        Packet::FollowerInfo { accepted: Epoch(1), info }
    };
    let tree = tree_with(&[&oldest, &between, &newest]);
    let mut member = Member::start(&between, Some(&newest), tree, 1);
    // One that calls early, and one that calls in time.
    member.hears(LinkId(10), info(2, &oldest));
    assert!(member.get_elected_by(&[2, 4], &between));
    member.hears(LinkId(11), info(3, &oldest));
    member.hears(LinkId(12), info(4, &between));
    let away = [10, 11, 12].map(|link| member.has_hung_up(LinkId(link)));
    assert_eq!(away, [true, true, false]);

    let mut member = Member::start(&between, None, tree_with(&[&oldest, &between]), 1);
    assert!(member.get_elected_by(&[2, 4], &between));
    member.hears(LinkId(10), info(2, &oldest));
    assert!(!member.has_hung_up(LinkId(10)), "nothing is under way");
}

/// A tree that is read anew after a cut can have a change that is not in force.
#[test]
fn a_tree_that_is_read_anew_says_what_is_logged() {
    let (oldest, newest) = (config(&[1, 2, 3], at(1, 1)), config(&[1, 4, 5], at(1, 2)));
    let mut member = Member::start(&oldest, None, tree_with(&[&oldest]), 1);
    let link = member.follows(&[2, 3], &oldest, 1);
    member
        .step(Input::Snap { link, tree: Box::new(tree_with(&[&oldest, &config(&[1, 2, 3, 6], at(2, 5))])) });
    assert_eq!(member.voters(), [1, 2, 3, 6]);
    member.loses(link);
    let link = member.follows(&[6, 2, 3], &oldest, 1);
    member.hears(link, Packet::Trunc(at(1, 2)));
    let search_id = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Truncate { reload, .. }, .. } => *reload,
        _ => None,
    });
    assert_eq!(member.voters(), [1, 2, 3]);
    assert!(member.server.is_reloading());
    member.step(Input::Reloaded {
        search_id: search_id.unwrap(),
        tree: Box::new(tree_with(&[&oldest, &newest])),
    });
    assert!(!member.server.is_reloading());
    assert_eq!(member.voters(), [1, 2, 3, 4, 5]);
}

/// The body of a request that sends these servers away.
pub(crate) fn leaving(servers: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.buffer(None);
    body.string(servers);
    body.buffer(None);
    body.i64(-1);
    body
}

/// A request for all servers at once, in place of those of before.
fn whole(of: &Membership, current: i64) -> Vec<u8> {
    let lines: Vec<String> =
        of.to_string().lines().filter(|line| line.starts_with("server.")).map(Into::into).collect();
    let mut body = Vec::new();
    body.buffer(None);
    body.buffer(None);
    body.string(&lines.join(","));
    body.i64(current);
    body
}

#[test]
fn a_whole_configuration_takes_the_place_of_the_one_before() {
    let (old, new) = (config(&[1, 2, 3, 4, 5], at(1, 1)), config(&[1, 3, 4], at(2, 3)));
    let mut member = Member::start(&old, None, tree_with(&[&old]), 1);
    member.leads_with(&[2, 4, 3], &old, 2);
    member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
    let ask = |member: &mut Member, current: u64, counter| {
        member.request(2, Op::Reconfig, &whole(&new, current as i64));
        for link in [2, 3, 4] {
            member.hears(LinkId(link), Packet::Ack(at(2, counter)));
        }
    };
    ask(&mut member, at(1, 7).0, 2);
    assert_eq!(member.voters(), [1, 2, 3, 4, 5], "another one is in force than the request was made for");
    ask(&mut member, old.version, 3);
    assert_eq!(member.voters(), [1, 3, 4]);
    assert_eq!(member.saved.as_ref().map(|saved| saved.version), Some(at(2, 3).0));
}

/// A proposal after a change commits with it, if the new voters have it. The last acknowledgement that the change waits
/// for may be that of a server which it removes, and which sends nothing more.
#[test]
fn later_proposals_that_the_new_voters_have_commit_with_the_change() {
    let (old, new) = (config(&[1, 2, 3, 4, 5], at(1, 1)), [1, 2, 3]);
    let mut member = Member::start(&old, None, tree_with(&[&old]), 1);
    member.leads_with(&[2, 4], &old, 2);
    member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    member.hears(LinkId(4), Packet::Ack(at(2, 1)));
    member.request(2, Op::Reconfig, &leaving("4,5"));
    member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
    assert_eq!(member.voters(), [1, 2, 3, 4, 5]);
    member.hears(LinkId(2), Packet::Ack(at(2, 3)));
    assert!(!member.has_told(2, &Packet::CommitAndActivate { zxid: at(2, 2), leader: ServerId(ME) }));
    member.hears(LinkId(4), Packet::Ack(at(2, 2)));
    assert!(member.has_told(2, &Packet::CommitAndActivate { zxid: at(2, 2), leader: ServerId(ME) }));
    assert_eq!(member.voters(), new);
    assert!(member.has_told(2, &Packet::Commit(at(2, 3))));
}

/// A server alone is an ensemble where `standaloneEnabled=false`, as an operator has it who grows one from it.
#[test]
fn one_voter_is_enough_only_where_a_server_alone_is_an_ensemble() {
    let old = config(&[1, 2, 3], at(1, 1));
    for (voters_min, voters) in [(2, vec![1, 2, 3]), (1, vec![1])] {
        let mut member =
            Member::start_with(&old, None, tree_with(&[&old]), 1, |config| config.voters_min = voters_min);
        member.leads_with(&[2, 3], &old, 2);
        member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
        member.request(2, Op::Reconfig, &leaving("2,3"));
        for link in [2, 3] {
            member.hears(LinkId(link), Packet::Ack(at(2, 2)));
        }
        assert_eq!(member.voters(), voters);
    }
}

/// An ephemeral of such a server's sessions would look like a TTL znode.
#[test]
fn no_server_joins_whose_sessions_look_like_marks_of_ttl_znodes() {
    let old = config(&[1, 2, 3], at(1, 1));
    for (enabled, emulate_353, joining, voters) in [
        (false, false, 255, vec![1, 2, 255]),
        (true, false, 255, vec![1, 2, 3]),
        (true, false, 256, vec![1, 2, 3]),
        (true, false, 254, vec![1, 2, 254]),
        (true, true, 128, vec![1, 2, 3]),
        (true, true, 127, vec![1, 2, 127]),
    ] {
        let types = ExtendedTypes { enabled, emulate_353 };
        let core = CoreConfig { reconfig: true, types, ..CoreConfig::default() };
        let mut member = Member::start_as(core, &old, None, tree_with(&[&old]), 1, |_| {});
        member.leads_with(&[2, 3], &old, 2);
        member.request(2, Op::CreateSession, &10_000_i32.to_be_bytes());
        member.request(2, Op::Reconfig, &whole(&config(&[1, 2, joining], at(2, 2)), -1));
        for link in [2, 3] {
            member.hears(LinkId(link), Packet::Ack(at(2, 2)));
        }
        assert_eq!(member.voters(), voters, "{types:?}, {joining}");
    }
}
