//! Refusals and failures, as JSON with a sentence for the person at the page.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use ostler_proto::error::ErrorCode;
use serde_json::{Map, Value, json};

/// The kind of an error, for programs. A client's errors have the names that ZooKeeper gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A request that cannot be understood.
    BadRequest,
    /// Nobody has signed in, and the page needs an identity.
    SignIn,
    /// The identity may not do this.
    Forbidden,
    /// The request came by the name of another site, or from its page.
    OtherSite,
    /// There is no such path.
    NotFound,
    /// More than is taken at once.
    TooLarge,
    /// Too many attempts: try later.
    TooMany,
    /// The plan is unknown, too old, or of another person.
    Plan,
    /// Others are being served: try later.
    Busy,
    /// Something failed in the server.
    Server,
    /// The server's answer to the client's request.
    Client(ErrorCode),
}

/// An answer that is no success.
#[derive(Debug)]
pub struct ApiError(Box<Details>);

#[derive(Debug)]
struct Details {
    code: Code,
    sentence: String,
    path: Option<String>,
    more: Map<String, Value>,
}

impl ApiError {
    /// An error with a sentence that says what happened, and what to do.
    pub fn new(code: Code, sentence: impl Into<String>) -> ApiError {
        ApiError(Box::new(Details { code, sentence: sentence.into(), path: None, more: Map::new() }))
    }

    /// The znode that it is about.
    #[must_use]
    pub fn at(mut self, path: &str) -> ApiError {
        self.0.path = Some(path.to_owned());
        self
    }

    /// One more member of the answer.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> ApiError {
        self.0.more.insert(name.to_owned(), value);
        self
    }

    /// Whether signing in, maybe as somebody else, would help.
    pub(crate) fn is_of_identity(&self) -> bool {
        matches!(self.0.code, Code::SignIn | Code::Forbidden)
    }

    /// A parameter that cannot be.
    pub fn bad(sentence: impl Into<String>) -> ApiError {
        ApiError::new(Code::BadRequest, sentence)
    }
}

impl Code {
    fn name(self) -> String {
        match self {
            Code::BadRequest => "BAD_REQUEST".into(),
            Code::SignIn => "SIGN_IN".into(),
            Code::Forbidden => "FORBIDDEN".into(),
            Code::OtherSite => "OTHER_SITE".into(),
            Code::NotFound => "NOT_FOUND".into(),
            Code::TooLarge => "TOO_LARGE".into(),
            Code::TooMany => "TOO_MANY".into(),
            Code::Plan => "PLAN".into(),
            Code::Busy => "BUSY".into(),
            Code::Server => "SERVER".into(),
            Code::Client(code) => code.name().to_uppercase(),
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Code::BadRequest => StatusCode::BAD_REQUEST,
            Code::SignIn => StatusCode::UNAUTHORIZED,
            Code::Forbidden | Code::OtherSite | Code::Client(ErrorCode::NoAuth) => StatusCode::FORBIDDEN,
            Code::NotFound | Code::Client(ErrorCode::NoNode) => StatusCode::NOT_FOUND,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Code::Plan | Code::Client(_) => StatusCode::CONFLICT,
            Code::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Code::Server => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Details { code, sentence, path, more } = *self.0;
        let mut body = json!({ "code": code.name(), "sentence": sentence });
        if let Some(members) = body.as_object_mut() {
            members.extend(path.map(|path| ("path".to_owned(), json!(path))));
            members.extend(more);
        }
        (code.status(), Json(body)).into_response()
    }
}

/// The answer to a path below `/api/v1` that does not exist.
pub(crate) async fn unknown_path() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "This server's console has no such path. With admin.readOnly=true it changes nothing.",
    )
}
