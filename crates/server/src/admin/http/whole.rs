//! The commands about the server as a whole: a snapshot of all data, their replacement, and fewer connections.

use super::{
    bodies::object,
    command::Command,
    commands::{Query, finished},
    disk::NotDone,
    json::Object,
    router::{refusal, reply},
    state::AdminState,
    temporary_folder::{RESTORED, SENT, TemporaryFolder},
};
use crate::admin::long_reports;
use axum::{
    body::{Body, to_bytes},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use http_body_util::BodyExt;
use ostler_data_dir::{
    SnapshotSource, recovery,
    snapshots::{write_at_once, write_at_once_unless_cut},
};
use ostler_proto::id::Zxid;
use ostler_server_core::{ConnId, Input, SnapshotTurn};
use ostler_storage::{StorageError, names::Compression, snapshot::SnapshotFile};
use ostler_tree::Tree;
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use tokio::{io::AsyncWriteExt, task::spawn_blocking};
use tokio_util::io::ReaderStream;

/// The longest body of a command that is not `restore`.
const BODY_MAX: usize = 64 << 10;

/// A snapshot of this moment: as a file, or kept in dataDir with `streaming=false`.
pub(super) async fn snapshot(state: Arc<AdminState>, query: &Query) -> Response {
    let name = Command::Snapshot.name();
    if !state.settings.snapshot_enabled {
        return null_error(StatusCode::SERVICE_UNAVAILABLE, name);
    }
    if !state.snapshot_limit.take(Instant::now()) {
        return null_error(StatusCode::TOO_MANY_REQUESTS, name);
    }
    let Ok(turn) = state.snapshot_turn.clone().try_lock_owned() else {
        return null_error(StatusCode::TOO_MANY_REQUESTS, name);
    };
    let is_sent = is_sent(query);
    let written = spawn_blocking(move || {
        let written = if is_sent { write_to_send(&state) } else { keep(&state) };
        drop(turn);
        written
    });
    match written.await {
        Ok(Ok(Some(snapshot))) if is_sent => snapshot.sent(),
        Ok(Ok(Some(snapshot))) => snapshot.named(name),
        Ok(Ok(None)) => null_error(StatusCode::SERVICE_UNAVAILABLE, name),
        Ok(Err(error)) => {
            tracing::error!(%error, "the snapshot that the admin server was asked for could not be written");
            null_error(StatusCode::INTERNAL_SERVER_ERROR, name)
        }
        Err(_) => null_error(StatusCode::INTERNAL_SERVER_ERROR, name),
    }
}

/// Whether the snapshot is the answer, and not a file that stays.
pub(super) fn is_sent(query: &Query) -> bool {
    query.get("streaming").is_none_or(|streaming| streaming.eq_ignore_ascii_case("true"))
}

/// A snapshot of this moment for an operator of the console, by the limit of the command.
pub(super) async fn sent_snapshot(state: Arc<AdminState>) -> Result<Response, NotDone> {
    if !state.snapshot_limit.take(Instant::now()) {
        return Err(NotDone::TooSoon);
    }
    let Ok(turn) = state.snapshot_turn.clone().try_lock_owned() else { return Err(NotDone::TooSoon) };
    let written = spawn_blocking(move || {
        let written = write_to_send(&state);
        drop(turn);
        written
    });
    match written.await {
        Ok(Ok(None)) => Err(NotDone::NotServing),
        Ok(Ok(Some(snapshot))) => {
            let disposition = format!("attachment; filename=\"{}\"", snapshot.name);
            let mut response = snapshot.sent();
            if let Ok(disposition) = HeaderValue::from_str(&disposition) {
                response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
            }
            Ok(response)
        }
        Ok(Err(error)) => Err(NotDone::Failed(error.to_string())),
        Err(_) => Err(NotDone::Failed("its thread has ended".into())),
    }
}

/// An answer as Java gives it in this case: the status says it all.
fn null_error(status: StatusCode, name: &str) -> Response {
    reply(status, &finished(Object::new(), name))
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
}

/// A snapshot on disk.
struct WrittenSnapshot {
    file: fs::File,
    name: String,
    zxid: Zxid,
    size: u64,
}

/// Writes a snapshot and opens it. It has no name any more after that. `None` as in [`keep`].
fn write_to_send(state: &AdminState) -> Result<Option<WrittenSnapshot>, SnapshotError> {
    let frozen = state.driver.inspect(|server| {
        let holds = server.snapshot_turn() != SnapshotTurn::NotServing;
        holds.then(|| server.tree().freeze())
    });
    let Some(frozen) = frozen else { return Ok(None) };
    let mut settings = state.snapshots.clone();
    let at = |source| SnapshotError::File { path: settings.folders.snapshots.join(SENT), source };
    let folder = TemporaryFolder::make(&settings.folders.snapshots, SENT).map_err(at)?;
    settings.folders.snapshots = folder.path().to_owned();
    write_at_once(&frozen, &settings)?;
    open_newest(folder.path(), frozen.zxid).map(Some)
}

/// Writes a snapshot beside those of the server, and opens it. `None` if the tree has, or may have, transactions that a
/// leader takes back.
fn keep(state: &AdminState) -> Result<Option<WrittenSnapshot>, SnapshotError> {
    let settings = &state.snapshots;
    let frozen = state.driver.inspect(|server| {
        let holds = server.snapshot_turn() != SnapshotTurn::NotServing;
        holds.then(|| SnapshotSource { tree: Box::new(server.tree().freeze()), cuts: settings.cuts.count() })
    });
    let Some(frozen) = frozen else { return Ok(None) };
    if !write_at_once_unless_cut(&frozen, settings)? {
        return Ok(None);
    }
    open_newest(&settings.folders.snapshots, frozen.zxid()).map(Some)
}

fn open_newest(folder: &Path, zxid: Zxid) -> Result<WrittenSnapshot, SnapshotError> {
    let at = |path: &Path, source| SnapshotError::File { path: path.to_owned(), source };
    let (_, newest) = newest_snapshot(folder).ok_or_else(|| at(folder, io::ErrorKind::NotFound.into()))?;
    let name = newest.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = fs::File::open(&newest).map_err(|source| at(&newest, source))?;
    let size = file.metadata().map_err(|source| at(&newest, source))?.len();
    Ok(WrittenSnapshot { file, name, zxid, size })
}

/// The newest snapshot of a folder by its name.
pub(crate) fn newest_snapshot(folder: &Path) -> Option<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let zxid = |name: &str| {
        let rest = name.strip_prefix("snapshot.")?;
        u64::from_str_radix(rest.split('.').next()?, 16).ok()
    };
    entries.filter_map(|entry| Some((zxid(entry.file_name().to_str()?)?, entry.path()))).max()
}

