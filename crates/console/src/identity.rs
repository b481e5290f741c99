//! Signing in and out, and who one is: `/api/v1/me`.

use crate::{
    error::{ApiError, Code},
    inner_client,
    people::{self, LASTS, Person, Proof},
    rights::{self, Caller},
    state::Console,
};
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use ostler_proto::acl::Id;
use ostler_server::admin::{AdminConn, MayView};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};

/// The longest user name and password together.
const LOGIN_MAX: usize = 1024;

/// How somebody signs in.
#[derive(Deserialize)]
pub(crate) struct SignIn {
    scheme: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    password: String,
}

/// Tells who the caller is, and what the pages may offer. It never fails for want of an identity: the page needs it to sign in.
pub(crate) async fn me(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    caller: Result<Caller, ApiError>,
) -> Result<Response, ApiError> {
    let body = match &caller {
        Ok(caller) => description(&console, &headers, caller),
        Err(refused) if refused.is_of_identity() => json!({
            "ids": [], "name": null, "super": false, "viewer": false, "operator": false,
            "read_only": console.handle.is_read_only(), "token": null, "needs_sign_in": true, "server": server(&console),
        }),
        Err(_) => return caller.map(|_| ().into_response()),
    };
    Ok(Json(body).into_response())
}

fn description(console: &Console, headers: &HeaderMap, caller: &Caller) -> Value {
    let ids: Vec<Value> = caller.ids.iter().map(shown).collect();
    json!({
        "ids": ids,
        "name": caller.name(),
        "super": caller.ids.iter().any(|id| id.scheme == "super"),
        "viewer": rights::is_viewer(caller, headers, console),
        "operator": console.handle.is_operator(&caller.ids),
        "read_only": console.handle.is_read_only(),
        "token": caller.token(),
        "needs_sign_in": false,
        "server": server(console),
    })
}

/// An identity without the digest of its password.
fn shown(id: &Id) -> Value {
    let name = match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        _ => &id.id,
    };
    json!({ "scheme": id.scheme, "id": name })
}

fn server(console: &Console) -> Value {
    json!({
        "id": console.handle.id().map(|id| id.0),
        "standalone": console.handle.id().is_none(),
        "version": env!("CARGO_PKG_VERSION"),
        "command_url": console.handle.command_url(),
    })
}

/// Signs in. A digest cannot be wrong: it only proves the identity of this user with this password. So the answer says
/// who one is now.
pub(crate) async fn sign_in(
    State(console): State<Arc<Console>>,
    Extension(conn): Extension<AdminConn>,
    headers: HeaderMap,
    Json(wanted): Json<SignIn>,
) -> Result<Response, ApiError> {
    let may = rights::by_own_site(&conn, &headers, &console)?;
    rights::is_own_json(&headers)?;
    if !console.people.may_try(conn.peer.ip(), Instant::now()) {
        return Err(ApiError::new(
            Code::TooMany,
            "Too many attempts to sign in from this address. Wait a minute.",
        ));
    }
    if wanted.user.len() + wanted.password.len() > LOGIN_MAX {
        return Err(ApiError::bad("The name and the password are too long."));
    }
    let (proof, ids) = prove(&console, &conn, wanted).await?;
    if may == MayView::WithIdentity {
        rights::check_admitted(&ids, &console)?;
    }
    let (Some(ticket), Some(token)) = (people::new_ticket(), people::new_ticket()) else {
        return Err(ApiError::new(
            Code::Server,
            "The system gives no random numbers, so nobody can sign in.",
        ));
    };
    console.people.sign_out(&headers);
    console.people.sign_in(ticket, Arc::new(Person { ids, proof, token, since: Instant::now() }));
    let secure = if conn.has_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
        people::cookie_name(&headers),
        people::hex(&ticket),
        LASTS.as_secs(),
    );
    let mut response = Json(json!({ "signed_in": true })).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The identities that a sign-in proves beside those of the connection.
async fn prove(
    console: &Arc<Console>,
    conn: &AdminConn,
    wanted: SignIn,
) -> Result<(Proof, Vec<Id>), ApiError> {
    let failed = |why: &str| ApiError::new(Code::SignIn, why);
    match &*wanted.scheme {
        "digest" => {
            if wanted.user.is_empty() || wanted.user.contains(':') {
                return Err(ApiError::bad("A user name is not empty, and has no colon."));
            }
            let auth = format!("{}:{}", wanted.user, wanted.password).into_bytes();
            let ids = console.handle.identities(conn, "digest", Some(&auth));
            let ids = ids.ok_or_else(|| failed("This server takes no digest identities."))?;
            Ok((Proof::Digest(auth), ids))
        }
        "x509" => {
            if console.handle.identities(conn, "x509", None).is_none() {
                return Err(failed("Your browser has shown no certificate that the server trusts."));
            }
            // Each connection proves them anew: a certificate that has ended must not live on in a cookie.
            Ok((Proof::None, Vec::new()))
        }
        "sasl" => {
            let proof = Proof::Sasl { user: wanted.user, password: wanted.password };
            let ids = inner_client::prove(console, conn, &proof).await?;
            Ok((proof, ids))
        }
        _ => Err(ApiError::bad("The scheme is digest, x509 or sasl.")),
    }
}

/// Signs out.
pub(crate) async fn sign_out(
    State(console): State<Arc<Console>>,
    Extension(conn): Extension<AdminConn>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    rights::by_own_site(&conn, &headers, &console)?;
    rights::is_own_json(&headers)?;
    console.people.sign_out(&headers);
    let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", people::cookie_name(&headers));
    let mut response = Json(json!({ "signed_in": false })).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
