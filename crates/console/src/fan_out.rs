//! Asks the other members of the ensemble what a page shows, and says why one did not answer.
//!
//! A member is asked by the same path with `local=1`, so no question goes round. Nothing of the person at the page goes
//! along: no cookie, no password, no certificate but the server's own. An answer is taken within a second, up to a mebibyte,
//! and only from the server with the number that was meant. Whoever asks the same within two seconds gets the same answers.

mod exchange;
pub(crate) mod words;

use crate::state::Console;
use axum::body::Bytes;
use ostler_proto::{id::ServerId, membership::Member as Configured};
use ostler_server::config::AdminPeer;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::OnceCell,
    task::JoinSet,
    time::{sleep, timeout},
};

/// The time for a member to answer.
const WITHIN: Duration = Duration::from_secs(1);
/// Answers are shown to others for this time.
const KEPT: Duration = Duration::from_secs(2);
/// The same, while something happens and somebody watches it.
const LIVE: Duration = Duration::from_millis(400);
/// Questions whose answers are kept at once, and the most bytes of all answers that are kept.
const QUESTIONS_MAX: usize = 32;
const BYTES_MAX: usize = 16 << 20;

/// Another member of the ensemble.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Its number.
    pub(crate) id: ServerId,
    /// Its admin server.
    pub(crate) admin: AdminPeer,
    /// Its address for clients, if it can be told.
    pub(crate) clients: Option<(String, u16)>,
    /// Whether no other member can be at that address: the configuration names it, or no other member has the same host.
    pub(crate) has_own_clients: bool,
}

/// Why a member gave no answer that could be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) kind: SilenceKind,
    /// The reason in a sentence.
    pub(crate) reason: String,
}

/// How old answers may be that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Two seconds.
    Kept,
    /// Not older than an event may be.
    Live,
}

/// The kind of a silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilenceKind {
    /// It did not answer.
    Silent,
    /// The server there is one of Java, or one without a console.
    NoConsole,
    /// Another server answers there.
    Foreign,
}

/// A member that was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) member: Member,
    /// This server's clock before and after.
    pub(crate) asked_ms: i64,
    pub(crate) answered_ms: i64,
    /// The answer as it came.
    pub(crate) answer: Result<Bytes, Silence>,
}

/// The questions that are under way or were answered just now.
#[derive(Default)]
pub(crate) struct FanOut {
    flights: Mutex<HashMap<String, Arc<Flight>>>,
}

struct Flight {
    began: Instant,
    answers: OnceCell<Arc<Vec<Asked>>>,
    /// Whether somebody has seen to it that the answers are forgotten.
    is_noted: AtomicBool,
}

impl Flight {
    /// The bytes of its answers.
    fn bytes(&self) -> usize {
        let answers = self.answers.get().into_iter().flat_map(|answers| answers.iter());
        answers.filter_map(|asked| asked.answer.as_ref().ok()).map(Bytes::len).sum()
    }
}

impl Member {
    /// `server 2`.
    pub(crate) fn name(&self) -> String {
        format!("server {}", self.id)
    }

    /// `Server 2 (10.0.0.2:8080)`, to begin a sentence.
    pub(crate) fn at(&self) -> String {
        let AdminPeer { host, port, .. } = &self.admin;
        format!("Server {} ({})", self.id, ostler_explain::ensemble::four_letter::host_and_port(host, *port))
    }
}

impl SilenceKind {
    /// The kind if the four-letter words do not show that the server is one of Java.
    pub(crate) fn without_words(self) -> SilenceKind {
        if self == SilenceKind::NoConsole { SilenceKind::Silent } else { self }
    }
}

impl Silence {
    pub(crate) fn silent(reason: String) -> Silence {
        Silence { kind: SilenceKind::Silent, reason }
    }

    /// The state of its row in an answer.
    pub(crate) fn state(&self) -> &'static str {
        match self.kind {
            SilenceKind::Silent => "silent",
            SilenceKind::NoConsole => "java",
            SilenceKind::Foreign => "foreign",
        }
    }
}

impl Asked {
    /// Reads the answer. One that has another form is no answer.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Silence> {
        let bytes = self.answer.as_ref().map_err(Clone::clone)?;
        serde_json::from_slice(bytes).map_err(|_| unreadable(&self.member))
    }

    /// The row of the member in `servers`, with the silence if its answer could not be read.
    pub(crate) fn row(&self, silence: Option<&Silence>) -> Value {
        let (state, reason) = match silence {
            None => ("answered", None),
            Some(silence) => (silence.state(), Some(&silence.reason)),
        };
        json!({ "id": self.member.id.0, "name": self.member.name(), "state": state, "reason": reason })
    }
}

fn unreadable(member: &Member) -> Silence {
    let reason = format!("{} answered something that cannot be read. Is it of another version?", member.at());
    Silence::silent(reason)
}

