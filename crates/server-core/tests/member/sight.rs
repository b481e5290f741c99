//! The replies and events that reach a client, as values and as short lines that tests compare.

use ostler_proto::{
    connect::ConnectResponse,
    error::ErrorCode,
    event::EventType,
    id::Zxid,
    jute::Reader,
    reply::{Body, Data, OpResult, Reply},
    stat::Stat,
};
use ostler_server_core::CloseReason;

/// Something that reaches a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    Connected(ConnectResponse),
    Reply(Reply),
    Event { zxid: Option<Zxid>, kind: EventType, path: String },
    Closed(CloseReason),
}

impl Sight {
    pub(crate) fn line(&self) -> String {
        match self {
            Sight::Connected(response) if response.timeout_ms == 0 => "session is gone".into(),
            Sight::Connected(response) => format!("connected for {}", response.timeout_ms),
            Sight::Reply(reply) => format!("{}: {}", reply.xid.0, answer(&reply.result)),
            Sight::Event { kind, path, .. } => {
                let what = match kind {
                    EventType::NodeCreated => "created",
                    EventType::NodeDeleted => "deleted",
                    EventType::NodeDataChanged => "changed",
                    EventType::NodeChildrenChanged => "children of",
                };
                format!("{what} {path}")
            }
            Sight::Closed(reason) => format!("closed: {reason:?}"),
        }
    }
}

fn answer(result: &Result<Body, ErrorCode>) -> String {
    match result {
        Err(error) => format!("{error:?}"),
        Ok(Body::None | Body::WatchAdded) => "ok".into(),
        Ok(Body::Path(path)) => path.clone(),
        Ok(Body::PathStat(path, _)) => format!("{path} with stat"),
        Ok(Body::Stat(stat)) => version(stat),
        Ok(Body::Data(data, stat)) => format!("{} {}", text(data), version(stat)),
        Ok(Body::Children(names) | Body::ChildrenStat(names, _) | Body::Paths(names)) => {
            format!("[{}]", decode_names(&names.to_vec()).join(" "))
        }
        Ok(Body::Multi(results)) => {
            let results: Vec<String> = results.iter().map(op_result).collect();
            format!("({})", results.join(", "))
        }
        Ok(other) => format!("{other:?}"),
    }
}

fn op_result(result: &OpResult) -> String {
    match result {
        OpResult::Create(path) | OpResult::Create2(path, _) => path.clone(),
        OpResult::Delete | OpResult::Check => "ok".into(),
        OpResult::SetData(stat) => version(stat),
        OpResult::Error(0) => "undone".into(),
        OpResult::Error(code) => {
            ErrorCode::from_code(*code).map_or(code.to_string(), |code| format!("{code:?}"))
        }
        other => format!("{other:?}"),
    }
}

fn version(stat: &Stat) -> String {
    format!("v{}", stat.version)
}

fn text(data: &Data) -> String {
    data.as_ref().map_or("null".into(), |data| String::from_utf8_lossy(data).into_owned())
}

/// An encoded list of names, in order: servers send them in none.
pub(crate) fn decode_names(names: &[u8]) -> Vec<String> {
    let mut r = Reader::new(names);
    let names = r.vector(|r| r.text().map(|name| name.into_owned())).unwrap();
    assert!(r.rest().is_empty());
    let mut names = names.unwrap();
    names.sort();
    names
}
