//! A well-behaved session that runs while a test disturbs the server.

use crate::client::{Client, op, path_watch, set_data};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Reads, writes and pings in its own thread until [`Neighbour::content`].
pub(crate) struct Neighbour {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Duration)>,
}

/// Far more than a request takes on a loaded machine, far less than the pause of a stalled server.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

impl Neighbour {
    pub(crate) fn of(server: SocketAddr) -> Neighbour {
        let mut client = Client::open(server);
        let path = format!("/neighbour-{:x}", client.granted.session.0);
        client.create(&path, b"0");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let (mut rounds, mut longest) = (0_u64, Duration::ZERO);
            loop {
                // Read before the round, so that the last round begins after the test's last action.
                let last = stopped.load(Ordering::SeqCst);
                let begun = Instant::now();
                let number = rounds.to_string();
                assert_eq!(client.ask(op::SET_DATA, &set_data(&path, number.as_bytes())).error, 0);
                let read = client.ask(op::GET_DATA, &path_watch(&path, false));
                assert_eq!(read.body[4..4 + number.len()], *number.as_bytes());
                client.ask(op::PING, &[]);
                longest = longest.max(begun.elapsed());
                rounds += 1;
                if last {
                    return (rounds, longest);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Neighbour { stop, thread }
    }

    /// Ends the session. Checks that every request was answered, correctly and in time.
    pub(crate) fn content(self) {
        self.stop.store(true, Ordering::SeqCst);
        let (rounds, longest) = self.thread.join().expect("the neighbour was served");
        assert!(rounds > 0);
        assert!(longest < ANSWERED_WITHIN, "the neighbour waited {longest:?}");
    }
}
