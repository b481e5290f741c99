//! Leadership: the locks, elections and semaphores that are recognised in the tree, who holds them, and who waits.
//!
//! `patterns.rs`, `groups.rs` and `offer.rs` decide, and do no I/O. `gather.rs` looks at the core, `hand_over.rs` acts.

mod gather;
mod groups;
mod hand_over;
mod handovers;
mod offer;
mod patterns;
mod shown;

use crate::{
    error::{ApiError, Code},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json, Router,
    extract::{Query, State, rejection::QueryRejection},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use gather::{ANCESTORS_MAX, Acls, Looks, Owned, SeenGroup, Snapshot};
use handovers::Handovers;
use offer::ALARMS;
use ostler_proto::path;
use patterns::{Form, Kind};
use serde::Deserialize;
use serde_json::{Value, json};
use shown::Readable;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;

/// The groups are shown to all callers for this time after they were gathered.
const KEPT_FOR: Duration = Duration::from_secs(2);
/// The most results that are kept.
const KEPT_MAX: usize = 16;
const LIMIT: usize = 200;
const LIMIT_MAX: usize = 1000;
/// The most znodes of one queue that are shown.
const QUEUE_MAX: usize = 1000;
/// The most ephemerals of the holder's session that are shown.
const OWNED_MAX: usize = 1000;

/// The parts of the console that only these pages need.
#[derive(Default)]
pub(crate) struct RecipesState {
    /// By the path below which the groups are. Locked while somebody gathers, so that others wait for the result.
    kept: tokio::sync::Mutex<HashMap<String, (Instant, Arc<Snapshot>)>>,
    handovers: Mutex<Handovers>,
}

/// The paths that show groups.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/recipes", get(list)).route("/recipes/group", get(group))
}

/// The path that hands over.
pub(crate) fn changes(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/recipes/hand-over", post(hand_over::hand_over))
}

impl RecipesState {
    /// Lets the next caller gather anew.
    async fn forget(&self) {
        self.kept.lock().await.clear();
    }

    fn handovers(&self) -> std::sync::MutexGuard<'_, Handovers> {
        self.handovers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups below a path, gathered within the last seconds.
async fn snapshot(console: &Arc<Console>, under: &str) -> Result<Arc<Snapshot>, ApiError> {
    let mut kept = console.recipes.kept.lock().await;
    let now = Instant::now();
    kept.retain(|_, (since, _)| now.saturating_duration_since(*since) < KEPT_FOR);
    // If all groups are there, those below the path are among them.
    let all = kept.get("/").filter(|(_, all)| !(all.is_cut || all.is_too_large)).or_else(|| kept.get(under));
    if let Some((_, found)) = all {
        return not_too_large(found.clone());
    }
    let all = gather(console, "/").await?;
    kept.insert("/".into(), (Instant::now(), all.clone()));
    if !(all.is_cut || all.is_too_large) || under == "/" {
        return not_too_large(all);
    }
    let some = gather(console, under).await?;
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(under.into(), (Instant::now(), some.clone()));
    not_too_large(some)
}

fn not_too_large(found: Arc<Snapshot>) -> Result<Arc<Snapshot>, ApiError> {
    if found.is_too_large { Err(too_large()) } else { Ok(found) }
}

fn too_large() -> ApiError {
    ApiError::new(
        Code::TooLarge,
        "There are more than 200,000 contenders in all queues together. Ask for a part of the tree (under).",
    )
}

async fn gather(console: &Arc<Console>, under: &str) -> Result<Arc<Snapshot>, ApiError> {
    let (shared, under) = (console.clone(), under.to_owned());
    let found = aside(move || Looks(&shared.handle).groups(&under)).await?;
    let holders =
        found.groups.iter().filter_map(|seen| Some((&*seen.group.path, seen.holder.as_ref()?.znode.czxid)));
    console.recipes.handovers().note(found.wall_ms, holders);
    Ok(Arc::new(found))
}

/// Does something on a thread that may wait.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let failed = |_| ApiError::new(Code::Server, "The server has failed to look at the groups. See its log.");
    spawn_blocking(work).await.map_err(failed)
}

