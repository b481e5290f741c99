//! The search over all znodes: by path, value, owner, size and time.
//!
//! One thread goes through a view of the tree that later changes do not touch, in idle moments. Another takes the view, and
//! checks for each find whether the caller may read it, and could find it from the top of the search on. After some time
//! the answer is what there is, and the search goes on in a new view.

use super::{
    BETWEEN_LOOKS, aside, cursor,
    glob::Glob,
    idle::{Cancelled, Pace, in_idle_moments, no_idle_moment, waiter},
    look,
    params::Params,
    refusal::refused,
    runs::locked,
    shown,
};
use crate::{error::ApiError, rights::Caller, state::Console};
use axum::{Json, extract::State};
use ostler_proto::{
    id::{SessionId, Zxid},
    path,
    stat::{ExtendedTypes, NodeKind},
};
use ostler_server_core::report::znodes::ZnodeReader;
use ostler_tree::{
    Znode,
    scan::{self, Scan, ScanShard},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::OwnedMutexGuard;

/// The word for it in sentences, and in the name of its thread.
const NAME: &str = "search";
/// A search answers after this time at the latest, and is asked to go on. Meanwhile changes copy what it looks at.
const SLICE: Duration = Duration::from_secs(2);
/// A search that gets the processor too seldom has this time in addition.
const PATIENCE: Duration = Duration::from_secs(1);
/// Parts of the view whose finds wait to be checked.
const AHEAD: usize = 64;
/// The thread asks after this number of znodes whether a rest is due.
const WITHOUT_REST: usize = 256;
/// Larger values are not looked into.
const VALUE_MAX: usize = 4 << 10;
/// Finds that are checked in one look.
const CHECKED_AT_ONCE: usize = 32;
const PATTERN_MAX: usize = 256;

/// The criteria of a search.
struct Wanted {
    under: String,
    name: Option<Glob>,
    value: Option<Vec<u8>>,
    owner: Option<SessionId>,
    larger_than: Option<usize>,
    changed_since_ms: Option<i64>,
}

/// Where a search goes on, and how far it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Cursor {
    place: u16,
    /// Within the place; empty at its beginning.
    path: String,
    looked_at: usize,
}

/// A find that is not checked yet.
struct Find {
    place: u16,
    path: String,
    mzxid: Zxid,
    kind: NodeKind,
    data_length: usize,
    mtime_ms: i64,
}

/// The answer.
struct Findings {
    rows: Vec<Value>,
    next: Option<Cursor>,
    looked_at: usize,
    of: usize,
    zxid: Zxid,
}

/// `GET /tree/search`.
pub(super) async fn search(
    State(console): State<Arc<Console>>,
    caller: Caller,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    let wanted = wanted(&params)?;
    let from: Cursor = params.text("cursor").map(cursor::read).transpose()?.unwrap_or_default();
    let limit = params.limit()?;
    let turn = console.tree.search.take(NAME).await?;
    let (_waiter, cancelled) = waiter();
    let found = aside(move || {
        let reader = ZnodeReader::new(&caller.ids);
        Search { console: &console, reader, wanted: Arc::new(wanted) }.run((turn, cancelled), from, limit)
    });
    let found = found.await?;
    Ok(Json(json!({
        "items": found.rows,
        "next": found.next.as_ref().and_then(cursor::write),
        "truncated": false,
        "as_of_zxid": found.zxid.to_string(),
        "looked_at": found.looked_at,
        "of": found.of,
        "done": found.next.is_none(),
    })))
}

