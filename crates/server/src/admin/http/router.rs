//! The paths of the admin server.

use super::{
    access::{Caller, Right, Verdict, decide, is_address_or_localhost, is_same_name, scheme_and_data},
    command::Command,
    commands::{self, Query},
    health::{self, Asks, Facts},
    json::{self, Object},
    state::AdminState,
    whole,
};
use crate::admin::logins::Standing;
use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, Query as Parameters, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use ostler_proto::acl::{Id, Perms};
use ostler_server_core::{
    OperatorLogin,
    audit::{AuditOperation, Operator},
};
use ostler_tls::names::CertificateNames;
use serde_json::json;
use std::{net::SocketAddr, sync::Arc, time::Instant};
use tokio::task::spawn_blocking;

/// The connection that a request of the admin server came by. Each request has it as an extension.
#[derive(Debug, Clone)]
pub struct AdminConn {
    /// The caller's address. If there is a proxy, it is the proxy's.
    pub peer: SocketAddr,
    /// Whether the connection has TLS.
    pub has_tls: bool,
    /// The identity that the client's certificate proves.
    pub certificate: Option<Id>,
    /// The names that the certificate is for.
    pub names: Arc<CertificateNames>,
}

type Shared = State<Arc<AdminState>>;

/// All paths.
pub(crate) fn router(state: Arc<AdminState>) -> Router {
    let url = state.settings.command_url.clone();
    Router::new()
        .route(&url, get(list))
        .route(&format!("{url}/"), get(list))
        .route(&format!("{url}/{{*name}}"), any(command))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(state)
}

/// An answer as JSON.
pub(super) fn reply(status: StatusCode, body: &Object) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, json::text(body)).into_response()
}

/// An answer that has only an error.
pub(super) fn refusal(status: StatusCode, command: &str, error: &str) -> Response {
    let members = Object::from_iter([("command".into(), json!(command)), ("error".into(), json!(error))]);
    reply(status, &members)
}

/// Links to all commands, as Java lists them.
async fn list(State(state): Shared) -> String {
    let url = &state.settings.command_url;
    let line = |command: Command| {
        let name = command.name();
        format!("<a href=\"{url}/{name}\">{name}</a>\n<br/>\n")
    };
    Command::ALL.into_iter().map(line).collect()
}

async fn command(
    State(state): Shared,
    Extension(conn): Extension<AdminConn>,
    Path(name): Path<String>,
    Parameters(query): Parameters<Query>,
    request: Request,
) -> Response {
    if request.method() == Method::TRACE {
        return StatusCode::FORBIDDEN.into_response();
    }
    let Some(command) = Command::find(&name) else {
        return refusal(StatusCode::OK, &name, &format!("Unknown command: {name}"));
    };
    let by_post = request.method() == Method::POST;
    let by_get = matches!(*request.method(), Method::GET | Method::HEAD);
    if !(by_post && command.is_post() || by_get && !command.is_post()) {
        return refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            command.name(),
            "this command is not asked by this method",
        );
    }
    let allowed = allowed(&state, &conn, request.headers(), (command.right(), command.name()));
    let act = act_of(command, &query);
    let audited = |ids: &[Id], is_done| {
        if let Some(act) = act {
            state.audit(Operator { ids, address: conn.peer.ip() }, act, is_done);
        }
    };
    let ids = match allowed {
        Ok(ids) => ids,
        Err(refused) => {
            audited(&[], false);
            return *refused;
        }
    };
    let answer = match command {
        Command::Snapshot => whole::snapshot(state.clone(), &query).await,
        Command::ShedConnections => whole::shed_connections(state.clone(), request.into_body()).await,
        Command::Restore => whole::restore(state.clone(), request.into_body()).await,
        _ => return shown(state, command, query).await,
    };
    audited(&ids, answer.status().is_success());
    answer
}

/// The act that the audit log has a record of.
fn act_of(command: Command, query: &Query) -> Option<AuditOperation> {
    Some(match command {
        Command::Snapshot if whole::is_sent(query) => AuditOperation::SendSnapshot,
        Command::Snapshot => AuditOperation::TakeSnapshot,
        Command::ShedConnections => AuditOperation::ShedConnections,
        Command::Restore => AuditOperation::RestoreSnapshot,
        _ => return None,
    })
}

