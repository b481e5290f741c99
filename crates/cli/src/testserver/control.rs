//! The calls by HTTP.

use super::{
    ensembles::{Ensembles, Held},
    error::{ControlError, StartError},
    network::{self, Fault, Where},
    request::{self, NewEnsemble, WhichServer},
    running::Act,
    state::{EnsembleState, SessionState},
    waiting::{self, WITHIN, WITHIN_MAX},
};
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Query, State},
    http::{Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

const BODY_MAX: usize = 64 << 10;
const SECRET_LEN: usize = 16;

type Shared = State<Arc<Ensembles>>;
type Parameters = Query<BTreeMap<String, String>>;

/// The calls, below a secret path: only who has read the address can use them, so no page of a browser and no other
/// user of the machine.
pub(super) struct Control {
    ensembles: Arc<Ensembles>,
    secret: String,
}

impl Control {
    pub(super) fn new(ensembles: Arc<Ensembles>) -> Result<Control, StartError> {
        let mut bytes = [0; SECRET_LEN];
        getrandom::fill(&mut bytes).map_err(|cause| StartError::Io {
            what: "the system gives no random numbers",
            cause: io::Error::other(cause),
        })?;
        let secret = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Control { ensembles, secret })
    }

    /// The address of the calls.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        format!("http://{address}/{}", self.secret)
    }

    pub(super) fn router(&self) -> Router {
        let calls = Router::new()
            .route("/ensembles", get(list).post(start).delete(delete_all))
            .route("/ensembles/{id}", get(show).delete(delete))
            .route("/ensembles/{id}/leader", get(leader))
            .route("/ensembles/{id}/serving", get(serving))
            .route("/ensembles/{id}/servers/{server}/{act}", post(act))
            .route("/ensembles/{id}/sessions", get(sessions))
            .route("/ensembles/{id}/sessions/{session}/{act}", post(session))
            .route("/ensembles/{id}/network/{fault}", post(fault))
            .fallback(no_call)
            .method_not_allowed_fallback(no_call)
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .with_state(self.ensembles.clone());
        Router::new().nest(&format!("/{}", self.secret), calls).fallback(no_secret)
    }
}

fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_string(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        answer(self.status(), &json!({ "error": self.to_string() }))
    }
}

/// Does it to its end, even if the client closes its connection meanwhile.
async fn to_the_end<T: Send + 'static>(
    act: impl Future<Output = Result<T, ControlError>> + Send + 'static,
) -> Result<T, ControlError> {
    tokio::spawn(act).await.map_err(|_| ControlError::Panicked)?
}

fn state(held: &Held) -> Result<Response, ControlError> {
    Ok(answer(StatusCode::OK, &EnsembleState::of(held.running()?)?))
}

fn ensemble_id(text: &str) -> Result<u32, ControlError> {
    let wanted = "the number from the answer to POST /ensembles is wanted";
    text.parse().map_err(|_| ControlError::Value { name: "the ensemble", value: text.into(), wanted })
}

async fn no_call(method: Method, uri: Uri) -> ControlError {
    ControlError::NoCall { method: method.to_string(), path: uri.path().into() }
}

async fn no_secret() -> Response {
    let error = "use the whole address that `ostler testserver` has printed as \"control\"";
    answer(StatusCode::NOT_FOUND, &json!({ "error": error }))
}