fn no_group(path: &str) -> ApiError {
    ApiError::new(
        Code::NotFound,
        format!(
            "No lock, election or semaphore is recognised at this path, or you may not read it, or it is not shown because more \
             than {ANCESTORS_MAX} znodes stand above its queues."
        ),
    )
    .at(path)
}

/// The choice of groups.
#[derive(Deserialize)]
struct Choice {
    under: Option<String>,
    kind: Option<String>,
    alarm: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// [`Choice`], checked.
struct Chosen {
    under: String,
    kind: Option<Kind>,
    /// `any`, or the kind of an alarm.
    alarm: Option<String>,
    after: Option<String>,
    limit: usize,
}

impl Choice {
    fn checked(self) -> Result<Chosen, ApiError> {
        let under = self.under.filter(|under| !under.is_empty()).unwrap_or_else(|| "/".into());
        if !path::is_valid(&under) {
            return Err(ApiError::bad("The parameter under is no path of a znode."));
        }
        let named = |name: &String| Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = self.kind.filter(|kind| !kind.is_empty());
        let kind =
            kind.map(|name| named(&name).ok_or_else(|| ApiError::bad("There is no such kind of group.")));
        let alarm = self.alarm.filter(|alarm| !alarm.is_empty());
        if alarm.as_ref().is_some_and(|alarm| alarm != "any" && !ALARMS.contains(&&**alarm)) {
            return Err(ApiError::bad("There is no such kind of alarm."));
        }
        let after = self.cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| read_cursor(&cursor));
        let after = after.map(|after| after.ok_or_else(|| ApiError::bad("The cursor is none of this list.")));
        let limit = self.limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(ApiError::bad("The limit is a number from 1 to 1000."));
        }
        Ok(Chosen { under, kind: kind.transpose()?, alarm, after: after.transpose()?, limit })
    }
}

fn read_cursor(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}

impl Chosen {
    fn has(&self, seen: &SeenGroup) -> bool {
        let has_alarm = |wanted: &String| match &**wanted {
            "any" => !seen.alarms.is_empty(),
            kind => seen.alarms.iter().any(|alarm| alarm.kind == kind),
        };
        path::is_within(&seen.group.path, &self.under)
            && self.kind.is_none_or(|kind| kind == seen.group.kind)
            && self.alarm.as_ref().is_none_or(has_alarm)
    }
}

/// The recognised groups.
async fn list(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    choice: Result<Query<Choice>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(choice) = choice.map_err(|error| ApiError::bad(error.body_text()))?;
    let chosen = choice.checked()?;
    let found = snapshot(&console, &chosen.under).await?;
    let (shared, ids) = (console.clone(), caller.ids);
    let shown = aside(move || {
        let some: Vec<&SeenGroup> = found.groups.iter().filter(|seen| chosen.has(seen)).collect();
        let holders = some.iter().filter_map(|seen| seen.holder.as_ref()).map(|holder| &holder.znode.acl);
        let acls = some.iter().flat_map(|seen| seen.acls.known()).chain(holders);
        let readable = Readable::of(&Looks(&shared.handle), &ids, acls);
        page(&found, some, &chosen, &readable, &shared.recipes.handovers())
    });
    Ok(Json(shown.await?))
}

