//! The state of this server.

use super::{OwnPart, links, rows::EpochRow};
use crate::{fan_out::now_ms, state::Console};
use ostler_explain::ensemble::{
    DigestAt, DiskSpace, ServerState, four_letter::host_and_port, state::Commands,
};
use ostler_proto::{id::Zxid, membership::Membership};
use ostler_server::admin::{AdminHandle, CommandQuery, OwnPlace};
use ostler_server_core::quorum::MemberReport;
use serde_json::{Map, Value};
use std::{
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// The newest digests that are compared between servers.
const DIGESTS: usize = 8;
/// Sessions that ended within this time are counted.
const LATELY_MS: i64 = 300_000;
/// The most pages of ended sessions that are read for one answer.
const PAGES_MAX: usize = 8;

/// The number of the record before the first one of lately. Older ones are not read again.
#[derive(Debug, Default)]
pub(crate) struct RecentEnds {
    after: AtomicU64,
}

/// Reads files, and waits for the core: to be called where a thread may wait.
pub(super) fn part(console: &Console) -> OwnPart {
    let handle = &console.handle;
    let mut state = by_commands(console);
    let (member, zxid, digests, times) = handle.inspect(|server| {
        (server.member_report(), server.tree().last_processed(), server.digest_log(), server.epoch_times())
    });
    let place = handle.own_place();
    state.zxid = zxid;
    let newest = digests.len().saturating_sub(DIGESTS);
    state.digests = digests[newest..]
        .iter()
        .filter(|entry| entry.zxid != Zxid::ZERO)
        .map(|entry| DigestAt { zxid: entry.zxid, value: format!("{:x}", entry.digest) })
        .collect();
    state.disk = disk_space(&place.data_dir);
    add_addresses(&mut state, &place, member.as_ref());
    if let Some(member) = &member {
        state.leader = member.leader.map(|leader| leader.0);
        state.epoch = Some(member.epoch.0);
        state.synced = member.synced.iter().map(|id| id.0).collect();
        state.set_membership(&member.membership);
    }
    OwnPart {
        as_of_ms: now_ms(),
        states: vec![state],
        links: links::own(handle, member.as_ref()),
        epochs: times.iter().map(EpochRow::of).collect(),
    }
}

fn by_commands(console: &Console) -> ServerState {
    let handle = &console.handle;
    let get = |name: &str| Value::Object(answer(handle, name, &CommandQuery::new()));
    let ends = recent_ends(console);
    ServerState::of_commands(Commands {
        monitor: &get("monitor"),
        zabstate: &get("zabstate"),
        stats: &Value::Null,
        voting_view: &Value::Null,
        session_ends: &ends,
        asked_at_ms: ends["now_ms"].as_i64().unwrap_or_else(now_ms),
    })
}

fn answer(handle: &AdminHandle, name: &str, query: &CommandQuery) -> Map<String, Value> {
    handle.command(name, query).unwrap_or_default()
}

/// The answer of `session_ends` with the records of lately.
fn recent_ends(console: &Console) -> Value {
    let recent = &console.recent_ends;
    let mut after = recent.after.load(Ordering::Relaxed);
    let mut whole = Value::Null;
    let mut young: Vec<Value> = Vec::new();
    for _ in 0..PAGES_MAX {
        let query = CommandQuery::from([("after".into(), after.to_string())]);
        let mut page = Value::Object(answer(&console.handle, "session_ends", &query));
        let since = page["now_ms"].as_i64().unwrap_or(i64::MAX).saturating_sub(LATELY_MS);
        let ends = page["ends"].as_array_mut().map(std::mem::take).unwrap_or_default();
        for end in ends {
            let is_young = end["ended_ms"].as_i64().is_some_and(|at| at >= since);
            if is_young {
                young.push(end);
            } else if young.is_empty() {
                after = end["number"].as_u64().unwrap_or(after).max(after);
            }
        }
        let next = page["next"].as_u64();
        whole = page;
        match next {
            Some(next) if young.is_empty() => after = next.max(after),
            Some(_) | None => break,
        }
    }
    recent.after.store(after, Ordering::Relaxed);
    whole["ends"] = Value::Array(young);
    whole
}

fn disk_space(folder: &Path) -> Option<DiskSpace> {
    let of = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(of.f_frsize);
    Some(DiskSpace { free_bytes: bytes(of.f_bavail), total_bytes: bytes(of.f_blocks) })
}

fn add_addresses(state: &mut ServerState, place: &OwnPlace, member: Option<&MemberReport>) {
    let configured = member.and_then(|member| member.membership.servers.get(&member.me));
    let host = configured.and_then(|own| own.addresses.first()).map(|address| address.host.clone());
    let host = host.unwrap_or_else(|| shown_ip(place.admin));
    let client = configured.and_then(|own| own.client.as_ref());
    let client_host = client.filter(|client| !client.is_wildcard()).map(|client| &*client.host);
    let client_port = client.map_or(place.client_port, |client| client.port);
    state.address = Some(host_and_port(client_host.unwrap_or(&host), client_port));
    let scheme = if place.admin_is_https { "https" } else { "http" };
    let admin_host = if place.admin.ip().is_unspecified() { host } else { place.admin.ip().to_string() };
    state.admin = Some(format!("{scheme}://{}", host_and_port(&admin_host, place.admin.port())));
}

fn shown_ip(admin: SocketAddr) -> String {
    if admin.ip().is_unspecified() { "localhost".into() } else { admin.ip().to_string() }
}

/// The membership's hosts, in order.
pub(super) fn hosts(membership: &Membership) -> Vec<(String, u16)> {
    let first = membership.servers.values().filter_map(|member| member.addresses.first());
    let mut hosts: Vec<(String, u16)> =
        first.map(|address| (address.host.clone(), address.quorum_port)).collect();
    hosts.sort();
    hosts
}
