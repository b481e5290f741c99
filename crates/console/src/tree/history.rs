//! The changes of one znode that are still in the logs on disk, newest first.

mod past_acl;

use self::past_acl::{Past, PastAcl, PastKind, Present, SeenAcls};
use super::{
    aside, cursor,
    idle::{Cancelled, Pace},
    look,
    params::Params,
    refusal::refused,
};
use crate::{
    error::{ApiError, Code},
    rights::{self, Caller},
    state::Console,
};
use axum::{Json, extract::State, http::HeaderMap};
use ostler_inspect::{
    InspectError,
    history::{HistoryItem, history},
    view::{DataForm, DataView, OpView, TxnView},
};
use ostler_proto::{
    acl::Id,
    id::{SessionId, Zxid},
    stat::NodeKind,
};
use ostler_server_core::report::znodes::ZnodeReader;
use ostler_storage::names::{LogFile, log_files};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// No further file is begun after this time: the answer has a cursor.
const SLICE: Duration = Duration::from_secs(3);
/// No further file is begun after this time only to learn the ACL of a change that was found.
const LOOK_BACK: Duration = Duration::from_secs(20);
/// A single file may take longer.
const WITHIN: Duration = Duration::from_secs(60);
/// The most bytes of values, as base64, in an answer. Later ones are left out, but never the first.
const VALUES_MAX: usize = 8 << 20;

/// Where a history goes on: before this transaction.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Cursor {
    before: u64,
}

/// One change.
struct Row {
    zxid: Zxid,
    time_ms: i64,
    session: SessionId,
    kind: &'static str,
    version: Option<i32>,
    data: Option<String>,
    length: Option<usize>,
    /// The znode after it.
    past: Past,
}

/// The changes that were found so far, newest first.
struct Page {
    rows: Vec<Row>,
    next: Option<Cursor>,
}

/// The rows of a file.
struct FileRows {
    /// Newest first.
    rows: Vec<Row>,
    /// Whether these are all of the file.
    is_whole: bool,
    /// The znode at the end of the file.
    end: Past,
    /// The last transaction of the file.
    last: Zxid,
}

/// `GET /tree/history`.
pub(super) async fn of_znode(
    State(console): State<Arc<Console>>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    let path = params.path("path")?;
    let limit = params.limit()?;
    let from: Option<Cursor> = params.text("cursor").map(cursor::read).transpose()?;
    let is_viewer = rights::is_viewer(&caller, &headers, &console);
    let reader = ZnodeReader::new(&caller.ids);
    let (seen, present, applied) = look(&console, |server| {
        let present = server.znode(&reader, &path).ok();
        (server.may_read_at_or_above(&reader, &path), present, server.tree().last_processed())
    });
    let exists = seen.map_err(|refusal| refused(&path, refusal))?;
    let present = present.as_ref().map(Present::of);
    let now = present.clone();
    // Nothing is known of the ACLs of later changes.
    let upto = applied.0.saturating_add(1);
    let before = from.map_or(upto, |cursor| cursor.before.min(upto));
    let working = console.clone();
    let reading = console.tree.history.work(("history", WITHIN), move |cancelled| {
        let files = files(&working)?;
        let page =
            Reading { console: &working, path: &path, present, limit, cancelled }.read(&files, before)?;
        Ok((page, files.first().map(|file| file.first)))
    });
    let (Page { rows, next }, back_to) = reading.await?;
    let rows = aside(move || Ok(shown((&console, &caller.ids, now.as_ref()), rows, is_viewer))).await?;
    Ok(Json(json!({
        "items": rows,
        "next": next.as_ref().and_then(cursor::write),
        "truncated": false,
        "exists": exists,
        "back_to_zxid": back_to.map(|zxid| zxid.to_string()),
        "sentence": sentence(back_to),
    })))
}

fn sentence(back_to: Option<Zxid>) -> String {
    match back_to {
        None => "There is no log on this server's disk.".to_owned(),
        Some(Zxid(1)) => "The logs on this server's disk go back to the beginning.".to_owned(),
        Some(zxid) => format!(
            "The logs on this server's disk go back to {zxid}. Older ones are purged, or the server got its tree from \
             another one."
        ),
    }
}

fn files(console: &Console) -> Result<Vec<LogFile>, ApiError> {
    let (disk, folder) = console.handle.logs();
    log_files(&*disk, folder).map_err(|error| failed(&error))
}

fn failed(error: &impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::Server, format!("The logs cannot be read: {error}."))
}

struct Reading<'a> {
    console: &'a Console,
    path: &'a str,
    present: Option<Present>,
    limit: usize,
    cancelled: Cancelled,
}

