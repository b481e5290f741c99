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
    use std::collections::BTreeSet;

    /// The first page has to be there at once, also over a slow line. The other pages are loaded when they are opened.
    #[test]
    fn the_first_page_is_small_and_so_are_all_files_together() {
        let mut first = BTreeSet::from(["index.html", "style.css"]);
        add_imports("app.js", &mut first);
        add_imports("pages/ensemble.js", &mut first);
        let size = |names: &BTreeSet<&str>, of: fn(&Asset) -> usize| -> usize {
            ASSETS.iter().filter(|asset| names.contains(asset.name)).map(of).sum()
        };
        let (plain, gzip) = (size(&first, |asset| asset.plain.len()), size(&first, |asset| asset.gzip.len()));
        assert!(plain <= 90_000 && gzip <= 34_000, "{plain} bytes, {gzip} compressed: {first:?}");
        let all: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        let (plain, gzip) = (size(&all, |asset| asset.plain.len()), size(&all, |asset| asset.gzip.len()));
        assert!(plain <= 300_000 && gzip <= 120_000, "{plain} bytes, {gzip} compressed");
    }

    /// Adds a module, and the modules that it imports.
    fn add_imports(name: &'static str, found: &mut BTreeSet<&'static str>) {
        let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap_or_else(|| panic!("no {name}"));
        if !found.insert(asset.name) {
            return;
        }
        let text = std::str::from_utf8(asset.plain).unwrap();
        for part in text.split(" from '").skip(1) {
            let import = part.split('\'').next().unwrap();
            let mut folders: Vec<&str> = name.split('/').collect();
            folders.pop();
            for step in import.split('/') {
                match step {
                    "." => {}
                    ".." => drop(folders.pop()),
                    step => folders.push(step),
                }
            }
            let path = folders.join("/");
            add_imports(ASSETS.iter().find(|asset| asset.name == path).unwrap().name, found);
        }
    }

    /// The build takes lines that begin like comments out of the files.
    #[test]
    fn no_template_has_a_line_that_begins_like_a_comment() {
        for (name, text) in sources() {
            let mut is_in_template = false;
            for line in text.lines() {
                let begins = line.trim_start();
                let is_comment = begins.starts_with("//") || begins.starts_with("/*");
                assert!(!(is_in_template && is_comment), "{name}: {line}");
                let is_code = !is_comment && !begins.starts_with('*');
                is_in_template ^= is_code && line.matches('`').count() % 2 == 1;
            }
        }
    }

    #[test]
    fn files_are_served_without_comments_and_types() {
        for asset in ASSETS.iter().filter(|asset| !asset.name.starts_with("vendor/")) {
            let text = std::str::from_utf8(asset.plain).unwrap();
            for line in text.lines() {
                assert!(
                    !line.starts_with("//") && !line.starts_with("/*") && !line.contains("/** @"),
                    "{}: {line}",
                    asset.name
                );
            }
        }
    }

    /// Names, data and identities that users have made reach the page as text only.
    #[test]
    fn no_module_writes_html() {
        for (name, text) in sources() {
            for word in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
    }

    fn sources() -> Vec<(&'static str, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let own = ASSETS.iter().filter(|asset| !asset.name.starts_with("vendor/"));
        own.map(|asset| (asset.name, std::fs::read_to_string(root.join(asset.name)).unwrap())).collect()
    }
}