fn page(
    found: &Snapshot,
    some: Vec<&SeenGroup>,
    chosen: &Chosen,
    readable: &Readable,
    handovers: &Handovers,
) -> Value {
    let all = some.len();
    let too_deep = some.iter().filter(|seen| matches!(seen.acls, Acls::TooMany)).count();
    let visible: Vec<&SeenGroup> = some.into_iter().filter(|seen| readable.shows(seen)).collect();
    let left_out = all - too_deep - visible.len();
    let is_next = |seen: &&&SeenGroup| chosen.after.as_ref().is_none_or(|after| *seen.group.path > **after);
    let mut rest = visible.iter().filter(is_next).peekable();
    let items: Vec<&&SeenGroup> = rest.by_ref().take(chosen.limit).collect();
    let last = items.last().filter(|_| rest.peek().is_some());
    let next = last.map(|seen| URL_SAFE_NO_PAD.encode(&*seen.group.path));
    let shown = |seen: &&&SeenGroup| shown::group(seen, readable, handovers.count(&seen.group.path));
    json!({
        "items": items.iter().map(shown).collect::<Vec<_>>(),
        "next": next,
        "truncated": found.is_cut,
        "as_of_zxid": found.zxid.to_string(),
        "total": visible.len(),
        // Somebody whose znodes are not recognised wants to know what is.
        "rules": if all == 0 { Form::rules() } else { Vec::new() },
        "left_out": left_out,
        "too_deep": too_deep,
        "handovers_since_ms": handovers.since_ms(found.wall_ms),
    })
}

#[derive(Deserialize)]
struct OfGroup {
    path: String,
}

/// One group with its queue.
async fn group(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    wanted: Result<Query<OfGroup>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(OfGroup { path }) = wanted.map_err(|error| ApiError::bad(error.body_text()))?;
    if !path::is_valid(&path) {
        return Err(ApiError::bad("This is no path of a znode.").at(&path));
    }
    let found = snapshot(&console, &path).await?;
    let (shared, ids) = (console.clone(), caller.ids);
    aside(move || {
        let seen = found.groups.iter().find(|seen| *seen.group.path == *path);
        let seen = seen.ok_or_else(|| no_group(&path))?;
        let looks = Looks(&shared.handle);
        let queue = looks.contenders(&seen.group.queue[..seen.group.queue.len().min(QUEUE_MAX)]);
        let owner = seen.holder.as_ref().and_then(|holder| holder.znode.owner);
        let owned = owner.map_or_else(Owned::default, |session| looks.owned(session, OWNED_MAX));
        let holder = seen.holder.as_ref().map(|holder| &holder.znode.acl);
        let acls = seen.acls.known().iter().chain(queue.iter().map(|one| &one.znode.acl));
        let readable = Readable::of(&looks, &ids, acls.chain(holder));
        if !readable.shows(seen) {
            return Err(no_group(&path));
        }
        let mut shown = shown::group(seen, &readable, shared.recipes.handovers().count(&path));
        let queued = queue.iter().enumerate();
        let queued = queued.map(|(at, one)| shown::queued(one, &readable, (at + 1, at < seen.group.holding)));
        shown.insert("queue".into(), queued.collect());
        shown.insert("queue_left_out".into(), json!(seen.group.queue.len().saturating_sub(QUEUE_MAX)));
        let texts: Vec<&str> = owned.paths.iter().map(|path| &**path).collect();
        let listed = shared.handle.seen_paths(&ids, &texts, crate::list::let_others);
        let owns = listed.into_iter().zip(&owned.paths).filter(|(seen, path)| seen == *path);
        let owns = owns.map(|(path, _)| path).collect();
        shown.insert("hand_over".into(), offered(seen, owns, owned.count));
        Ok(Json(Value::Object(shown)))
    })
    .await?
}

/// The way to hand over, and the paths that the holder's session owns as far as the caller may list them, of `count`.
fn offered(seen: &SeenGroup, owns: Vec<String>, count: usize) -> Value {
    let Some(holder) = &seen.holder else {
        let sentence = "Nobody holds, so there is nothing to hand over.";
        return json!({ "way": "none", "sentence": sentence, "owns": [], "owns_left_out": 0 });
    };
    let offer = holder.offer(&seen.group);
    let left_out = count.saturating_sub(owns.len());
    json!({ "way": offer.way.name(), "sentence": offer.sentence, "owns": owns, "owns_left_out": left_out })
}
