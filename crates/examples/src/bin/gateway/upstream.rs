//! One request to one instance.

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{Request, Uri, header, request::Parts},
    response::Response,
};
use http_body_util::LengthLimitError;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{error::Error, time::Duration};
use tokio::time::timeout;

/// The size of the largest answer, in bytes.
const ANSWER_MAX: usize = 16 << 20;
/// Headers that are about one connection, and not about the request.
const OF_CONNECTION: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The reason for which there is no answer of an instance.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("{0:?} is no address of a server")]
    Address(String),
    #[error("the request cannot be passed on: {0}")]
    Request(axum::http::Error),
    #[error("cannot connect: {}", cause(.0))]
    Connect(hyper_util::client::legacy::Error),
    #[error("the connection broke: {}", cause(.0))]
    Broken(hyper_util::client::legacy::Error),
    #[error("the answer broke off: {}", cause(.0))]
    Answer(axum::Error),
    #[error("the answer is larger than {ANSWER_MAX} bytes")]
    TooLarge,
    #[error("no answer within {0:?}")]
    Late(Duration),
}

impl AskError {
    /// Whether the instance may have got the request.
    pub(crate) fn was_sent(&self) -> bool {
        !matches!(self, AskError::Address(_) | AskError::Request(_) | AskError::Connect(_))
    }
}

/// The error below all others, which says most.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause
}

/// Connections to instances.
pub(crate) struct Upstream {
    client: Client<HttpConnector, Body>,
    patience: Duration,
}

impl Upstream {
    /// An instance may take `patience` for a whole answer, and half of it for the connection.
    pub(crate) fn new(patience: Duration) -> Upstream {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(patience / 2));
        Upstream { client: Client::builder(TokioExecutor::new()).build(connector), patience }
    }

    /// Sends a request to the instance at `base`, such as `http://10.0.0.7:8080`.
    ///
    /// The answer is read to its end before it is returned: an instance that dies while it answers has given none.
    pub(crate) async fn ask(&self, base: &str, head: &Parts, body: &Bytes) -> Result<Response, AskError> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        if !base.parse().is_ok_and(|base: Uri| base.scheme().is_some()) {
            return Err(AskError::Address(base.to_owned()));
        }
        let mut request = Request::builder().method(head.method.clone()).uri(format!("{base}{path}"));
        for (name, value) in head.headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(name)) {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.clone())).map_err(AskError::Request)?;
        timeout(self.patience, self.answer(request)).await.map_err(|_| AskError::Late(self.patience))?
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response, AskError> {
        let answer = self.client.request(request).await.map_err(|error| match error.is_connect() {
            true => AskError::Connect(error),
            false => AskError::Broken(error),
        })?;
        let (mut head, body) = answer.into_parts();
        let body = to_bytes(Body::new(body), ANSWER_MAX).await.map_err(|error| {
            let is_too_large = error.source().is_some_and(|source| source.is::<LengthLimitError>());
            if is_too_large { AskError::TooLarge } else { AskError::Answer(error) }
        })?;
        for name in OF_CONNECTION {
            head.headers.remove(name);
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }
}