fn wanted(params: &Params) -> Result<Wanted, ApiError> {
    let under = match params.text("under") {
        Some(_) => params.path("under")?,
        None => "/".to_owned(),
    };
    let short = |name: &str| match params.text(name) {
        Some(text) if text.len() > PATTERN_MAX => {
            Err(ApiError::bad(format!("The parameter {name} has at most {PATTERN_MAX} bytes.")))
        }
        text => Ok(text),
    };
    let wanted = Wanted {
        under,
        name: short("name")?.map(Glob::new),
        value: short("value")?.map(|text| text.as_bytes().to_vec()),
        owner: params.text("owner").map(session).transpose()?,
        larger_than: params.number("larger_than")?,
        changed_since_ms: params.number("changed_since_ms")?,
    };
    let is_empty = wanted.name.is_none()
        && wanted.value.is_none()
        && wanted.owner.is_none()
        && wanted.larger_than.is_none()
        && wanted.changed_since_ms.is_none();
    if is_empty {
        return Err(ApiError::bad(
            "Say what to search for: name, value, owner, larger_than or changed_since_ms.",
        ));
    }
    Ok(wanted)
}

/// Reads the id of a session, such as `0x10000000a`.
fn session(text: &str) -> Result<SessionId, ApiError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map(|id| SessionId(id as i64))
        .map_err(|_| ApiError::bad("The parameter owner is the id of a session, such as 0x10000000a."))
}

impl Wanted {
    fn fits(&self, node: &Znode, kind: NodeKind) -> bool {
        path::is_within(&node.path, &self.under)
            && self.larger_than.is_none_or(|bytes| node.data_len() > bytes)
            && self.changed_since_ms.is_none_or(|since| { node.stat.mtime } >= since)
            && self.owner.is_none_or(|owner| kind == NodeKind::Ephemeral(owner))
            && self.name.as_ref().is_none_or(|glob| glob.fits(&node.path))
            && self.value.as_ref().is_none_or(|text| has_text(node.data.as_deref().unwrap_or_default(), text))
    }
}

fn has_text(data: &[u8], text: &[u8]) -> bool {
    data.len() <= VALUE_MAX && data.windows(text.len()).any(|part| part == text)
}

struct Search<'a> {
    console: &'a Console,
    reader: ZnodeReader,
    wanted: Arc<Wanted>,
}

/// The finds in a part of the view.
struct Part {
    finds: Vec<Find>,
    /// The place behind the part.
    upto: Cursor,
    is_last: bool,
}

/// The view, and the thread that goes through it.
struct Walk {
    scan: Arc<Mutex<Scan>>,
    types: ExtendedTypes,
    wanted: Arc<Wanted>,
    cancelled: Cancelled,
    from: Cursor,
}

impl Walk {
    /// Hands over part by part, until the time is over or nobody takes them.
    fn run(self, parts: &SyncSender<Part>) {
        let (began, mut from) = (Instant::now(), self.from.clone());
        let (first, shards) = {
            let scan = locked(&self.scan);
            (scan.shard_of(from.place), scan.shards())
        };
        let mut pace = Pace::new();
        for at in first..shards {
            if began.elapsed() >= SLICE || self.cancelled.is_set() {
                return;
            }
            let Some(shard) = locked(&self.scan).take(at) else { return };
            let part = self.part((&shard, at + 1 == shards), &from, &mut pace);
            from = part.upto.clone();
            if parts.send(part).is_err() {
                return;
            }
        }
    }

    fn part(&self, (shard, is_last): (&ScanShard, bool), from: &Cursor, pace: &mut Pace) -> Part {
        let mut finds: Vec<Find> = Vec::new();
        let (mut last_place, mut looked_at) = (from.place, from.looked_at);
        for (number, node) in shard.znodes().enumerate() {
            if number % WITHOUT_REST == 0 {
                pace.rest_if_due();
            }
            let place = scan::place(&node.path);
            last_place = last_place.max(place);
            let is_behind = (place, &*node.path) > (from.place, &*from.path);
            looked_at += usize::from(is_behind);
            let kind = node.stat.ephemeral_owner.kind(self.types);
            if is_behind && self.wanted.fits(node, kind) {
                finds.push(Find::of(node, place, kind));
            }
        }
        finds.sort_unstable_by(|one, other| (one.place, &one.path).cmp(&(other.place, &other.path)));
        // The next shard begins at a later place than the last znode of this one.
        Part { finds, upto: Cursor { place: last_place, path: LAST.to_owned(), looked_at }, is_last }
    }
}