impl Reading<'_> {
    /// Reads files, newest first, until the page is full or the time is over.
    fn read(&self, files: &[LogFile], before: u64) -> Result<Page, ApiError> {
        let (began, mut page) = (Instant::now(), Page { rows: Vec::new(), next: None });
        let count = files.partition_point(|file| file.first.0 < before);
        // The files from this one on are read.
        let mut read_from: Option<usize> = None;
        for (at, file) in files[..count].iter().enumerate().rev() {
            let is_full = page.rows.len() >= self.limit || size(&page.rows) >= VALUES_MAX / 2;
            if let Some(from) = read_from
                && (is_full || began.elapsed() >= SLICE || self.cancelled.is_set())
            {
                page.next = Some(Cursor { before: files[from].first.0 });
                break;
            }
            let Some(found) = self.rows_of(file, (before, self.limit - page.rows.len()))? else { break };
            self.resolve(&mut page.rows, &found, read_from.map(|next| &files[next]))?;
            page.rows.extend(found.rows);
            read_from = Some(at);
            if !found.is_whole {
                let oldest = page.rows.last().map_or(before, |row: &Row| row.zxid.0);
                page.next = Some(Cursor { before: oldest });
                break;
            }
        }
        self.look_back(&mut page.rows, &files[..read_from.map_or(0, |from| from + 1)], began)?;
        Ok(page)
    }

    /// Looks into files that are older than the page for the ACLs of its changes. The last of the files is read already.
    fn look_back(&self, rows: &mut [Row], files: &[LogFile], began: Instant) -> Result<(), ApiError> {
        if let Some(present) = &self.present {
            rows.iter_mut().for_each(|row| row.past.resolve_by(present, row.zxid));
        }
        for pair in files.windows(2).rev() {
            let is_known = rows.iter().all(|row| !row.past.is_open() || row.data.is_none());
            if is_known || began.elapsed() >= LOOK_BACK || self.cancelled.is_set() {
                break;
            }
            let Some(found) = self.rows_of(&pair[0], (0, 1))? else { break };
            self.resolve(rows, &found, Some(&pair[1]))?;
        }
        Ok(())
    }

    /// Fills in what the end of a file tells of changes in the files after it, the first of which is `next`.
    fn resolve(&self, rows: &mut [Row], older: &FileRows, next: Option<&LogFile>) -> Result<(), ApiError> {
        let Some(next) = next.filter(|_| rows.iter().any(|row| row.past.is_open())) else {
            return Ok(());
        };
        let end = match past_acl::is_next(self.console, older.last, next)? {
            true => older.end.clone(),
            false => Past::lost(),
        };
        rows.iter_mut().for_each(|row| row.past.resolve(&end));
        Ok(())
    }

    /// The newest changes in a file; `None` if it was purged meanwhile, and all older ones with it.
    fn rows_of(&self, file: &LogFile, wanted: (u64, usize)) -> Result<Option<FileRows>, ApiError> {
        match self.newest_of(file, wanted) {
            Ok(found) => Ok(Some(found)),
            Err(_) if !files(self.console)?.contains(file) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The newest changes in a file before a transaction: at most `max`, but whole transactions.
    fn newest_of(&self, file: &LogFile, (before, max): (u64, usize)) -> Result<FileRows, InspectError> {
        let (disk, _) = self.console.handle.logs();
        let mut newest = Newest { max: max.max(1), ..Newest::default() };
        let mut past = Past::default();
        let mut pace = Pace::new();
        let mut take = |item| {
            pace.rest_if_due();
            if self.cancelled.is_set() {
                return Err(InspectError::from(std::io::Error::other("nobody waits for it any more")));
            }
            let HistoryItem::Touched(view) = item else {
                past = Past::lost();
                return Ok(());
            };
            let zxid = view.zxid;
            let rows = rows(*view, &mut past);
            if zxid.0 < before && !rows.is_empty() {
                newest.push(rows);
            }
            Ok(())
        };
        // No change is before 0: then only the znode at the end of the file is wanted.
        let form = if before == 0 { DataForm::Size } else { DataForm::Base64 };
        let totals = history(&*disk, std::slice::from_ref(file), (self.path, form), &mut take)?;
        Ok(FileRows {
            is_whole: !newest.has_dropped,
            rows: newest.txns.into_iter().rev().flat_map(|rows| rows.into_iter().rev()).collect(),
            end: past,
            last: totals.range.map_or(Zxid::ZERO, |(_, last)| last),
        })
    }
}

/// The newest transactions of those that come, oldest first.
#[derive(Default)]
struct Newest {
    txns: VecDeque<Vec<Row>>,
    max: usize,
    count: usize,
    bytes: usize,
    has_dropped: bool,
}

impl Newest {
    fn push(&mut self, rows: Vec<Row>) {
        self.count += rows.len();
        self.bytes += size(&rows);
        self.txns.push_back(rows);
        while (self.count > self.max || self.bytes > VALUES_MAX) && self.txns.len() > 1 {
            let Some(oldest) = self.txns.pop_front() else { return };
            self.count -= oldest.len();
            self.bytes -= size(&oldest);
            self.has_dropped = true;
        }
    }
}

/// The bytes of values.
fn size(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.data.as_ref().map_or(0, String::len)).sum()
}

