//! The parameters of requests about the tree, and the bodies of changes.

use crate::{
    error::{ApiError, Code},
    state::Console,
    tree::shown,
};
use axum::{
    body,
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::request::Parts,
};
use http_body_util::BodyExt;
use ostler_proto::path;
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, str::FromStr, sync::Arc};

/// The most entries of a page.
const LIMIT_MAX: usize = 1000;
const LIMIT: usize = 200;
/// The most bytes of a change beside its data.
const REST_MAX: usize = 256 << 10;
/// The most bytes of a change that is too large that are read on.
const DROPPED_MAX: usize = 64 << 20;

/// The parameters after the `?` of an address.
pub(super) struct Params(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params, ApiError> {
        let query = Query::try_from_uri(&parts.uri);
        let Query(pairs) =
            query.map_err(|_| ApiError::bad("The parameters in the address cannot be read."))?;
        Ok(Params(pairs))
    }
}

impl Params {
    /// A parameter that is there, and not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A number.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let wrong = |_| ApiError::bad(format!("The parameter {name} is not a number that fits."));
        self.text(name).map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// The path of a znode.
    pub(super) fn path(&self, name: &str) -> Result<String, ApiError> {
        let path =
            self.text(name).ok_or_else(|| ApiError::bad(format!("The parameter {name} is missing.")))?;
        valid_path(path).map(Into::into)
    }

    /// One of some words; the first if there is none.
    pub(super) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, ApiError> {
        let text = self.text(name).unwrap_or(words[0].0);
        words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            ApiError::bad(format!("The parameter {name} is one of {}.", all.join(", ")))
        })
    }

    /// The most entries that the caller wants.
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        let limit = self.number("limit")?.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(ApiError::bad(format!("The parameter limit is 1 to {LIMIT_MAX}.")));
        }
        Ok(limit)
    }
}

/// Checks a path by the rules of clients.
pub(super) fn valid_path(path: &str) -> Result<&str, ApiError> {
    if path::is_valid(path) {
        return Ok(path);
    }
    Err(ApiError::bad(format!(
        "{} cannot be the path of a znode: it begins with a slash, does not end with one, and has no empty parts, no parts \
         of . or .., and no control characters.",
        shown::quoted(path)
    ))
    .at(path))
}

/// The body of a change.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Console>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, console: &Arc<Console>) -> Result<Body<T>, ApiError> {
        // Base64 has four characters for three bytes. The rest is more than enough for an ACL.
        let limit = console.handle.frame_max() / 3 * 4 + REST_MAX;
        let bytes = bytes_of(request.into_body(), limit).await?;
        serde_json::from_slice(&bytes).map(Body).map_err(|wrong| {
            ApiError::bad(format!("The body of the request is not what is expected: {wrong}."))
        })
    }
}

/// The bytes of a body. Of one that is too large the rest is taken and dropped, so that the caller reads the answer.
async fn bytes_of(mut body: body::Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    let (mut bytes, mut size) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::bad("The body of the request broke off."))?;
        let Some(data) = frame.data_ref() else { continue };
        size += data.len();
        if size <= limit {
            bytes.extend_from_slice(data);
        } else {
            bytes = Vec::new();
        }
        if size > limit + DROPPED_MAX {
            break;
        }
    }
    if size > limit {
        return Err(ApiError::new(
            Code::TooLarge,
            "The request is larger than a request of a client may be (jute.maxbuffer).",
        ));
    }
    Ok(bytes)
}
