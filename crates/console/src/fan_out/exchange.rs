//! One question to one admin server, by HTTP.

use crate::rights::MEMBER;

use super::{Member, Silence, SilenceKind};
use axum::{
    body::{Body, Bytes},
    http::{Request, StatusCode, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use ostler_server::admin::AdminHandle;
use std::error::Error;

/// The longest answer.
pub(super) const ANSWER_MAX: usize = 1 << 20;

/// The answer of a member's admin server to a path below `/api/v1`.
pub(super) async fn get(handle: &AdminHandle, member: &Member, path: &str) -> Result<Bytes, Silence> {
    let failed =
        |error: &dyn Error| Silence::silent(format!("{} did not answer: {}.", member.at(), text(error)));
    let call = handle.call(&member.admin).await.map_err(|error| failed(&error))?;
    // By the address: the name of a host may be unknown to that server, which takes such requests for those of other sites.
    let host = call.to.to_string();
    let (mut sender, connection) = hyper::client::conn::http1::handshake::<_, Body>(TokioIo::new(call))
        .await
        .map_err(|error| failed(&error))?;
    let request = Request::get(format!("/api/v1/{path}"))
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .header(MEMBER, "1")
        .body(Body::empty())
        .map_err(|error| failed(&error))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        taken(member, response.status())?;
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        body.map(|body| body.to_bytes()).map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => Silence::silent(format!(
                "{} answered with more than a mebibyte, which is not read.",
                member.at()
            )),
            None => failed(&*error),
        })
    };
    let carries = async {
        // A failure of the connection is one of the exchange, too.
        drop(connection.await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = exchange => answer,
        () = carries => Err(Silence::silent(format!("{} closed the connection.", member.at()))),
    }
}

/// Whether an answer with this status is taken.
fn taken(member: &Member, status: StatusCode) -> Result<(), Silence> {
    let at = member.at();
    match status {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Silence::silent(format!(
            "{at} needs an identity: it shows its state to other machines by TLS only, or to those in its admin.viewers \
             (docs/console-api.md)."
        ))),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Err(Silence {
            kind: SilenceKind::NoConsole,
            reason: format!("{at} has no console: it is a server of Java, or an older one."),
        }),
        status => Err(Silence::silent(format!("{at} answered with status {}.", status.as_u16()))),
    }
}

/// An error with its causes, without the details that a hostile server could choose.
fn text(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text: String = innermost.to_string().chars().filter(|c| !c.is_control()).take(200).collect();
    text.trim_end_matches('.').to_owned()
}
