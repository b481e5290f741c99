//! The changes of one znode that are still in the logs on disk, newest first.

use super::{aside, cursor, idle::Cancelled, look, params::Params, refusal::refused};
use crate::{
    error::{ApiError, Code},
    rights::{self, Caller},
    state::Console,
};
use axum::{Json, extract::State, http::HeaderMap};
use ostler_inspect::{
    InspectError,
    history::{HistoryItem, history},
    view::{AclView, DataForm, DataView, OpView, TxnView},
};
use ostler_proto::{
    acl::{Acl, Id, Perms},
    id::{SessionId, Zxid},
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
    /// The ACL that the znode had after it, if the log of the file shows it.
    acl: Option<Arc<Vec<AclView>>>,
}

/// The changes that were found so far, newest first.
struct Page {
    rows: Vec<Row>,
    next: Option<Cursor>,
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
    let (seen, applied) = look(&console, |server| {
        (server.may_read_at_or_above(&reader, &path), server.tree().last_processed())
    });
    let exists = seen.map_err(|refusal| refused(&path, refusal))?;
    let before = from.map_or(applied.0.saturating_add(1), |cursor| cursor.before);
    let working = console.clone();
    let reading = console.tree.history.work(("history", WITHIN), move |cancelled| {
        let files = files(&working)?;
        let page = Reading { console: &working, path: &path, limit, cancelled }.read(&files, before)?;
        Ok((page, files.first().map(|file| file.first)))
    });
    let (Page { rows, next }, back_to) = reading.await?;
    let rows = aside(move || Ok(shown(&console, &caller.ids, rows, is_viewer))).await?;
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
    limit: usize,
    cancelled: Cancelled,
}

