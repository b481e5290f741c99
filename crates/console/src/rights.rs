//! The callers, and their rights. A handler names the right that it needs by the type of its argument.

use crate::{
    error::{ApiError, Code},
    people::{self, Proof, Ticket},
    state::Console,
};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, header, request::Parts},
};
use ostler_proto::acl::Id;
use ostler_server::admin::{AdminConn, MayView, logins::Standing};
use std::{sync::Arc, time::Instant};

/// The header with the token that changes must carry.
const TOKEN: &str = "x-ostler-token";
/// The header of a member that asks on behalf of somebody else. The other member then shows it no more of the tree than
/// everybody may see: what is for the address or the certificate of the member is not for that person.
pub(crate) const MEMBER: &str = "x-ostler-member";
/// The most characters of a host's name in a sentence.
const NAME_MAX: usize = 100;

/// Somebody who asks. The tree's ACLs say what they may see of it.
pub struct Caller {
    /// The connection of the request.
    pub conn: AdminConn,
    /// Their identities: those of the connection (address, certificate), and those that the sign-in has proven.
    pub ids: Vec<Id>,
    pub(crate) proof: Proof,
    token: Token,
}

/// Somebody who may see the pages about the server.
pub struct Viewer(pub Caller);

/// Somebody who may act on the server, in a request that a page of this server or a program has made.
pub struct Operator(pub Caller);

/// Somebody whose request may change znodes as far as their ACLs allow it: a page of this server or a program has made it.
pub struct Writer(pub Caller);

/// The thing that a change must carry, so that it cannot come from another site's page.
#[derive(Clone, Copy)]
enum Token {
    /// The token of the page.
    Of(Ticket),
    /// None: the request has an identity of its own, which a browser does not add.
    NotNeeded,
}

impl Caller {
    /// The name to greet them by; `None` if they have not signed in.
    pub fn name(&self) -> Option<&str> {
        let proven = self.ids.iter().find(|id| matches!(&*id.scheme, "digest" | "sasl" | "x509"))?;
        match &*proven.scheme {
            "digest" => proven.id.split(':').next(),
            _ => Some(&proven.id),
        }
    }

    /// The token for this caller's pages.
    pub(crate) fn token(&self) -> Option<String> {
        match &self.token {
            Token::Of(ticket) => Some(people::hex(ticket)),
            Token::NotNeeded => None,
        }
    }

    fn of(parts: &Parts, console: &Console) -> Result<Caller, ApiError> {
        let Some(conn) = parts.extensions.get::<AdminConn>().cloned() else {
            return Err(ApiError::new(Code::Server, "The request has no connection."));
        };
        let headers = &parts.headers;
        // Anybody can send it. It takes rights away, and gives none.
        if headers.contains_key(MEMBER) {
            let token = Token::Of(console.token);
            return Ok(Caller { conn, ids: Vec::new(), proof: Proof::None, token });
        }
        let mut ids = console.handle.identities(&conn, "ip", None).unwrap_or_default();
        if conn.certificate.is_some() {
            ids.extend(console.handle.identities(&conn, "x509", None).unwrap_or_default());
        }
        if let Some(written) = text(headers, header::AUTHORIZATION.as_str()) {
            return with_header(console, conn, ids, written);
        }
        let Some((_, person)) = console.people.of(headers, Instant::now()) else {
            let token = Token::Of(console.token);
            return Ok(Caller { conn, ids, proof: Proof::None, token });
        };
        ids.extend(person.ids.iter().cloned());
        let token = Token::Of(person.token);
        Ok(Caller { conn, ids, proof: person.proof.clone(), token })
    }

    /// Whether they have signed in, or have shown a certificate.
    fn has_identity(&self) -> bool {
        self.ids.iter().any(|id| id.scheme != "ip")
    }

    /// Refuses requests of other sites' pages, and at a guarded port those without an identity that has a right here.
    fn may_come(&self, headers: &HeaderMap, console: &Console) -> Result<(), ApiError> {
        let may = by_own_site(&self.conn, headers, console)?;
        if may != MayView::WithIdentity || console.handle.is_member(&self.conn) {
            return Ok(());
        }
        check_admitted(&self.ids, console)
    }

    /// Refuses a change that no page of this server and no program has asked for.
    fn may_change(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        is_own_json(headers)?;
        match &self.token {
            Token::NotNeeded => Ok(()),
            Token::Of(token) if text(headers, TOKEN).is_some_and(|shown| people::same(token, shown)) => {
                Ok(())
            }
            Token::Of(_) => Err(ApiError::new(
                Code::OtherSite,
                "The request has no token of this page (X-Ostler-Token, see /api/v1/me). Load the page anew.",
            )),
        }
    }
}

/// Refuses requests that came by a name of another site, or from its page.
pub(crate) fn by_own_site(
    conn: &AdminConn,
    headers: &HeaderMap,
    console: &Console,
) -> Result<MayView, ApiError> {
    let may = console.handle.may_view(conn, headers);
    if may == MayView::OtherName {
        let host: String =
            text(headers, header::HOST.as_str()).unwrap_or("?").chars().take(NAME_MAX).collect();
        return Err(ApiError::new(
            Code::OtherSite,
            format!(
                "The request came by the name {host}, which this server does not know as its own. If you reach it by this name, \
                 as through a Kubernetes Ingress, a Service or a proxy, add the name to admin.hostNames in zoo.cfg, without the \
                 port, and start the server anew."
            ),
        ));
    }
    let is_other_site =
        text(headers, "sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    if may == MayView::OtherSite || is_other_site {
        return Err(ApiError::new(
            Code::OtherSite,
            "The request came from a page of another site, and is refused.",
        ));
    }
    Ok(may)
}