async fn list(State(ensembles): Shared) -> Result<Response, ControlError> {
    let mut all = Vec::new();
    for id in ensembles.ids() {
        match ensembles.hold(id).await.and_then(|held| EnsembleState::of(held.running()?)) {
            Ok(state) => all.push(state),
            // It was deleted meanwhile.
            Err(ControlError::NoEnsemble(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer(StatusCode::OK, &json!({ "ensembles": all })))
}

async fn start(State(ensembles): Shared, body: Bytes) -> Result<Response, ControlError> {
    let wanted: NewEnsemble = request::body(&body)?;
    to_the_end(async move {
        let held = ensembles.start(&wanted).await?;
        Ok(answer(StatusCode::CREATED, &EnsembleState::of(held.running()?)?))
    })
    .await
}

async fn show(State(ensembles): Shared, Path(id): Path<String>) -> Result<Response, ControlError> {
    state(&ensembles.hold(ensemble_id(&id)?).await?)
}

async fn delete(State(ensembles): Shared, Path(id): Path<String>) -> Result<Response, ControlError> {
    let id = ensemble_id(&id)?;
    to_the_end(async move { ensembles.delete(id).await }).await?;
    Ok(answer(StatusCode::OK, &json!({ "deleted": [id] })))
}

async fn delete_all(State(ensembles): Shared) -> Result<Response, ControlError> {
    let deleted = to_the_end(async move { Ok(ensembles.delete_all().await) }).await?;
    Ok(answer(StatusCode::OK, &json!({ "deleted": deleted })))
}

/// A number among the parameters.
fn number<T: std::str::FromStr>(
    parameters: &BTreeMap<String, String>,
    name: &'static str,
) -> Result<Option<T>, ControlError> {
    let read = |text: &String| {
        let wanted = "a number is wanted";
        text.parse().map_err(|_| ControlError::Value { name, value: text.clone(), wanted })
    };
    parameters.get(name).map(read).transpose()
}

fn within(parameters: &BTreeMap<String, String>) -> Result<Duration, ControlError> {
    let within = number(parameters, "within_ms")?.map_or(WITHIN, Duration::from_millis);
    if within > WITHIN_MAX {
        let wanted = "a wait takes at most 300000 ms";
        let value = within.as_millis().to_string();
        return Err(ControlError::Value { name: "within_ms", value, wanted });
    }
    Ok(within)
}

async fn leader(
    State(ensembles): Shared,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Result<Response, ControlError> {
    let (id, other_than) = (ensemble_id(&id)?, number(&parameters, "other_than")?);
    state(&waiting::until_led(&ensembles, id, other_than, within(&parameters)?).await?)
}

async fn serving(
    State(ensembles): Shared,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Result<Response, ControlError> {
    state(&waiting::until_serving(&ensembles, ensemble_id(&id)?, within(&parameters)?).await?)
}

async fn act(
    State(ensembles): Shared,
    Path((id, server, act)): Path<(String, String, String)>,
    method: Method,
    uri: Uri,
) -> Result<Response, ControlError> {
    let Some(act) = Act::parse(&act) else { return Err(no_call(method, uri).await) };
    let (id, which) = (ensemble_id(&id)?, WhichServer::parse(&server)?);
    to_the_end(async move {
        let mut held = ensembles.hold(id).await?;
        held.running_mut()?.act(which, act).await?;
        state(&held)
    })
    .await
}

async fn sessions(State(ensembles): Shared, Path(id): Path<String>) -> Result<Response, ControlError> {
    let held = ensembles.hold(ensemble_id(&id)?).await?;
    let all: Vec<SessionState> = held.running()?.sessions()?.iter().map(SessionState::of).collect();
    Ok(answer(StatusCode::OK, &json!({ "sessions": all })))
}

async fn session(
    State(ensembles): Shared,
    Path((id, session, act)): Path<(String, String, String)>,
    method: Method,
    uri: Uri,
) -> Result<Response, ControlError> {
    let (id, session) = (ensemble_id(&id)?, request::session(&session)?);
    let done: Value = match &*act {
        "expire" => {
            to_the_end(async move { ensembles.hold(id).await?.running()?.expire(session).await }).await?;
            json!({ "expired": session.to_string() })
        }
        "disconnect" => {
            ensembles.hold(id).await?.running()?.disconnect(session)?;
            json!({ "disconnected": session.to_string() })
        }
        _ => return Err(no_call(method, uri).await),
    };
    Ok(answer(StatusCode::OK, &done))
}

async fn fault(
    State(ensembles): Shared,
    Path((id, fault)): Path<(String, String)>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ControlError> {
    let Some(fault) = Fault::parse(&fault) else { return Err(no_call(method, uri).await) };
    let (id, place): (u32, Where) = (ensemble_id(&id)?, request::body(&body)?);
    let held = ensembles.hold(id).await?;
    network::apply(held.running()?, fault, &place)?;
    state(&held)
}
