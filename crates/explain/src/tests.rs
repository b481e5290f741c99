//! Made-up records of servers, and what becomes of them.

use crate::{
    occasion::{Kind, occasions},
    page::Page,
    records::{Commit, Discovered, Elected, Elections, Moment, Search, TakenOver},
    timeline::{About, Line, LineKind, Mark, merge},
    witness::Witness,
};
use expect_test::{Expect, expect};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::quorum::election_history::{SearchReason, Takeover};
use ostler_zab::{
    election::{CountedVote, ElectionEvent, IgnoreReason, Rule, Verdict},
    leading::StepDown,
    learning::HangUp,
};

/// 2026-11-21 12:00:00 UTC.
pub(crate) const NOON: i64 = 1_795_262_400_000;

pub(crate) fn vote(epoch: u32, zxid: u64, id: i64) -> Candidate {
    Candidate { epoch: Epoch(epoch), zxid: Zxid(zxid), id: ServerId(id) }
}

pub(crate) fn search(began: i64, why: SearchReason, last: u64) -> Search {
    Search {
        began_ms: NOON + began,
        why,
        before: None,
        silent_ms: None,
        last: Zxid(last),
        elected: None,
        connected_ms: None,
        discovered: None,
        takeover: None,
        synchronised_ms: None,
        first_commit: None,
        moments: Vec::new(),
        left_out: 0,
        left_out_since: 0,
    }
}

pub(crate) fn lost(began: i64, leader: i64, last: u64) -> Search {
    Search {
        before: Some(ServerId(leader)),
        silent_ms: Some(40),
        ..search(began, SearchReason::LeaderGone, last)
    }
}

/// With an end: elected, promised, synchronised and committed at these milliseconds.
pub(crate) fn ended(search: Search, leader: i64, role: PeerState, epoch: u32, at: [u64; 4]) -> Search {
    Search {
        elected: Some(Elected { ms: at[0], leader: ServerId(leader), role }),
        connected_ms: (role != PeerState::Leading).then_some(at[0] + 1),
        discovered: Some(Discovered { ms: at[1], epoch: Epoch(epoch) }),
        synchronised_ms: Some(at[2]),
        first_commit: Some(Commit { ms: at[3], zxid: Zxid(u64::from(epoch) << 32 | 1) }),
        ..search
    }
}

pub(crate) fn with(search: Search, moments: Vec<(u64, ElectionEvent)>) -> Search {
    let moments = moments.into_iter().map(|(ms, what)| Moment { ms, event: what }).collect();
    Search { moments, ..search }
}

pub(crate) fn told(vote: Candidate, round: u64) -> ElectionEvent {
    ElectionEvent::SentToAll { round, candidate: Some(vote) }
}

pub(crate) fn heard(
    from: i64,
    state: PeerState,
    vote: Candidate,
    round: u64,
    verdict: Verdict,
) -> ElectionEvent {
    ElectionEvent::Received { from: ServerId(from), state, round, candidate: Some(vote), verdict }
}

pub(crate) fn witness(server: i64, searches: Vec<Search>) -> Witness {
    let elections = Elections {
        server: ServerId(server),
        now_ms: NOON + 60_000,
        voters: [1, 2, 3].map(ServerId).into(),
        settle_ms: 200,
        searches,
    };
    Witness { elections, ahead_ms: 0, unsure_ms: 2 }
}

