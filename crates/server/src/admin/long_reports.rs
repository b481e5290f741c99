//! Gathers long reports for four-letter words in parts. The core is locked for one part at a time.

use crate::{
    admin::four_letter::{ConnectionId, EphemeralsOfSession, TimeBucket, WatchesOfSession},
    driver::{Driver, ShownConn},
};
use ostler_proto::id::SessionId;
use ostler_server_core::{
    ConnId, Server,
    input::Now,
    report::quotas::{NamespaceQuota, QuotaWalk},
    sessions::{Scope, ends::LivingSession},
};
use std::{collections::BTreeMap, net::SocketAddr, thread, time::Duration};

/// The number of entries of a part. Taking them needs a few tenths of a millisecond.
const PART: usize = 500;
/// The pause between two parts. A thread that releases a lock and takes it again at once keeps waiting threads out.
const BETWEEN_PARTS: Duration = Duration::from_micros(200);

/// Gathers parts until one is shorter than [`PART`]. `part` gets the entries so far and the limit of the next ones. The
/// calling thread sleeps between the parts, so it must not be one that serves clients.
fn in_parts<T>(driver: &Driver, mut part: impl FnMut(&Server, &[T], usize) -> Vec<T>) -> Vec<T> {
    let mut all = Vec::new();
    loop {
        let more = driver.inspect(|server| part(server, &all, PART));
        let is_last = more.len() < PART;
        all.extend(more);
        if is_last {
            return all;
        }
        thread::sleep(BETWEEN_PARTS);
    }
}

/// The numbers of all connections.
pub(super) fn connection_numbers(driver: &Driver) -> Vec<ConnId> {
    in_parts(driver, |server, so_far: &[ConnId], max| {
        server.connection_numbers_after(so_far.last().copied(), max)
    })
}

/// All connections.
pub(super) fn connections(driver: &Driver) -> Vec<ShownConn> {
    let numbers = connection_numbers(driver);
    let mut all = Vec::with_capacity(numbers.len());
    for part in numbers.chunks(PART) {
        all.extend(driver.connections(part));
        if part.len() == PART {
            thread::sleep(BETWEEN_PARTS);
        }
    }
    all
}

/// Living sessions of this many clients of an address are shown.
const LIVING_MAX: usize = 100;

/// The living sessions whose clients have this address, those of the oldest connections first.
pub(super) fn living_at(driver: &Driver, now: Now, address: SocketAddr) -> Vec<LivingSession> {
    let mut living = Vec::new();
    for part in connection_numbers(driver).chunks(PART) {
        living.extend(driver.inspect(|server| server.living_at(now, address, part)));
        if living.len() >= LIVING_MAX {
            break;
        }
        if part.len() == PART {
            thread::sleep(BETWEEN_PARTS);
        }
    }
    living.truncate(LIVING_MAX);
    living.sort_unstable_by_key(|one| (one.established_ms, one.session));
    living
}

/// The quotas of all namespaces.
pub(super) fn quotas(driver: &Driver) -> BTreeMap<String, NamespaceQuota> {
    let mut walk = QuotaWalk::default();
    while !driver.inspect(|server| server.walk_quotas(&mut walk, PART)) {
        thread::sleep(BETWEEN_PARTS);
    }
    walk.found
}

/// The paths that each session watches.
pub(super) fn watches(driver: &Driver) -> Vec<WatchesOfSession> {
    let mut watchers = driver.inspect(|server| server.watchers());
    watchers.sort_unstable_by_key(|(_, session)| session.0);
    let mut all = Vec::new();
    for part in few_at_a_time(driver, &watchers) {
        let of = |(session, paths): (SessionId, _)| WatchesOfSession { session_id: session.0, paths };
        all.extend(part.into_iter().map(of));
    }
    all
}

type Watched = (SessionId, Vec<String>);

