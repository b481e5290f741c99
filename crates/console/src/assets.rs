//! The files of the pages.

use crate::state::Console;
use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock};

/// A file, as it is and compressed.
struct Asset {
    name: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

/// All files, by name.
const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The version of all files together: the beginning of a digest, in quotation marks.
static TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in ASSETS {
        digest.update(asset.name);
        digest.update(asset.plain);
    }
    let hex: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
});

/// The paths of the files.
pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/console/") }))
        .route("/console", get(|| async { Redirect::temporary("/console/") }))
        .route("/console/", get(|headers: HeaderMap| async move { file("index.html", &headers) }))
        .route(
            "/console/assets/{*name}",
            get(|Path(name): Path<String>, headers: HeaderMap| async move { file(&name, &headers) }),
        )
}

fn file(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let common = [
        (header::ETAG, TAG.clone()),
        // A page of an old program must not run with files of a new one, so each file is asked for anew.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if headers.get(header::IF_NONE_MATCH) == Some(&*TAG) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)))];
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains("gzip")) {
        let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        return (common, kind, encoding, asset.gzip).into_response();
    }
    (common, kind, asset.plain).into_response()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has to be there at once, also over a slow line.
    #[test]
    fn all_files_together_are_small() {
        let plain: usize = ASSETS.iter().map(|asset| asset.plain.len()).sum();
        let gzip: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(plain <= 200_000 && gzip <= 60_000, "{plain} bytes, {gzip} compressed");
    }
}
