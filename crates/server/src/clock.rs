//! The machine's clocks, as the core takes them.

use ostler_server_core::{Now, input::Mono};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: self.mono(), wall_ms: wall.as_millis() as i64 }
    }

    pub(crate) fn mono(&self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }

    pub(crate) fn instant(&self, mono: Mono) -> Instant {
        self.start + std::time::Duration::from_millis(mono.0)
    }
}