impl Reading<'_> {
    /// Reads files, newest first, until the page is full or the time is over.
    fn read(&self, files: &[LogFile], before: u64) -> Result<Page, ApiError> {
        let (began, mut rows) = (Instant::now(), Vec::new());
        // All of the files from this transaction on was read.
        let mut read_from: Option<u64> = None;
        for file in files.iter().rev().filter(|file| file.first.0 < before) {
            let is_full = rows.len() >= self.limit || size(&rows) >= VALUES_MAX / 2;
            if let Some(from) = read_from
                && (is_full || began.elapsed() >= SLICE || self.cancelled.is_set())
            {
                return Ok(Page { next: Some(Cursor { before: from }), rows });
            }
            let (found, is_whole) = match self.newest_of(file, before, self.limit - rows.len()) {
                Ok(found) => found,
                // It was purged meanwhile, and all older ones with it.
                Err(_) if !self::files(self.console)?.contains(file) => break,
                Err(error) => return Err(failed(&error)),
            };
            rows.extend(found);
            if !is_whole {
                let oldest = rows.last().map_or(before, |row: &Row| row.zxid.0);
                return Ok(Page { next: Some(Cursor { before: oldest }), rows });
            }
            read_from = Some(file.first.0);
        }
        Ok(Page { rows, next: None })
    }

    /// The newest changes in a file before a transaction, newest first: at most `max`, but whole transactions. Also whether
    /// these are all of the file.
    fn newest_of(&self, file: &LogFile, before: u64, max: usize) -> Result<(Vec<Row>, bool), InspectError> {
        let (disk, _) = self.console.handle.logs();
        let mut newest = Newest { max: max.max(1), ..Newest::default() };
        let mut acl: Option<Arc<Vec<AclView>>> = None;
        let mut take = |item| {
            if self.cancelled.is_set() {
                return Err(InspectError::from(std::io::Error::other("nobody waits for it any more")));
            }
            if let HistoryItem::Touched(view) = item {
                let zxid = view.zxid;
                let rows = rows(*view, &mut acl);
                if zxid.0 < before && !rows.is_empty() {
                    newest.push(rows);
                }
            }
            Ok(())
        };
        history(&*disk, std::slice::from_ref(file), (self.path, DataForm::Base64), &mut take)?;
        let is_whole = !newest.has_dropped;
        Ok((newest.txns.into_iter().rev().flat_map(|rows| rows.into_iter().rev()).collect(), is_whole))
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

/// The changes that a transaction has made to the znode, in order. `acl` follows the znode's ACL.
fn rows(view: TxnView, acl: &mut Option<Arc<Vec<AclView>>>) -> Vec<Row> {
    let TxnView { zxid, time_ms, session, mut op, .. } = view;
    let parts = op.parts.take().unwrap_or_else(|| vec![op]);
    let row = |part: OpView| {
        let kind = match part.op {
            "create" | "create2" | "createContainer" | "createTTL" => "create",
            "delete" | "deleteContainer" | "closeSession" => "delete",
            "setData" | "reconfig" => "set",
            "setACL" => "set_acl",
            _ => return None,
        };
        match kind {
            "delete" => *acl = None,
            "create" | "set_acl" => *acl = part.acl.map(Arc::new),
            _ => {}
        }
        let data = part.data.map(|data| match data {
            DataView::Base64(text) | DataView::Text(text) => text,
        });
        let version = if kind == "create" { Some(0) } else { part.version };
        let length = part.data_bytes.map(Option::unwrap_or_default);
        Some(Row { zxid, time_ms, session, kind, version, data, length, acl: acl.clone() })
    };
    parts.into_iter().filter_map(row).collect()
}

/// The rows as JSON. Values that the ACL of their time hides from the caller are left out, as far as the logs show it.
/// The ids of sessions are for those who may see the state of the server.
fn shown(console: &Console, ids: &[Id], rows: Vec<Row>, is_viewer: bool) -> Vec<Value> {
    let reader = ZnodeReader::new(ids);
    let mut last: Option<(Arc<Vec<AclView>>, bool)> = None;
    let mut may_read = |acl: Option<Arc<Vec<AclView>>>| {
        let Some(acl) = acl else { return true };
        if let Some((known, may)) = &last
            && Arc::ptr_eq(known, &acl)
        {
            return *may;
        }
        let entries: Vec<Acl> = acl.iter().map(entry).collect();
        let may = look(console, |server| server.is_readable_with(&reader, &entries));
        last = Some((acl, may));
        may
    };
    rows.into_iter()
        .map(|row| {
            let may_read = may_read(row.acl);
            json!({
                "zxid": row.zxid.to_string(),
                "time_ms": row.time_ms,
                "session": is_viewer.then(|| row.session.to_string()),
                "kind": row.kind,
                "version": row.version,
                "data": row.data.filter(|_| may_read),
                "length": row.length.filter(|_| may_read),
                "hidden": !may_read,
            })
        })
        .collect()
}

fn entry(view: &AclView) -> Acl {
    let of = super::shown::LETTERS.iter().filter(|(letter, _)| view.perms.contains(*letter));
    let perms = of.fold(Perms(0), |perms, (_, perm)| perms.with(*perm));
    Acl { perms, id: Id::new(view.scheme.clone(), view.id.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut seen = None;
        let create = OpView { op: "create2", acl: acl("r"), ..OpView::default() };
        let set = || OpView { op: "setData", version: Some(1), ..OpView::default() };
        let set_acl = OpView { op: "setACL", acl: acl("w"), ..OpView::default() };
        let delete = OpView { op: "delete", ..OpView::default() };
        let check = OpView { op: "check", ..OpView::default() };
        assert!(rows(txn(1, vec![set(), check]), &mut seen)[0].acl.is_none(), "not known");
        let all = rows(txn(2, vec![create, set(), set_acl, set(), delete]), &mut seen);
        let perms = |row: &Row| row.acl.as_ref().map(|acl| acl[0].perms.clone());
        let kinds: Vec<_> = all.iter().map(|row| (row.kind, perms(row))).collect();
        let some = |perms: &str| Some(perms.to_owned());
        assert_eq!(
            kinds,
            [
                ("create", some("r")),
                ("set", some("r")),
                ("set_acl", some("w")),
                ("set", some("w")),
                ("delete", None)
            ]
        );
    }

    #[test]
    fn the_newest_are_kept_as_whole_transactions() {
        let mut newest = Newest { max: 3, ..Newest::default() };
        let rows_of = |zxid, count: usize| {
            let set = |_| OpView { op: "setData", ..OpView::default() };
            rows(txn(zxid, (0..count).map(set).collect()), &mut None)
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
