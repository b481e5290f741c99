//! The keys in force, where their values come from, and what differs between the servers.

use crate::{
    list::{self, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    extract::{Query, State},
    response::Response,
};
use ostler_server::{
    admin::DynamicConfiguration,
    config::{KeyInForce, Standing},
};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};

/// The configuration of one server, or of several side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Configuration {
    keys: Vec<KeyRow>,
    dynamic: Option<Dynamic>,
    unknown: Vec<UnknownKey>,
}

/// A key with its value at each server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeyRow {
    key: String,
    standing: String,
    values: Vec<KeyValue>,
    differs: bool,
    note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeyValue {
    /// 0 for a standalone server.
    server: i64,
    /// `None` for none.
    value: Option<String>,
    from: String,
}

/// The configuration of the ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Dynamic {
    version: String,
    members: Vec<String>,
    differs: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UnknownKey {
    server: i64,
    key: String,
    near: Option<String>,
}

/// `GET /config`.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Response {
    let own = local(&console);
    let all = list::with_others(&console, "config", &parameters, own).await;
    all.servers.answer(merge(all.parts))
}

/// The configuration of this server.
fn local(console: &Console) -> Configuration {
    of(list::own_id(&console.handle), &console.handle.keys(), console.handle.dynamic_configuration())
}

fn of(server: i64, keys: &[KeyInForce], dynamic: Option<DynamicConfiguration>) -> Configuration {
    let row = |key: &KeyInForce| KeyRow {
        key: key.key.clone(),
        standing: key.standing.name().into(),
        values: vec![KeyValue { server, value: key.value.clone(), from: key.origin.to_string() }],
        differs: false,
        note: key.note.clone(),
    };
    let unknown = keys.iter().filter(|key| key.standing == Standing::Unknown);
    Configuration {
        keys: keys.iter().map(row).collect(),
        dynamic: dynamic.map(|of| Dynamic {
            version: format!("0x{:x}", of.version),
            members: of.members,
            differs: false,
        }),
        unknown: unknown
            .map(|key| UnknownKey { server, key: key.key.clone(), near: key.near.map(str::to_owned) })
            .collect(),
    }
}

/// The configurations of several servers, key by key in the order of the first one.
fn merge(parts: Vec<Configuration>) -> Configuration {
    let servers = parts.len();
    let mut merged = Configuration::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    for part in parts {
        for row in part.keys {
            match places.get(&row.key) {
                Some(at) => merged.keys[*at].values.extend(row.values),
                None => {
                    places.insert(row.key.clone(), merged.keys.len());
                    merged.keys.push(row);
                }
            }
        }
        merged.unknown.extend(part.unknown);
        merged.dynamic = newer(merged.dynamic.take(), part.dynamic);
    }
    for row in &mut merged.keys {
        let first = &row.values[0].value;
        row.differs = row.values.len() < servers || row.values.iter().any(|other| other.value != *first);
    }
    merged
}

/// The newer of two configurations of the ensemble, with whether they differ.
fn newer(one: Option<Dynamic>, other: Option<Dynamic>) -> Option<Dynamic> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    let differs = one.differs || (&one.version, &one.members) != (&other.version, &other.members);
    // Without leading zeros a longer number is a greater one.
    let number = |of: &Dynamic| (of.version.len(), of.version.clone());
    let newer = if number(&other) > number(&one) { other } else { one };
    Some(Dynamic { differs, ..newer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server::config::ValueOrigin;

    fn key(name: &str, value: &str, standing: Standing) -> KeyInForce {
        KeyInForce {
            key: name.into(),
            standing,
            value: Some(value.into()),
            origin: ValueOrigin::Default,
            note: "It is so.".into(),
            near: Some("tickTime").filter(|_| standing == Standing::Unknown),
        }
    }

    fn dynamic(version: u64) -> Option<DynamicConfiguration> {
        Some(DynamicConfiguration { version, members: vec![format!("server.1=a:1:{version}")] })
    }

    #[test]
    fn servers_that_differ_are_marked() {
        let one = [key("tickTime", "2000", Standing::Obeyed), key("dataDir", "/a", Standing::Obeyed)];
        let two = [
            key("tickTime", "2000", Standing::Obeyed),
            key("dataDir", "/b", Standing::Obeyed),
            key("tickTme", "1", Standing::Unknown),
        ];
        let merged = merge(vec![of(1, &one, dynamic(9)), of(2, &two, dynamic(16))]);
        let rows: Vec<(&str, usize, bool)> =
            merged.keys.iter().map(|row| (&*row.key, row.values.len(), row.differs)).collect();
        assert_eq!(rows, [("tickTime", 2, false), ("dataDir", 2, true), ("tickTme", 1, true)]);
        let unknown = UnknownKey { server: 2, key: "tickTme".into(), near: Some("tickTime".into()) };
        assert_eq!(merged.unknown, [unknown]);
        let newest =
            Dynamic { version: "0x10".into(), members: vec!["server.1=a:1:16".into()], differs: true };
        assert_eq!(merged.dynamic, Some(newest));
        let alone = merge(vec![of(0, &one, None)]);
        assert!(alone.keys.iter().all(|row| !row.differs) && alone.dynamic.is_none());
    }

    #[test]
    fn equal_configurations_of_the_ensemble_do_not_differ() {
        let merged = merge(vec![of(1, &[], dynamic(9)), of(2, &[], dynamic(9))]);
        assert!(merged.dynamic.is_some_and(|of| !of.differs && of.version == "0x9"));
    }
}