/// The changes that a transaction has made to the znode, in order. `past` follows the znode.
fn rows(view: TxnView, past: &mut Past) -> Vec<Row> {
    let TxnView { zxid, time_ms, session, mut op, .. } = view;
    let parts = op.parts.take().unwrap_or_else(|| vec![op]);
    let row = |mut part: OpView| {
        let kind = match part.op {
            "create" | "create2" | "createContainer" | "createTTL" => "create",
            "delete" | "deleteContainer" | "closeSession" => "delete",
            "setData" | "reconfig" => "set",
            "setACL" => "set_acl",
            _ => return None,
        };
        past.follow(kind, &mut part, session);
        let data = part.data.map(|data| match data {
            DataView::Base64(text) | DataView::Text(text) => text,
        });
        let version = if kind == "create" { Some(0) } else { part.version };
        let length = part.data_bytes.map(Option::unwrap_or_default);
        Some(Row { zxid, time_ms, session, kind, version, data, length, past: past.clone() })
    };
    parts.into_iter().filter_map(row).collect()
}

/// The rows as JSON. Values that the ACL of their time hides from the caller are left out, and those whose ACL the logs do
/// not tell. The ids of sessions are for those who may see the state of the server.
fn shown(
    (console, ids, present): (&Console, &[Id], Option<&Present>),
    rows: Vec<Row>,
    is_viewer: bool,
) -> Vec<Value> {
    let mut acls = SeenAcls { console, reader: ZnodeReader::new(ids), present, last: None };
    let row = |row: Row| {
        // A delete has nothing to hide.
        let is_delete = row.kind == "delete";
        let acl = acls.of(if is_delete { &PastAcl::Lost } else { &row.past.acl });
        let may_read = is_delete || acl.may_read;
        let znode = match row.past.kind {
            PastKind::Was(kind) if acl.entries.is_some() => Some(kind_shown(kind)),
            _ => None,
        };
        json!({
            "zxid": row.zxid.to_string(),
            "time_ms": row.time_ms,
            "session": is_viewer.then(|| row.session.to_string()),
            "kind": row.kind,
            "version": row.version,
            "data": row.data.filter(|_| may_read),
            "length": row.length.filter(|_| may_read),
            "hidden": !may_read,
            "acl": acl.entries.as_deref().map(super::shown::acl),
            "acl_is_masked": acl.is_masked,
            "znode": znode,
        })
    };
    rows.into_iter().map(row).collect()
}

fn kind_shown(kind: NodeKind) -> Value {
    let ttl_ms = match kind {
        NodeKind::Ttl(ttl_ms) => Some(ttl_ms),
        _ => None,
    };
    json!({ "kind": super::shown::kind("", kind), "ttl_ms": ttl_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_inspect::view::AclView;

    fn txn(zxid: u64, ops: Vec<OpView>) -> TxnView {
        let op = OpView { op: "multi", parts: Some(ops), ..OpView::default() };
        TxnView {
            zxid: Zxid(zxid),
            time_ms: 0,
            time: String::new(),
            session: SessionId(1),
            cxid: 1,
            op,
            digest: None,
        }
    }

    fn acl(perms: &str) -> Option<Vec<AclView>> {
        Some(vec![AclView { scheme: "world".into(), id: "anyone".into(), perms: perms.into() }])
    }

    #[test]
    fn the_acl_of_a_value_is_the_one_of_its_time() {
        let mut seen = Past::default();
        let create = OpView { op: "create2", acl: acl("r"), ..OpView::default() };
        let set = || OpView { op: "setData", version: Some(1), ..OpView::default() };
        let set_acl = OpView { op: "setACL", acl: acl("w"), ..OpView::default() };
        let delete = OpView { op: "delete", ..OpView::default() };
        let check = OpView { op: "check", ..OpView::default() };
        let first = &rows(txn(1, vec![set(), check]), &mut seen)[0];
        assert_eq!(first.past.acl, PastAcl::Older, "an older file may tell it");
        let all = rows(txn(2, vec![create, set(), set_acl, set(), delete, set()]), &mut seen);
        let was = |perms: &str| PastAcl::Was(acl(perms).unwrap().into());
        let kinds: Vec<_> = all.iter().map(|row| (row.kind, row.past.acl.clone())).collect();
        assert_eq!(
            kinds,
            [
                ("create", was("r")),
                ("set", was("r")),
                ("set_acl", was("w")),
                ("set", was("w")),
                ("delete", PastAcl::Lost),
                ("set", PastAcl::Lost)
            ]
        );
    }

    #[test]
    fn the_newest_are_kept_as_whole_transactions() {
        let mut newest = Newest { max: 3, ..Newest::default() };
        let rows_of = |zxid, count: usize| {
            let set = |_| OpView { op: "setData", ..OpView::default() };
            rows(txn(zxid, (0..count).map(set).collect()), &mut Past::default())
        };
        (1..=3).for_each(|zxid| newest.push(rows_of(zxid, 1)));
        assert!(!newest.has_dropped && newest.txns.len() == 3);
        newest.push(rows_of(4, 2));
        let kept: Vec<u64> = newest.txns.iter().map(|rows| rows[0].zxid.0).collect();
        assert_eq!((kept, newest.count, newest.has_dropped), (vec![3, 4], 3, true));
        newest.push(rows_of(5, 9));
        assert_eq!((newest.txns.len(), newest.count), (1, 9), "the newest is there in any case");
    }
}
