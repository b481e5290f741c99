//! The report as JSON: it is read back the same, and has the documented form.

use super::records::*;
use expect_test::expect;
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::quorum::election_history::{SearchReason, Takeover};
use ostler_zab::{
    election::{CountedVote, ElectionEvent, IgnoreReason, Rule, Verdict},
    learning::HangUp,
};

fn vote(id: i64) -> Candidate {
    Candidate { epoch: Epoch(1), zxid: Zxid(0x1_0000_0007), id: ServerId(id) }
}

fn search() -> Search {
    let received = |from, state, verdict| ElectionEvent::Received {
        from: ServerId(from),
        state,
        round: 2,
        candidate: Some(vote(3)),
        verdict,
    };
    let whats = [
        ElectionEvent::Began { round: 2, own: Some(vote(1)) },
        ElectionEvent::SentToAll { round: 2, candidate: None },
        received(3, PeerState::Looking, Verdict::Adopted { rule: Rule::LargerId, later_round: false }),
        received(4, PeerState::Observing, Verdict::Ignored { why: IgnoreReason::NoVoter }),
        received(2, PeerState::Following, Verdict::Counted),
        ElectionEvent::SentToOne {
            to: ServerId(2),
            state: PeerState::Looking,
            round: 2,
            candidate: Some(vote(3)),
        },
        ElectionEvent::Lost { peer: ServerId(2) },
        ElectionEvent::Agreed { candidate: vote(3) },
        ElectionEvent::Elected {
            candidate: vote(3),
            votes: vec![CountedVote { voter: ServerId(3), candidate: vote(3) }],
        },
    ];
    Search {
        began_ms: 1_800_000_000_123,
        why: SearchReason::Left(HangUp::Gap { last: Zxid(5), next: Zxid(u64::MAX) }),
        before: Some(ServerId(2)),
        silent_ms: Some(12),
        last: Zxid(0x1_0000_0007),
        elected: Some(Elected { ms: 7, leader: ServerId(3), role: PeerState::Following }),
        connected_ms: Some(8),
        discovered: Some(Discovered { ms: 9, epoch: Epoch(2) }),
        takeover: Some(TakenOver { ms: 10, takeover: Takeover::Truncated(Zxid(0x1_0000_0006)) }),
        synchronised_ms: Some(11),
        first_commit: None,
        moments: whats.into_iter().zip(0..).map(|(what, ms)| Moment { ms, event: what }).collect(),
        left_out: 0,
        left_out_since: 0,
    }
}

#[test]
fn a_report_is_read_back_the_same() {
    let sent = Elections {
        server: ServerId(1),
        now_ms: 1_800_000_001_000,
        voters: [1, 2, 3].map(ServerId).into(),
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
        assert!(serde_json::from_str::<Zxid>(text).is_err(), "{text}");
    }
}

/// Programs and saved records rely on every byte. Captured before the record had the core's own types.
#[test]
fn the_json_of_a_search_stays_byte_for_byte_the_same() {
    let golden = concat!(
        r#"{"began_ms":1800000000123,"why":{"is":"gap","last":"0x5","next":"0xffffffffffffffff"},"bef"#,
        r#"ore":2,"silent_ms":12,"last":"0x100000007","elected":{"ms":7,"leader":3,"role":"following""#,
        r#"},"connected_ms":8,"discovered":{"ms":9,"epoch":2},"takeover":{"ms":10,"how":"truncated",""#,
        r#"last":"0x100000006"},"synchronised_ms":11,"moments":[{"ms":0,"what":"began","round":2,"own"#,
        r#"":{"epoch":1,"zxid":"0x100000007","id":1}},{"ms":1,"what":"told","round":2,"vote":null},{""#,
        r#"ms":2,"what":"received","from":3,"state":"looking","round":2,"vote":{"epoch":1,"zxid":"0x1"#,
        r#"00000007","id":3},"verdict":{"is":"adopted","rule":"larger_id","later_round":false}},{"ms""#,
        r#":3,"what":"received","from":4,"state":"observing","round":2,"vote":{"epoch":1,"zxid":"0x10"#,
        r#"0000007","id":3},"verdict":{"is":"ignored","why":"no_voter"}},{"ms":4,"what":"received","f"#,
        r#"rom":2,"state":"following","round":2,"vote":{"epoch":1,"zxid":"0x100000007","id":3},"verdi"#,
        r#"ct":{"is":"counted"}},{"ms":5,"what":"told_one","to":2,"state":"looking","round":2,"vote":"#,
        r#"{"epoch":1,"zxid":"0x100000007","id":3}},{"ms":6,"what":"lost","peer":2},{"ms":7,"what":"a"#,
        r#"greed","vote":{"epoch":1,"zxid":"0x100000007","id":3}},{"ms":8,"what":"elected","vote":{"e"#,
        r#"poch":1,"zxid":"0x100000007","id":3},"ballots":[{"voter":3,"vote":{"epoch":1,"zxid":"0x100"#,
        r#"000007","id":3}}]}],"left_out":0,"left_out_since":0}"#,
    );
    assert_eq!(serde_json::to_string(&search()).unwrap(), golden);
}

#[test]
fn each_reason_of_a_search_has_its_tag_and_is_read_back() {
    use ostler_zab::leading::StepDown;
    let zxid = Zxid(7);
    let all = [
        (SearchReason::Started, r#"{"is":"started"}"#),
        (SearchReason::LeaderGone, r#"{"is":"leader_gone"}"#),
        (SearchReason::ElectionVoid, r#"{"is":"mistaken"}"#),
        (SearchReason::LeaderUnreachable, r#"{"is":"leader_unreachable"}"#),
        (SearchReason::LeaderSilent { ms: 5 }, r#"{"is":"leader_silent","ms":5}"#),
        (SearchReason::LeaderBroken, r#"{"is":"leader_broken"}"#),
        (
            SearchReason::Left(HangUp::StaleEpoch { proposed: Epoch(1), accepted: Epoch(2) }),
            r#"{"is":"stale_epoch","proposed":1,"accepted":2}"#,
        ),
        (SearchReason::Left(HangUp::OutOfTurn), r#"{"is":"out_of_turn"}"#),
        (
            SearchReason::Left(HangUp::UnmatchedCommit { expected: zxid, committed: zxid }),
            r#"{"is":"unmatched_commit","expected":"0x7","committed":"0x7"}"#,
        ),
        (SearchReason::SteppedDown(StepDown::NoFollowers), r#"{"is":"no_followers"}"#),
        (SearchReason::SteppedDown(StepDown::EpochNotAccepted), r#"{"is":"epoch_not_accepted"}"#),
        (SearchReason::SteppedDown(StepDown::NotSynchronised), r#"{"is":"not_synchronised"}"#),
        (SearchReason::SteppedDown(StepDown::QuorumLost), r#"{"is":"quorum_lost"}"#),
        (SearchReason::SteppedDown(StepDown::NoEpochLeft), r#"{"is":"no_epoch_left"}"#),
        (SearchReason::CounterFull, r#"{"is":"counter_full"}"#),
        (SearchReason::Reconfigured, r#"{"is":"reconfigured"}"#),
        (SearchReason::CutBack, r#"{"is":"cut_back"}"#),
    ];
    for (why, text) in all {
        assert_eq!(serde_json::to_string(&why).unwrap(), text);
        assert_eq!(serde_json::from_str::<SearchReason>(text).unwrap(), why);
    }
}
