//! Elections as a file: the same sentences as the text, with lanes, boxes and rules.

use crate::{
    LineKind,
    file::{AskedServer, ElectionEntry, ElectionsFile},
    occasion::occasions,
    page::Page,
    tests::{NOON, heard, lost, search, takeover, told, vote, with, witness},
    witness::Witness,
};
use expect_test::expect;
use ostler_proto::{election::PeerState, id::ServerId};
use ostler_server_core::quorum::election_history::SearchReason;
use ostler_zab::election::{ElectionEvent, IgnoreReason, Rule, Verdict};
use std::fmt::Write;

fn file(witnesses: &[Witness], silent: Vec<AskedServer>) -> ElectionsFile {
    ElectionsFile::new(&occasions(witnesses), 16, (witnesses, silent), NOON + 60_000)
}

/// An election in few lines.
fn sketch(of: &ElectionEntry) -> String {
    let mut out = String::new();
    let ElectionEntry { number, kind, epoch, winner, total_for_ms, cause, .. } = of;
    writeln!(out, "{number} {kind} {epoch:?} {winner:?} total {total_for_ms:?}: {cause}").unwrap();
    for phase in &of.phases {
        writeln!(out, "{:?} {:?}", phase.name, phase.for_ms).unwrap();
    }
    for lane in &of.lanes {
        let band = |band: &crate::file::Band| format!(" {:?} {}-{:?}", band.phase, band.from_ms, band.to_ms);
        let bands: String = lane.bands.iter().map(band).collect();
        writeln!(out, "lane {} {}{bands}", lane.server, lane.known).unwrap();
    }
    for moment in &of.moments {
        let changed =
            moment.changed.map(|of| format!(" {} for {}", of.voter, of.candidate)).unwrap_or_default();
        let rule = moment.rule.map(|rule| format!(" {rule:?} {:?}", moment.highlights)).unwrap_or_default();
        writeln!(out, "{} {} {:?}{changed}{rule}", moment.at_ms, moment.server, moment.kind).unwrap();
    }
    for of in &of.ballots {
        let mark = |is: bool, mark: &'static str| if is { mark } else { "" };
        let vote = |of: &crate::ballots::BoxedVote| {
            format!(" {}>{}{}{}", of.voter, of.candidate, mark(of.changed, "*"), mark(!of.counts, "!"))
        };
        let votes: String = of.votes.iter().map(vote).collect();
        writeln!(out, "box of {} at {} by moment {}:{votes}", of.server, of.at_ms, of.moment).unwrap();
    }
    out
}

