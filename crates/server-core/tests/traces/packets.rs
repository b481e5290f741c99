//! The text of packets, transactions and answers.

use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Zxid},
    jute::Reader,
    membership::Membership,
    op::Op,
    quorum_packet::Packet,
    reply::{Body, Reply},
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{CloseReason, PersistOp};
use std::collections::BTreeMap;

/// The clients' names of the sessions.
pub(crate) type Names = BTreeMap<SessionId, String>;

pub(crate) fn session(names: &Names, session: SessionId) -> String {
    names.get(&session).map_or_else(|| format!("session {session}"), |name| format!("session {name}"))
}

fn record(names: &Names, bytes: &[u8]) -> String {
    let read = TxnRecord::read(bytes).unwrap();
    let by = match read.header.session {
        SessionId::NONE => String::new(),
        of => format!(" ({}, xid {})", session(names, of), read.header.cxid),
    };
    format!("{}{by}", txn(&read.txn))
}

fn txn(of: &Txn<'_>) -> String {
    match of {
        Txn::CreateSession { timeout_ms } => format!("createSession timeout {timeout_ms}"),
        Txn::CloseSession(paths) => {
            format!("closeSession {}", paths.clone().unwrap_or_default().join(" ")).trim_end().to_owned()
        }
        Txn::Create(create) if create.ephemeral => format!("create ephemeral {}", create.path),
        Txn::Create(create) => format!("create {}", create.path),
        Txn::Delete { path, .. } => format!("delete {path}"),
        Txn::SetData { reconfig: true, data, .. } => {
            format!("reconfig to {}", servers(&String::from_utf8_lossy(data.unwrap_or_default())))
        }
        Txn::SetData { path, data, version, .. } => {
            format!(
                "setData {path} {:?} version {version}",
                String::from_utf8_lossy(data.unwrap_or_default())
            )
        }
        Txn::SetAcl { path, .. } => format!("setAcl {path}"),
        Txn::Check { path, version } => format!("check {path} version {version}"),
        Txn::Error(code) => match ErrorCode::from_code(*code) {
            Some(error) => format!("error {error:?}"),
            None => format!("error {code}"),
        },
        Txn::Multi(txns) => format!("multi [{}]", txns.iter().map(txn).collect::<Vec<_>>().join(", ")),
    }
}

/// The servers of a configuration, with its version.
fn servers(config: &str) -> String {
    Membership::parse(config).map_or_else(|error| error.to_string(), |read| membership(&read))
}

pub(crate) fn membership(of: &Membership) -> String {
    let all = of
        .servers
        .iter()
        .map(|(id, member)| if member.observer { format!("{} observer", id.0) } else { id.0.to_string() });
    format!("[{}] version {:x}", all.collect::<Vec<_>>().join(", "), of.version)
}

