//! The lines that a member writes into its log.

use std::{
    fmt::{Debug, Write},
    mem,
    sync::{Arc, Mutex},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Tap {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines that come while this is done.
pub(crate) fn during(act: impl FnOnce()) -> Said {
    let tap = Tap::default();
    with_default(tap.clone(), act);
    Said(mem::take(&mut *tap.0.lock().unwrap()))
}

#[derive(Debug)]
pub(crate) struct Said(Vec<String>);

impl Said {
    /// Whether one message has all of these in it.
    pub(crate) fn has(&self, parts: &[&str]) -> bool {
        self.0.iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }
}
