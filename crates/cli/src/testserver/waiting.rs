//! Waits for a state of an ensemble. Between looks the ensemble is free for other acts.

use super::{
    ensembles::{Ensembles, Held},
    error::ControlError,
    running::Running,
};
use ostler_testkit::Mode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a wait takes by default and at most.
pub(super) const WITHIN: Duration = Duration::from_secs(10);
pub(super) const WITHIN_MAX: Duration = Duration::from_secs(300);

/// Waits until a server leads, other than this one. Returns the ensemble.
pub(super) async fn until_led(
    ensembles: &Ensembles,
    id: u32,
    other_than: Option<i64>,
    within: Duration,
) -> Result<Held, ControlError> {
    let is_led = |running: &Running| {
        let leader = running.leader().filter(|leader| Some(leader.0) != other_than);
        leader.is_some()
    };
    let late = ControlError::Late {
        what: "a leader",
        within,
        remedy: "an ensemble needs a majority of its voters; are servers down, paused or cut off?",
    };
    until(ensembles, id, is_led, late, within).await
}

/// Waits until all servers that run and are not paused serve clients. Returns the ensemble.
pub(super) async fn until_serving(
    ensembles: &Ensembles,
    id: u32,
    within: Duration,
) -> Result<Held, ControlError> {
    let late = ControlError::Late {
        what: "that all running servers serve clients",
        within,
        remedy: "a server needs a leader; are servers down, paused or cut off?",
    };
    until(ensembles, id, serves, late, within).await
}

/// A leader that was cut off goes on as one for a while, next to the one that the others have elected. Then there are two,
/// and one of them will soon serve nobody.
fn serves(running: &Running) -> bool {
    let servers: Vec<_> = running.ids().into_iter().filter_map(|id| running.server(id).ok()).collect();
    let awake = servers.iter().filter(|server| server.is_up() && !server.is_paused());
    let modes: Vec<Mode> = awake.filter_map(|server| server.mode().ok()).collect();
    let leaders = modes.iter().filter(|mode| **mode == Mode::Leader).count();
    !modes.is_empty() && modes.iter().all(|mode| mode.serves()) && leaders <= 1
}

async fn until(
    ensembles: &Ensembles,
    id: u32,
    is_met: impl Fn(&Running) -> bool,
    late: ControlError,
    within: Duration,
) -> Result<Held, ControlError> {
    let last = Instant::now() + within;
    loop {
        let held = ensembles.hold(id).await?;
        if is_met(held.running()?) {
            return Ok(held);
        }
        drop(held);
        if Instant::now() >= last {
            return Err(late);
        }
        sleep(LOOK_EVERY).await;
    }
}
