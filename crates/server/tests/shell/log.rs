//! The log of all servers in this process.

use std::{
    io::{self, Write},
    sync::{Mutex, Once, PoisonError},
    time::{Duration, Instant},
};
use tracing_subscriber::filter::LevelFilter;

static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ONCE: Once = Once::new();
const PATIENCE: Duration = Duration::from_secs(20);

struct LogBuffer;

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the warnings of all servers from now on.
pub(crate) fn keep() {
    ONCE.call_once(|| {
        let format = tracing_subscriber::fmt().with_ansi(false).with_writer(|| LogBuffer);
        format.with_max_level(LevelFilter::WARN).init();
    });
}

/// The lines that contain all of `parts`.
pub(crate) fn lines(parts: &[&str]) -> Vec<String> {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&written);
    let fits = |line: &&str| parts.iter().all(|part| line.contains(part));
    text.lines().filter(fits).map(Into::into).collect()
}

/// Waits for a line that contains all of `parts`.
#[track_caller]
pub(crate) fn wait_for(parts: &[&str]) -> String {
    let begun = Instant::now();
    loop {
        if let Some(line) = lines(parts).pop() {
            return line;
        }
        assert!(begun.elapsed() < PATIENCE, "no line of the log has {parts:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
