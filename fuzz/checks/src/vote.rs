//! Fuzzes votes: a vote that is read can be written and read again.

use ostler_proto::election::Notification;

/// The bytes are one message of the election port.
pub fn check(bytes: &[u8]) {
    let Ok(vote) = Notification::read(bytes) else { return };
    let mut written = Vec::new();
    vote.write(&mut written);
    let again = Notification::read(&written);
    // Older formats are written as the newest.
    assert_eq!(again, Ok(Notification { version: ostler_proto::election::NOTIFICATION_VERSION, ..vote }));
}
