//! Gives the notifications of a step to many connections.

use crate::outbox::Outbox;
use ostler_proto::{
    event::{self, EventType},
    id::Zxid,
};
use ostler_server_core::ConnId;
use rustc_hash::FxBuildHasher;
use std::{collections::HashMap, sync::Arc};

/// The outboxes of all connections.
pub(crate) type Outboxes = HashMap<ConnId, Arc<Outbox>, FxBuildHasher>;

/// A change of a znode that clients watch.
pub(crate) struct Notification<'a> {
    /// `None` for a change that a client missed while it was not connected.
    pub(crate) zxid: Option<Zxid>,
    pub(crate) kind: EventType,
    pub(crate) path: &'a str,
}

/// Notifications that the same connections get one after the other. Commits that come together often have the same
/// watchers, and then each watcher is looked up and woken once.
#[derive(Default)]
pub(crate) struct FanOut {
    /// In ascending order.
    conns: Vec<ConnId>,
    frames: Vec<u8>,
    count: u64,
}

impl FanOut {
    /// Frames that a connection gets at once.
    const FRAMES_MAX: usize = 16 << 10;

    /// Adds a notification to these connections. Returns the size of its frame.
    pub(crate) fn add(
        &mut self,
        mut conns: Vec<ConnId>,
        notification: Notification<'_>,
        outboxes: &Outboxes,
    ) -> usize {
        conns.sort_unstable();
        if conns != self.conns || self.frames.len() > FanOut::FRAMES_MAX {
            self.send(outboxes);
            self.conns = conns;
        }
        let before = self.frames.len();
        let Notification { zxid, kind, path } = notification;
        event::write_frame(&mut self.frames, zxid, kind, path);
        self.count += 1;
        self.frames.len() - before
    }

    /// Sends the notifications if this connection gets them, before another message that must not overtake them.
    pub(crate) fn before_others_to(&mut self, conn: ConnId, outboxes: &Outboxes) {
        if !self.frames.is_empty() && self.conns.binary_search(&conn).is_ok() {
            self.send(outboxes);
        }
    }

    pub(crate) fn send(&mut self, outboxes: &Outboxes) {
        if self.frames.is_empty() {
            return;
        }
        for conn in &self.conns {
            if let Some(outbox) = outboxes.get(conn)
                && outbox.notify(&self.frames, self.count)
            {
                tracing::warn!(?conn, "a client reads no notifications: its connection is closed");
            }
        }
        (self.frames, self.count) = (Vec::new(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sending::Sending;

    fn frame(zxid: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        event::write_frame(&mut frame, Some(Zxid(zxid)), EventType::NodeDataChanged, "/a");
        frame
    }

    fn taken(outboxes: &Outboxes, conn: u64) -> Vec<u8> {
        let mut sending = Sending::default();
        outboxes[&ConnId(conn)].take(&mut sending);
        let slices = sending.slices();
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn notifications_are_sent_in_order_and_before_a_later_reply() {
        let outboxes: Outboxes = (1..=3).map(|n| (ConnId(n), Arc::new(Outbox::default()))).collect();
        let mut fan = FanOut::default();
        let tell = |fan: &mut FanOut, conns: &[u64], zxid| {
            let conns = conns.iter().copied().map(ConnId).collect();
            let kind = EventType::NodeDataChanged;
            fan.add(conns, Notification { zxid: Some(Zxid(zxid)), kind, path: "/a" }, &outboxes)
        };
        tell(&mut fan, &[2, 1], 7);
        tell(&mut fan, &[1, 2], 8);
        assert_eq!(taken(&outboxes, 1), b"", "both notifications are sent together");
        fan.before_others_to(ConnId(3), &outboxes);
        assert_eq!(taken(&outboxes, 1), b"", "a message to another connection does not send them");
        fan.before_others_to(ConnId(1), &outboxes);
        outboxes[&ConnId(1)].raw(b"reply");
        assert_eq!(taken(&outboxes, 1), [frame(7), frame(8), b"reply".to_vec()].concat());
        tell(&mut fan, &[2], 9);
        tell(&mut fan, &[3], 10);
        fan.send(&outboxes);
        assert_eq!(taken(&outboxes, 2), [frame(7), frame(8), frame(9)].concat());
        assert_eq!(taken(&outboxes, 3), frame(10));
        assert_eq!((1..=3).map(|n| outboxes[&ConnId(n)].notified()).sum::<u64>(), 6);
    }
}
