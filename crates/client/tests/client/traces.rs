//! Records the spans and events that the client emits on this thread.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

/// Records from its creation until it is dropped.
pub(crate) struct Traces {
    recorded: Arc<Recorded>,
    _guard: DefaultGuard,
}

#[derive(Default)]
struct Recorded {
    spans: AtomicU64,
    operations: Mutex<Vec<String>>,
    events: Mutex<Vec<(Level, String)>>,
}

impl Traces {
    pub(crate) fn begin() -> Traces {
        let recorded = Arc::new(Recorded::default());
        Traces { _guard: tracing::subscriber::set_default(Listener(recorded.clone())), recorded }
    }

    /// Names of the operations that had a span since the last call.
    pub(crate) fn operations(&self) -> Vec<String> {
        std::mem::take(&mut self.recorded.operations.lock().unwrap())
    }

    /// The client's events since the last call.
    pub(crate) fn events(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.recorded.events.lock().unwrap())
    }
}

struct Listener(Arc<Recorded>);

/// Reads the text of one field.
struct Text {
    of: &'static str,
    found: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == self.of {
            self.found = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == self.of {
            self.found = value.to_owned();
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ostler_client")
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        if span.metadata().name() == "operation" {
            let mut name = Text { of: "name", found: String::new() };
            span.record(&mut name);
            self.0.operations.lock().unwrap().push(name.found);
        }
        span::Id::from_u64(self.0.spans.fetch_add(1, Relaxed) + 1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Text { of: "message", found: String::new() };
        event.record(&mut message);
        self.0.events.lock().unwrap().push((*event.metadata().level(), message.found));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
