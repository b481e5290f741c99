//! Changes of one znode. Each is a request of a client with the caller's identities.

use super::{
    look,
    params::{Body, valid_path},
    refusal::{Change, of_client, refused, sentence},
    seen::SeenZnode,
    shown,
};
use crate::{
    error::{ApiError, Code},
    inner_client,
    rights::{Caller, Writer},
    state::Console,
};
use axum::{Json, extract::State};
use base64::{Engine, engine::general_purpose::STANDARD};
use ostler_client::{CreateMode, Version};
use ostler_proto::{
    acl::{Acl, Id, Perms, RawAcl},
    stat::TTL_MAX_MS,
};
use ostler_server_core::report::znodes::ZnodeReader;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The version that matches any version.
const ANY: i32 = -1;

fn any() -> i32 {
    ANY
}

/// An entry of an ACL, as the pages send it.
#[derive(Deserialize)]
pub(super) struct AclEntry {
    scheme: String,
    #[serde(default)]
    id: String,
    perms: String,
}

#[derive(Deserialize)]
pub(super) struct Create {
    path: String,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    ttl_ms: Option<i64>,
    #[serde(default)]
    acl: Option<Vec<AclEntry>>,
    #[serde(default)]
    parents: bool,
}

#[derive(Deserialize)]
pub(super) struct Set {
    path: String,
    data: String,
    #[serde(default = "any")]
    version: i32,
    #[serde(flatten)]
    seen: SeenZnode,
}

#[derive(Deserialize)]
pub(super) struct Delete {
    path: String,
    #[serde(default = "any")]
    version: i32,
    #[serde(flatten)]
    seen: SeenZnode,
}

#[derive(Deserialize)]
pub(super) struct SetAcl {
    path: String,
    acl: Vec<AclEntry>,
    #[serde(default = "any")]
    version: i32,
    #[serde(flatten)]
    seen: SeenZnode,
}

#[derive(Deserialize)]
pub(super) struct TryAcl {
    path: String,
    acl: Vec<AclEntry>,
}

/// `POST /tree/create`.
pub(super) async fn create(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<Create>,
) -> Result<Json<Value>, ApiError> {
    let mode = mode(&wanted)?;
    let path = &wanted.path;
    // A sequential znode's name may be digits alone.
    let whole = if mode.is_sequential() { format!("{path}0000000000") } else { path.clone() };
    valid_path(&whole)?;
    let data = wanted.data.as_deref().map(bytes).transpose()?;
    let acl = match &wanted.acl {
        Some(entries) => acl(entries)?,
        None => Vec::from([Acl::world(Perms::ALL)]),
    };
    let client = inner_client::client(&console, &caller).await?;
    let mut create = client.create(path, data.as_deref().unwrap_or_default()).mode(mode).acl(acl);
    if data.is_none() {
        create = create.without_data();
    }
    if wanted.parents {
        create = create.creating_parents();
    }
    let created = create.await.map_err(|error| of_client(path, Change::Create, &error))?;
    Ok(Json(json!({ "path": created.path, "stat": shown::stat(&created.stat) })))
}

fn mode(wanted: &Create) -> Result<CreateMode, ApiError> {
    let ttl = || match wanted.ttl_ms {
        Some(ttl_ms) if (1..=TTL_MAX_MS).contains(&ttl_ms) => Ok(Duration::from_millis(ttl_ms as u64)),
        _ => Err(ApiError::bad(format!("A TTL is 1 to {TTL_MAX_MS} milliseconds (ttl_ms)."))),
    };
    match wanted.mode.as_deref().unwrap_or("persistent") {
        "persistent" => Ok(CreateMode::Persistent),
        "persistent_sequential" => Ok(CreateMode::PersistentSequential),
        "container" => Ok(CreateMode::Container),
        "ttl" | "persistent_with_ttl" => Ok(CreateMode::PersistentWithTtl(ttl()?)),
        "ttl_sequential" | "persistent_sequential_with_ttl" => {
            Ok(CreateMode::PersistentSequentialWithTtl(ttl()?))
        }
        "ephemeral" | "ephemeral_sequential" => Err(ApiError::bad(
            "The console creates no ephemerals: they would belong to its own session, and end with it.",
        )),
        _ => Err(ApiError::bad(
            "The mode is persistent, persistent_sequential, container, ttl or ttl_sequential.",
        )),
    }
}

