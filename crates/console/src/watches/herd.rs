//! The connections that one change of a znode would notify.

use super::{Entry, Part, Place, Totals, place};
use crate::{
    error::ApiError,
    fan_out::now_ms,
    list::{self, Parameters},
    state::Console,
};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminHandle;
use ostler_server_core::{ConnId, report::watch_walk::Watched};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Watchers in one look at the core.
const IN_ONE_LOOK: usize = 500;
/// The most connections that are looked at. Further ones are not counted.
const CONNECTIONS_MAX: usize = 1_000_000;

/// A connection that watches the path, or everything below a path above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WatcherRow {
    session: String,
    address: String,
    server: i64,
    /// The number of the connection there.
    connection: u64,
    kinds: Vec<String>,
}

impl Entry for WatcherRow {
    type Order = (i64, u64);

    fn order(&self) -> Self::Order {
        (self.server, self.connection)
    }

    fn step(&self, place: &Place) -> Place {
        Place { at: self.connection, ..place.clone() }
    }
}

/// This server's part.
pub(super) fn part(
    console: &Console,
    parameters: &Parameters,
    _ids: &[Id],
) -> Result<Part<WatcherRow>, ApiError> {
    let path = list::text(parameters, "path").unwrap_or("/");
    if !path.starts_with('/') {
        return Err(ApiError::bad("A path begins with a slash.").at(path));
    }
    let (limit, address) = (list::limit(parameters)?, list::text(parameters, "address"));
    let (handle, server) = (&console.handle, list::own_id(&console.handle));
    let (all, truncated) = watchers(handle, path);
    let mut totals = Totals { connections: all.len(), paths: 1, ..Totals::default() };
    all.values().for_each(|watched| totals.note(*watched));
    let place = place::of_server(list::text(parameters, "cursor"), server)?;
    let Some(place) = place else {
        let place = Place { server, ..Place::default() };
        return Ok(Part { items: Vec::new(), place, goes_on: false, totals, truncated, as_of_ms: now_ms() });
    };
    let rest: Vec<(ConnId, Watched)> =
        all.range(ConnId(place.at.saturating_add(1))..).map(|(conn, watched)| (*conn, *watched)).collect();
    let (mut items, mut goes_on) = (Vec::new(), false);
    for some in rest.chunks(IN_ONE_LOOK) {
        let named = named(handle, server, some);
        items.extend(
            named.into_iter().filter(|row| address.is_none_or(|wanted| row.address.contains(wanted))),
        );
        if items.len() > limit {
            (goes_on, _) = (true, items.truncate(limit));
            break;
        }
        list::let_others();
    }
    Ok(Part { items, place, goes_on, totals, truncated, as_of_ms: now_ms() })
}

/// The connections that a change of this path would notify, and whether there are more.
fn watchers(handle: &AdminHandle, path: &str) -> (BTreeMap<ConnId, Watched>, bool) {
    let mut all: BTreeMap<ConnId, Watched> = BTreeMap::new();
    let above = handle.inspect(|server| server.watched_above(path));
    let mut looked_at = 0;
    for (watched_path, is_itself) in
        std::iter::once((path, true)).chain(above.iter().map(|above| (&**above, false)))
    {
        let mut after = None;
        loop {
            let some = handle.inspect(|server| server.watchers_after(watched_path, after, IN_ONE_LOOK));
            looked_at += some.len();
            after = some.last().map(|(conn, _)| *conn);
            let is_last = some.len() < IN_ONE_LOOK;
            for (conn, watched) in some {
                if is_itself {
                    all.insert(conn, watched);
                } else if watched.recursive {
                    all.entry(conn).or_default().recursive = true;
                }
            }
            if looked_at >= CONNECTIONS_MAX {
                return (all, true);
            }
            if is_last {
                break;
            }
            list::let_others();
        }
    }
    (all, false)
}

/// The rows of those connections that are still there.
fn named(handle: &AdminHandle, server: i64, some: &[(ConnId, Watched)]) -> Vec<WatcherRow> {
    let numbers: Vec<ConnId> = some.iter().map(|(conn, _)| *conn).collect();
    let names = handle.inspect(|server| server.names_of(&numbers));
    let watched: BTreeMap<ConnId, Watched> = some.iter().copied().collect();
    let row =
        |(conn, session, address): (ConnId, ostler_proto::id::SessionId, std::net::SocketAddr)| WatcherRow {
            session: session.to_string(),
            address: address.to_string(),
            server,
            connection: conn.0,
            kinds: watched.get(&conn).copied().map(kinds).unwrap_or_default(),
        };
    names.into_iter().map(row).collect()
}

fn kinds(watched: Watched) -> Vec<String> {
    let all = [
        ("data", watched.data),
        ("children", watched.children),
        ("persistent", watched.persistent),
        ("persistent_recursive", watched.recursive),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(kind, _)| kind.to_owned()).collect()
}
