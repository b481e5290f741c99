//! Fuzzes replies and notifications as a client reads them.

use crate::script::Script;
use ostler_proto::{
    acl::{Acl, read_acls, write_acls},
    event::{self, EventType, WatcherEvent},
    id::{Xid, Zxid},
    jute::{JuteError, Reader, Result},
    reply::{Body, OpOutcome, OpResult, ReplyHeader, read_identities, read_outcomes, read_strings},
    shared::SharedBytes,
    stat::Stat,
    strings::SharedStrings,
};

/// The first byte chooses the body that the client expects behind the header.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let kind = script.byte();
    let mut r = Reader::new(script.rest());
    let Ok(header) = ReplyHeader::read(&mut r) else {
        assert!(bytes.len() < 1 + ReplyHeader::SIZE);
        return;
    };
    if header.xid == Xid::NOTIFICATION {
        notification(header, r);
    } else {
        body(kind, r.rest());
    }
}

fn notification(header: ReplyHeader, mut r: Reader<'_>) {
    let Ok(event) = WatcherEvent::read(&mut r) else { return };
    let kinds = [
        EventType::NodeCreated,
        EventType::NodeDeleted,
        EventType::NodeDataChanged,
        EventType::NodeChildrenChanged,
    ];
    let Some(kind) = kinds.into_iter().find(|kind| *kind as i32 == event.kind) else { return };
    let mut frame = Vec::new();
    event::write_frame(&mut frame, Some(Zxid::from_wire(header.zxid)), kind, &event.path);
    let mut r = Reader::new(&frame[4..]);
    let again = ReplyHeader::read(&mut r).and_then(|again| Ok((again, WatcherEvent::read(&mut r)?)));
    let (again, read) = again.expect("what was written is read");
    assert_eq!((again.xid, again.zxid), (header.xid, header.zxid));
    if !event.path.chars().any(|c| c > '\u{ffff}') {
        assert_eq!(read.path, event.path);
    }
}

/// A body that is read can be written as a server writes it, and is read again the same. With fewer bytes it is
/// refused.
fn body(kind: u8, bytes: &[u8]) {
    let mut r = Reader::new(bytes);
    let Ok(body) = read_body(kind, &mut r) else { return };
    let used = bytes.len() - r.rest().len();
    assert!(items(&body) <= used / 4, "{} items in {used} bytes", items(&body));
    for end in [0, used / 2, used - 1] {
        assert!(read_body(kind, &mut Reader::new(&bytes[..end])).is_err(), "{end} of {used} bytes would do");
    }
    let mut written = Vec::new();
    body.write(&mut written);
    let mut r = Reader::new(&written);
    assert_eq!(read_body(kind, &mut r), Ok(body));
    assert!(r.rest().is_empty());
}

/// Reads the body of a reply as the client does.
fn read_body(kind: u8, r: &mut Reader<'_>) -> Result<Body> {
    let path = |r: &mut Reader<'_>| Ok(r.stored_string()?.ok_or(JuteError::Null)?.into_owned());
    Ok(match kind % 8 {
        0 => Body::Path(path(r)?),
        1 => Body::PathStat(path(r)?, Stat::read(r)?),
        2 => Body::Data(r.buffer()?.map(SharedBytes::from), Stat::read(r)?),
        3 => Body::ChildrenStat(encoded(&read_strings(r)?), Stat::read(r)?),
        4 => Body::Acl(encoded_acls(&read_acls(r)?), Stat::read(r)?),
        5 => Body::Identities(read_identities(r)?),
        6 => Body::Stat(Stat::read(r)?),
        _ => Body::Multi(read_outcomes(r)?.into_iter().map(result).collect()),
    })
}

fn result(outcome: OpOutcome<'_>) -> OpResult {
    match outcome {
        OpOutcome::Create(path, None) => OpResult::Create(path.into()),
        OpOutcome::Create(path, Some(stat)) => OpResult::Create2(path.into(), stat),
        OpOutcome::Delete => OpResult::Delete,
        OpOutcome::SetData(stat) => OpResult::SetData(stat),
        OpOutcome::Check => OpResult::Check,
        OpOutcome::GetData(data, stat) => OpResult::GetData(data.map(SharedBytes::from), stat),
        OpOutcome::GetChildren(names) => OpResult::GetChildren(encoded(&names)),
        OpOutcome::Error(code) => OpResult::Error(code),
    }
}

fn encoded_acls(acls: &[Acl]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_acls(&mut bytes, acls);
    bytes
}

fn encoded(names: &[String]) -> SharedStrings {
    SharedStrings::encode(names.iter().map(|name| &**name))
}

/// The number of list items in a body. Each takes at least four bytes.
fn items(body: &Body) -> usize {
    match body {
        Body::Acl(acls, _) => acls.len() / 12,
        Body::Identities(ids) => ids.len(),
        Body::Multi(results) => results.len(),
        _ => 0,
    }
}
