//! A client at a follower. The leader, which expires the session, hears of it only by the follower's reports, one in each
//! half tick.

use crate::rig::{Rig, SESSION, config};
use ostler_client_core::{Config, Input, Mono};
use ostler_server_core::{
    input::Mono as LeaderMono,
    sessions::{Scope, Sessions},
};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
struct Course {
    tick: u64,
    timeout: u64,
    /// When the follower reports first, ms after the session was made.
    first_report: u64,
    /// How far the leader's clock was when the session was made: it expires sessions where a tick ends.
    leader_clock: u64,
    /// From then on the follower neither answers nor reports.
    dies_at: u64,
}

/// When the client takes its session for lost, if it does until `end`, and when its leader has expired it. In ms after
/// the session was made; the client's moment is rounded down.
fn play(course: Course, end: u64) -> (Option<u64>, Option<u64>) {
    let Course { tick, timeout, first_report, leader_clock, dies_at } = course;
    let ms = Duration::from_millis;
    let mut rig = Rig::new(Config { tick_time: Some(ms(tick)), session_timeout: ms(timeout), ..config() });
    rig.deadline();
    rig.connect();
    let begun = rig.now;
    rig.grant(SESSION, ms(timeout), false);
    let mut leader = Sessions::new(tick);
    leader.insert(LeaderMono(leader_clock), SESSION, i32::try_from(timeout).unwrap(), None);
    let (mut report, mut heard_of, mut expired) = (first_report, false, None);
    loop {
        let reported_at = begun + ms(report);
        rig.now = rig.session.next_deadline().unwrap().min(reported_at);
        let now = rig.now.since(begun);
        let at_leader = LeaderMono(leader_clock + u64::try_from(now.as_millis()).unwrap());
        let over = leader.next_deadline(Scope::Global);
        if leader.expire_next(at_leader, Scope::Global).is_some() {
            expired = over.map(|over| over.0 - leader_clock);
        }
        if rig.now == reported_at {
            if heard_of && report <= dies_at {
                leader.touch(at_leader, SESSION);
                heard_of = false;
            }
            report += tick / 2;
        } else {
            rig.step(Input::Deadline);
        }
        for (xid, _) in rig.sent() {
            if now <= ms(dies_at) {
                heard_of = true;
                rig.reply(xid, 0, 0);
            }
        }
        let is_lost = rig.session.session_at(rig.now).is_none();
        if is_lost || rig.now.since(Mono::START) > ms(end) {
            let over = leader.next_deadline(Scope::Global).map(|over| over.0 - leader_clock);
            let lost = is_lost.then(|| u64::try_from(now.as_millis()).unwrap());
            return (lost, expired.or(over.filter(|_| dies_at <= end)));
        }
    }
}

/// `minSessionTimeout` can be set to less than its default of two ticks. Below half a tick no follower can
/// keep a session.
#[test]
fn a_session_below_two_ticks_is_lost_before_its_leader_expires_it() {
    let (mut late, mut worst) = (0, None);
    for timeout in [1500, 2000, 2500, 3000, 3500, 3900, 4000, 6000] {
        for first_report in (100..=1000).step_by(150) {
            for leader_clock in (0..2000).step_by(100) {
                for dies_at in (0..6000).step_by(190) {
                    let course = Course { tick: 2000, timeout, first_report, leader_clock, dies_at };
                    let (lost, expired) = play(course, 60_000);
                    let (lost, expired) = (lost.unwrap(), expired.unwrap());
                    if lost > expired {
                        late += 1;
                        worst = worst.max(Some((lost - expired, format!("{course:?}"))));
                    }
                }
            }
        }
    }
    assert_eq!(worst, None, "{late} are reported too late, the worst by this number of ms");
}

/// A client that always reports the loss early would be safe, but useless.
#[test]
fn a_session_of_a_tick_or_more_lives_as_long_as_its_follower() {
    for timeout in [2000, 2500, 3000, 4000, 6000, 40_000] {
        for first_report in (50..=1000).step_by(50) {
            let course = Course { tick: 2000, timeout, first_report, leader_clock: 0, dies_at: u64::MAX };
            let end = 10 * timeout;
            assert_eq!(play(course, end), (None, None), "{course:?}");
        }
    }
}
