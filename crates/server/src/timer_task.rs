//! Wakes the core at its deadlines.

use crate::driver::Driver;
use ostler_server_core::Input;
use std::sync::Arc;

/// Runs until it is dropped.
pub(crate) async fn run(driver: Arc<Driver>) {
    loop {
        let deadline = driver.next_deadline();
        if deadline <= driver.clock.mono() {
            driver.step(Input::Deadline);
            // Work that the core does in parts is due again at once. Other tasks run in between.
            tokio::task::yield_now().await;
            continue;
        }
        let until = driver.clock.instant(deadline).into();
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = driver.timer.notified() => {}
        }
    }
}
