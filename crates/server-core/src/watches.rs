//! Requests about watches.

use crate::{effect::Effect, input::ConnId, server::Server};
use alloc::vec::Vec;
use arcstr::ArcStr;
use ostler_proto::{
    error::ErrorCode,
    event::EventType,
    planted::{self, Bug},
    reply::Body,
    request::SetWatches,
};
use ostler_tree::watch::{WatchTarget, WatcherKind};

const PERSISTENT: i32 = 0;
const PERSISTENT_RECURSIVE: i32 = 1;

impl Server {
    /// A client that has reconnected says what it watches and what it last saw: what has changed since is
    /// told at once, the rest is watched on. No ACL is looked at here, as upstream has it.
    pub(crate) fn set_watches(
        &mut self,
        conn: ConnId,
        set: &SetWatches<'_>,
        effects: &mut Vec<Effect>,
    ) -> Body {
        let lost = planted::is(Bug::WatchesLostOnReconnect);
        let seen = if lost { i64::MAX } else { set.relative_zxid };
        let watcher = conn.watcher();
        for path in &set.data {
            match self.tree.get(path) {
                None => self.catch_up(conn, EventType::NodeDeleted, path, effects),
                Some(node) if node.stat.mzxid.to_wire() > seen => {
                    self.catch_up(conn, EventType::NodeDataChanged, path, effects);
                }
                Some(_) => self.watches.add_standard(WatchTarget::Data, path, watcher),
            }
        }
        for path in &set.exist {
            match self.tree.get(path) {
                Some(_) => self.catch_up(conn, EventType::NodeCreated, path, effects),
                None => self.watches.add_standard(WatchTarget::Data, path, watcher),
            }
        }
        for path in &set.child {
            match self.tree.get(path) {
                None => self.catch_up(conn, EventType::NodeDeleted, path, effects),
                Some(node) if node.stat.pzxid.to_wire() > seen => {
                    self.catch_up(conn, EventType::NodeChildrenChanged, path, effects);
                }
                Some(_) => self.watches.add_standard(WatchTarget::Children, path, watcher),
            }
        }
        if planted::is(Bug::PersistentNotSetAgain) {
            return Body::None;
        }
        for path in &set.persistent {
            self.watches.add_persistent(path, watcher, false);
        }
        for path in &set.persistent_recursive {
            self.watches.add_persistent(path, watcher, true);
        }
        Body::None
    }

    fn catch_up(&mut self, conn: ConnId, kind: EventType, path: &str, effects: &mut Vec<Effect>) {
        self.stats.packets_sent += 1;
        let mut conns = Vec::from([conn]);
        if planted::is(Bug::MissedToldTwice) {
            conns.push(conn);
        }
        effects.push(Effect::Notify { conns, zxid: None, kind, path: ArcStr::from(path) });
    }

    /// Any path may be watched, whether it exists and may be read or not.
    pub(crate) fn add_watch(&mut self, conn: ConnId, path: &str, mode: i32) -> Result<Body, ErrorCode> {
        let recursive = match mode {
            PERSISTENT => false,
            PERSISTENT_RECURSIVE => true,
            _ => return Err(ErrorCode::MarshallingError),
        };
        self.watches.add_persistent(path, conn.watcher(), recursive);
        Ok(Body::WatchAdded)
    }

    pub(crate) fn check_watches(&mut self, conn: ConnId, path: &str, kind: i32) -> Result<Body, ErrorCode> {
        let kind = WatcherKind::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
        let found = self.watches.contains(path, conn.watcher(), kind);
        if found { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) }
    }

    pub(crate) fn remove_watches(&mut self, conn: ConnId, path: &str, kind: i32) -> Result<Body, ErrorCode> {
        let kind = WatcherKind::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
        let removed = self.watches.remove(path, conn.watcher(), kind);
        if removed { Ok(Body::None) } else { Err(ErrorCode::NoWatcher) }
    }
}