/// Server 1 is dead; 2 notices first, and 3 takes over.
pub(crate) fn takeover() -> [Witness; 2] {
    let (two, three) = (vote(1, 0x1_0000_0005, 2), vote(1, 0x1_0000_0007, 3));
    let ballots = |from| vec![CountedVote { voter: ServerId(from), candidate: three }];
    let of_two = vec![
        (0, ElectionEvent::Began { round: 2, own: Some(two) }),
        (0, told(two, 2)),
        (1, ElectionEvent::Lost { peer: ServerId(1) }),
        (
            3,
            heard(
                3,
                PeerState::Looking,
                three,
                2,
                Verdict::Adopted { rule: Rule::LaterZxid, later_round: false },
            ),
        ),
        (3, told(three, 2)),
        (3, ElectionEvent::Elected { candidate: three, votes: ballots(3) }),
        (3, told(three, 2)),
    ];
    let of_three = vec![
        (0, ElectionEvent::Began { round: 2, own: Some(three) }),
        (0, told(three, 2)),
        (1, heard(2, PeerState::Looking, two, 2, Verdict::Worse)),
        (1, told(three, 2)),
        (2, ElectionEvent::Lost { peer: ServerId(1) }),
        (2, heard(2, PeerState::Looking, three, 2, Verdict::Counted)),
        (2, ElectionEvent::Elected { candidate: three, votes: ballots(2) }),
    ];
    let two = ended(lost(220, 1, 0x1_0000_0005), 3, PeerState::Following, 2, [3, 6, 11, 15]);
    let three = ended(lost(221, 1, 0x1_0000_0007), 3, PeerState::Leading, 2, [2, 6, 9, 13]);
    [witness(2, vec![with(two, of_two)]), witness(3, vec![with(three, of_three)])]
}

fn page(witnesses: &[Witness], silent: &[(String, String)], expected: &Expect) {
    expected.assert_eq(&Page::new(&occasions(witnesses), witnesses, silent).to_string());
}