pub(crate) fn packet(names: &Names, of: &Packet<'_>) -> String {
    match of {
        Packet::Request { session: by, cxid, code, body, .. } => {
            let op = Op::from_code(*code).map_or_else(|| code.to_string(), |op| format!("{op:?}"));
            let path = Reader::new(body).text().map_or_else(|_| String::new(), |path| format!(" {path}"));
            let is_about_path = !matches!(Op::from_code(*code), Some(Op::CreateSession | Op::Reconfig));
            let path = if is_about_path { path } else { String::new() };
            format!("REQUEST {}, xid {cxid} {op}{path}", session(names, *by))
        }
        Packet::Proposal { zxid, record: bytes } => format!("PROPOSAL {zxid} {}", record(names, bytes)),
        Packet::Ack(zxid) => format!("ACK {zxid}"),
        Packet::Commit(zxid) => format!("COMMIT {zxid}"),
        Packet::Ping { zxid, touched: None } => format!("PING {zxid}"),
        Packet::Ping { touched: Some(touched), .. } => {
            let all =
                touched.iter().map(|(of, timeout)| format!(" {}, timeout {timeout}", session(names, *of)));
            format!("PING{}", all.collect::<String>())
        }
        Packet::Revalidate { session: of, timeout_ms } => {
            format!("REVALIDATE {}, timeout {timeout_ms}", session(names, *of))
        }
        Packet::Revalidated { session: of, valid } => {
            format!("REVALIDATE {} {}", session(names, *of), if *valid { "is valid" } else { "is not valid" })
        }
        Packet::SessionMoved(of) => format!("SESSIONMOVED {}", session(names, *of)),
        Packet::Sync => "SYNC".into(),
        Packet::Inform { zxid, record: bytes } => format!("INFORM {zxid} {}", record(names, bytes)),
        Packet::CommitAndActivate { zxid, leader } => {
            format!("COMMITANDACTIVATE {zxid}, leader {}", leader.0)
        }
        Packet::InformAndActivate { zxid, leader, record: bytes } => {
            format!("INFORMANDACTIVATE {zxid}, leader {}, {}", leader.0, record(names, bytes))
        }
        Packet::NewLeader { epoch, config } => {
            format!("NEWLEADER epoch {}, servers {}", epoch.0, servers(config))
        }
        Packet::FollowerInfo { accepted, info } => {
            format!("FOLLOWERINFO acceptedEpoch {}, config version {:x}", accepted.0, info.config_version)
        }
        Packet::ObserverInfo { accepted, info } => {
            format!("OBSERVERINFO acceptedEpoch {}, config version {:x}", accepted.0, info.config_version)
        }
        Packet::UpToDate => "UPTODATE".into(),
        Packet::Diff(through) => format!("DIFF {through}"),
        Packet::Trunc(to) => format!("TRUNC {to}"),
        Packet::Snap(at) => format!("SNAP {at}"),
        Packet::LeaderInfo { epoch, .. } => format!("LEADERINFO epoch {}", epoch.0),
        Packet::AckEpoch { last, current: Some(current) } => {
            format!("ACKEPOCH last {last}, currentEpoch {}", current.0)
        }
        Packet::AckEpoch { last, current: None } => format!("ACKEPOCH last {last}, epoch accepted before"),
    }
}

pub(crate) fn act(names: &Names, of: &PersistOp) -> String {
    match of {
        PersistOp::Append { zxid, record: of } => format!("append {zxid} {}", record(names, &of.0)),
        PersistOp::RollLog => "begin a log file".into(),
        PersistOp::MarkIncomplete => "mark as incomplete".into(),
        PersistOp::SaveAccepted(epoch) => format!("acceptedEpoch {}", epoch.0),
        PersistOp::SaveCurrent(epoch) => format!("currentEpoch {}", epoch.0),
        PersistOp::Truncate { to, reload } => {
            format!("truncate after {to}{}", if reload.is_some() { ", read the tree again" } else { "" })
        }
        PersistOp::SaveConfig { membership: of, active } => {
            format!("{} config {}", if *active { "active" } else { "proposed" }, membership(of))
        }
        PersistOp::Install(tree) => format!("snapshot {}", tree.zxid),
    }
}

pub(crate) fn reply(of: &Reply) -> String {
    let zxid = of.zxid.unwrap_or(Zxid::ZERO);
    let body = match &of.result {
        Err(code) => format!("{code:?}"),
        Ok(Body::Path(path) | Body::PathStat(path, _)) => format!("ok {path}"),
        Ok(Body::Data(data, stat)) => {
            let data = data.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
            if data.starts_with("server.") {
                format!("ok servers {}", servers(&data))
            } else {
                format!("ok {data:?} version {}", stat.version)
            }
        }
        Ok(Body::Stat(stat)) => format!("ok version {}", stat.version),
        Ok(_) => "ok".into(),
    };
    format!("xid {} zxid {zxid} {body}", of.xid.0)
}

pub(crate) fn close_reason(why: CloseReason) -> &'static str {
    match why {
        CloseReason::ClosedByClient => "closed by the client",
        CloseReason::SessionExpired => "session expired",
        CloseReason::SessionMoved => "session moved",
        CloseReason::PasswordUnknown => "password unknown",
        CloseReason::ClientAhead => "client ahead",
        CloseReason::AuthFailed => "authentication failed",
        CloseReason::OtherEnsemble => "another ensemble is wanted",
        CloseReason::Protocol => "protocol broken",
        CloseReason::NotServing => "not serving",
        CloseReason::ReadOnly => "read-only",
        CloseReason::Silent => "silent",
        CloseReason::ClosedByOperator => "closed by an operator",
    }
}