/// Refuses identities that a guarded port does not admit.
pub(crate) fn check_admitted(ids: &[Id], console: &Console) -> Result<(), ApiError> {
    if ids.iter().all(|id| id.scheme == "ip") {
        return Err(ApiError::new(Code::SignIn, "Sign in: this port shows nothing without an identity."));
    }
    if console.handle.is_admitted(ids) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::Forbidden,
        "This port shows nothing to your identity. Is the password right? Without TLS a user needs READ in the ACL of the root, \
         or a place in admin.viewers or admin.operators.",
    ))
}

/// Checks that a request with a body has JSON, and that no page of another site has made it.
pub(crate) fn is_own_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_json = text(headers, header::CONTENT_TYPE.as_str())
        .is_some_and(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"));
    if !is_json {
        return Err(ApiError::bad(
            "A change is sent as JSON: set the header Content-Type: application/json.",
        ));
    }
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let of_host = |origin: &str| origin.split_once("://").is_some_and(|(_, name)| name == host);
    if text(headers, header::ORIGIN.as_str()).is_some_and(|origin| !of_host(origin)) {
        return Err(ApiError::new(
            Code::OtherSite,
            "A page of another site has made this request. It is refused.",
        ));
    }
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(HeaderValue::to_str)?.ok()
}

/// A program's request with the header `Authorization: digest USER:PASSWORD`.
fn with_header(
    console: &Console,
    conn: AdminConn,
    mut ids: Vec<Id>,
    written: &str,
) -> Result<Caller, ApiError> {
    let refused =
        || ApiError::new(Code::SignIn, "The header Authorization is digest USER:PASSWORD, or x509.");
    let (scheme, data) = written.split_once(' ').unwrap_or((written, ""));
    let proof = match scheme {
        "digest" if !data.is_empty() => Proof::Digest(data.as_bytes().to_vec()),
        "x509" if data.is_empty() && conn.certificate.is_some() => Proof::None,
        _ => return Err(refused()),
    };
    if let Proof::Digest(auth) = &proof {
        let standing = console.logins.note(conn.peer.ip(), auth, Instant::now());
        if standing == Standing::TooMany {
            return Err(ApiError::new(
                Code::TooMany,
                "Too many passwords of this user were tried from this address. Wait a minute.",
            ));
        }
        let proven = console.handle.identities(&conn, scheme, Some(auth)).ok_or_else(refused)?;
        if standing == Standing::New && console.handle.is_admitted(&proven) {
            console.logins.has_right(conn.peer.ip(), auth);
        }
        ids.extend(proven);
    }
    Ok(Caller { conn, ids, proof, token: Token::NotNeeded })
}

impl FromRequestParts<Arc<Console>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Caller, ApiError> {
        let caller = Caller::of(parts, console)?;
        caller.may_come(&parts.headers, console)?;
        Ok(caller)
    }
}

/// Whether a caller may see the pages about the server.
pub(crate) fn is_viewer(caller: &Caller, headers: &HeaderMap, console: &Console) -> bool {
    let is_open = console.handle.may_view(&caller.conn, headers) == MayView::Yes;
    (is_open && !console.handle.has_viewers())
        || console.handle.is_viewer(&caller.ids)
        || console.handle.is_member(&caller.conn)
}

impl FromRequestParts<Arc<Console>> for Viewer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Viewer, ApiError> {
        let caller = Caller::from_request_parts(parts, console).await?;
        if is_viewer(&caller, &parts.headers, console) {
            return Ok(Viewer(caller));
        }
        Err(match caller.has_identity() {
            true => ApiError::new(
                Code::Forbidden,
                "Your identity may not see the pages about the server (admin.viewers).",
            ),
            false => ApiError::new(Code::SignIn, "Sign in to see the pages about the server."),
        })
    }
}

/// Refuses those who may not act on the server.
pub(crate) fn check_operator(caller: &Caller, console: &Console) -> Result<(), ApiError> {
    if console.handle.is_operator(&caller.ids) {
        return Ok(());
    }
    Err(match caller.has_identity() {
        true => ApiError::new(Code::Forbidden, "Your identity may not act on the server (admin.operators)."),
        false => ApiError::new(Code::SignIn, "Sign in as an operator to do this."),
    })
}

impl FromRequestParts<Arc<Console>> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Operator, ApiError> {
        let caller = Caller::from_request_parts(parts, console).await?;
        caller.may_change(&parts.headers)?;
        check_operator(&caller, console)?;
        Ok(Operator(caller))
    }
}

impl FromRequestParts<Arc<Console>> for Writer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Writer, ApiError> {
        let caller = Caller::from_request_parts(parts, console).await?;
        caller.may_change(&parts.headers)?;
        Ok(Writer(caller))
    }
}
