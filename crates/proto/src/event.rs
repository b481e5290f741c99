//! Watch events, as a server writes them and a client reads them.

use crate::{
    id::{Xid, Zxid},
    jute::{Reader, Result, Writer},
};
use alloc::{borrow::Cow, vec::Vec};

/// The change that a watch reports. A server sends no types but these four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum EventType {
    /// The znode was created.
    NodeCreated = 1,
    /// The znode was deleted.
    NodeDeleted = 2,
    /// The znode's data was set.
    NodeDataChanged = 3,
    /// A child was created or deleted.
    NodeChildrenChanged = 4,
}

impl EventType {
    /// The type with this number on the wire. `None` if the number is unknown.
    pub fn from_code(code: i32) -> Option<EventType> {
        Some(match code {
            1 => EventType::NodeCreated,
            2 => EventType::NodeDeleted,
            3 => EventType::NodeDataChanged,
            4 => EventType::NodeChildrenChanged,
            _ => return None,
        })
    }
}

/// The value of the state field in every event that a server sends.
pub const SYNC_CONNECTED: i32 = 3;

/// Appends a whole notification frame. `zxid` is the zxid of the transaction. It is `None` for events that a client
/// missed and gets after a reconnect: upstream sends -1 then.
pub fn write_frame(out: &mut Vec<u8>, zxid: Option<Zxid>, kind: EventType, path: &str) {
    let start = crate::reply::begin_frame(out);
    out.i32(Xid::NOTIFICATION.0);
    out.i64(zxid.map_or(-1, Zxid::to_wire));
    out.i32(0);
    out.i32(kind as i32);
    out.i32(SYNC_CONNECTED);
    out.string(path);
    crate::reply::end_frame(out, start);
}

/// A notification's body as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherEvent<'a> {
    /// The number of the event type.
    pub kind: i32,
    /// The number of the keeper state.
    pub state: i32,
    /// The path of the znode.
    pub path: Cow<'a, str>,
}

impl<'a> WatcherEvent<'a> {
    /// Reads the body that follows the reply header.
    pub fn read(r: &mut Reader<'a>) -> Result<Self> {
        Ok(WatcherEvent { kind: r.i32()?, state: r.i32()?, path: r.text()? })
    }
}