#[test]
fn a_dead_leader() {
    let dead = "did not answer: connection refused".into();
    page(
        &takeover(),
        &[("127.0.0.1:2181".into(), dead)],
        &expect![[r#"
            Server 3 leads epoch 2 since 12:00:00.230: 2 of 3 voters backed it; 10 ms from the loss of server 1 to the start of
            epoch 2, 14 ms to the first commit.

            2026-11-21 UTC
            12:00:00.220  server 2  The connection to server 1 is gone; its last message came 40 ms before. Looks for a leader.
            12:00:00.220  server 2  Votes for itself (epoch 1, zxid 0x100000005), and tells all others. Round 2.
            12:00:00.221  server 2  Server 1 cannot be reached.
            12:00:00.221  server 3  The connection to server 1 is gone; its last message came 40 ms before. Looks for a leader.
            12:00:00.221  server 3  Votes for itself (epoch 1, zxid 0x100000007), and tells all others. Round 2.
            12:00:00.222  server 3  Keeps its vote against that of server 2 for itself (epoch 1, zxid 0x100000005): an earlier
                                    zxid.
            12:00:00.222  server 3  Repeats its vote.
            12:00:00.223  server 2  Server 3 votes for itself (epoch 1, zxid 0x100000007): the same epoch and a later zxid than
                                    its own (epoch 1, zxid 0x100000005). Changes its vote to server 3. Tells all others.
            12:00:00.223  server 2  Elects server 3: 2 of 3 voters back it (2 and 3); server 1 cannot be reached, so no better
                                    vote can come and this server does not wait. Tells all others.
            12:00:00.223  server 3  Server 1 cannot be reached.
            12:00:00.223  server 3  Counts the vote of server 2 for server 3: the same candidate.
            12:00:00.223  server 3  Elects itself: 2 of 3 voters back it (2 and 3); server 1 cannot be reached, so no better
                                    vote can come and this server does not wait.
            12:00:00.224  server 2  Is connected to server 3.
            12:00:00.226  server 2  Promises server 3 to follow no leader of an epoch before 2.
            12:00:00.227  server 3  A quorum promises to follow no leader of an epoch before 2.
            12:00:00.230  server 3  A quorum has its history on disk: leads, and serves clients. Epoch 2.
            12:00:00.231  server 2  Has the leader's history on disk: follows, and serves clients. Epoch 2.
            12:00:00.234  server 3  Its first commit in this epoch: zxid 0x200000001.
            12:00:00.235  server 2  Its first commit in this epoch: zxid 0x200000001.

            Phases in ms          server 2    server 3
              detect                    40          40
              elect                      3           2
              discover                   3           4
              synchronise                5           3
              first commit               4           4

            Votes at the end
              server 2      round 2: 2 and 3 for server 3 (epoch 1, zxid 0x100000007)
              server 3      round 2: 2 and 3 for server 3 (epoch 1, zxid 0x100000007)

            Note: 127.0.0.1:2181 did not answer: connection refused.
        "#]],
    );
}

/// The same with a wrong clock at 3: nothing moves.
#[test]
fn a_wrong_clock_is_corrected() {
    let [two, mut three] = takeover();
    let right = Page::new(&occasions(&[two.clone(), three.clone()]), &[], &[]).to_string();
    three.ahead_ms = 5_000;
    three.elections.searches[0].began_ms += 5_000;
    let witnesses = [two, three];
    let text = Page::new(&occasions(&witnesses), &witnesses, &[]).to_string();
    let note = "\nNote: the clock of server 3 is 5000 ms ahead of that of the first server; its times are corrected.\n";
    assert_eq!(text, right + note);
}

#[test]
fn the_dead_one_comes_back() {
    let own = vote(1, 0x1_0000_0009, 1);
    let leads = |from, state| heard(from, state, vote(2, 0x1_0000_0007, 3), 2, Verdict::Counted);
    let moments = vec![
        (0, ElectionEvent::Began { round: 1, own: Some(own) }),
        (0, told(own, 1)),
        (2, leads(2, PeerState::Following)),
        (4, leads(3, PeerState::Leading)),
        (4, ElectionEvent::Elected { candidate: vote(2, 0x1_0000_0007, 3), votes: Vec::new() }),
    ];
    let back = ended(
        search(9_000, SearchReason::Started, 0x1_0000_0009),
        3,
        PeerState::Following,
        2,
        [4, 7, 12, 900],
    );
    let how = TakenOver { ms: 8, takeover: Takeover::Truncated(Zxid(0x1_0000_0007)) };
    let back = Search { takeover: Some(how), ..with(back, moments) };
    let [two, three] = takeover();
    let witnesses = [witness(1, vec![back]), two, three];
    let occasions = occasions(&witnesses);
    let kinds: Vec<Kind> = occasions.iter().map(|occasion| occasion.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Formed { leader: ServerId(3), epoch: Epoch(2) },
            Kind::Joined { leader: ServerId(3), epoch: Epoch(2) }
        ]
    );
    expect![[r#"
        Server 1 follows server 3 in epoch 2 since 12:00:09.012: there was a leader, so there was no election; 12 ms from
        its start until it served clients. The transactions in its log after zxid 0x100000007, up to 0x100000009, were never
        committed and are removed.

        2026-11-21 UTC
        12:00:09.000  server 1  It starts. Looks for a leader.
        12:00:09.000  server 1  Votes for itself (epoch 1, zxid 0x100000009), and tells all others. Round 1.
        12:00:09.002  server 1  Server 2 says that server 3 leads.
        12:00:09.004  server 1  Server 3 says that it leads.
        12:00:09.004  server 1  Servers 2 and 3 say that server 3 leads: a quorum, so there is nothing to elect.
        12:00:09.005  server 1  Is connected to server 3.
        12:00:09.007  server 1  Promises server 3 to follow no leader of an epoch before 2.
        12:00:09.008  server 1  Removes the transactions after zxid 0x100000007, up to 0x100000009, from its log: they were
                                never committed.
        12:00:09.012  server 1  Has the leader's history on disk: follows, and serves clients. Epoch 2.
        12:00:09.900  server 1  Its first commit in this epoch: zxid 0x200000001.

        Phases in ms          server 1
          detect                     -
          elect                      4
          discover                   3
          synchronise                5
          first commit             888

        Votes at the end
          server 1      round 1: 1 for server 3 (epoch 2, zxid 0x100000007)
    "#]].assert_eq(&Page::new(&occasions[1..], &witnesses, &[]).to_string());
}

#[test]
fn failed_searches_belong_to_the_election_that_follows() {
    let elected = Some(Elected { ms: 1, leader: ServerId(1), role: PeerState::Following });
    let failed = Search { elected, ..lost(210, 1, 5) };
    let [mut two, three] = takeover();
    two.elections.searches[0].why = SearchReason::LeaderUnreachable;
    two.elections.searches.insert(0, failed);
    let witnesses = [two, three];
    let occasions = occasions(&witnesses);
    let [occasion] = &occasions[..] else { panic!("{occasions:?}") };
    assert_eq!(occasion.parts[0].searches.len(), 2);
    let text = Page::new(&occasions, &witnesses, &[]).to_string();
    let summary = text.replace('\n', " ");
    assert!(
        summary.contains("20 ms from the loss of server 1 to the start of epoch 2, 24 ms to the first"),
        "{text}"
    );
    assert!(text.contains("  failed attempts           10           -\n"), "{text}");
    assert!(text.contains("Server 1, just elected, cannot be reached."), "{text}");
}

#[test]
fn without_the_leaders_word_those_who_elected_it_tell() {
    let [two, three] = takeover();
    let mut one = two.clone();
    one.elections.server = ServerId(1);
    drop(three);
    let witnesses = [one, two];
    let occasions = occasions(&witnesses);
    assert_eq!(occasions[0].kind, Kind::Formed { leader: ServerId(3), epoch: Epoch(2) });
    assert!(occasions[0].leader().is_none());
    let text = Page::new(&occasions, &witnesses, &[]).to_string();
    assert!(
        text.starts_with("Server 3 leads epoch 2 since 12:00:00.231: 2 of 3 voters backed it; 11 ms"),
        "{text}"
    );
}

/// As with a leader of Java, which keeps no record.
#[test]
fn one_server_that_has_counted_votes_tells_of_an_election() {
    let [two, _] = takeover();
    let witnesses = [two];
    let occasions = occasions(&witnesses);
    assert_eq!(occasions[0].kind, Kind::Formed { leader: ServerId(3), epoch: Epoch(2) });
    let text = Page::new(&occasions, &witnesses, &[]).to_string();
    assert!(
        text.starts_with("Server 3 leads epoch 2 since 12:00:00.231: 2 of 3 voters backed it; 11 ms"),
        "{text}"
    );
}

#[test]
fn an_epoch_that_is_over_is_told_in_the_past() {
    let [two, mut three] = takeover();
    three.elections.searches.push(search(
        5_000,
        SearchReason::SteppedDown(StepDown::QuorumLost),
        0x2_0000_0001,
    ));
    let witnesses = [two, three];
    let text = Page::new(&occasions(&witnesses), &witnesses, &[]).to_string();
    assert!(text.starts_with("Server 3 led epoch 2 from 12:00:00.230: "), "{text}");
    let open = "Server 3 has looked for a leader since 12:00:05.000: a leader needs a quorum of the voters 1, 2 and 3.";
    assert!(text.contains(open), "{text}");
}

#[test]
fn a_lone_server_says_so() {
    let lone = Elections { server: ServerId(7), ..Elections::default() };
    let witnesses = [Witness { elections: lone, ahead_ms: 0, unsure_ms: 2 }];
    page(
        &witnesses,
        &[("a:1".into(), "does not allow the word elec".into()), ("b:2".into(), "is no server".into())],
        &expect![[r#"
            Note: a:1 does not allow the word elec.
            Note: b:2 is no server.
            Note: server 7 is standalone and takes part in no election.
        "#]],
    );
}

/// Every other word that a record can have.
#[test]
fn all_that_can_happen_has_words() {
    let causes = [
        SearchReason::ElectionVoid,
        SearchReason::LeaderUnreachable,
        SearchReason::LeaderSilent { ms: 4_000 },
        SearchReason::LeaderBroken,
        SearchReason::Left(HangUp::StaleEpoch { proposed: Epoch(2), accepted: Epoch(3) }),
        SearchReason::Left(HangUp::OutOfTurn),
        SearchReason::Left(HangUp::Gap { last: Zxid(5), next: Zxid(7) }),
        SearchReason::Left(HangUp::UnmatchedCommit { expected: Zxid(5), committed: Zxid(7) }),
        SearchReason::SteppedDown(StepDown::NoFollowers),
        SearchReason::SteppedDown(StepDown::EpochNotAccepted),
        SearchReason::SteppedDown(StepDown::NotSynchronised),
        SearchReason::SteppedDown(StepDown::QuorumLost),
        SearchReason::SteppedDown(StepDown::NoEpochLeft),
        SearchReason::CounterFull,
        SearchReason::Reconfigured,
        SearchReason::CutBack,
    ];
    let mut searches: Vec<Search> = causes
        .into_iter()
        .zip(0..)
        .map(|(why, at)| Search { before: Some(ServerId(3)), ..search(at, why, 9) })
        .collect();
    let (own, better) = (vote(4, 9, 1), vote(5, 1, 3));
    let looking = |from, vote, round, verdict| heard(from, PeerState::Looking, vote, round, verdict);
    let ignored = |from, why| looking(from, own, 1, Verdict::Ignored { why });
    let adopted = |rule, later_round| Verdict::Adopted { rule, later_round };
    let what = [
        ElectionEvent::Began { round: 3, own: Some(own) },
        told(own, 3),
        told(own, 3),
        told(own, 3),
        looking(2, vote(3, 9, 2), 3, Verdict::Worse),
        looking(2, vote(4, 8, 2), 3, Verdict::Worse),
        looking(2, vote(4, 9, 0), 3, Verdict::Worse),
        ignored(4, IgnoreReason::NoVoter),
        ignored(4, IgnoreReason::NoVoter),
        ignored(2, IgnoreReason::BacksNobody),
        ignored(2, IgnoreReason::CandidateDoesNotVote),
        ignored(2, IgnoreReason::EarlierRound),
        ignored(2, IgnoreReason::Untrusted),
        ElectionEvent::SentToAll { round: 3, candidate: None },
        ElectionEvent::Reached { peer: ServerId(2) },
        looking(2, vote(3, 9, 2), 4, Verdict::LaterRound),
        told(own, 4),
        looking(2, better, 5, adopted(Rule::LaterEpoch, true)),
        told(better, 5),
        ElectionEvent::Agreed { candidate: better },
        ElectionEvent::Elected {
            candidate: better,
            votes: vec![CountedVote { voter: ServerId(2), candidate: better }],
        },
    ];
    let times = (0..what.len() as u64 - 1).chain([250]);
    searches.push(with(search(100, SearchReason::Started, 9), times.zip(what).collect()));
    let observer = vec![
        (0, ElectionEvent::Began { round: 1, own: None }),
        (1, looking(2, better, 1, adopted(Rule::FirstHeard, false))),
        (
            9,
            ElectionEvent::Elected {
                candidate: better,
                votes: (1..=3)
                    .map(|voter| CountedVote { voter: ServerId(voter), candidate: better })
                    .collect(),
            },
        ),
    ];
    searches.push(with(Search { left_out: 12, ..search(400, SearchReason::Started, 9) }, observer));
    page(
        &[witness(1, searches)],
        &[],
        &expect![[r#"
            Server 1 has looked for a leader since 12:00:00.000: a leader needs a quorum of the voters 1, 2 and 3.

            2026-11-21 UTC
            12:00:00.000  server 1  The others say that server 3, just elected, does not lead. Looks for a leader.
            12:00:00.001  server 1  Server 3, just elected, cannot be reached. Looks for a leader.
            12:00:00.002  server 1  Server 3 has said nothing for 4000 ms. Looks for a leader.
            12:00:00.003  server 1  Server 3 has sent a message that no leader sends. Looks for a leader.
            12:00:00.004  server 1  Server 3 proposes epoch 2, but this server has promised epoch 3 to another leader, and
                                    follows no leader of an earlier epoch. Looks for a leader.
            12:00:00.005  server 1  Server 3 has sent a message out of turn. Looks for a leader.
            12:00:00.006  server 1  Server 3 has sent zxid 0x7, which does not follow 0x5. Looks for a leader.
            12:00:00.007  server 1  Server 3 commits zxid 0x7, but 0x5 is next. Looks for a leader.
            12:00:00.008  server 1  Stops trying to lead: no quorum has connected to it. Looks for a leader.
            12:00:00.009  server 1  Stops trying to lead: no quorum has promised its epoch. Looks for a leader.
            12:00:00.010  server 1  Stops trying to lead: no quorum has taken over its history. Looks for a leader.
            12:00:00.011  server 1  No longer leads: no quorum follows it. Looks for a leader.
            12:00:00.012  server 1  Stops trying to lead: it has accepted the last epoch there is. Looks for a leader.
            12:00:00.013  server 1  Ends its own epoch: nearly all zxids of this epoch are used. Looks for a leader.
            12:00:00.014  server 1  There is a new configuration. Looks for a leader.
            12:00:00.015  server 1  Has cut its log back. After that the leader was lost, or it must send its whole tree. Looks
                                    for a leader.
            12:00:00.100  server 1  It starts. Looks for a leader.
            12:00:00.100  server 1  Votes for itself (epoch 4, zxid 0x9), and tells all others. Round 3.
            12:00:00.102  server 1  Repeats its vote, 2 times until 12:00:00.103.
            12:00:00.104  server 1  Keeps its vote against that of server 2 for itself (epoch 3, zxid 0x9): an earlier epoch.
            12:00:00.105  server 1  Keeps its vote against that of server 2 for itself (epoch 4, zxid 0x8): an earlier zxid.
            12:00:00.106  server 1  Keeps its vote against that of server 2 for server 0 (epoch 4, zxid 0x9): a smaller id.
            12:00:00.107  server 1  Does not count the message of server 4: that server has no vote and only asks.
            12:00:00.109  server 1  Does not count the message of server 2: that server backs no candidate.
            12:00:00.110  server 1  Does not count the message of server 2: that server backs server 1, which has no vote in
                                    this ensemble.
            12:00:00.111  server 1  Does not count the message of server 2: that server is in round 1, which is over; answers
                                    that the round is 3.
            12:00:00.112  server 1  Does not count the message of server 2: this server's own data folder is empty or cannot be
                                    trusted, so this server does not vote.
            12:00:00.113  server 1  Has no vote: asks the others who leads.
            12:00:00.114  server 1  Server 2 can be reached now.
            12:00:00.115  server 1  Joins round 4, a later one, where server 2 votes for itself (epoch 3, zxid 0x9). Its own
                                    vote, for itself (epoch 4, zxid 0x9), is better. Tells all others.
            12:00:00.117  server 1  Server 2 votes for server 3 (epoch 5, zxid 0x1): a later epoch than its own (epoch 4, zxid
                                    0x9). Joins round 5, which is later than its own, and changes its vote to server 3. Tells
                                    all others.
            12:00:00.119  server 1  A quorum votes for server 3. Waits up to 200 ms for a better vote.
            12:00:00.350  server 1  Elects server 3: 2 of 3 voters back it (1 and 2); 231 ms have brought no better vote.
            12:00:00.400  server 1  It starts. Looks for a leader.
            12:00:00.400  server 1  Has no vote: asks the others who leads.
            12:00:00.401  server 1  Server 2 votes for server 3 (epoch 5, zxid 0x1): the first candidate that this server hears
                                    of. Changes its vote to server 3.
            12:00:00.409  server 1  Elects server 3: 3 of 3 voters back it (1, 2 and 3); all voters agree, so there is nothing
                                    to wait for.
            12:00:00.409  server 1  (12 votes before the last 500 were not kept)

            Phases in ms          server 1
              detect                     -
              failed attempts          400
              elect                      -
              discover                   -
              synchronise                -
              first commit               -

            Votes at the end
              server 1      round 1: 1, 2 and 3 for server 3 (epoch 5, zxid 0x1)
        "#]],
    );
}

/// Votes that one server alone is sent, before and after the end.
#[test]
fn votes_to_single_servers_are_shown_with_their_reason() {
    let (own, other) = (vote(1, 9, 3), vote(1, 9, 2));
    let one =
        |to, state, vote| ElectionEvent::SentToOne { to: ServerId(to), state, round: 2, candidate: vote };
    let looking = |from, verdict| heard(from, PeerState::Looking, other, 2, verdict);
    let (decided, no_voter) =
        (Verdict::Ignored { why: IgnoreReason::Decided }, Verdict::Ignored { why: IgnoreReason::NoVoter });
    let asks = |from| ElectionEvent::Received {
        from: ServerId(from),
        state: PeerState::Looking,
        round: 7,
        candidate: None,
        verdict: no_voter,
    };
    let moments = vec![
        (0, ElectionEvent::Began { round: 2, own: Some(own) }),
        (0, told(own, 2)),
        (1, ElectionEvent::Reached { peer: ServerId(2) }),
        (1, one(2, PeerState::Looking, Some(own))),
        (2, looking(2, Verdict::Worse)),
        (2, one(2, PeerState::Looking, Some(own))),
        (3, looking(2, Verdict::Worse)),
        (3, one(2, PeerState::Looking, Some(own))),
        (4, one(2, PeerState::Looking, Some(own))),
        (5, one(2, PeerState::Looking, Some(own))),
        (6, one(2, PeerState::Looking, Some(own))),
        (7, heard(1, PeerState::Looking, other, 1, Verdict::Ignored { why: IgnoreReason::EarlierRound })),
        (7, one(1, PeerState::Looking, Some(own))),
        (8, asks(4)),
        (8, one(4, PeerState::Looking, Some(own))),
        (9, looking(1, Verdict::Ignored { why: IgnoreReason::AnotherEnsemble })),
        (10, heard(2, PeerState::Looking, own, 2, Verdict::Counted)),
        (
            10,
            ElectionEvent::Elected {
                candidate: own,
                votes: vec![CountedVote { voter: ServerId(2), candidate: own }],
            },
        ),
        (10, told(own, 2)),
        (11, heard(2, PeerState::Following, own, 2, decided)),
        (12, looking(1, decided)),
        (12, one(1, PeerState::Leading, Some(own))),
        (13, looking(1, decided)),
        (13, one(1, PeerState::Leading, Some(own))),
        (5_000, heard(1, PeerState::Looking, vote(2, 1, 1), 1, decided)),
        (5_000, one(1, PeerState::Leading, Some(own))),
        (6_000, heard(1, PeerState::Looking, vote(2, 2, 1), 1, decided)),
        (6_000, one(1, PeerState::Leading, Some(own))),
        (7_000, asks(4)),
        (7_000, one(4, PeerState::Leading, Some(own))),
        (8_000, heard(1, PeerState::Leading, vote(2, 1, 1), 1, Verdict::ElectionVoid)),
    ];
    let search = with(ended(lost(0, 1, 9), 3, PeerState::Leading, 2, [10, 14, 16, 20]), moments);
    let witnesses = [witness(3, vec![Search { left_out_since: 40, ..search }])];
    let text = Page::new(&occasions(&witnesses), &witnesses, &[]).to_string();
    let lines = text.split("UTC\n").nth(1).unwrap().split("\n\n").next().unwrap();
    expect![[r#"
        12:00:00.000  server 3  The connection to server 1 is gone; its last message came 40 ms before. Looks for a leader.
        12:00:00.000  server 3  Votes for itself (epoch 1, zxid 0x9), and tells all others. Round 2.
        12:00:00.001  server 3  Server 2 can be reached now, and gets the vote.
        12:00:00.002  server 3  Keeps its vote against that of server 2 for itself (epoch 1, zxid 0x9): a smaller id.
                                Answers with its vote. Once more at 12:00:00.003.
        12:00:00.004  server 3  Tells server 2 its vote, for itself (epoch 1, zxid 0x9), on a new connection. 2 times more
                                until 12:00:00.006.
        12:00:00.007  server 3  Does not count the message of server 1: that server is in round 1, which is over; answers
                                that the round is 2.
        12:00:00.008  server 3  Does not count the message of server 4: that server has no vote and only asks. Answers with
                                its vote.
        12:00:00.009  server 3  Does not count the message of server 1: its configuration has none of this ensemble's
                                servers, so that server is in another ensemble.
        12:00:00.010  server 3  Counts the vote of server 2 for server 3: the same candidate.
        12:00:00.010  server 3  Elects itself: 2 of 3 voters back it (2 and 3); server 1 cannot be reached, so no better
                                vote can come and this server does not wait. Tells all others.
        12:00:00.011  server 3  Server 2 says that server 3 leads.
        12:00:00.012  server 3  Server 1 votes for server 2 (epoch 1, zxid 0x9). Answers that it leads. Once more at
                                12:00:00.013.
        12:00:00.014  server 3  A quorum promises to follow no leader of an epoch before 2.
        12:00:00.016  server 3  A quorum has its history on disk: leads, and serves clients. Epoch 2.
        12:00:00.020  server 3  Its first commit in this epoch: zxid 0x200000001.
        12:00:05.000  server 3  Server 1 looks for a leader. Answers that it leads. Once more at 12:00:06.000.
        12:00:07.000  server 3  Does not count the message of server 4: that server has no vote and only asks. Answers that
                                it leads.
        12:00:08.000  server 3  Server 1 says that it leads. So the election on this server is void.
        12:00:08.000  server 3  (40 votes after the end, before the last 150, were not kept)"#]].assert_eq(lines);
}

fn line(at: i64, server: i64, text: &str, mark: Option<Mark>, after: Option<Mark>) -> Line {
    let about = About::only(LineKind::Receive);
    Line { at, server: ServerId(server), text: text.into(), mark, after, about, ballots: None }
}

#[test]
fn causes_come_first_if_the_clocks_allow_it() {
    let mark = || Some(Mark::Begun(Epoch(2)));
    for (leader_at, slack, expected) in [
        (10, 3, [("leads", 10), ("follows", 10), ("commits", 11)]),
        (12, 3, [("leads", 12), ("follows", 12), ("commits", 12)]),
        (20, 3, [("follows", 10), ("commits", 11), ("leads", 20)]),
    ] {
        let follower = vec![line(10, 1, "follows", None, mark()), line(11, 1, "commits", None, None)];
        let leader = vec![line(leader_at, 2, "leads", mark(), None)];
        let merged = merge(vec![follower, leader], slack);
        let told: Vec<(&str, i64)> = merged.iter().map(|line| (&*line.text, line.at)).collect();
        assert_eq!(told, expected, "leader at {leader_at}");
    }
}

#[test]
fn two_that_wait_for_each_other_are_told_all_the_same() {
    let (first, second) = (|| Some(Mark::Elected(ServerId(1))), || Some(Mark::Elected(ServerId(2))));
    let one = vec![line(1, 1, "a", first(), second())];
    let two = vec![line(1, 2, "b", second(), first())];
    assert_eq!(merge(vec![one, two], 2).len(), 2);
}