impl Search<'_> {
    fn run(
        &self,
        (turn, cancelled): (OwnedMutexGuard<()>, Cancelled),
        from: Cursor,
        limit: usize,
    ) -> Result<Findings, ApiError> {
        let under = &self.wanted.under;
        let seen = look(self.console, |server| {
            let (_, zxid) = server.count_below(&self.reader, under)?;
            Ok((server.tree().scan(), server.tree().types(), zxid))
        });
        let (scan, types, zxid) = seen.map_err(|refusal| refused(under, refusal))?;
        let of = scan.znodes();
        let scan = Arc::new(Mutex::new(scan));
        let (sender, parts) = sync_channel(AHEAD);
        let (wanted, begin) = (self.wanted.clone(), from.clone());
        let walk = Walk { scan: scan.clone(), types, wanted, cancelled, from };
        in_idle_moments(NAME, move || {
            walk.run(&sender);
            drop(turn);
        })?;
        let found = self.check(&parts, begin, limit);
        // The thread may wait for the processor for long, and must not keep the view meanwhile.
        locked(&scan).clear();
        let (rows, next) = found?;
        let looked_at = next.as_ref().map_or(of, |next| next.looked_at.min(of));
        Ok(Findings { rows, next, looked_at, of, zxid })
    }

    /// Takes parts until there are enough rows, or no more parts.
    fn check(
        &self,
        parts: &Receiver<Part>,
        mut from: Cursor,
        limit: usize,
    ) -> Result<(Vec<Value>, Option<Cursor>), ApiError> {
        let (until, mut rows) = (Instant::now() + SLICE + PATIENCE, Vec::new());
        let mut has_begun = false;
        loop {
            let part = match parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => part,
                Err(_) if !has_begun => return Err(no_idle_moment(NAME)),
                Err(_) => return Ok((rows, Some(from))),
            };
            has_begun = true;
            for some in part.finds.chunks(CHECKED_AT_ONCE) {
                for (find, row) in some.iter().zip(self.checked(some)?) {
                    rows.extend(row);
                    if rows.len() == limit {
                        let (place, path) = (find.place, find.path.clone());
                        return Ok((rows, Some(Cursor { place, path, looked_at: part.upto.looked_at })));
                    }
                }
            }
            if part.is_last {
                return Ok((rows, None));
            }
            from = part.upto;
        }
    }

    /// The rows of those finds that the caller may read now, and that are as they were found.
    fn checked(&self, finds: &[Find]) -> Result<Vec<Option<Value>>, ApiError> {
        let paths: Vec<&str> = finds.iter().map(|find| &*find.path).collect();
        let under = &self.wanted.under;
        let seen = look(self.console, |server| server.readable_below(&self.reader, under, &paths));
        let seen = seen.map_err(|refusal| refused(under, refusal))?;
        thread::sleep(BETWEEN_LOOKS);
        let rows = finds.iter().zip(seen).map(|(find, visited)| {
            let visited = visited?;
            // A value that somebody has set since was not looked into, and the one before is not the caller's to know.
            (visited.mzxid == find.mzxid || self.wanted.value.is_none()).then(|| self.row(find))
        });
        Ok(rows.collect())
    }

    fn row(&self, find: &Find) -> Value {
        json!({
            "path": find.path,
            "kind": shown::kind(&find.path, find.kind),
            "data_length": find.data_length,
            "mtime_ms": find.mtime_ms,
            "match": if self.wanted.value.is_some() { "value" } else { "name" },
        })
    }
}

/// Behind all paths.
const LAST: &str = "0";

impl Find {
    fn of(node: &Znode, place: u16, kind: NodeKind) -> Find {
        Find {
            place,
            path: (*node.path).to_owned(),
            mzxid: node.stat.mzxid,
            kind,
            data_length: node.data_len(),
            mtime_ms: node.stat.mtime,
        }
    }
}