/// The row of this server in `servers`.
pub(crate) fn own_row(console: &Console) -> Value {
    let id = console.handle.id().map_or(0, |id| id.0);
    json!({ "id": id, "name": own_name(console), "state": "answered", "reason": null })
}

pub(crate) fn own_name(console: &Console) -> String {
    console.handle.id().map_or("this server".into(), |id| format!("server {id}"))
}

/// The other members of the configuration in force; none for a standalone server.
pub(crate) fn others(console: &Console) -> Vec<Member> {
    let handle = &console.handle;
    let Some(report) = handle.inspect(|server| server.member_report()) else { return Vec::new() };
    let own = handle.own_place();
    let servers = &report.membership.servers;
    let is_at = |member: &Configured, host: &str| member.addresses.iter().any(|at| at.host == host);
    let others = servers.iter().filter(|(id, _)| **id != report.me);
    let member = |(id, configured): (&ServerId, &Configured)| {
        let host = configured.addresses.first().map_or_else(String::new, |address| address.host.clone());
        let by_default =
            || AdminPeer { id: *id, https: own.admin_is_https, host: host.clone(), port: own.admin.port() };
        let admin = handle.peers().iter().find(|peer| peer.id == *id).cloned().unwrap_or_else(by_default);
        let clients = client_address(configured, &host, own.client_port);
        let is_alone = servers.values().filter(|other| is_at(other, &host)).count() == 1;
        Member { id: *id, admin, clients, has_own_clients: configured.client.is_some() || is_alone }
    };
    others.map(member).collect()
}

/// A member's address for clients. Without one in the configuration its port is taken to be that of this server.
fn client_address(configured: &Configured, host: &str, own_port: u16) -> Option<(String, u16)> {
    let (host, port) = match &configured.client {
        Some(client) if !client.is_wildcard() => (&*client.host, client.port),
        Some(client) => (host, client.port),
        None => (host, own_port),
    };
    (port != 0 && !host.is_empty()).then(|| (host.to_owned(), port))
}

/// Asks all other members by a path below `/api/v1`, such as `sessions?state=live&local=1`.
pub(crate) async fn ask(console: &Arc<Console>, path: &str, freshness: Freshness) -> Arc<Vec<Asked>> {
    let kept = if freshness == Freshness::Live { LIVE } else { KEPT };
    let flight = console.fan_out.flight(path, Instant::now(), kept);
    let answers = flight.answers.get_or_init(|| ask_all(console.clone(), path.to_owned())).await.clone();
    if !flight.is_noted.swap(true, Ordering::Relaxed) {
        console.fan_out.limit_bytes();
        tokio::spawn(forget_later(Arc::downgrade(console)));
    }
    answers
}

/// Forgets answers when they are too old to be shown, whether anybody asks again or not.
async fn forget_later(console: Weak<Console>) {
    sleep(KEPT).await;
    if let Some(console) = console.upgrade() {
        console.fan_out.forget_old(Instant::now());
    }
}

impl FanOut {
    /// The flight of a question: one that is under way or has just landed, or a new one.
    fn flight(&self, path: &str, now: Instant, kept: Duration) -> Arc<Flight> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |flight: &Flight| now.saturating_duration_since(flight.began);
        // One that is under way is waited for, however fresh its answers shall be.
        let is_over = |flight: &Flight| flight.answers.initialized() && age(flight) >= kept;
        flights.retain(|of, flight| age(flight) < KEPT && !(of == path && is_over(flight)));
        if flights.len() >= QUESTIONS_MAX
            && let Some(first) =
                flights.iter().min_by_key(|(_, flight)| flight.began).map(|(path, _)| path.clone())
        {
            flights.remove(&first);
        }
        let new =
            || Arc::new(Flight { began: now, answers: OnceCell::new(), is_noted: AtomicBool::new(false) });
        flights.entry(path.to_owned()).or_insert_with(new).clone()
    }

    /// Forgets the oldest answers until the rest is small enough.
    fn limit_bytes(&self) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = flights.values().map(|flight| flight.bytes()).sum();
        while bytes > BYTES_MAX {
            let landed = flights.iter().filter(|(_, flight)| flight.answers.initialized());
            let Some(first) = landed.min_by_key(|(_, flight)| flight.began).map(|(path, _)| path.clone())
            else {
                return;
            };
            bytes -= flights.remove(&first).map_or(0, |flight| flight.bytes());
        }
    }

    fn forget_old(&self, now: Instant) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| now.saturating_duration_since(flight.began) < KEPT);
    }
}

