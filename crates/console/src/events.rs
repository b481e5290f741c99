//! `/api/v1/events`: pages that follow what happens, by server-sent events.
//!
//! A topic is made by one task for all its listeners, and by none without a listener. It looks twice a second whether
//! something has happened, and makes the page when something has, or when the page is old. A stream takes the newest state
//! of its topics as fast as its reader reads; nobody waits for it, and states in between are skipped.

mod streams;

use crate::{
    elections, ensemble,
    error::ApiError,
    fan_out::{Freshness, now_ms},
    list::Parameters,
    metrics,
    rights::Viewer,
    state::Console,
};
use axum::{
    body::Body,
    extract::{Query, State},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
pub(crate) use streams::Streams;
use tokio::sync::watch;

/// The time between two looks at whether something has happened. No topic is sent more often.
const LOOK: Duration = Duration::from_millis(500);
/// The time between two beats.
const BEAT: Duration = Duration::from_secs(5);
/// A stream ends after this time, and the browser opens the next one: by then its right may have ended.
const LASTS: Duration = Duration::from_secs(600);

type Page = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

/// Something that can be followed.
#[derive(Clone, Copy)]
pub(crate) struct Topic {
    /// The name of its events.
    pub(crate) name: &'static str,
    /// The page that is sent.
    pub(crate) page: fn(Arc<Console>, Freshness) -> Page,
    /// A number that changes when the page has changed. It must be cheap.
    pub(crate) stamp: fn(&Console) -> u64,
    /// The page is made anew after this time, if nothing has happened here: other servers may tell of something.
    pub(crate) every: Duration,
    /// Members of the page that do not make it another one.
    pub(crate) ignored: &'static [&'static str],
}

/// All topics.
const TOPICS: &[Topic] = &[
    Topic {
        name: "ensemble",
        page: |console, freshness| {
            Box::pin(async move { ensemble::page(&console, Some(freshness)).await.ok() })
        },
        stamp: |console| {
            let member = console.handle.inspect(|server| (server.mode(), server.member_report()));
            let of = member
                .1
                .map(|report| (report.leader, report.epoch, report.membership.version, report.synced));
            hash(&format!("{:?} {of:?}", member.0))
        },
        every: Duration::from_secs(1),
        ignored: &["as_of_ms"],
    },
    Topic {
        name: "elections",
        page: |console, freshness| {
            Box::pin(async move { elections::page(&console, elections::LAST, Some(freshness)).await.ok() })
        },
        stamp: |console| console.handle.inspect(|server| server.election_progress()),
        every: Duration::from_secs(2),
        ignored: &["as_of_ms"],
    },
    // The charts of the last hour.
    Topic {
        name: "metrics",
        page: |console, _| Box::pin(async move { metrics::page(&console, Parameters::default()).await.ok() }),
        stamp: |_| 0,
        every: Duration::from_secs(10),
        ignored: &[],
    },
];

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The newest state of a topic, as text.
pub(crate) type Newest = Option<Arc<str>>;

/// The topics that somebody follows.
#[derive(Default)]
pub(crate) struct Events {
    followed: Mutex<HashMap<&'static str, watch::Sender<Newest>>>,
    pub(crate) streams: Arc<Streams>,
}

/// The parameters.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    topics: String,
}

/// The stream.
pub(crate) async fn get(
    State(console): State<Arc<Console>>,
    Query(wanted): Query<Wanted>,
    Viewer(viewer): Viewer,
) -> Result<Response, ApiError> {
    let mut topics: Vec<Topic> = Vec::new();
    for name in wanted.topics.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let topic = TOPICS.iter().find(|topic| topic.name == name).ok_or_else(unknown_topic)?;
        if topics.iter().all(|other| other.name != topic.name) {
            topics.push(*topic);
        }
    }
    if topics.is_empty() {
        return Err(unknown_topic());
    }
    let place = console.events.streams.clone().enter(viewer.conn.peer.ip(), Instant::now())?;
    let followed = topics.iter().map(|topic| (topic.name, console.events.follow(&console, *topic))).collect();
    let stream = streams::EventStream::new(Arc::downgrade(&console), followed, place);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Of nginx: events must not wait in its buffer.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(stream.bytes())).into_response())
}

fn unknown_topic() -> ApiError {
    let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    ApiError::bad(format!("topics is a list of these, joined by commas: {}.", names.join(", ")))
}

impl Events {
    /// Listens to a topic, and starts the task that makes it if nobody else listens.
    fn follow(&self, console: &Arc<Console>, topic: Topic) -> watch::Receiver<Newest> {
        let mut followed = self.followed();
        if let Some(sender) = followed.get(topic.name) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(None);
        followed.insert(topic.name, sender);
        tokio::spawn(make(Arc::downgrade(console), topic));
        receiver
    }

    /// Sends a state to all listeners.
    fn publish(&self, topic: Topic, state: Arc<str>) {
        if let Some(sender) = self.followed().get(topic.name) {
            sender.send_replace(Some(state));
        }
    }

    /// Forgets a topic that nobody listens to. Returns true if it is forgotten.
    fn forget_unheard(&self, topic: Topic) -> bool {
        let mut followed = self.followed();
        let is_heard = followed.get(topic.name).is_some_and(|sender| sender.receiver_count() > 0);
        if !is_heard {
            followed.remove(topic.name);
        }
        !is_heard
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<&'static str, watch::Sender<Newest>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a topic until nobody listens.
async fn make(console: Weak<Console>, topic: Topic) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut last_stamp, mut made_at, mut last_state) = (None, None::<Instant>, 0);
    loop {
        ticks.tick().await;
        let Some(console) = console.upgrade() else { return };
        if console.events.forget_unheard(topic) {
            return;
        }
        let stamp = Some((topic.stamp)(&console));
        let is_old = made_at.is_none_or(|made| made.elapsed() >= topic.every);
        let has_happened = stamp != last_stamp;
        if !is_old && !has_happened {
            continue;
        }
        let freshness = if has_happened { Freshness::Live } else { Freshness::Kept };
        let Some(page) = (topic.page)(console.clone(), freshness).await else { continue };
        (last_stamp, made_at) = (stamp, Some(Instant::now()));
        let state = state_of(&page, topic.ignored);
        if std::mem::replace(&mut last_state, state) != state {
            console.events.publish(topic, page.to_string().into());
        }
    }
}

/// A number for the page without the members that are ignored.
fn state_of(page: &Value, ignored: &[&str]) -> u64 {
    let mut page = page.clone();
    if let Some(members) = page.as_object_mut() {
        members.retain(|name, _| !ignored.contains(&name.as_str()));
    }
    for row in page["servers"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        row.retain(|name, _| !matches!(&**name, "uptime_ms" | "clock_off_ms" | "disk"));
    }
    hash(&page.to_string())
}

/// A sign of life.
fn beat(console: &Console) -> String {
    let zxid = console.handle.inspect(|server| server.tree().last_processed());
    json!({ "now_ms": now_ms(), "zxid": zxid }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_differs_in_its_time_alone_is_the_same() {
        let page = |time: u64, zxid: &str, uptime: u64| json!({ "as_of_ms": time, "servers": [{ "zxid": zxid, "uptime_ms": uptime }] });
        let state = |page| state_of(&page, &["as_of_ms"]);
        assert_eq!(state(page(1, "0x1", 5)), state(page(2, "0x1", 6)));
        assert_ne!(state(page(1, "0x1", 5)), state(page(1, "0x2", 5)));
    }
}
