//! Each of Curator's bugs is planted, and the test that names it fails. Built with the feature `planted-bugs` only.

use crate::servers::PLANTED;
use ostler_planted::{Bug, plant};
use std::{
    env,
    io::Read,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

/// The tests, and words of which each has one in what it says when it has found its bug.
const FOUND_BY: [(Bug, &str, &[&str]); 14] = [
    (
        Bug::LatchKeepsOldZnode,
        "curator_696_a_latch_does_not_lead_by_the_znode_of_a_session_that_is_over",
        &["leads by /latch/"],
    ),
    (
        Bug::MutexFindsOldZnode,
        "curator_604_a_mutex_is_not_acquired_by_the_znode_of_a_session_that_is_over",
        &["acquired by /a/"],
    ),
    (
        Bug::LatchFindsOldZnode,
        "curator_498_a_latch_does_not_take_the_znode_of_a_session_that_is_over_for_its_own",
        &["leads by /latch/"],
    ),
    (
        Bug::ReconnectDeletesZnode,
        "curator_620_reconnects_in_quick_succession_leave_one_leader_with_a_znode",
        &["leads again", "assertion"],
    ),
    (
        Bug::LeadsByAnEarlierLook,
        "curator_653_after_both_have_reconnected_one_leads",
        &["NotHeld", "assertion"],
    ),
    (
        Bug::ReconnectMakesZnode,
        "curator_644_a_reconnect_to_the_same_session_creates_nothing",
        &["assertion `left == right` failed"],
    ),
    (
        Bug::MissingPredecessorMakesZnode,
        "curator_645_two_latches_settle_when_the_leader_goes_before_it_is_watched",
        &["one znode for each"],
    ),
    (
        Bug::PathMadeOnce,
        "curator_724_a_latch_recovers_when_the_path_itself_is_gone",
        &["the latch has ended"],
    ),
    (Bug::SelectorForgetsZnode, "curator_188_selectors_leave_no_old_znodes_behind", &["0 takes too long"]),
    (Bug::SelectorHidesError, "curator_15_a_selector_that_cannot_contend_says_so", &["Idle(None)"]),
    (
        Bug::ReleaseGivesUp,
        "curator_595_and_678_a_release_that_meets_connection_loss_leaves_no_znode",
        &["Mutex takes too long"],
    ),
    (Bug::DowngradeToTheEnd, "curator_621_and_276_a_downgrade_lets_no_writer_in", &["both wait"]),
    (
        Bug::OtherZnodesAreContenders,
        "curator_43_other_znodes_below_a_lock_are_not_waited_for",
        &["Mutex takes too long"],
    ),
    (
        Bug::DroppedPlaceStays,
        "curator_335_and_462_a_lease_that_was_waited_for_in_vain_is_returned",
        &["nothing is left of it"],
    ),
];

/// Most of them wait.
const AT_A_TIME: usize = 8;
/// Longer than any of them waits.
const LIMIT: Duration = Duration::from_secs(90);

/// The bug that the process plants.
pub(crate) fn plant_as_told() {
    if let Ok(issue) = env::var(PLANTED) {
        let bug = Bug::of_curator_issue(&issue);
        plant(Some(bug.unwrap_or_else(|| panic!("no bug of {issue} can be planted"))));
    }
}

/// One test in a process of its own, in which a bug of this issue is planted: what it printed, once it has ended.
fn run(test: &str, issue: &str) -> Result<String, String> {
    let this = env::current_exe().unwrap();
    let mut child = Command::new(this)
        .args(["--exact", &format!("curator_issues::{test}")])
        .env(PLANTED, issue)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            return Err(format!("it goes on for ever: {}", printed(&mut child)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(printed(&mut child))
}

fn printed(child: &mut Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    text
}

/// How a bug was missed, if it was.
fn missed((bug, issues, what): (Bug, &str, &str)) -> Option<String> {
    let Some((_, test, words)) = FOUND_BY.into_iter().find(|(of, ..)| *of == bug) else {
        return Some(format!("no test is to find CURATOR-{issues}"));
    };
    let issue = issues.split(", ").next().unwrap();
    let begun = Instant::now();
    let complaint = match run(test, issue) {
        Ok(text) if !text.contains("test result: FAILED. 0 passed; 1 failed") => {
            format!("it does not fail: {text}")
        }
        Ok(text) if !words.iter().any(|words| text.contains(words)) => {
            format!("it says none of {words:?}: {text}")
        }
        Err(hangs) => hangs,
        Ok(_) => {
            println!("CURATOR-{issues}, {what}: found in {} ms", begun.elapsed().as_millis());
            return None;
        }
    };
    Some(format!("CURATOR-{issues}, {what}: {test}: {complaint}"))
}

#[test]
fn every_planted_bug_makes_the_test_fail_that_names_it() {
    let (left, found) = (Mutex::new(Bug::OF_CURATOR.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(bug) = left.lock().unwrap().next() else { return };
                    let missed = missed(bug);
                    found.lock().unwrap().extend(missed);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