async fn ask_all(console: Arc<Console>, path: String) -> Arc<Vec<Asked>> {
    let mut asking = JoinSet::new();
    for member in others(&console) {
        let (console, path) = (console.clone(), path.clone());
        asking.spawn(async move {
            let asked_ms = now_ms();
            let answer = match timeout(WITHIN, exchange::get(&console.handle, &member, &path)).await {
                Ok(answer) => answer.and_then(|bytes| of_member(&member, bytes)),
                Err(_) => Err(Silence::silent(format!("{} did not answer within 1 s.", member.at()))),
            };
            Asked { member, asked_ms, answered_ms: now_ms(), answer }
        });
    }
    let mut all = asking.join_all().await;
    all.sort_by_key(|asked| asked.member.id);
    Arc::new(all)
}

/// The part that each answer to `local=1` has.
#[derive(Deserialize)]
struct FromServers {
    servers: Vec<FromServer>,
}

#[derive(Deserialize)]
struct FromServer {
    id: i64,
}

/// Checks that an answer is that of the server which was meant.
fn of_member(member: &Member, bytes: Bytes) -> Result<Bytes, Silence> {
    let from: FromServers = serde_json::from_slice(&bytes).map_err(|_| unreadable(member))?;
    match &from.servers[..] {
        [only] if only.id == member.id.0 => Ok(bytes),
        [other] => Err(Silence {
            kind: SilenceKind::Foreign,
            reason: format!(
                "{} is server {}: two servers have the same admin address, or admin.peers is wrong here.",
                member.at(),
                other.id
            ),
        }),
        _ => Err(unreadable(member)),
    }
}

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        let admin = AdminPeer { id: ServerId(2), https: false, host: "::1".into(), port: 8080 };
        Member { id: ServerId(2), admin, clients: None, has_own_clients: false }
    }

    #[test]
    fn only_the_server_that_was_meant_is_taken() {
        let check = |text: &'static str| of_member(&member(), Bytes::from_static(text.as_bytes()));
        assert!(check(r#"{"servers": [{"id": 2, "state": "answered"}], "more": 1}"#).is_ok());
        let foreign = check(r#"{"servers": [{"id": 3}]}"#).unwrap_err();
        assert_eq!(foreign.state(), "foreign");
        assert!(foreign.reason.starts_with("Server 2 ([::1]:8080) is server 3: "), "{}", foreign.reason);
        for wrong in
            ["", "[]", "{}", r#"{"servers": []}"#, r#"{"servers": [{"id": 2}, {"id": 2}]}"#, "<html>"]
        {
            assert_eq!(check(wrong).unwrap_err().state(), "silent", "{wrong}");
        }
    }

    #[test]
    fn the_same_question_is_one_flight_for_two_seconds() {
        let (fan_out, start) = (FanOut::default(), Instant::now());
        let first = fan_out.flight("a", start, KEPT);
        assert!(Arc::ptr_eq(&first, &fan_out.flight("a", start + KEPT / 2, LIVE)), "it is under way");
        first.answers.set(Arc::default()).ok();
        assert!(Arc::ptr_eq(&first, &fan_out.flight("a", start + KEPT / 2, KEPT)));
        assert!(!Arc::ptr_eq(&first, &fan_out.flight("b", start, KEPT)));
        let live = fan_out.flight("a", start + LIVE, LIVE);
        assert!(!Arc::ptr_eq(&first, &live));
        assert!(Arc::ptr_eq(&live, &fan_out.flight("a", start + KEPT, KEPT)));
        assert!(!Arc::ptr_eq(&live, &fan_out.flight("a", start + LIVE + KEPT, KEPT)));
        for number in 0..2 * QUESTIONS_MAX {
            fan_out.flight(&number.to_string(), start + LIVE + KEPT, KEPT);
        }
        assert_eq!(fan_out.flights.lock().unwrap().len(), QUESTIONS_MAX);
    }

    #[test]
    fn the_bytes_of_answers_are_limited_and_all_are_forgotten() {
        const PART: usize = exchange::ANSWER_MAX;
        let (fan_out, start) = (FanOut::default(), Instant::now());
        let under_way = fan_out.flight("under way", start, KEPT);
        for number in 0..QUESTIONS_MAX - 1 {
            let flight =
                fan_out.flight(&number.to_string(), start + Duration::from_millis(number as u64), KEPT);
            let answer = Ok(Bytes::from(vec![0; PART]));
            let asked = Asked { member: member(), asked_ms: 0, answered_ms: 0, answer };
            flight.answers.set(Arc::new(vec![asked])).ok().unwrap();
            fan_out.limit_bytes();
        }
        let kept = || fan_out.flights.lock().unwrap().len();
        assert_eq!(kept(), 1 + BYTES_MAX / PART);
        assert!(Arc::ptr_eq(&under_way, &fan_out.flight("under way", start, KEPT)));
        fan_out.forget_old(start + KEPT + KEPT);
        assert_eq!(kept(), 0);
    }
}
