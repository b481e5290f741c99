//! Limits the lines that one place in the code writes into the log. Many lines tell what a client did, so without a limit
//! a client can fill the disk.

use parking_lot::Mutex;
use serde_json::json;
use std::{
    collections::HashMap,
    fmt::Write as _,
    io::Write as _,
    time::{Duration, Instant},
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tracing::{
    Event, Metadata, Subscriber,
    callsite::Identifier,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Filter};

/// The most lines of one place in [`INTERVAL`].
const LINES_MAX: u32 = 1000;
const INTERVAL: Duration = Duration::from_secs(60);

/// Counts the lines of each place in the code.
#[derive(Debug)]
pub(super) struct LineLimit {
    /// Whether lines are JSON.
    json: bool,
    places: Mutex<HashMap<Identifier, Lines>>,
}

/// The lines of one place in the current interval.
#[derive(Debug, Clone, Copy)]
struct Lines {
    begun: Instant,
    count: u32,
}

/// Whether a line may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Line,
    /// The first line that is left out: the log has to say so.
    FirstLeftOut,
    LeftOut,
}

impl Lines {
    fn take_turn(&mut self, now: Instant) -> Turn {
        if now.duration_since(self.begun) >= INTERVAL {
            *self = Lines { begun: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        match self.count {
            ..=LINES_MAX => Turn::Line,
            count if count == LINES_MAX + 1 => Turn::FirstLeftOut,
            _ => Turn::LeftOut,
        }
    }
}

impl LineLimit {
    pub(super) fn new(json: bool) -> LineLimit {
        LineLimit { json, places: Mutex::default() }
    }

    fn note(&self, event: &Event<'_>) -> String {
        let mut message = Message::default();
        event.record(&mut message);
        let text = format!(
            "more than {LINES_MAX} lines like this one within a minute, so the rest of them is left out until the minute is \
             over: {}",
            message.0
        );
        let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        match self.json {
            true => json!({"timestamp": now, "level": "WARN", "fields": {"message": text}}).to_string(),
            false => format!("{now}  WARN {text}"),
        }
    }
}

impl<S: Subscriber> Filter<S> for LineLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let now = Instant::now();
        let mut places = self.places.lock();
        let lines = places.entry(event.metadata().callsite()).or_insert(Lines { begun: now, count: 0 });
        let turn = lines.take_turn(now);
        drop(places);
        if turn == Turn::FirstLeftOut {
            // A log that cannot be written is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", self.note(event));
        }
        turn == Turn::Line
    }
}

/// The text of an event without its fields, which a client may have chosen.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            // A string takes all text.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };
    use tracing_subscriber::{Layer, layer::SubscriberExt, registry};

    #[test]
    fn a_place_has_a_thousand_lines_a_minute() {
        let begun = Instant::now();
        let mut lines = Lines { begun, count: 0 };
        let turns: Vec<Turn> = (0..1500).map(|_| lines.take_turn(begun)).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::Line).count(), 1000);
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::FirstLeftOut).count(), 1);
        assert_eq!(lines.take_turn(begun + INTERVAL), Turn::Line);
    }

    /// Counts the events that it gets.
    struct Counter(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Counter {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_flood_of_one_kind_does_not_hide_others() {
        let count = Arc::new(AtomicUsize::new(0));
        let lines = Counter(count.clone()).with_filter(LineLimit::new(true));
        tracing::subscriber::with_default(registry().with(lines), || {
            for client in 0..3000 {
                tracing::warn!(client, "closed: authentication failed");
            }
            assert_eq!(count.load(Relaxed), 1000);
            tracing::warn!("something else");
            assert_eq!(count.load(Relaxed), 1001);
        });
    }
}
