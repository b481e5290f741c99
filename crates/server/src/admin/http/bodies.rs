//! The members of the answers of commands, under the names of ZooKeeper's AdminServer.

use super::json::Object;
use crate::admin::four_letter::{
    Connection, EphemeralsOfSession, MessageSizes, Mode, ServerView, TimeBucket, WatchesOfSession, Word,
    mean_of_four_decimals, render,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Turns the value of `json!` into the object that it is.
pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

pub(super) fn configuration(view: &ServerView) -> Object {
    let conf = &view.conf;
    object(json!({
        "client_port": conf.client_port,
        "data_dir": conf.data_dir,
        "data_log_dir": conf.data_log_dir,
        "tick_time": conf.tick_time_ms,
        "max_client_cnxns": conf.max_client_cnxns,
        "min_session_timeout": conf.min_session_timeout_ms,
        "max_session_timeout": conf.max_session_timeout_ms,
        "server_id": conf.server_id,
        "client_port_listen_backlog": conf.client_port_listen_backlog,
    }))
}

pub(super) fn dirs(view: &ServerView) -> Object {
    object(json!({ "datadir_size": view.dirs.data_dir_bytes, "logdir_size": view.dirs.log_dir_bytes }))
}

/// All connections, those with TLS apart.
pub(super) fn connections(view: &ServerView) -> Object {
    connections_as(view, full_connection)
}

fn connections_as(view: &ServerView, of: fn(&Connection) -> Value) -> Object {
    let with_tls = |wanted: bool| -> Vec<Value> {
        view.connections.iter().filter(|connection| connection.has_tls == wanted).map(of).collect()
    };
    object(json!({ "connections": with_tls(false), "secure_connections": with_tls(true) }))
}

fn brief_connection(connection: &Connection) -> Value {
    json!({
        "remote_socket_address": connection.remote.to_string(),
        "interest_ops": connection.interest_ops,
        "outstanding_requests": connection.queued,
        "packets_received": connection.received,
        "packets_sent": connection.sent,
    })
}

fn full_connection(connection: &Connection) -> Value {
    let mut members = object(brief_connection(connection));
    if let Some(session) = &connection.session {
        members.append(&mut object(json!({
            "session_id": session.session_id,
            "last_operation": session.last_operation,
            "established": session.established_ms,
            "session_timeout": session.timeout_ms,
            "last_cxid": session.last_cxid,
            "last_zxid": session.last_zxid,
            "last_response_time": session.last_response_ms,
            "last_latency": session.last_latency_ms,
            "min_latency": session.min_latency_ms,
            "avg_latency": session.avg_latency_ms,
            "max_latency": session.max_latency_ms,
        })));
    }
    Value::Object(members)
}

pub(super) fn dump(view: &ServerView) -> Object {
    let local = view.local_session_expiry.iter().flatten();
    // A server that does not end global sessions shows none of them, as in Java.
    let global = view.session_expiry.iter().filter(|_| view.learnt_sessions.is_none());
    object(json!({
        "expiry_time_to_session_ids": by_time(global.chain(local)),
        "session_id_to_ephemeral_paths": ephemerals(&view.ephemerals),
    }))
}

fn by_time<'a>(buckets: impl Iterator<Item = &'a TimeBucket<i64>>) -> Value {
    let mut merged: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for bucket in buckets {
        merged.entry(bucket.expires_at_wall_ms).or_default().extend(&bucket.members);
    }
    merged.into_iter().map(|(at, ids)| (at.to_string(), json!(ids))).collect::<Object>().into()
}

fn ephemerals(all: &[EphemeralsOfSession]) -> Value {
    all.iter().map(|of| (of.session_id.to_string(), json!(of.paths))).collect::<Object>().into()
}

