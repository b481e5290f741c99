//! The report as JSON: it is read back the same, and has the documented form.

use super::elections::*;
use expect_test::expect;

fn vote(id: i64) -> Vote {
    Vote { epoch: 1, zxid: Hex(0x1_0000_0007), id }
}

fn search() -> Search {
    let received =
        |from, state, verdict| What::Received { from, state, round: 2, vote: Some(vote(3)), verdict };
    let whats = [
        What::Began { round: 2, own: Some(vote(1)) },
        What::Told { round: 2, vote: None },
        received(3, State::Looking, Judged::Adopted { rule: Better::LargerId, later_round: false }),
        received(4, State::Observing, Judged::Ignored { why: Ignored::NoVoter }),
        received(2, State::Following, Judged::Counted),
        What::ToldOne { to: 2, state: State::Looking, round: 2, vote: Some(vote(3)) },
        What::Lost { peer: 2 },
        What::Agreed { vote: vote(3) },
        What::Elected { vote: vote(3), ballots: vec![BallotOf { voter: 3, vote: vote(3) }] },
    ];
    Search {
        began_ms: 1_800_000_000_123,
        why: Cause::Gap { last: Hex(5), next: Hex(u64::MAX) },
        before: Some(2),
        silent_ms: Some(12),
        last: Hex(0x1_0000_0007),
        elected: Some(Elected { ms: 7, leader: 3, role: State::Following }),
        connected_ms: Some(8),
        discovered: Some(Discovered { ms: 9, epoch: 2 }),
        takeover: Some(TakenOver { ms: 10, how: How::Truncated, last: Hex(0x1_0000_0006) }),
        synchronised_ms: Some(11),
        first_commit: None,
        moments: whats.into_iter().zip(0..).map(|(what, ms)| Moment { ms, what }).collect(),
        left_out: 0,
        left_out_since: 0,
    }
}

#[test]
fn a_report_is_read_back_the_same() {
    let sent = Elections {
        server: 1,
        now_ms: 1_800_000_001_000,
        voters: vec![1, 2, 3],
        settle_ms: 200,
        searches: vec![search()],
    };
    let text = serde_json::to_string(&sent).unwrap();
    assert_eq!(serde_json::from_str::<Elections>(&text).unwrap(), sent);
}

#[test]
fn a_report_has_the_documented_form() {
    let mut shown = search();
    shown.moments.drain(..2);
    shown.moments.truncate(2);
    expect![[r#"
        {
          "began_ms": 1800000000123,
          "why": {
            "is": "gap",
            "last": "0x5",
            "next": "0xffffffffffffffff"
          },
          "before": 2,
          "silent_ms": 12,
          "last": "0x100000007",
          "elected": {
            "ms": 7,
            "leader": 3,
            "role": "following"
          },
          "connected_ms": 8,
          "discovered": {
            "ms": 9,
            "epoch": 2
          },
          "takeover": {
            "ms": 10,
            "how": "truncated",
            "last": "0x100000006"
          },
          "synchronised_ms": 11,
          "moments": [
            {
              "ms": 2,
              "what": "received",
              "from": 3,
              "state": "looking",
              "round": 2,
              "vote": {
                "epoch": 1,
                "zxid": "0x100000007",
                "id": 3
              },
              "verdict": {
                "is": "adopted",
                "rule": "larger_id",
                "later_round": false
              }
            },
            {
              "ms": 3,
              "what": "received",
              "from": 4,
              "state": "observing",
              "round": 2,
              "vote": {
                "epoch": 1,
                "zxid": "0x100000007",
                "id": 3
              },
              "verdict": {
                "is": "ignored",
                "why": "no_voter"
              }
            }
          ],
          "left_out": 0,
          "left_out_since": 0
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&shown).unwrap());
}

#[test]
fn text_that_is_no_zxid_is_refused() {
    for text in ["5", "\"5\"", "\"0x\"", "\"0x1ffffffffffffffff\""] {
        assert!(serde_json::from_str::<Hex>(text).is_err(), "{text}");
    }
}
