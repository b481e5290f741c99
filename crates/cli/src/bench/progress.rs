//! The progress line on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// The interval at which the line changes.
const PERIOD: Duration = Duration::from_millis(200);

/// A line on the error output, if that is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    next: Instant,
    last_count: u64,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        let style = ProgressStyle::with_template("{prefix} {msg}").expect("the template is well-formed");
        let bar = ProgressBar::new_spinner().with_style(style).with_prefix(what);
        let now = Instant::now();
        Progress { bar, started: now, next: now + PERIOD, last_count: 0 }
    }

    /// Shows the count and its rate, if it is time to.
    pub(crate) fn show(&mut self, count: u64, of: &str) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let since_last = (now - self.next + PERIOD).as_secs_f64();
        let rate = count.saturating_sub(self.last_count) as f64 / since_last;
        let seconds = (now - self.started).as_secs_f64();
        self.bar.set_message(format!("{seconds:.1} s  {count} {of}  {rate:.0}/s"));
        self.bar.tick();
        self.last_count = count;
        self.next = now + PERIOD;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
