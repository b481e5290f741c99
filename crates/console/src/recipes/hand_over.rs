//! Takes leadership or a lock from its holder, as an operator asks.
//!
//! Everything is looked at anew before the act: the page's list may be seconds old. A deletion and a revocation go the way
//! of a client's request, with the version of the znode that was looked at, by the rights of the server; the audit log
//! names the operator.

use super::{
    gather::{Looks, SeenContender, Snapshot},
    groups::REVOKED,
    offer::Way,
    patterns::Form,
    shown::Readable,
};
use crate::{
    error::{ApiError, Code},
    rights::{Caller, Operator},
    state::Console,
};
use axum::{Json, extract::State, extract::rejection::JsonRejection};
use ostler_client::{Client, Error, RecipeTag, paths};
use ostler_proto::id::SessionId;
use ostler_server::admin::NotExpired;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task::spawn_blocking;

/// The timeout of the session for one act, and the time for it to open.
const SESSION: Duration = Duration::from_secs(6);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The act that is asked for.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    /// The group.
    path: String,
    /// The path of the holder's znode, as the page has shown it.
    holder: String,
    /// The holder's token, as the page has shown it. Needed where all holders' znodes have one path.
    token: Option<String>,
    way: String,
}

/// The holder that an act is about, as it was just now.
struct Target {
    holder: SeenContender,
    /// The next one in the queue.
    next: Option<Box<str>>,
    way: Way,
}

/// A znode that may be deleted: a leader of Ostler's recipes holds it, and watches it. There is no other way to make one.
struct OwnLeader<'a> {
    path: &'a str,
    version: i32,
}

