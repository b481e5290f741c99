//! A survey of all watches of this server, or of those of one session, for lists by path and by session.
//!
//! Its memory is bounded: it has at most [`PATHS_MAX`] paths and [`SESSIONS_MAX`] sessions, and shares the paths with the
//! server. Further ones are counted in the totals only.

use super::{Entry, Part, Place, Totals, place};
use crate::{
    error::{ApiError, Code},
    fan_out::now_ms,
    list::{self, Parameters},
    state::Console,
};
use arcstr::ArcStr;
use ostler_proto::{acl::Id, id::SessionId};
use ostler_server::admin::AdminHandle;
use ostler_server_core::{
    report::watch_walk::{WatchWalk, WatchingConn},
    sessions::ends::session_of,
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Watches or connections in one look at the core.
const IN_ONE_LOOK: usize = 500;
const PATHS_MAX: usize = 200_000;
const SESSIONS_MAX: usize = 100_000;
/// A survey is used again for this time, and for longer if it has taken long: so it takes a hundredth of a thread's time at
/// most.
const FRESH: Duration = Duration::from_secs(10);
const FRESH_MAX: Duration = Duration::from_secs(60);
const FRESH_TIMES: u32 = 100;
/// Surveys that are kept: pages go on in the one that they began in.
const KEPT: usize = 3;
/// A survey that nobody needs is forgotten after this time, at the next look.
const KEPT_FOR: Duration = Duration::from_secs(120);
/// About the most bytes of paths in an answer.
const BYTES_MAX: usize = 400 << 10;

/// The watchers of a path.
#[derive(Debug, Clone, Copy, Default)]
struct Watchers {
    connections: u32,
    data: u32,
    children: u32,
    persistent: u32,
    recursive: u32,
}

/// The watches of one moment, or of a few moments one after the other.
struct Survey {
    number: u64,
    /// Of this session only.
    session: Option<SessionId>,
    made: Instant,
    /// The same, in ms since 1970.
    as_of_ms: i64,
    took: Duration,
    /// Those with the most watchers first.
    paths: Vec<(ArcStr, Watchers)>,
    /// Those with the most watches first.
    sessions: Vec<WatchingConn>,
    totals: Totals,
    /// Some paths or sessions are missing.
    is_cut: bool,
}

/// The surveys that are kept.
#[derive(Default)]
pub(crate) struct Surveys {
    /// The last is the newest.
    kept: Mutex<VecDeque<Arc<Survey>>>,
    /// One is made at a time.
    making: Mutex<u64>,
}

impl Surveys {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Survey>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn numbered(&self, number: u64, session: Option<SessionId>) -> Option<Arc<Survey>> {
        self.kept().iter().find(|survey| survey.number == number && survey.session == session).cloned()
    }

    fn fresh(&self, session: Option<SessionId>) -> Option<Arc<Survey>> {
        let newest = self.kept().iter().rev().find(|survey| survey.session == session).cloned();
        newest.filter(|survey| survey.made.elapsed() < (survey.took * FRESH_TIMES).clamp(FRESH, FRESH_MAX))
    }

    /// The survey of a cursor, or one that is fresh, or a new one.
    fn get(&self, handle: &AdminHandle, number: u64, session: Option<SessionId>) -> Arc<Survey> {
        if let Some(known) = self.numbered(number, session).or_else(|| self.fresh(session)) {
            return known;
        }
        let mut last = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have made one meanwhile.
        if let Some(fresh) = self.fresh(session) {
            return fresh;
        }
        *last += 1;
        let survey = Arc::new(Survey::make(handle, *last, session));
        let mut kept = self.kept();
        kept.retain(|survey| survey.made.elapsed() < KEPT_FOR);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(survey.clone());
        survey
    }
}

impl Survey {
    fn make(handle: &AdminHandle, number: u64, session: Option<SessionId>) -> Survey {
        let began = Instant::now();
        let mut made = Survey {
            number,
            session,
            made: began,
            as_of_ms: now_ms(),
            took: Duration::ZERO,
            paths: Vec::new(),
            sessions: Vec::new(),
            totals: Totals::default(),
            is_cut: false,
        };
        let walk = match session {
            None => Some(WatchWalk::default()),
            Some(session) => handle.inspect(|server| server.walk_of_session(session)),
        };
        if let Some(walk) = walk {
            made.walk(handle, walk);
        }
        made.paths.sort_unstable_by(|(one, of), (other, others)| {
            others.connections.cmp(&of.connections).then_with(|| one.cmp(other))
        });
        made.sessions.sort_unstable_by_key(|of| (Reverse(of.count), of.conn));
        made.took = began.elapsed();
        made
    }

    fn walk(&mut self, handle: &AdminHandle, mut walk: WatchWalk) {
        let mut paths: HashMap<ArcStr, Watchers> = HashMap::new();
        loop {
            let part = handle.inspect(|server| server.walk_watches(&mut walk, IN_ONE_LOOK));
            self.totals.connections += part.connections.len();
            let room = SESSIONS_MAX - self.sessions.len();
            self.is_cut |= part.connections.len() > room;
            self.sessions.extend(part.connections.into_iter().take(room));
            for (path, watched) in part.watches {
                self.totals.note(watched);
                if paths.len() >= PATHS_MAX && !paths.contains_key(&path) {
                    self.is_cut = true;
                    continue;
                }
                let of = paths.entry(path).or_default();
                of.connections += 1;
                of.data += u32::from(watched.data);
                of.children += u32::from(watched.children);
                of.persistent += u32::from(watched.persistent);
                of.recursive += u32::from(watched.recursive);
            }
            if part.is_last {
                break;
            }
            list::let_others();
        }
        self.totals.paths = paths.len();
        self.paths = paths.into_iter().collect();
        if self.session.is_some() {
            self.totals.connections = 1;
        }
    }
}

/// A watched path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PathRow {
    path: String,
    connections: u32,
    data: u32,
    children: u32,
    persistent: u32,
    persistent_recursive: u32,
    server: i64,
}

