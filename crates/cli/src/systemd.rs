//! Messages to systemd about the state of a server (sd_notify). Without systemd there is no socket, and nothing is sent.

use ostler_server::ServerHandle;
use sd_notify::NotifyState;
use std::time::Duration;

/// Notes in systemd's status of the unit what a start that takes long is busy with.
pub(crate) fn starting() {
    send(&[NotifyState::Status("reads its data")]);
}

/// The server takes connections. A member of an ensemble may be without a leader yet: if systemd waited for one, the
/// servers of a machine could wait for each other.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The server ends, which may take a moment: what was read is still written to the log.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("stops")]);
}

/// Shows systemd's watchdog that the core still takes steps, if the unit has `WatchdogSec`. Ends with its task.
pub(crate) async fn feed_watchdog(server: ServerHandle) {
    let Some(interval) = interval(sd_notify::watchdog_enabled()) else { return };
    loop {
        tokio::time::sleep(interval).await;
        server.inspect(|_| ());
        send(&[NotifyState::Watchdog]);
    }
}

/// How often the watchdog wants to hear of the server: three times before it gives up.
fn interval(limit: Option<Duration>) -> Option<Duration> {
    limit.map(|limit| (limit / 3).max(Duration::from_millis(1)))
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        eprintln!("ostler: warning: systemd cannot be told the state of the server: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_hears_of_the_server_three_times_in_its_limit() {
        assert_eq!(interval(Some(Duration::from_secs(60))), Some(Duration::from_secs(20)));
        assert_eq!(interval(Some(Duration::ZERO)), Some(Duration::from_millis(1)));
        assert_eq!(interval(None), None);
    }
}
