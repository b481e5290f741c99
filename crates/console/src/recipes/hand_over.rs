//! Takes leadership or a lock from its holder, as an operator asks.
//!
//! Everything is looked at anew before the act: the page's list may be seconds old. A deletion and a revocation go the way
//! of a client's request, with the version of the znode that was looked at, by the rights of the server; the audit log
//! names the operator.

use super::{
    gather::{Looks, SeenContender, Snapshot},
    groups::{Contender, Group, REVOKED},
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
use ostler_client::{Client, Error, RecipeTag, Version, paths};
use ostler_proto::id::SessionId;
use ostler_server::admin::NotExpired;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{task::spawn_blocking, time::timeout};

/// The timeout of the session for one act, and the time for it to open.
const SESSION: Duration = Duration::from_secs(6);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The time for the server to be brought up to date.
const SYNC_WITHIN: Duration = Duration::from_secs(5);

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
    /// Those who stay when it is gone.
    left: Left,
    way: Way,
}

/// Those who are in a queue beside the holder that an act is about.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    /// Others who hold: readers, or the holders of other leases.
    holding: usize,
    /// The first who waits.
    first: Option<Box<str>>,
}

/// The result of an act.
struct Outcome {
    /// Whether it is done; false if it was asked for, and may still be done.
    done: bool,
    sentence: String,
}

impl Outcome {
    fn done(sentence: String) -> Outcome {
        Outcome { done: true, sentence }
    }
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
    if way == Way::Expire {
        sync(&console, &caller, &path).await?;
    }
    let target = look_again(&console, &caller, wanted, way).await?;
    let done = act(&console, &caller, &target).await;
    console.recipes.forget().await;
    tracing::info!(
        group = %path, holder = %target.holder.contender.path, way = way.name(), operator = %by, done = done.as_ref().is_ok_and(|outcome| outcome.done),
        "an operator hands over"
    );
    let Outcome { done, sentence } = done.map_err(|error| error.at(&target.holder.contender.path))?;
    Ok(Json(json!({ "done": done, "sentence": sentence })))
}

/// Brings this server up to date. At one that lags, the holder that it shows may hold no more, and its session would be
/// ended for nothing.
async fn sync(console: &Arc<Console>, caller: &Caller, path: &str) -> Result<(), ApiError> {
    let client = client(console, caller).await?;
    let synced = timeout(SYNC_WITHIN, async { client.sync(path).await }).await;
    client.close().await;
    match synced {
        Ok(Ok(())) => Ok(()),
        _ => Err(ApiError::new(
            Code::Busy,
            "Nothing was done: this server could not be brought up to date, so it does not know who holds now. Is there a quorum?",
        )
        .at(path)),
    }
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
        let acls = now.groups.iter().flat_map(|group| group.acls.known());
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
    let left = Left::without(&group.group, &holder.contender);
    Ok(Target { holder, left, way })
}

async fn act(console: &Arc<Console>, caller: &Caller, target: &Target) -> Result<Outcome, ApiError> {
    match target.way {
        Way::Fence => {
            let Some(own) = OwnLeader::of(&target.holder) else {
                return Err(ApiError::new(Code::Plan, "The holder is no leader of Ostler's recipes."));
            };
            fence(console, caller, own).await?;
            Ok(Outcome::done(format!(
                "The holder's znode is deleted. It stops leading, and its token {} is refused. {}",
                target.holder.znode.czxid,
                target.left.sentence()
            )))
        }
        Way::Revoke => {
            revoke(console, caller, &target.holder).await?;
            Ok(Outcome::done("The holder is asked to release the lock. It decides whether and when.".into()))
        }
        Way::Expire => expire(console, caller, target).await,
        Way::None => Err(ApiError::bad("The way is fence, revoke or expire.")),
    }
}

