//! One znode, and its data.

use super::{look, params::Params, refusal::refused, shown};
use crate::{
    error::ApiError,
    rights::{self, Caller},
    state::Console,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ostler_proto::{path, stat::NodeKind};
use ostler_server_core::report::znodes::{ZnodeReader, ZnodeReport};
use serde_json::{Value, json};
use std::sync::Arc;

/// The bytes of data in an answer, if the caller does not say how many.
const LENGTH: usize = 64 << 10;
/// The most bytes of data in an answer as JSON. A download has all.
const LENGTH_MAX: usize = 16 << 20;

/// `GET /tree/node`.
pub(super) async fn node(
    State(console): State<Arc<Console>>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    let path = params.path("path")?;
    let is_viewer = rights::is_viewer(&caller, &headers, &console);
    let reader = ZnodeReader::new(&caller.ids);
    let seen = look(&console, |server| server.znode(&reader, &path));
    let report = seen.map_err(|refusal| refused(&path, refusal))?;
    Ok(Json(description(&path, &report, is_viewer)))
}

fn description(path: &str, report: &ZnodeReport, is_viewer: bool) -> Value {
    let ttl_ms = match report.kind {
        NodeKind::Ttl(ttl_ms) => Some(ttl_ms),
        _ => None,
    };
    let watches = is_viewer.then(|| {
        let of = &report.watches;
        json!({ "data": of.data, "children": of.children, "persistent": of.persistent })
    });
    json!({
        "path": path,
        "stat": shown::stat(&report.stat),
        "kind": shown::kind(path, report.kind),
        "ttl_ms": ttl_ms,
        "quota": report.quota.as_ref().map(shown::quota),
        "watches": watches,
        "owner": report.owner.as_ref().map(|owner| shown::owner(owner, is_viewer)),
        "acl": shown::acl(&report.acl),
        "rights": shown::rights(report.granted),
        "may_be_deleted": report.may_be_deleted,
        "name": { "sequence": shown::sequence(path::name(path)) },
        "as_of_zxid": report.zxid.to_string(),
    })
}

/// `GET /tree/data`.
pub(super) async fn data(
    State(console): State<Arc<Console>>,
    caller: Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let path = params.path("path")?;
    let from: usize = params.number("from")?.unwrap_or(0);
    let length = params.number("length")?.unwrap_or(LENGTH).min(LENGTH_MAX);
    let reader = ZnodeReader::new(&caller.ids);
    let seen = look(&console, |server| server.znode_data(&reader, &path));
    let (data, stat) = seen.map_err(|refusal| refused(&path, refusal))?;
    let bytes = data.as_deref().unwrap_or_default();
    if params.text("download").is_some_and(|download| download != "0") {
        return Ok(attachment(&path, bytes));
    }
    let rest = bytes.get(from..).unwrap_or_default();
    let part = &rest[..rest.len().min(length)];
    Ok(Json(json!({
        "data": STANDARD.encode(part),
        "from": from,
        "length": bytes.len(),
        "is_null": data.is_none(),
        "version": stat.version,
        "czxid": stat.czxid.to_string(),
        "mzxid": stat.mzxid.to_string(),
    }))
    .into_response())
}

/// The bytes as a file. Its name has only characters that no system and no header takes amiss.
fn attachment(path: &str, bytes: &[u8]) -> Response {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String =
        path::name(path).chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect();
    let name = name.trim_start_matches('.');
    let name = if name.is_empty() { "root" } else { name };
    let disposition = format!("attachment; filename=\"{name}.bin\"");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")),
        ),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, bytes.to_vec()).into_response()
}
