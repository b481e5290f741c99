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
        let mono = self.start.elapsed();
        Now {
            mono: Mono(mono.as_millis() as u64),
            wall_ms: wall.as_millis() as i64,
            us: (mono.subsec_micros() % 1000) as u16,
        }
    }

    pub(crate) fn mono(&self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }

    /// As [`Clock::mono`], in microseconds.
    pub(crate) fn mono_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    pub(crate) fn instant(&self, mono: Mono) -> Instant {
        self.start + std::time::Duration::from_millis(mono.0)
    }
}
