//! The children of a znode, page by page.
//!
//! By name, each page is read from the tree itself, which has the names in order and knows their places: so no page depends
//! on how many there are, and a child that exists throughout is neither skipped nor shown twice by a cursor. The other
//! orders need the whole list ([`super::listing`]).

use super::{
    aside, cursor, identity,
    idle::{Cancelled, waiter},
    listing::{self, ListKey, Listing, Place, Sort, in_a_look},
    look,
    params::Params,
    refusal::refused,
    shown,
};
use crate::{
    error::{ApiError, Code},
    rights::{self, Caller},
    state::Console,
};
use axum::{Json, extract::State, http::HeaderMap};
use ostler_proto::{acl::Id, id::Zxid, stat::Stat};
use ostler_server_core::report::znodes::{ChildReport, NamesFrom, ParentReport, ZnodeReader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The list that a caller asks for.
struct Question {
    path: String,
    sort: Sort,
    is_descending: bool,
    starts_with: String,
    limit: usize,
    begin: Begin,
    who: Vec<Id>,
    is_viewer: bool,
}

/// Where a page begins.
enum Begin {
    /// At this place of the list, counted from 0.
    At(usize),
    /// Behind the page before.
    Behind(Cursor),
}

impl Begin {
    fn of(params: &Params) -> Result<Begin, ApiError> {
        let from = params.number("from")?;
        match params.text("cursor") {
            None => Ok(Begin::At(from.unwrap_or(0))),
            Some(cursor) if from.is_none() => cursor::read(cursor).map(Begin::Behind),
            Some(_) => Err(ApiError::bad("A page begins behind a cursor or at the place from, not at both.")),
        }
    }

    fn cursor(&self) -> Option<&Cursor> {
        match self {
            Begin::At(_) => None,
            Begin::Behind(cursor) => Some(cursor),
        }
    }
}

/// Where a list goes on.
#[derive(Serialize, Deserialize)]
struct Cursor {
    /// The cversion at which the list began, and the parent's czxid then.
    cversion: i32,
    czxid: i64,
    place: Place,
}

/// A page of names, and the place behind it if there are more.
struct Page {
    /// The parent when the list began.
    began: (Zxid, i32),
    names: Vec<String>,
    next: Option<Place>,
    /// The number of names that start with the text, where it is known.
    matching: Option<usize>,
}

/// `GET /tree/children`.
pub(super) async fn children(
    State(console): State<Arc<Console>>,
    caller: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    const SORTS: [(&str, Sort); 3] =
        [("name", Sort::Name), ("sequence", Sort::Sequence), ("changed", Sort::Changed)];
    let question = Question {
        path: params.path("path")?,
        sort: params.word("sort", &SORTS)?,
        is_descending: params.word("order", &[("asc", false), ("desc", true)])?,
        starts_with: params.text("starts_with").unwrap_or_default().to_owned(),
        limit: params.limit()?,
        begin: Begin::of(&params)?,
        who: identity(&caller),
        is_viewer: rights::is_viewer(&caller, &headers, &console),
    };
    let question = Arc::new((question, caller.ids));
    let (of, asked) = (console.clone(), question.clone());
    if let Some(answer) = aside(move || answer_of(&of, &asked, None)).await? {
        return Ok(Json(answer));
    }
    let turn = console.tree.lists.turn.take("list of children").await?;
    let (_waiter, cancelled) = waiter();
    let made = aside(move || {
        let made = answer_of(&console, &question, Some(&cancelled));
        drop(turn);
        made
    });
    let gone = || ApiError::new(Code::Busy, "The list of children was dropped meanwhile. Ask again.");
    made.await?.ok_or_else(gone).map(Json)
}

/// The answer. `None` if its list is not kept; with the turn, whose mark is `turn`, it is made.
fn answer_of(
    console: &Console,
    (question, ids): &(Question, Vec<Id>),
    turn: Option<&Cancelled>,
) -> Result<Option<Value>, ApiError> {
    let reader = ZnodeReader::new(ids);
    let page = match (question.sort, question.is_descending) {
        (Sort::Name, false) => Some(page_by_name(console, &reader, question)?),
        _ => page_of_list(console, &reader, question, turn)?,
    };
    page.map(|page| answer(console, &reader, question, page)).transpose()
}

fn page_by_name(console: &Console, reader: &ZnodeReader, question: &Question) -> Result<Page, ApiError> {
    let (path, starts_with) = (&*question.path, &*question.starts_with);
    let max = question.limit + 1;
    let seen = look(console, |server| match &question.begin {
        Begin::At(place) => {
            let (parent, names, matching) =
                server.child_names_at(reader, path, ((starts_with, *place), max))?;
            Ok((parent, names, Some(matching)))
        }
        Begin::Behind(cursor) => {
            let from = NamesFrom::After(&cursor.place.name);
            let (parent, names) = server.child_names(reader, path, (from, max))?;
            Ok((parent, names, None))
        }
    });
    let (parent, mut names, matching) = seen.map_err(|refusal| refused(path, refusal))?;
    // The names are in order, so the others come behind all that begin with the text.
    names.retain(|name| name.starts_with(starts_with));
    let has_more = names.len() > question.limit;
    names.truncate(question.limit);
    let last = names.last().filter(|_| has_more);
    let next = last.map(|name| Place { rank: 0, name: name.clone() });
    Ok(Page { began: began(question, &parent.stat), names, next, matching })
}

fn page_of_list(
    console: &Console,
    reader: &ZnodeReader,
    question: &Question,
    turn: Option<&Cancelled>,
) -> Result<Option<Page>, ApiError> {
    let Some((began, list)) = list_for(console, reader, question, turn)? else { return Ok(None) };
    let how = (question.is_descending, &*question.starts_with);
    let mut behind = list.behind(question.begin.cursor().map(|cursor| &cursor.place), how);
    let matching = match question.begin {
        Begin::At(place) => {
            behind = Box::new(behind.skip(place));
            Some(list.count(&question.starts_with))
        }
        Begin::Behind(_) => None,
    };
    let page: Vec<(i64, &str)> = behind.by_ref().take(question.limit).collect();
    let has_more = behind.next().is_some();
    let last = page.last().filter(|_| has_more);
    let next = last.map(|(rank, name)| Place { rank: *rank, name: (*name).to_owned() });
    let names = page.into_iter().map(|(_, name)| name.to_owned()).collect();
    Ok(Some(Page { began, names, next, matching }))
}

/// The parent when a list began, and the list.
type Begun = ((Zxid, i32), Arc<Listing>);

/// The list that a page is of: the one of the page before, if it is still kept.
fn list_for(
    console: &Console,
    reader: &ZnodeReader,
    question: &Question,
    turn: Option<&Cancelled>,
) -> Result<Option<Begun>, ApiError> {
    let parent = look(console, |server| server.child_names(reader, &question.path, (NamesFrom::At(""), 0)));
    let (parent, _) = parent.map_err(|refusal| refused(&question.path, refusal))?;
    let (czxid, cversion) = began(question, &parent.stat);
    let who = if question.sort == Sort::Changed { question.who.clone() } else { Vec::new() };
    let key = ListKey { path: question.path.clone(), czxid, cversion, sort: question.sort, who };
    if let Some(list) = console.tree.lists.find(&key, is_first(&question.begin)) {
        return Ok(Some(((czxid, cversion), list)));
    }
    let Some(cancelled) = turn else { return Ok(None) };
    let of = (&*question.path, question.sort, &*question.who);
    let (parent, list) = listing::make(console, reader, of, cancelled)?;
    Ok(Some((began(question, &parent.stat), list)))
}

/// Whether somebody begins a list. Other places belong to one that was begun: with another order they would not fit.
fn is_first(begin: &Begin) -> bool {
    matches!(begin, Begin::At(0))
}

/// The parent's czxid, and the cversion when the list began.
fn began(question: &Question, parent: &Stat) -> (Zxid, i32) {
    match question.begin.cursor() {
        Some(cursor) => (Zxid::from_wire(cursor.czxid), cursor.cversion),
        None => (parent.czxid, parent.cversion),
    }
}

fn answer(
    console: &Console,
    reader: &ZnodeReader,
    question: &Question,
    page: Page,
) -> Result<Value, ApiError> {
    let mut items = Vec::with_capacity(page.names.len());
    let mut parent: Option<ParentReport> = None;
    let mut chunks: Vec<&[String]> = page.names.chunks(in_a_look(&question.path)).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    for names in chunks {
        let seen = look(console, |server| server.children_named(reader, &question.path, names));
        let (now, children) = seen.map_err(|refusal| refused(&question.path, refusal))?;
        parent = Some(now);
        items.extend(children.iter().map(|child| row(&question.path, child, question.is_viewer)));
    }
    let Some(ParentReport { stat, zxid }) = parent else {
        return Err(ApiError::bad("The list has no page."));
    };
    let (czxid, cversion) = page.began;
    let next = page.next.and_then(|place| cursor::write(&Cursor { cversion, czxid: czxid.to_wire(), place }));
    let changes = match stat.czxid == czxid {
        true => stat.cversion.wrapping_sub(cversion),
        // The parent was deleted and created again.
        false => stat.cversion.saturating_add(1),
    };
    let from = match question.begin {
        Begin::At(place) => Some(place),
        Begin::Behind(_) => None,
    };
    Ok(json!({
        "items": items,
        "from": from,
        "next": next,
        "truncated": false,
        "as_of_zxid": zxid.to_string(),
        "cversion": cversion,
        "changes_since": changes,
        "total": stat.num_children,
        "matching": page.matching,
    }))
}

fn row(parent: &str, child: &ChildReport, is_viewer: bool) -> Value {
    let Some(seen) = &child.seen else {
        return json!({
            "name": child.name, "kind": null, "num_children": null, "data_length": null, "version": null,
            "mzxid": null, "mtime_ms": null, "has_quota": null, "watched": null, "may_read": child.may_read,
        });
    };
    let path = format!("{}/{}", if parent == "/" { "" } else { parent }, child.name);
    json!({
        "name": child.name,
        "kind": shown::kind(&path, seen.kind),
        "num_children": seen.stat.num_children,
        "data_length": seen.stat.data_length,
        "version": seen.stat.version,
        "mzxid": seen.stat.mzxid.to_string(),
        "mtime_ms": seen.stat.mtime,
        "has_quota": seen.has_quota,
        "watched": is_viewer.then_some(seen.is_watched),
        "may_read": child.may_read,
    })
}