impl Left {
    /// Those in the queue of a group who are neither this holder nor of its session.
    fn without(group: &Group, holder: &Contender) -> Left {
        let stays = |one: &&Contender| {
            one.path != holder.path && (one.session.is_none() || one.session != holder.session)
        };
        let (holding, waiting) = group.queue.split_at(group.holding.min(group.queue.len()));
        let first = waiting.iter().find(stays).map(|first| first.path.clone());
        Left { holding: holding.iter().filter(stays).count(), first }
    }

    fn sentence(&self) -> String {
        match (self.holding, &self.first) {
            (0, Some(first)) => format!("Next in the queue is {first}."),
            (0, None) => "Nobody else is in the queue; the program may come again.".into(),
            (others, Some(first)) => format!("Others still hold: {others}. The first who waits is {first}."),
            (others, None) => format!("Others still hold: {others}. Nobody waits."),
        }
    }
}

/// Deletes the znode of a leader of Ostler, if it is still the one that was looked at.
async fn fence(console: &Arc<Console>, caller: &Caller, own: OwnLeader<'_>) -> Result<(), ApiError> {
    let client = client(console, caller).await?;
    let checked = client.multi().check(own.path, Version::Exactly(own.version));
    let deleted = checked.delete(own.path).version(Version::Exactly(own.version)).await;
    client.close().await;
    deleted.map(drop).map_err(refused)
}

/// Asks the holder to release, if its znode is still as it was looked at.
async fn revoke(console: &Arc<Console>, caller: &Caller, holder: &SeenContender) -> Result<(), ApiError> {
    let client = client(console, caller).await?;
    let written = client
        .set_data(&holder.contender.path, REVOKED)
        .version(Version::Exactly(holder.znode.version))
        .await;
    client.close().await;
    written.map(drop).map_err(refused)
}

async fn expire(console: &Arc<Console>, caller: &Caller, target: &Target) -> Result<Outcome, ApiError> {
    let Some(session) = target.holder.znode.owner else {
        return Err(ApiError::new(Code::Plan, "The holder's znode belongs to no session."));
    };
    let by = (&*caller.ids, caller.conn.peer.ip());
    match console.handle.expire_session(session, by).await {
        Ok(()) => Ok(Outcome::done(format!(
            "The session {session} is ended, and all that it owned is deleted. {}",
            target.left.sentence()
        ))),
        Err(error) => not_expired(session, error),
    }
}

fn not_expired(session: SessionId, error: NotExpired) -> Result<Outcome, ApiError> {
    let refused = |code, what_to_do| {
        Err(ApiError::new(code, format!("The session {session} is not ended: {error}. {what_to_do}")))
    };
    match error {
        NotExpired::NoSession => refused(Code::Plan, "Look at the queue again."),
        NotExpired::NotLeader => refused(Code::Busy, "Try again when there is a leader."),
        NotExpired::NotCommitted => {
            let sentence = format!(
                "The leader was asked to end the session {session}, and has not done so within 5 s. Is there a quorum?"
            );
            Ok(Outcome { done: false, sentence })
        }
    }
}

/// A client with the rights of the server, whose acts are audited under the operator's name.
async fn client(console: &Arc<Console>, caller: &Caller) -> Result<Client, ApiError> {
    let (handle, peer, ids) = (console.handle.clone(), caller.conn.peer, caller.ids.clone());
    let dial = move |_| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{http::StatusCode, response::IntoResponse};

    #[test]
    fn an_end_that_is_not_committed_yet_is_no_error() {
        let ended = |error| not_expired(SessionId(7), error);
        let late = ended(NotExpired::NotCommitted).unwrap();
        assert!(!late.done && late.sentence.ends_with("within 5 s. Is there a quorum?"), "{}", late.sentence);
        let status = |error| ended(error).err().map(|error| error.into_response().status());
        assert_eq!(status(NotExpired::NotLeader), Some(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!(status(NotExpired::NoSession), Some(StatusCode::CONFLICT));
    }
}
