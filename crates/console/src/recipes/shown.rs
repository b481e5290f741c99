//! The JSON of groups.

use super::{
    gather::{Acls, Looks, SeenContender, SeenGroup},
    groups::REVOKED,
    offer::Alarm,
    patterns::Form,
};
use ostler_proto::acl::Id;
use ostler_server_core::report::holders::ReadAcl;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The most characters of an id.
const ID_MAX: usize = 200;
/// ACLs that are checked in one look at the core.
const ACLS_PER_LOOK: usize = 64;

/// The ACLs that let a caller read.
pub(crate) struct Readable {
    by_key: HashMap<usize, bool>,
}

impl Readable {
    /// Checks each of these ACLs once.
    pub(crate) fn of<'a>(looks: &Looks<'_>, ids: &[Id], acls: impl Iterator<Item = &'a ReadAcl>) -> Readable {
        let mut distinct: HashMap<usize, ReadAcl> = HashMap::new();
        for acl in acls {
            distinct.entry(acl.key()).or_insert_with(|| acl.clone());
        }
        let (keys, acls): (Vec<usize>, Vec<ReadAcl>) = distinct.into_iter().unzip();
        let verdicts = acls
            .chunks(ACLS_PER_LOOK)
            .flat_map(|part| looks.0.inspect(|server| server.each_readable(ids, part)));
        Readable { by_key: keys.into_iter().zip(verdicts).collect() }
    }

    pub(crate) fn has(&self, acl: &ReadAcl) -> bool {
        self.by_key.get(&acl.key()).copied().unwrap_or(false)
    }

    /// Whether the caller may see a group.
    pub(crate) fn shows(&self, group: &SeenGroup) -> bool {
        matches!(&group.acls, Acls::Of(acls) if acls.iter().all(|acl| self.has(acl)))
    }
}

/// A group in a list.
pub(crate) fn group(seen: &SeenGroup, readable: &Readable, handovers: usize) -> Map<String, Value> {
    let group = &seen.group;
    let shown = json!({
        "path": group.path,
        "kind": group.kind.name(),
        "made_by": group.maker().name(),
        "confidence": group.confidence.name(),
        "rule": group.rule(),
        "holder": seen.holder.as_ref().map(|holder| contender(holder, readable)),
        "waiting": group.waiting(),
        "alarms": seen.alarms.iter().map(alarm).collect::<Vec<_>>(),
        "handovers_last_hour": handovers,
    });
    match shown {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn alarm(alarm: &Alarm) -> Value {
    json!({ "kind": alarm.kind, "sentence": alarm.sentence })
}

/// A holder.
fn contender(seen: &SeenContender, readable: &Readable) -> Value {
    json!({
        "path": seen.contender.path,
        "id": id(seen, readable),
        "session": seen.znode.owner.map(|session| session.to_string()),
        "address": seen.session.and_then(|session| session.address).map(|address| address.to_string()),
        "token": seen.znode.czxid.to_string(),
        "since_ms": seen.znode.ctime_ms,
    })
}

/// A znode of the queue, with its place from 1 on.
pub(crate) fn queued(seen: &SeenContender, readable: &Readable, (place, holds): (usize, bool)) -> Value {
    let mut shown = contender(seen, readable);
    shown["place"] = json!(place);
    shown["holds"] = json!(holds);
    shown["made_by"] = json!(seen.contender.maker().name());
    shown["silent_for_ms"] = json!(seen.session.and_then(|session| session.silent_for_ms));
    shown
}

/// Data as text, if it is text. A character that is cut at the end is left out.
fn text(data: &[u8]) -> Option<&str> {
    match str::from_utf8(data) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => str::from_utf8(&data[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}

/// The id that the program has written into its znode; `None` if it has written none, or the caller may not read it.
fn id(seen: &SeenContender, readable: &Readable) -> Option<String> {
    // The id of a holder that is asked to release is overwritten.
    let data = Some(&*seen.znode.data).filter(|data| *data != REVOKED);
    let text = text(data?).filter(|_| readable.has(&seen.znode.acl))?;
    // kazoo's queue for a semaphore has the text of a Python value.
    let quoted = text.strip_prefix("b'").and_then(|text| text.strip_suffix('\''));
    let text = quoted.filter(|_| seen.contender.form == Form::KazooLock).unwrap_or(text);
    let is_binary = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!text.is_empty() && !is_binary).then(|| text.chars().take(ID_MAX).collect())
}