/// The answer to a command that shows something. It is made on a thread of its own, because it may read files and may be
/// gathered in parts; long ones wait for their turn.
async fn shown(state: Arc<AdminState>, command: Command, query: Query) -> Response {
    let long = if command.is_long() { state.reports.turns.long().await } else { None };
    let figures = if command == Command::Monitor { Some(state.reports.turns.figures().await) } else { None };
    let made = spawn_blocking(move || {
        let text = json::text(&commands::answer(&state, command, &query));
        drop((long, figures));
        text
    });
    match made.await {
        Ok(text) => text_reply(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn text_reply(text: Vec<u8>) -> Response {
    let mut response = reply(StatusCode::OK, &Object::new());
    *response.body_mut() = Body::from(text);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// Judges a request by its connection and headers.
pub(super) fn verdict(state: &AdminState, conn: &AdminConn, headers: &HeaderMap, right: Right) -> Verdict {
    let text = |header: header::HeaderName| headers.get(header).and_then(|value| value.to_str().ok());
    let is_cross_site = text(header::ORIGIN).is_some() || is_of_other_site(headers);
    let has_own_name = || match headers.get(header::HOST).map(HeaderValue::to_str) {
        None => true,
        Some(host) => host.is_ok_and(|host| is_own_name(state, without_port(host))),
    };
    // Only the membership tells the hosts of the members, and that is for health not worth a look.
    let has_own_name = right == Right::Health || has_own_name();
    decide(state.exposure, right, Caller { has_tls: conn.has_tls, has_own_name, is_cross_site })
}

/// Whether a name can only mean this ensemble: an address, `localhost`, the name of the machine, one of the
/// configuration (`admin.hostNames`, `admin.serverAddress`, `admin.peers`), or the host of a member.
fn is_own_name(state: &AdminState, host: &str) -> bool {
    let is_host = |name: &String| is_same_name(name, host);
    let settings = &state.settings;
    is_address_or_localhost(host)
        || settings.host_names.iter().any(is_host)
        || settings.peers.iter().any(|peer| is_host(&peer.host))
        || rustix::system::uname().nodename().to_str().is_ok_and(|name| is_same_name(name, host))
        || state.driver.inspect(|server| {
            let members = server.member_report().map(|member| member.membership.servers);
            let mut addresses = members.iter().flat_map(|of| of.values()).flat_map(|of| &of.addresses);
            addresses.any(|address| is_host(&address.host))
        })
}

/// Checks whether the caller may ask. Returns the identities that they had to prove. The error is the answer.
fn allowed(
    state: &AdminState,
    conn: &AdminConn,
    headers: &HeaderMap,
    (right, name): (Right, &str),
) -> Result<Vec<Id>, Box<Response>> {
    let refused = |status, error: &str| Err(Box::new(refusal(status, name, error)));
    let needed = match verdict(state, conn, headers, right) {
        Verdict::Allowed => return Ok(Vec::new()),
        Verdict::OtherName => {
            return refused(
                StatusCode::FORBIDDEN,
                "refused: the request came by the name of another site. If it is one of this server's, add it to \
                 admin.hostNames in zoo.cfg",
            );
        }
        Verdict::OtherSite => {
            return refused(StatusCode::FORBIDDEN, "refused: the request came from a page of another site");
        }
        Verdict::NeedsIdentity(needed) => needed,
    };
    let Some(header) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return refused(StatusCode::UNAUTHORIZED, "Auth info is missing for the command");
    };
    // The answers tell which password is right, so passwords must not be guessed one after the other.
    let (address, now) = (conn.peer.ip(), Instant::now());
    let login = scheme_and_data(header).and_then(|(_, data)| data).map(str::as_bytes);
    if login.is_some_and(|login| state.logins.note(address, login, now) == Standing::TooMany) {
        return refused(
            StatusCode::TOO_MANY_REQUESTS,
            "refused: too many different logins from this address. Wait a minute",
        );
    }
    match may(state, conn, header, needed) {
        Some((ids, true)) => {
            if let Some(login) = login {
                state.logins.has_right(address, login);
            }
            Ok(ids)
        }
        Some((_, false)) => refused(StatusCode::FORBIDDEN, "Not authorized"),
        None => refused(StatusCode::UNAUTHORIZED, "Not authenticated"),
    }
}

/// The identities of a login, and whether they have the permissions. `None` if the login fails.
fn may(state: &AdminState, conn: &AdminConn, header: &str, needed: Perms) -> Option<(Vec<Id>, bool)> {
    let (scheme, data) = scheme_and_data(header)?;
    let login = OperatorLogin {
        address: conn.peer.ip(),
        scheme,
        auth: data.map(str::as_bytes),
        certificate: conn.certificate.as_ref(),
    };
    state.driver.inspect(|server| {
        let ids = server.operator_ids(login)?;
        let may = server.operator_may(&ids, needed);
        Some((ids, may))
    })
}

/// Browsers say by this header where a request comes from; other programs leave it out.
fn is_of_other_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of a bare IPv6 address are no port's.
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => {
            if bare.contains(':') && !bare.ends_with(']') { host } else { bare }
        }
        _ => host,
    }
}

/// The process turns, and its core takes steps.
async fn livez(State(state): Shared) -> Response {
    let looked = spawn_blocking(move || state.driver.inspect(|server| server.tree().last_processed()));
    match tokio::time::timeout(CORE_WITHIN, looked).await {
        Ok(Ok(_)) => reply(StatusCode::OK, &Object::from_iter([("live".into(), json!(true))])),
        _ => reply(
            StatusCode::SERVICE_UNAVAILABLE,
            &Object::from_iter([
                ("live".into(), json!(false)),
                ("reason".into(), json!("the server's core has not answered within 5 s")),
            ]),
        ),
    }
}

/// The core is locked for less than a millisecond at a time.
const CORE_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

async fn readyz(State(state): Shared, Parameters(query): Parameters<Query>) -> Response {
    let asks = Asks { quorum: query.contains_key("quorum"), voter: query.contains_key("voter") };
    let (mode, member) = state.driver.inspect(|server| (server.mode(), server.member_report()));
    let (ready, body) = health::readiness(Facts { mode, member: member.as_ref() }, asks);
    reply(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &body)
}

async fn metrics(
    State(state): Shared,
    Extension(conn): Extension<AdminConn>,
    Parameters(query): Parameters<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    if let Err(refused) = allowed(&state, &conn, &headers, (Right::Read, "metrics")) {
        return *refused;
    }
    state.exporter.clone().scrape(query).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_taken_off_a_host() {
        for (host, bare) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:8080", "[::1]"),
            ("::1", "::1"),
            ("10.0.0.1:1", "10.0.0.1"),
        ] {
            assert_eq!(without_port(host), bare, "{host}");
        }
    }
}
