//! The headers that protect the pages in the browser.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The headers of each answer.
pub(crate) async fn headers(mut response: Response) -> Response {
    let fixed: [(HeaderName, &str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let all = response.headers_mut();
    for (name, value) in fixed {
        if let Ok(value) = HeaderValue::from_str(value) {
            all.insert(name, value);
        }
    }
    all.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