impl Entry for PathRow {
    type Order = (Reverse<u32>, i64, String);

    fn order(&self) -> Self::Order {
        (Reverse(self.connections), self.server, self.path.clone())
    }

    fn step(&self, place: &Place) -> Place {
        Place { at: place.at.saturating_add(1), ..place.clone() }
    }
}

/// A session that watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionRow {
    pub(super) session: String,
    pub(super) address: String,
    pub(super) server: i64,
    pub(super) count: usize,
}

impl Entry for SessionRow {
    type Order = (Reverse<usize>, i64);

    fn order(&self) -> Self::Order {
        (Reverse(self.count), self.server)
    }

    fn step(&self, place: &Place) -> Place {
        Place { at: place.at.saturating_add(1), ..place.clone() }
    }
}

/// The survey and the place that the parameters ask for; `None` if this server's list was at its end.
fn begun(console: &Console, parameters: &Parameters) -> Result<(Arc<Survey>, Option<usize>), ApiError> {
    let session = list::text(parameters, "session").map(|text| {
        session_of(text).ok_or_else(|| ApiError::bad("A session id is 0x and up to 16 hexadecimal digits."))
    });
    let server = list::own_id(&console.handle);
    let place = place::of_server(list::text(parameters, "cursor"), server)?;
    let number = place.as_ref().map_or(0, |place| place.survey);
    let survey = console.surveys.get(&console.handle, number, session.transpose()?);
    let at = place.map(|place| usize::try_from(place.at).unwrap_or(usize::MAX));
    Ok((survey, at))
}

/// This server's part of the list by path, for a caller with these identities.
pub(super) fn by_path(
    console: &Console,
    parameters: &Parameters,
    ids: &[Id],
) -> Result<Part<PathRow>, ApiError> {
    if list::text(parameters, "address").is_some() {
        return Err(ApiError::new(
            Code::BadRequest,
            "Watches are listed by address with by=session, or with path.",
        ));
    }
    let limit = list::limit(parameters)?;
    let (survey, at) = begun(console, parameters)?;
    let rest = at.and_then(|at| survey.paths.get(at..)).unwrap_or_default();
    let mut bytes = 0;
    // At least one, however long it is.
    let fits = |(path, _): &&(ArcStr, Watchers)| {
        let is_first = bytes == 0;
        bytes += path.len();
        is_first || bytes <= BYTES_MAX
    };
    let some: Vec<&(ArcStr, Watchers)> = rest.iter().take(limit).take_while(fits).collect();
    let texts: Vec<&str> = some.iter().map(|(path, _)| path.as_str()).collect();
    let seen = console.handle.seen_paths(ids, &texts, list::let_others);
    let server = list::own_id(&console.handle);
    let row = |(path, of): (String, &&(ArcStr, Watchers))| PathRow {
        path,
        connections: of.1.connections,
        data: of.1.data,
        children: of.1.children,
        persistent: of.1.persistent,
        persistent_recursive: of.1.recursive,
        server,
    };
    Ok(Part {
        goes_on: rest.len() > some.len(),
        items: seen.into_iter().zip(&some).map(row).collect(),
        place: survey.place(server, at),
        totals: survey.totals,
        truncated: survey.is_cut,
        as_of_ms: survey.as_of_ms,
    })
}

/// This server's part of the list by session.
pub(super) fn by_session(console: &Console, parameters: &Parameters) -> Result<Part<SessionRow>, ApiError> {
    let (limit, address) = (list::limit(parameters)?, list::text(parameters, "address"));
    let (survey, at) = begun(console, parameters)?;
    let wants = |of: &&WatchingConn| address.is_none_or(|wanted| of.peer.to_string().contains(wanted));
    let mut rest = survey.sessions.iter().filter(wants).skip(at.unwrap_or(usize::MAX));
    let server = list::own_id(&console.handle);
    let row = |of: &WatchingConn| SessionRow {
        session: of.session.to_string(),
        address: of.peer.to_string(),
        server,
        count: of.count,
    };
    Ok(Part {
        items: rest.by_ref().take(limit).map(row).collect(),
        goes_on: rest.next().is_some(),
        place: survey.place(server, at),
        totals: survey.totals,
        truncated: survey.is_cut,
        as_of_ms: survey.as_of_ms,
    })
}

impl Survey {
    fn place(&self, server: i64, at: Option<usize>) -> Place {
        Place { server, survey: self.number, at: at.unwrap_or(0) as u64 }
    }
}