impl WrittenSnapshot {
    fn headers(&self, response: &mut Response) {
        let mut add = |name: &'static str, text: String| {
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        };
        add("last_zxid", format!("0x{:x}", self.zxid.0));
        add("snapshot_size", self.size.to_string());
    }

    /// The bytes of the file.
    fn sent(self) -> Response {
        let mut response = Response::default();
        self.headers(&mut response);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(self.size));
        *response.body_mut() = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(self.file)));
        response
    }

    fn named(self, name: &str) -> Response {
        let mut response = reply(StatusCode::OK, &finished(Object::new(), name));
        self.headers(&mut response);
        response
    }
}

/// Closes a share of the clients' connections, as in 3.10. The sessions go on, and their clients come back, perhaps to
/// another server.
pub(super) async fn shed_connections(state: Arc<AdminState>, body: Body) -> Response {
    let name = Command::ShedConnections.name();
    let percentage = match to_bytes(body, BODY_MAX).await {
        Ok(bytes) => percentage(&bytes),
        Err(_) => Err("the body is too long".into()),
    };
    let percentage = match percentage {
        Ok(percentage) => percentage,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, name, &error),
    };
    let shed = spawn_blocking(move || {
        let numbers = long_reports::connection_numbers(&state.driver);
        let chosen = every_nth(&numbers, percentage);
        chosen.iter().for_each(|conn| state.driver.step(Input::CloseConnection(*conn)));
        chosen.len()
    });
    let members = object(json!({
        "connections_shed": shed.await.unwrap_or(0),
        "percentage_requested": percentage,
    }));
    reply(StatusCode::OK, &finished(members, name))
}

fn percentage(body: &[u8]) -> Result<u64, String> {
    let parsed: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let number = parsed.get("percentage").ok_or("the body has no member percentage")?;
    let percentage = number.as_u64().filter(|percentage| *percentage <= 100);
    percentage.ok_or_else(|| "percentage must be a whole number from 0 to 100".into())
}

/// This share of the connections, spread over all.
fn every_nth(all: &[ConnId], percentage: u64) -> Vec<ConnId> {
    let count_until = |n: usize| n as u64 * percentage / 100;
    let indexed = all.iter().enumerate();
    indexed.filter(|(at, _)| count_until(at + 1) > count_until(*at)).map(|(_, conn)| *conn).collect()
}