impl<'a> OwnLeader<'a> {
    fn of(holder: &'a SeenContender) -> Option<OwnLeader<'a>> {
        let (path, version) = (&*holder.contender.path, holder.znode.version);
        let tag = RecipeTag::of(paths::name(path))?;
        matches!(tag, RecipeTag::LeaderLatch | RecipeTag::LeaderSelector)
            .then_some(OwnLeader { path, version })
    }
}

/// Hands over.
pub(crate) async fn hand_over(
    State(console): State<Arc<Console>>,
    Operator(caller): Operator,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(wanted) = wanted.map_err(|error| ApiError::bad(error.body_text()))?;
    let way = Way::ALL.into_iter().find(|way| way.name() == wanted.way && *way != Way::None);
    let way = way.ok_or_else(|| ApiError::bad("The way is fence, revoke or expire."))?;
    let (path, by) = (wanted.path.clone(), caller.name().unwrap_or("?").to_owned());
    let target = look_again(&console, &caller, wanted, way).await?;
    let done = act(&console, &caller, &target).await;
    console.recipes.forget().await;
    tracing::info!(
        group = %path, holder = %target.holder.contender.path, way = way.name(), operator = %by, done = done.is_ok(),
        "an operator hands over"
    );
    let sentence = done.map_err(|error| error.at(&target.holder.contender.path))?;
    Ok(Json(json!({ "done": true, "sentence": sentence })))
}

/// The holder as it is now. Fails if it is not the one that the page has shown, or the way is not offered for it.
async fn look_again(
    console: &Arc<Console>,
    caller: &Caller,
    wanted: Wanted,
    way: Way,
) -> Result<Target, ApiError> {
    let (shared, ids) = (console.clone(), caller.ids.clone());
    let looked = spawn_blocking(move || {
        let looks = Looks(&shared.handle);
        let now = looks.groups(&wanted.path);
        if now.is_too_large {
            return Err(super::too_large());
        }
        let acls = now.groups.iter().filter_map(|group| group.acls.as_ref()).flatten();
        let readable = Readable::of(&looks, &ids, acls);
        target(now, &readable, &wanted, way)
    });
    looked.await.map_err(|_| ApiError::new(Code::Server, "The server has failed to look at the group."))?
}

fn target(now: Snapshot, readable: &Readable, wanted: &Wanted, way: Way) -> Result<Target, ApiError> {
    let group = now.groups.into_iter().find(|seen| *seen.group.path == *wanted.path && readable.shows(seen));
    let group = group.ok_or_else(|| super::no_group(&wanted.path))?;
    let changed = |sentence: &str| ApiError::new(Code::Plan, sentence).at(&wanted.path);
    let Some(holder) = group.holder else {
        return Err(changed("Nobody holds any more. Look at the queue again."));
    };
    let is_same_token = wanted.token.as_ref().is_none_or(|token| *token == holder.znode.czxid.to_string());
    if *holder.contender.path != *wanted.holder || !is_same_token {
        return Err(changed("Another one holds now. Look at the queue again."));
    }
    if wanted.token.is_none() && holder.contender.form == Form::Leader {
        return Err(ApiError::bad(
            "All holders of this group have znodes with one path, so send the token, too.",
        ));
    }
    let offer = holder.offer(&group.group);
    // Whatever is offered, the session can be ended.
    if offer.way != way && (way != Way::Expire || offer.way == Way::None) {
        let sentence =
            format!("Nothing was done. For this holder the way is {}: {}", offer.way.name(), offer.sentence);
        return Err(changed(&sentence));
    }
    let next = group.group.queue.get(group.group.holding).map(|next| next.path.clone());
    Ok(Target { holder, next, way })
}

async fn act(console: &Arc<Console>, caller: &Caller, target: &Target) -> Result<String, ApiError> {
    match target.way {
        Way::Fence => {
            let Some(own) = OwnLeader::of(&target.holder) else {
                return Err(ApiError::new(Code::Plan, "The holder is no leader of Ostler's recipes."));
            };
            fence(console, caller, own).await?;
            Ok(format!(
                "The holder's znode is deleted. It stops leading, and its token {} is refused. {}",
                target.holder.znode.czxid,
                who_is_next(target)
            ))
        }
        Way::Revoke => {
            revoke(console, caller, &target.holder).await?;
            Ok("The holder is asked to release the lock. It decides whether and when.".into())
        }
        Way::Expire => expire(console, caller, target).await,
        Way::None => Err(ApiError::bad("The way is fence, revoke or expire.")),
    }
}

fn who_is_next(target: &Target) -> String {
    match &target.next {
        Some(next) => format!("Next in the queue is {next}."),
        None => "Nobody else is in the queue; the program may come again.".into(),
    }
}

/// Deletes the znode of a leader of Ostler, if it is still the one that was looked at.
async fn fence(console: &Arc<Console>, caller: &Caller, own: OwnLeader<'_>) -> Result<(), ApiError> {
    let client = client(console, caller).await?;
    let checked = client.multi().check(own.path, own.version);
    let deleted = checked.delete(own.path, own.version).commit().await;
    client.close().await;
    deleted.map(drop).map_err(refused)
}

/// Asks the holder to release, if its znode is still as it was looked at.
async fn revoke(console: &Arc<Console>, caller: &Caller, holder: &SeenContender) -> Result<(), ApiError> {
    let client = client(console, caller).await?;
    let written = client.set_data(&holder.contender.path, REVOKED).version(holder.znode.version).await;
    client.close().await;
    written.map(drop).map_err(refused)
}

async fn expire(console: &Arc<Console>, caller: &Caller, target: &Target) -> Result<String, ApiError> {
    let Some(session) = target.holder.znode.owner else {
        return Err(ApiError::new(Code::Plan, "The holder's znode belongs to no session."));
    };
    let by = (&*caller.ids, caller.conn.peer.ip());
    console.handle.expire_session(session, by).await.map_err(|error| not_expired(session, error))?;
    Ok(format!("The session {session} is ended, and all that it owned is deleted. {}", who_is_next(target)))
}

fn not_expired(session: SessionId, error: NotExpired) -> ApiError {
    let (code, what_to_do) = match error {
        NotExpired::NoSession => (Code::Plan, "Look at the queue again."),
        NotExpired::NotLeader => (Code::Busy, "Hand over at the console of the leader."),
        NotExpired::NotCommitted => (Code::Busy, "Is there a quorum?"),
    };
    ApiError::new(code, format!("The session {session} is not ended: {error}. {what_to_do}"))
}

/// A client with the rights of the server, whose acts are audited under the operator's name.
async fn client(console: &Arc<Console>, caller: &Caller) -> Result<Client, ApiError> {
    let (handle, peer, ids) = (console.handle.clone(), caller.conn.peer, caller.ids.clone());
    let dial = move |_host, _port| {
        let (handle, ids) = (handle.clone(), ids.clone());
        async move { handle.connect_as_operator(peer, &ids).await }
    };
    let builder = Client::builder("localhost:2181")
        .session_timeout(SESSION)
        .connection_timeout(CONNECT_WITHIN)
        .new_session_after_loss(false)
        .connector(dial);
    builder.connect().await.map_err(|error| {
        ApiError::new(
            Code::Busy,
            format!("The server opens no session for this now: {error}. Is there a quorum?"),
        )
    })
}

fn refused(error: Error) -> ApiError {
    let code = error.code().map_or(Code::Busy, Code::Client);
    ApiError::new(code, format!("Nothing was handed over: {error}. Look at the queue again."))
}
