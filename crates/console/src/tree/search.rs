//! The search over all znodes: by path, value, owner, size and time.
//!
//! It goes through a view of the tree that later changes do not touch, so the core is locked only to make the view, and to
//! check for each find whether the caller may read it, and could find it from the top of the search on. After some time
//! it answers what it has, and goes on in a new view.

use super::{
    BETWEEN_LOOKS, cursor, glob::Glob, idle::Cancelled, look, params::Params, refusal::refused, shown,
};
use crate::{error::ApiError, rights::Caller, state::Console};
use axum::{Json, extract::State};
use ostler_proto::{id::SessionId, path, stat::NodeKind};
use ostler_server_core::report::znodes::ZnodeReader;
use ostler_tree::{Znode, scan};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// A search answers after this time at the latest, and is asked to go on. Meanwhile changes copy what it looks at.
const SLICE: Duration = Duration::from_secs(2);
/// The time after which a search that gets no processor is given up.
const WITHIN: Duration = Duration::from_secs(10);
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
    mzxid: ostler_proto::id::Zxid,
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
    zxid: ostler_proto::id::Zxid,
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
    let working = console.clone();
    let found = console.tree.search.work(("search", WITHIN), move |cancelled| {
        let reader = ZnodeReader::new(&caller.ids);
        Search { console: &working, reader, wanted, cancelled }.run(from, limit)
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
    wanted: Wanted,
    cancelled: Cancelled,
}

impl Search<'_> {
    fn run(&self, from: Cursor, limit: usize) -> Result<Findings, ApiError> {
        let under = &self.wanted.under;
        let seen = look(self.console, |server| {
            let (_, zxid) = server.count_below(&self.reader, under)?;
            Ok((server.tree().scan(), server.tree().types(), zxid))
        });
        let (mut scan, types, zxid) = seen.map_err(|refusal| refused(under, refusal))?;
        let (began, of) = (Instant::now(), scan.znodes());
        let (mut rows, mut looked_at, mut from) = (Vec::new(), from.looked_at, from);
        let findings = |rows, next: Option<Cursor>, looked_at: usize| {
            let looked_at = if next.is_none() { of } else { looked_at.min(of) };
            Ok(Findings { rows, next, looked_at, of, zxid })
        };
        for at in scan.shard_of(from.place)..scan.shards() {
            if began.elapsed() >= SLICE || self.cancelled.is_set() {
                return findings(rows, Some(Cursor { looked_at, ..from }), looked_at);
            }
            let Some(shard) = scan.take(at) else { continue };
            let mut finds: Vec<Find> = Vec::new();
            let mut last_place = from.place;
            for node in shard.znodes() {
                let place = scan::place(&node.path);
                last_place = last_place.max(place);
                let is_behind = (place, &*node.path) > (from.place, &*from.path);
                looked_at += usize::from(is_behind);
                let kind = node.stat.ephemeral_owner.kind(types);
                if is_behind && self.wanted.fits(node, kind) {
                    finds.push(Find::of(node, place, kind));
                }
            }
            drop(shard);
            finds.sort_unstable_by(|one, other| (one.place, &one.path).cmp(&(other.place, &other.path)));
            for some in finds.chunks(CHECKED_AT_ONCE) {
                for (find, row) in some.iter().zip(self.checked(some)?) {
                    rows.extend(row);
                    if rows.len() == limit {
                        let next = Cursor { place: find.place, path: find.path.clone(), looked_at };
                        return findings(rows, Some(next), looked_at);
                    }
                }
            }
            // The next shard begins at a later place than the last znode of this one.
            from = Cursor { place: last_place, path: LAST.to_owned(), looked_at };
        }
        findings(rows, None, looked_at)
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
