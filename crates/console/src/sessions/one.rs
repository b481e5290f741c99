//! All that is known of one session.

use super::{
    clock::utc,
    ended::{self, EndedItem},
    live::LiveItem,
};
use crate::{
    error::{ApiError, Code},
    list::{self, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use ostler_proto::{acl::Id, id::SessionId};
use ostler_server::admin::AdminHandle;
use ostler_server_core::{
    Server,
    sessions::ends::{EndsQuery, EndsReport, session_of, verdict::judge},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Records of a session that are looked at.
const RECORDS_MAX: usize = 100;
/// Ephemerals that are shown, and about the most bytes of their paths.
const EPHEMERALS_MAX: usize = 1000;
const BYTES_MAX: usize = 256 << 10;
/// Ephemerals in one look at the core.
const IN_ONE_LOOK: usize = 200;

/// One server's part.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OnePart {
    live: Option<LiveItem>,
    report: EndsReport,
}

/// The answer.
#[derive(Debug, Serialize)]
struct One {
    live: Option<LiveItem>,
    ended: Option<EndedItem>,
    ephemerals: Vec<String>,
    ephemerals_count: usize,
    sentences: Vec<String>,
    /// The records, for another server that judges with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<EndsReport>,
}

/// The id of a session in a path.
pub(super) fn id_of(text: &str) -> Result<SessionId, ApiError> {
    session_of(text).ok_or_else(|| {
        ApiError::bad("A session id is 0x and up to 16 hexadecimal digits, such as 0x100a3f77c2d10004.")
    })
}

pub(super) async fn one(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    Path(id): Path<String>,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let session = id_of(&id)?;
    let (of, ids) = (console.clone(), caller.ids);
    let (own, ephemerals, count) = list::aside(&console, move || {
        let part = part(&of.handle, session, &ids);
        let (paths, count) = ephemerals(&of.handle, session, &ids);
        (part, paths, count)
    })
    .await?;
    let records = list::is_local(&parameters).then(|| own.report.clone());
    let path = format!("sessions/{session}");
    let all = list::with_others::<OnePart>(&console, &path, &parameters, own).await;
    let mut answer = merged(session, all.parts, (ephemerals, count));
    answer.ended.iter_mut().for_each(|ended| ended.show_server(&console.handle));
    // Another server goes by the records, also by those that are not there.
    if answer.live.is_none() && answer.ended.is_none() && count == 0 && records.is_none() {
        return Err(unknown(&console.handle, session));
    }
    Ok(all.servers.answer(One { report: records, ..answer }))
}

/// The refusal for a session that nobody knows.
pub(super) fn unknown(handle: &AdminHandle, session: SessionId) -> ApiError {
    let maker = (session.0 as u64) >> 56;
    let is_other = handle.id().is_some_and(|own| own.0 as u8 as u64 != maker);
    let hint = if is_other {
        format!(" Server {maker} made this id: if the session is a local one, only that server knows it.")
    } else {
        String::new()
    };
    ApiError::new(
        Code::NotFound,
        format!(
            "No session {session} lives, and no server that answered has a record of its end. A server forgets its records \
             when it restarts.{hint}"
        ),
    )
}

fn part(handle: &AdminHandle, session: SessionId, ids: &[Id]) -> OnePart {
    let query = EndsQuery { session: Some(session), limit: RECORDS_MAX, ..EndsQuery::default() };
    let mut report = handle.inspect_now(|now, server| server.session_ends(now, &query));
    ended::show_paths(handle, ids, &mut report.ends);
    OnePart { live: handle.live_session(session).map(|of| LiveItem::of(handle, of)), report }
}

/// The paths of a session's ephemerals, as the caller may see them, and the number of all.
fn ephemerals(handle: &AdminHandle, session: SessionId, ids: &[Id]) -> (Vec<String>, usize) {
    let (mut paths, mut bytes): (Vec<String>, usize) = (Vec::new(), 0);
    loop {
        let after = paths.last().map_or("", String::as_str);
        let (some, count) = handle.inspect(|server: &Server| {
            let all = server.tree().ephemerals(session);
            let some: Vec<String> =
                all.after(after).take(IN_ONE_LOOK).map(std::borrow::Cow::into_owned).collect();
            (some, all.len())
        });
        let is_last = some.len() < IN_ONE_LOOK;
        bytes += some.iter().map(String::len).sum::<usize>();
        paths.extend(some);
        if is_last || paths.len() >= EPHEMERALS_MAX || bytes > BYTES_MAX {
            let texts: Vec<&str> = paths.iter().map(String::as_str).collect();
            return (handle.seen_paths(ids, &texts, list::let_others), count);
        }
        list::let_others();
    }
}

fn merged(session: SessionId, parts: Vec<OnePart>, (ephemerals, count): (Vec<String>, usize)) -> One {
    let live = LiveItem::best(parts.iter().filter_map(|part| part.live.clone()));
    let reports: Vec<EndsReport> = parts.into_iter().map(|part| part.report).collect();
    let verdict = judge(session, &reports, &utc);
    let ended = if live.is_none() { ended::item(&reports, session) } else { None };
    let mut sentences = vec![ended::sentence(&verdict.headline())];
    sentences.extend(verdict.facts);
    One { live, ended, ephemerals, ephemerals_count: count, sentences, report: None }
}
