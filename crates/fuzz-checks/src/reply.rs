//! Replies and notifications as a client reads them.

use crate::script::Script;
use ostler_proto::{
    acl::read_acls,
    event::{self, EventType, WatcherEvent},
    id::{Xid, Zxid},
    jute::{Reader, Result},
    reply::ReplyHeader,
    request::MultiHeader,
    stat::{Stat, StatPersisted},
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
        // Any outcome will do, as long as there is one.
        let _ = body(kind, &mut r);
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

fn body(kind: u8, r: &mut Reader<'_>) -> Result<()> {
    match kind % 8 {
        0 => drop(r.text()?),
        1 => drop((r.text()?, Stat::read(r)?)),
        2 => drop((r.buffer()?, Stat::read(r)?)),
        3 => drop((r.vector(Reader::text)?, Stat::read(r)?)),
        4 => drop((read_acls(r)?, Stat::read(r)?)),
        5 => drop(r.vector(|r| Ok((r.string()?, r.string()?)))?),
        6 => drop(StatPersisted::read(r)?),
        _ => multi(r)?,
    }
    Ok(())
}

fn multi(r: &mut Reader<'_>) -> Result<()> {
    loop {
        let header = MultiHeader::read(r)?;
        if header.done {
            return Ok(());
        }
        match header.code {
            1 => drop(r.text()?),
            4 => drop((r.buffer()?, Stat::read(r)?)),
            5 => drop(Stat::read(r)?),
            8 => drop(r.vector(Reader::text)?),
            15 => drop((r.text()?, Stat::read(r)?)),
            -1 => drop(r.i32()?),
            _ => {}
        }
    }
}
