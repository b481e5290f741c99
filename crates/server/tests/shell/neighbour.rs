//! The well-behaved session beside the trouble.

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

/// Far above what a loaded machine makes of a request, far below what a stalled server does.
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
                // Looked at before the round: the last one comes after all the trouble.
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

    /// Ends it. Every request must have been answered, rightly and in time.
    pub(crate) fn content(self) {
        self.stop.store(true, Ordering::SeqCst);
        let (rounds, longest) = self.thread.join().expect("the neighbour was served");
        assert!(rounds > 0);
        assert!(longest < ANSWERED_WITHIN, "the neighbour waited {longest:?}");
    }
}
