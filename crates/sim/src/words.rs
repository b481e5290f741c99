//! Describes events in words, for the trace (`--explain`).

use ostler_proto::{
    quorum_packet::Packet,
    reply::{Body, Reply},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::PersistOp;

/// A record of the log.
pub(crate) fn record(bytes: &[u8]) -> String {
    match TxnRecord::read(bytes) {
        Ok(record) => format!("{} of session {:x}", txn(&record.txn), record.header.session.0),
        Err(_) => "a record that cannot be decoded".into(),
    }
}

fn txn(of: &Txn<'_>) -> String {
    match of {
        Txn::CreateSession { timeout_ms } => format!("a new session of {timeout_ms} ms"),
        Txn::CloseSession(paths) => {
            format!("the end of a session with {} ephemerals", paths.as_ref().map_or(0, Vec::len))
        }
        Txn::Create(create) if create.ephemeral => format!("create ephemeral {}", create.path),
        Txn::Create(create) => format!("create {}", create.path),
        Txn::Delete { path, .. } => format!("delete {path}"),
        Txn::SetData { reconfig: true, data, .. } => {
            let text = String::from_utf8_lossy(data.unwrap_or_default()).replace('\n', " ");
            format!("a change of the ensemble to {text}")
        }
        Txn::SetData { path, version, .. } => format!("set {path} to version {version}"),
        Txn::SetAcl { path, .. } => format!("set the ACL of {path}"),
        Txn::Check { path, .. } => format!("check {path}"),
        Txn::Error(code) => format!("error {code}"),
        Txn::Multi(txns) => format!("[{}]", txns.iter().map(txn).collect::<Vec<_>>().join(", ")),
    }
}

/// A packet between leader and learner.
pub(crate) fn packet(of: &Packet<'_>) -> String {
    match of {
        Packet::Proposal { zxid, record: bytes } => format!("PROPOSAL {zxid}: {}", record(bytes)),
        Packet::Inform { zxid, record: bytes } => format!("INFORM {zxid}: {}", record(bytes)),
        Packet::InformAndActivate { zxid, leader, record: bytes } => {
            format!("INFORMANDACTIVATE {zxid}, leader {}: {}", leader.0, record(bytes))
        }
        Packet::Commit(zxid) => format!("COMMIT {zxid}"),
        Packet::Ack(zxid) => format!("ACK {zxid}"),
        Packet::Request { session, cxid, code, .. } => {
            format!("REQUEST {cxid} of session {:x}, operation {code}", session.0)
        }
        Packet::NewLeader { epoch, .. } => format!("NEWLEADER {:x}", epoch.0),
        other => format!("{other:?}"),
    }
}

/// An operation of the disk.
pub(crate) fn act(of: &PersistOp) -> String {
    match of {
        PersistOp::Append { zxid, record: bytes } => format!("logs {zxid}: {}", record(&bytes.0)),
        PersistOp::Install(frozen) => format!("writes the leader's tree of {}", frozen.zxid),
        PersistOp::MarkIncomplete => "notes that its history is not complete".into(),
        PersistOp::SaveAccepted(epoch) => format!("saves the accepted epoch {:x}", epoch.0),
        PersistOp::SaveCurrent(epoch) => format!("saves the current epoch {:x}", epoch.0),
        PersistOp::Truncate { to, reload } => {
            format!("cuts its log back to {to}{}", if reload.is_some() { " and reads it anew" } else { "" })
        }
        PersistOp::RollLog => "begins a new log file".into(),
        PersistOp::SaveConfig { membership, active } => {
            let what = if *active { "in force" } else { "proposed" };
            format!("saves the configuration {:x} as {what}", membership.version)
        }
    }
}

/// A reply to a client.
pub(crate) fn reply(of: &Reply) -> String {
    let zxid = of.zxid.map(|zxid| zxid.to_string()).unwrap_or_default();
    let what = match &of.result {
        Err(error) => format!("{error:?}"),
        Ok(Body::Path(path) | Body::PathStat(path, _)) => format!("created {path}"),
        Ok(Body::Data(data, stat)) => {
            let data = data.as_ref().map(|data| String::from_utf8_lossy(data).into_owned());
            format!("data {:?}, version {}", data.unwrap_or_default(), stat.version)
        }
        Ok(Body::Stat(stat)) => format!("version {}, cversion {}", stat.version, stat.cversion),
        Ok(Body::Multi(results)) => format!("a multi of {}", results.len()),
        Ok(Body::Children(_)) => "children".into(),
        Ok(_) => "done".into(),
    };
    format!("the answer to {}, at {zxid}: {what}", of.xid.0)
}