#[test]
fn a_dead_leader_in_lanes_and_boxes() {
    let dead = AskedServer::silent(Some(ServerId(1)), "server 1".into(), "silent", "It is down.".into());
    let file = file(&takeover(), vec![dead]);
    let servers: Vec<_> =
        file.servers.iter().map(|of| (of.id.unwrap().0, of.state, of.knows_since_ms)).collect();
    assert_eq!(
        servers,
        [(1, "silent", None), (2, "answered", Some(NOON + 220)), (3, "answered", Some(NOON + 221))]
    );
    let [election] = &file.elections[..] else { panic!("{file:#?}") };
    assert_eq!(election.began_ms, NOON + 180, "the old leader's last word");
    expect![[r#"
        1 formed Some(Epoch(2)) Some(ServerId(3)) total Some(10): The connection to server 1 is gone; its last message came 40 ms before.
        Detect Some(40)
        Elect Some(3)
        Discover Some(4)
        Synchronise Some(3)
        FirstCommit Some(4)
        lane 1 false
        lane 2 true Detect 0-Some(40) Elect 40-Some(43) Discover 43-Some(46) Synchronise 46-Some(51) FirstCommit 51-Some(55)
        lane 3 true Detect 1-Some(41) Elect 41-Some(43) Discover 43-Some(47) Synchronise 47-Some(50) FirstCommit 50-Some(54)
        40 2 Loss
        40 2 Vote 2 for 2
        41 2 Receive
        41 3 Loss
        41 3 Vote 3 for 3
        42 3 Receive 2 for 2 Zxid ["an earlier zxid"]
        42 3 Vote
        43 2 Change 2 for 3 Zxid ["a later zxid"]
        43 2 Decide
        43 3 Receive
        43 3 Receive 2 for 3
        43 3 Decide
        44 2 Follow
        46 2 Follow
        47 3 Lead
        50 3 Serving
        51 2 Serving
        54 3 Serving
        55 2 Serving
        box of 2 at 40 by moment 1: 2>2*
        box of 3 at 41 by moment 4: 3>3*
        box of 3 at 42 by moment 5: 2>2* 3>3
        box of 2 at 43 by moment 7: 2>3* 3>3*
        box of 3 at 43 by moment 10: 2>3* 3>3
    "#]].assert_eq(&sketch(election));
}

/// Reads the sentences of a text, whatever the lines are broken at.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_sentences_are_those_of_the_text() {
    let witnesses = takeover();
    let text = words(&Page::new(&occasions(&witnesses), &witnesses, &[]).to_string());
    let file = file(&witnesses, Vec::new());
    for sentence in
        file.elections[0].moments.iter().map(|moment| &moment.sentence).chain(&file.elections[0].summary)
    {
        assert!(text.contains(&words(sentence)), "{sentence}");
    }
}

#[test]
fn the_newest_is_first_and_an_open_one_has_no_total() {
    let [two, mut three] = takeover();
    three.elections.searches.push(search(5_000, SearchReason::LeaderGone, 9));
    let all = file(&[two, three], Vec::new());
    let entries: Vec<_> =
        all.elections.iter().map(|of| (of.number, of.kind, of.under_way, of.total_for_ms)).collect();
    assert_eq!(entries, [(2, "open", true, None), (1, "formed", false, Some(10))]);
    assert_eq!(all.elections[0].lanes[2].bands.last().unwrap().to_ms, None, "it goes on");
    let last = ElectionsFile::new(&occasions(&takeover()), 0, (&takeover(), Vec::new()), 0);
    assert!(last.elections.is_empty());
}

#[test]
fn each_rule_is_named_in_the_sentence_it_decided() {
    let (own, better) = (vote(4, 9, 1), vote(5, 1, 3));
    let looking = |from, of, round, verdict| heard(from, PeerState::Looking, of, round, verdict);
    let adopted = |rule, later_round| Verdict::Adopted { rule, later_round };
    let events = vec![
        ElectionEvent::Began { round: 3, own: Some(own) },
        looking(2, vote(3, 9, 2), 3, Verdict::Worse),
        looking(2, vote(4, 8, 2), 3, Verdict::Worse),
        looking(2, vote(4, 9, 0), 3, Verdict::Worse),
        looking(2, own, 1, Verdict::Ignored { why: IgnoreReason::EarlierRound }),
        looking(2, vote(3, 9, 2), 4, Verdict::LaterRound),
        told(own, 4),
        looking(3, vote(4, 10, 3), 4, adopted(Rule::LaterZxid, false)),
        looking(4, vote(4, 10, 4), 4, adopted(Rule::LargerId, false)),
        looking(3, better, 5, adopted(Rule::LaterEpoch, true)),
        looking(3, better, 6, adopted(Rule::FirstHeard, true)),
    ];
    let moments = (0..).zip(events).collect();
    let file = file(&[witness(1, vec![with(lost(0, 2, 9), moments)])], Vec::new());
    let moments = &file.elections[0].moments;
    for moment in moments {
        for highlight in &moment.highlights {
            assert!(moment.sentence.contains(highlight), "{highlight} in {}", moment.sentence);
        }
        assert_eq!(moment.rule.is_some(), !moment.highlights.is_empty(), "{moment:?}");
    }
    let rules: Vec<String> =
        moments.iter().filter_map(|moment| Some(format!("{:?}", moment.rule?))).collect();
    assert_eq!(rules, ["Epoch", "Zxid", "Id", "Round", "Round", "Zxid", "Id", "Epoch", "Round"]);
    assert_eq!(moments[0].kind, LineKind::Loss);
}

#[test]
fn of_very_many_moments_the_middle_is_left_out() {
    let events = (0..1_700u64).map(|ms| {
        let from = 2 + (ms % 2) as i64;
        (ms, heard(from, PeerState::Looking, vote(1, ms, from), 1, Verdict::Worse))
    });
    let file = file(&[witness(1, vec![with(lost(0, 2, 9), events.collect())])], Vec::new());
    let election = &file.elections[0];
    assert_eq!((election.moments.len(), election.left_out), (1_000, 701));
    let last = election.ballots.last().unwrap();
    assert!(last.moment < election.moments.len());
    assert_eq!(election.moments[last.moment].at_ms, last.at_ms);
}