/// Replaces all data of a standalone server by a snapshot, which is the body.
pub(super) async fn restore(state: Arc<AdminState>, body: Body) -> Response {
    let name = Command::Restore.name();
    if !state.settings.restore_enabled {
        return null_error(StatusCode::SERVICE_UNAVAILABLE, name);
    }
    if state.driver.mode().is_some() {
        let why = "a member of an ensemble does not replace its data: it would differ from the others, who may take them back. \
                   Stop all members, and run `ostler restore` (docs/backup.md)";
        return refusal(StatusCode::CONFLICT, name, why);
    }
    if !state.restore_limit.take(Instant::now()) {
        return null_error(StatusCode::TOO_MANY_REQUESTS, name);
    }
    let Ok(_turn) = state.restore_turn.try_lock() else {
        return null_error(StatusCode::TOO_MANY_REQUESTS, name);
    };
    match restored(&state, body).await {
        Ok(zxid) => reply(StatusCode::OK, &finished(object(json!({ "last_zxid": zxid.0 })), name)),
        Err(error) => {
            tracing::error!(%error, "the snapshot that the admin server got was not restored; nothing was changed");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, name, &error.to_string())
        }
    }
}

async fn restored(state: &Arc<AdminState>, body: Body) -> Result<Zxid, RestoreError> {
    let snapshots = &state.snapshots.folders.snapshots;
    let at = |source| RestoreError::File { path: snapshots.join(RESTORED), source };
    let folder = TemporaryFolder::make(snapshots, RESTORED).map_err(at)?;
    let file = folder.path().join("snapshot.0");
    take_body(body, &file).await?;
    let reader = state.clone();
    let read = spawn_blocking(move || {
        let tree = read_tree(&reader, file);
        drop(folder);
        tree
    });
    let tree = read.await.map_err(|_| RestoreError::Thread)??;
    let zxid = tree.last_processed();
    let before = state.driver.inspect(|server| server.restorations());
    state.driver.step(Input::Restore { tree: Box::new(tree) });
    let done = state.driver.until(Box::new(move |server| server.restorations() > before));
    done.await.map_err(|_| RestoreError::Ended)?;
    Ok(zxid)
}

async fn take_body(body: Body, file: &Path) -> Result<(), RestoreError> {
    let at = |source: io::Error| RestoreError::File { path: file.to_owned(), source };
    let mut out = tokio::fs::File::create(file).await.map_err(at)?;
    let mut body = body;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RestoreError::Body(error.to_string()))?;
        if let Some(bytes) = frame.data_ref() {
            out.write_all(bytes).await.map_err(at)?;
        }
    }
    out.flush().await.map_err(at)
}

/// Reads the snapshot, in the compression that its first bytes show.
fn read_tree(state: &AdminState, path: PathBuf) -> Result<Tree, RestoreError> {
    let at = |source: io::Error| RestoreError::File { path: path.clone(), source };
    let mut first = [0; 2];
    let read = fs::File::open(&path).and_then(|mut file| file.read(&mut first)).map_err(at)?;
    let compression = match &first[..read] {
        [0x1f, 0x8b] => Compression::Gz,
        // "ZKSN", the beginning of a snapshot that is not compressed.
        [b'Z', b'K'] => Compression::None,
        _ => Compression::Snappy,
    };
    let types = state.driver.inspect(|server| server.tree().types());
    let snapshot = SnapshotFile { zxid: Zxid::ZERO, compression, path, problem: None };
    let (mut tree, zxid) = recovery::read_file(&*state.snapshots.disk, &snapshot, types)?;
    if zxid.is_none() {
        return Err(RestoreError::NoZxid);
    }
    // No log comes after the snapshot that could have the ACLs.
    let without_acl = tree.take_znodes_without_acl();
    match without_acl.first() {
        Some(first) => Err(RestoreError::NoAcl { first: first.to_string(), znodes: without_acl.len() }),
        None => Ok(tree),
    }
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the snapshot did not come whole: {0}")]
    Body(String),
    #[error(
        "the snapshot has no last zxid at its end: it was written by ZooKeeper 3.8, or with \
         serializeLastProcessedZxid.enabled=false"
    )]
    NoZxid,
    #[error(
        "the snapshot lacks the ACL of {znodes} znodes, such as {first:?}: Java wrote it while they were created; take \
         another snapshot"
    )]
    NoAcl { first: String, znodes: usize },
    #[error("the thread that read the snapshot has ended early")]
    Thread,
    #[error("the server has ended meanwhile")]
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_connections_is_shed() {
        let all: Vec<ConnId> = (0..10).map(ConnId).collect();
        assert_eq!(every_nth(&all, 0), []);
        assert_eq!(every_nth(&all, 30).len(), 3);
        assert_eq!(every_nth(&all, 100), all);
        assert_eq!(every_nth(&all[..1], 50), []);
    }

    #[test]
    fn a_percentage_is_checked() {
        assert_eq!(percentage(br#"{"percentage": 40}"#), Ok(40));
        for wrong in
            ["{}", r#"{"percentage": 101}"#, r#"{"percentage": "x"}"#, "nonsense", r#"{"percentage": -1}"#]
        {
            assert!(percentage(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