pub(super) fn environment(view: &ServerView) -> Object {
    view.environment.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

pub(super) fn trace_mask(view: &ServerView) -> Object {
    object(json!({ "tracemask": view.trace_mask }))
}

pub(super) fn hash(view: &ServerView) -> Object {
    let digests = view.digests.iter().map(|entry| {
        json!({ "zxid": entry.zxid, "digest": entry.digest as i64, "digest_version": DIGEST_VERSION })
    });
    object(json!({ "digests": digests.collect::<Vec<_>>() }))
}

/// The version of the digests, as in the answer of Java.
const DIGEST_VERSION: u8 = 2;

pub(super) fn is_read_only(view: &ServerView) -> Object {
    object(json!({ "read_only": view.mode == Mode::ReadOnly }))
}

/// The figures of `mntr`, without the beginning `zk_`.
pub(super) fn monitor(view: &ServerView) -> Object {
    let mut members = object(json!({ "version": view.version, "server_state": view.mode.name() }));
    // A server that looks for a leader has no figures of a tree.
    if view.serving {
        members.extend(render(Word::Mntr, view).lines().filter_map(figure));
    }
    members
}

/// A line of `mntr` as a member, if it is a figure.
fn figure(line: &str) -> Option<(String, Value)> {
    let (key, value) = line.strip_prefix("zk_")?.split_once('\t')?;
    if matches!(key, "version" | "server_state") {
        return None;
    }
    let whole = value.parse::<i64>().map(Value::from);
    let number = whole.or_else(|_| value.parse::<f64>().map(Value::from));
    Some((key.to_owned(), number.unwrap_or_else(|_| value.into())))
}

pub(super) fn server_stats(view: &ServerView) -> Object {
    let mean = mean_of_four_decimals(view.latency.sum_ms, view.latency.count);
    let mut members = object(json!({
        "version": view.version,
        "read_only": view.mode == Mode::ReadOnly,
        "server_stats": {
            "packets_sent": view.packets_sent,
            "packets_received": view.packets_received,
            "fsync_threshold_exceed_count": view.slow_syncs,
            "client_response_stats": sizes(view.gauges.client_response_sizes),
            "data_dir_size": view.dirs.data_dir_bytes,
            "log_dir_size": view.dirs.log_dir_bytes,
            "provider_null": false,
            "server_state": view.mode.name(),
            "last_processed_zxid": view.zxid_last,
            "outstanding_requests": view.outstanding,
            "avg_latency": mean,
            "max_latency": view.latency.max_ms,
            "min_latency": view.latency.min_ms,
            "num_alive_client_connections": view.connections_alive,
            "uptime": view.gauges.uptime_ms,
            "auth_failed_count": view.gauges.auth_failed_count,
            "non_mtlsremote_conn_count": view.gauges.non_mtls_remote_conn_count,
            "non_mtlslocal_conn_count": view.gauges.non_mtls_local_conn_count,
        },
        "client_response": sizes(view.gauges.client_response_sizes),
    }));
    if view.mode == Mode::Leader {
        members.insert("proposal_stats".into(), sizes(view.proposal_sizes));
    }
    members.insert("node_count".into(), json!(view.znode_count));
    members
}

fn sizes(of: MessageSizes) -> Value {
    json!({ "last_buffer_size": of.last, "min_buffer_size": of.min, "max_buffer_size": of.max })
}

pub(super) fn stats(view: &ServerView) -> Object {
    let mut members = server_stats(view);
    members.append(&mut connections_as(view, brief_connection));
    members
}

pub(super) fn watch_summary(view: &ServerView) -> Object {
    let (connections, paths, total) = view.watch_summary;
    object(json!({ "num_connections": connections, "num_paths": paths, "num_total_watches": total }))
}

pub(super) fn watches(all: &[WatchesOfSession]) -> Object {
    let by_session: Object = all.iter().map(|of| (of.session_id.to_string(), json!(of.paths))).collect();
    object(json!({ "session_id_to_watched_paths": by_session }))
}

pub(super) fn watches_by_path(all: &[WatchesOfSession]) -> Object {
    let mut by_path: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for of in all {
        for path in &of.paths {
            by_path.entry(path).or_default().push(of.session_id);
        }
    }
    let by_path: Object = by_path.into_iter().map(|(path, ids)| (path.to_owned(), json!(ids))).collect();
    object(json!({ "path_to_session_ids": by_path }))
}