/// Takes the paths of several watchers in one part, because many have few paths. The paths of a watcher with many are
/// taken in several parts.
fn few_at_a_time(driver: &Driver, watchers: &[(ConnId, SessionId)]) -> Vec<Vec<Watched>> {
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < watchers.len() {
        let mut left = PART;
        let mut part: Vec<Watched> = driver.inspect(|server| {
            let mut part = Vec::new();
            while let Some((conn, session)) = watchers.get(at).filter(|_| left > 0) {
                let paths = server.watched_after(*conn, None, left);
                // A watcher without paths counts, too: looking it up takes time.
                left -= paths.len().max(1);
                at += 1;
                part.push((*session, paths));
            }
            part
        });
        thread::sleep(BETWEEN_PARTS);
        if left == 0
            && let (Some((conn, _)), Some((_, paths))) = (watchers.get(at - 1), part.last_mut())
        {
            let more = in_parts(driver, |server, so_far: &[String], max| {
                let last = so_far.last().or(paths.last()).map(|path| &**path);
                server.watched_after(*conn, last, max)
            });
            paths.extend(more);
        }
        part.retain(|(_, paths)| !paths.is_empty());
        parts.push(part);
    }
    parts
}

/// Ephemerals by session.
pub(super) fn ephemerals(driver: &Driver) -> Vec<EphemeralsOfSession> {
    let all = in_parts(driver, |server, so_far: &[(SessionId, String)], max| {
        server.ephemerals_after(so_far.last().map(|(session, path)| (*session, &**path)), max)
    });
    let mut by_session: Vec<EphemeralsOfSession> = Vec::new();
    for (session, path) in all {
        match by_session.last_mut().filter(|last| last.session_id == session.0) {
            Some(last) => last.paths.push(path),
            None => by_session.push(EphemeralsOfSession { session_id: session.0, paths: vec![path] }),
        }
    }
    by_session
}

/// Sessions by the time on the wall at which they expire.
pub(super) fn session_ends(driver: &Driver, scope: Scope, now: Now) -> Vec<TimeBucket<i64>> {
    let all = in_parts(driver, |server, so_far: &[(u64, SessionId)], max| {
        server.session_ends_after(scope, so_far.last().copied(), max)
    });
    // A session whose client is heard of between two parts is seen again with its new end.
    let ends: BTreeMap<i64, u64> = all.into_iter().map(|(end, id)| (id.0, end)).collect();
    let mut buckets: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for (id, end) in ends {
        buckets.entry(end).or_default().push(id);
    }
    let bucket = |(end, members)| TimeBucket { expires_at_wall_ms: wall(now, end), members };
    buckets.into_iter().map(bucket).collect()
}

/// The global sessions that a server has learnt of, with their timeouts in ms; `None` at a server that expires them.
pub(super) fn learnt_sessions(driver: &Driver) -> Option<Vec<(i64, i32)>> {
    driver.inspect(|server| server.learns_sessions()).then(|| {
        let all = in_parts(driver, |server, so_far: &[(SessionId, i32)], max| {
            server.learnt_sessions_after(so_far.last().map(|(id, _)| *id), max)
        });
        all.into_iter().map(|(id, timeout_ms)| (id.0, timeout_ms)).collect()
    })
}

/// Connections by the time until which they may be silent, rounded up to steps as upstream. The time of the last answer
/// stands for that of the last request, which is not noted.
pub(super) fn connection_ends(driver: &Driver, step_ms: u64, now: Now) -> Vec<TimeBucket<ConnectionId>> {
    let mut expiry: BTreeMap<u64, Vec<ConnectionId>> = BTreeMap::new();
    for ShownConn { report: of, .. } in connections(driver) {
        let age = (now.wall_ms - of.stats.established_wall_ms).max(0) as u64;
        let heard = now.mono.0.saturating_sub(age).max(of.stats.last_response_mono_ms);
        let timeout = of.session.map_or(0, |(_, timeout_ms)| timeout_ms.max(0) as u64);
        let until = ((heard + timeout) / step_ms + 1) * step_ms;
        let session_id = of.session.map_or(0, |(id, _)| id.0);
        expiry.entry(until).or_default().push(ConnectionId { remote: of.peer, session_id });
    }
    let bucket = |(end, members)| TimeBucket { expires_at_wall_ms: wall(now, end), members };
    expiry.into_iter().map(bucket).collect()
}

fn wall(now: Now, mono_ms: u64) -> i64 {
    now.wall_ms + mono_ms as i64 - now.mono.0 as i64
}
