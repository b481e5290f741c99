//! The files of a server: their space and its end, what a purge would remove, and the acts of operators on them.

mod findings;
mod forecast;

use crate::{
    error::{ApiError, Code},
    list::{self, Parameters},
    rights::{self, Caller, Operator, Viewer},
    state::Console,
};
use axum::{
    Json,
    body::Bytes,
    extract::{Query, State},
    response::Response,
};
use findings::{Finding, findings};
use forecast::{Forecast, restart_ms};
use ostler_server::admin::{self, DiskReport, NotDone, WrittenSnapshot};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{task::spawn_blocking, time::timeout};

/// Files of a kind in an answer; the newest ones are shown.
const FILES_MAX: usize = 1000;
/// Fewer snapshots than this are never kept.
const KEEP_MIN: usize = 3;
/// A request for a snapshot or a purge waits for its end no longer than this. Both go on slowly, to spare the clients.
const ACT_WITHIN: Duration = Duration::from_secs(10);

/// The disks of one server, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Disks {
    disks: Vec<ServerDisk>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ServerDisk {
    /// 0 for a standalone server.
    server: i64,
    data: Folder,
    log: Folder,
    snapshots: Vec<Snapshot>,
    logs: Vec<Log>,
    last_snapshot: Option<LastSnapshot>,
    grows_bytes_per_hour: Option<i64>,
    full_in_ms: Option<u64>,
    restart_ms: Option<u64>,
    purge: Purge,
    findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Folder {
    path: String,
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Snapshot {
    name: String,
    zxid: String,
    bytes: u64,
    age_ms: Option<u64>,
    problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Log {
    name: String,
    from_zxid: String,
    to_zxid: Option<String>,
    bytes: u64,
    problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LastSnapshot {
    zxid: String,
    at_ms: Option<u64>,
    /// `None` if it was written before the last start.
    took_ms: Option<u64>,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Purge {
    keep: usize,
    removes: Vec<String>,
    bytes: u64,
    /// The number of snapshots that the server itself keeps; `None` if it purges nothing.
    by_itself_keeps: Option<usize>,
}

/// `GET /disk`.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let keep = list::parsed::<usize>(&parameters, "keep", "the number of snapshots to keep, 3 at least")?;
    check_keep(keep)?;
    let asked = console.clone();
    let disk = list::aside(&console, move || local(&asked, keep)).await??;
    let all = list::with_others(&console, "disk", &parameters, Disks { disks: vec![disk] }).await;
    Ok(all.servers.answer(merge(all.parts)))
}

fn check_keep(keep: Option<usize>) -> Result<(), ApiError> {
    match keep {
        Some(keep) if keep < KEEP_MIN => {
            Err(ApiError::bad(format!("keep={keep} is not allowed: 3 snapshots at least are kept.")))
        }
        _ => Ok(()),
    }
}

/// The disk of this server.
fn local(console: &Console, keep: Option<usize>) -> Result<ServerDisk, ApiError> {
    let report =
        console.handle.disk(keep).map_err(|error| ApiError::new(Code::Server, format!("{error}.")))?;
    let forecast = Forecast::of(&console.ring.free_space(), report.is_one_disk);
    Ok(shown(list::own_id(&console.handle), &report, forecast))
}

fn shown(server: i64, report: &DiskReport, forecast: Forecast) -> ServerDisk {
    let now = SystemTime::now();
    let snapshots = report.snapshots.iter().take(FILES_MAX).map(|file| Snapshot {
        name: file.name.clone(),
        zxid: file.zxid.to_string(),
        bytes: file.bytes,
        age_ms: file.at.and_then(|at| now.duration_since(at).ok()).map(|age| age.as_millis() as u64),
        problem: file.problem.clone(),
    });
    let logs = report.logs.iter().take(FILES_MAX).map(|file| Log {
        name: file.name.clone(),
        from_zxid: file.from.to_string(),
        to_zxid: file.to.map(|to| to.to_string()),
        bytes: file.bytes,
        problem: file.problem.clone(),
    });
    ServerDisk {
        server,
        data: folder(&report.data),
        log: folder(&report.log),
        snapshots: snapshots.collect(),
        logs: logs.collect(),
        last_snapshot: last_snapshot(report),
        grows_bytes_per_hour: forecast.grows_bytes_per_hour,
        full_in_ms: forecast.full_in_ms,
        restart_ms: restart_ms(report),
        purge: of_purge(&report.purge, report.autopurge_keeps),
        findings: findings(report, &forecast),
    }
}

fn of_purge(of: &admin::Purge, by_itself_keeps: Option<usize>) -> Purge {
    Purge {
        keep: of.keep,
        removes: of.removes.iter().map(|(name, _)| name.clone()).collect(),
        bytes: of.removes.iter().map(|(_, bytes)| bytes).sum(),
        by_itself_keeps,
    }
}

fn folder(of: &admin::Folder) -> Folder {
    Folder {
        path: of.path.display().to_string(),
        free_bytes: of.space.map(|space| space.free_bytes),
        total_bytes: of.space.map(|space| space.total_bytes),
    }
}

/// The newest snapshot that can be read.
fn last_snapshot(report: &DiskReport) -> Option<LastSnapshot> {
    let file = report.snapshots.iter().find(|file| file.problem.is_none())?;
    let written = report.written.filter(|written| written.zxid == file.zxid);
    Some(LastSnapshot {
        zxid: file.zxid.to_string(),
        at_ms: file.at.and_then(ms),
        took_ms: written.map(|written| written.took.as_millis() as u64),
        bytes: file.bytes,
    })
}

/// Milliseconds since 1970.
fn ms(at: SystemTime) -> Option<u64> {
    at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_millis() as u64)
}

/// The disks of several servers.
fn merge(parts: Vec<Disks>) -> Disks {
    Disks { disks: parts.into_iter().flat_map(|part| part.disks).collect() }
}

fn operator(caller: &Caller) -> admin::Operator<'_> {
    admin::Operator { ids: &caller.ids, address: caller.conn.peer.ip() }
}

/// `POST /disk/snapshot`.
pub(crate) async fn take_snapshot(
    State(console): State<Arc<Console>>,
    Operator(caller): Operator,
) -> Result<Json<Value>, ApiError> {
    let taken = console.handle.take_snapshot(ACT_WITHIN, operator(&caller)).await.map_err(refusal)?;
    let shown = |of: WrittenSnapshot| json!({ "zxid": of.zxid.to_string(), "at_ms": ms(of.at), "took_ms": of.took.as_millis() as u64 });
    Ok(Json(json!({ "done": taken.is_some(), "snapshot": taken.map(shown) })))
}

/// The body of a purge.
#[derive(Debug, Deserialize)]
struct WantedPurge {
    keep: usize,
    plan: Vec<String>,
}

/// `POST /disk/purge`.
pub(crate) async fn purge(
    State(console): State<Arc<Console>>,
    Operator(caller): Operator,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let wanted: WantedPurge = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad(format!("The body is {{\"keep\": N, \"plan\": [NAME]}}: {error}.")))?;
    check_keep(Some(wanted.keep))?;
    let purging = spawn_blocking(move || {
        let done = console.handle.purge(wanted.keep, &wanted.plan, operator(&caller));
        done.map_err(|error| match error {
            NotDone::OtherPlan => other_plan(&console, wanted.keep),
            other => refusal(other),
        })
    });
    match timeout(ACT_WITHIN, purging).await {
        Ok(Ok(purged)) => {
            let Purge { removes, bytes, .. } = of_purge(&purged?, None);
            Ok(Json(json!({ "done": true, "removed": removes, "bytes": bytes })))
        }
        Ok(Err(_)) => Err(ApiError::new(Code::Server, "The purge has failed. See the server's log.")),
        Err(_) => Ok(Json(json!({ "done": false, "removed": null, "bytes": null }))),
    }
}

/// The refusal of a purge whose plan is old, with the plan of now.
fn other_plan(console: &Console, keep: usize) -> ApiError {
    let refused = refusal(NotDone::OtherPlan);
    match local(console, Some(keep)) {
        Ok(disk) => refused.with("purge", json!(disk.purge)),
        Err(_) => refused,
    }
}

/// `GET /disk/snapshot`: the file. A link of the page asks for it, which has no token; a page of another site is refused
/// all the same.
pub(crate) async fn send_snapshot(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
) -> Result<Response, ApiError> {
    rights::check_operator(&caller, &console)?;
    console.handle.send_snapshot(operator(&caller)).await.map_err(refusal)
}

fn refusal(error: NotDone) -> ApiError {
    let code = match error {
        NotDone::OtherPlan => Code::Plan,
        NotDone::NoRight | NotDone::SwitchedOff => Code::Forbidden,
        NotDone::TooSoon => Code::TooMany,
        NotDone::Running | NotDone::NotServing | NotDone::NoSpace { .. } => Code::Busy,
        NotDone::Storage(_) | NotDone::Failed(_) => Code::Server,
    };
    let mut sentence = error.to_string();
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    ApiError::new(code, format!("{sentence}."))
}

#[cfg(test)]
mod tests {
    use super::{findings::tests::report, *};

    #[test]
    fn the_newest_snapshot_that_can_be_read_is_the_last_one() {
        let mut of = report();
        assert_eq!(last_snapshot(&of).map(|last| (last.zxid, last.took_ms)), Some(("0x50".into(), None)));
        let took = Duration::from_millis(1234);
        of.written = Some(WrittenSnapshot { zxid: of.snapshots[0].zxid, at: SystemTime::now(), took });
        assert_eq!(last_snapshot(&of).and_then(|last| last.took_ms), Some(1234));
        of.snapshots[0].problem = Some("it is incomplete".into());
        assert_eq!(last_snapshot(&of).map(|last| (last.zxid, last.took_ms)), Some(("0x28".into(), None)));
    }

    #[test]
    fn a_long_list_is_cut() {
        let mut of = report();
        of.snapshots = vec![of.snapshots[0].clone(); FILES_MAX + 5];
        assert_eq!(shown(1, &of, Forecast::default()).snapshots.len(), FILES_MAX);
    }

    #[test]
    fn refusals_are_sentences() {
        let refused = format!("{:?}", refusal(NotDone::NotServing));
        assert!(refused.contains("The server serves no leader's history now"), "{refused}");
    }
}