/// `POST /tree/set`.
pub(super) async fn set(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<Set>,
) -> Result<Json<Value>, ApiError> {
    let path = valid_path(&wanted.path)?;
    let data = bytes(&wanted.data)?;
    let client = inner_client::client(&console, &caller).await?;
    if let Some(other) = wanted.seen.refusal((&console, &client), (path, Change::Set)).await? {
        return Err(other.with("theirs", theirs(&console, &caller, path)));
    }
    match client.set_data(path, &data).version(Version::from_wire(wanted.version)).await {
        Ok(stat) => Ok(Json(json!({ "stat": shown::stat(&stat) }))),
        Err(error) if error.is_bad_version() => {
            Err(of_client(path, Change::Set, &error).with("theirs", theirs(&console, &caller, path)))
        }
        Err(error) => Err(of_client(path, Change::Set, &error)),
    }
}

/// The data that somebody else has set meanwhile; null if the caller may not read them.
fn theirs(console: &Console, caller: &Caller, path: &str) -> Value {
    let reader = ZnodeReader::new(&caller.ids);
    let Ok((data, stat)) = look(console, |server| server.znode_data(&reader, path)) else {
        return Value::Null;
    };
    json!({ "data": STANDARD.encode(data.as_deref().unwrap_or_default()), "stat": shown::stat(&stat) })
}

/// `POST /tree/delete`.
pub(super) async fn delete(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<Delete>,
) -> Result<Json<Value>, ApiError> {
    let path = valid_path(&wanted.path)?;
    let client = inner_client::client(&console, &caller).await?;
    if let Some(other) = wanted.seen.refusal((&console, &client), (path, Change::Delete)).await? {
        return Err(other);
    }
    let deleted = client.delete(path).version(Version::from_wire(wanted.version)).await;
    deleted.map_err(|error| of_client(path, Change::Delete, &error))?;
    Ok(Json(json!({ "deleted": true })))
}

/// `POST /tree/set-acl`.
pub(super) async fn set_acl(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<SetAcl>,
) -> Result<Json<Value>, ApiError> {
    let path = valid_path(&wanted.path)?;
    let acl = acl(&wanted.acl)?;
    let client = inner_client::client(&console, &caller).await?;
    if let Some(other) = wanted.seen.refusal((&console, &client), (path, Change::SetAcl)).await? {
        return Err(other);
    }
    let set = client.set_acl(path, &acl).version(Version::from_wire(wanted.version)).await;
    let stat = set.map_err(|error| of_client(path, Change::SetAcl, &error))?;
    Ok(Json(json!({ "stat": shown::stat(&stat) })))
}

/// `POST /tree/try-acl`: what the caller could do before and after. It changes nothing.
pub(super) async fn try_acl(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<TryAcl>,
) -> Result<Json<Value>, ApiError> {
    let path = valid_path(&wanted.path)?;
    let acl = acl(&wanted.acl)?;
    let sent: Vec<RawAcl<'_>> = acl
        .iter()
        .map(|entry| RawAcl {
            perms: entry.perms,
            scheme: Some(entry.id.scheme.as_str().into()),
            id: Some(entry.id.id.as_str().into()),
        })
        .collect();
    let reader = ZnodeReader::new(&caller.ids);
    let seen = look(&console, |server| server.permissions_with(&reader, path, &sent));
    let tried = seen.map_err(|refusal| refused(path, refusal))?;
    let (before, after) =
        tried.map_err(|code| ApiError::new(Code::Client(code), sentence(Change::SetAcl, code)).at(path))?;
    Ok(Json(json!({ "before": shown::rights(before), "after": shown::rights(after) })))
}

/// The bytes of a base64 text.
fn bytes(text: &str) -> Result<Vec<u8>, ApiError> {
    STANDARD.decode(text).map_err(|_| ApiError::bad("The data are not base64."))
}

/// The entries of an ACL. The server checks schemes and ids.
pub(super) fn acl(entries: &[AclEntry]) -> Result<Vec<Acl>, ApiError> {
    entries
        .iter()
        .map(|entry| {
            let mut perms = Perms(0);
            for letter in entry.perms.chars() {
                let known = shown::LETTERS.iter().find(|(known, _)| *known == letter);
                let (_, perm) = known
                    .ok_or_else(|| ApiError::bad("The permissions of an entry are letters of cdrwa."))?;
                perms = perms.with(*perm);
            }
            Ok(Acl { perms, id: Id::new(entry.scheme.clone(), entry.id.clone()) })
        })
        .collect()
}
