//! Deletes containers without children and TTL znodes whose time is over, a few at a time.

use crate::{
    context::Context,
    input::{Mono, Now},
    pipeline::propose::WriteOrigin,
    server::Server,
};
use alloc::{collections::VecDeque, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{
    id::SessionId,
    stat::{NodeKind, StatPersisted},
    txn::Txn,
};

/// The znodes that are to be deleted, and the search for them.
#[derive(Debug)]
pub(crate) struct Reaper {
    next_check: Mono,
    next_delete: Mono,
    doomed: VecDeque<ArcStr>,
    /// The position of the search; `None` while there is none under way.
    search: Option<SearchPosition>,
}

/// The position of the search: it goes through the containers, then through the TTL znodes.
#[derive(Debug, Clone)]
struct SearchPosition {
    at_ttls: bool,
    after: ArcStr,
}

/// The number of znodes that are checked between two looks at the work budget.
const PORTION: usize = 64;

impl Reaper {
    pub(crate) fn new(now: Mono, interval_ms: u64) -> Self {
        Reaper {
            next_check: Mono(now.0 + interval_ms),
            next_delete: now,
            doomed: VecDeque::new(),
            search: None,
        }
    }

    /// Whether the search goes on at once.
    pub(crate) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    pub(crate) fn next_deadline(&self) -> Mono {
        if self.doomed.is_empty() { self.next_check } else { self.next_check.min(self.next_delete) }
    }
}

impl Server {
    pub(crate) fn reap(&mut self, cx: &mut Context<'_>) {
        if cx.now.mono >= self.reaper.next_check {
            self.reaper.next_check = Mono(cx.now.mono.0 + self.config.reaper_interval_ms.max(1));
            if self.reaper.doomed.is_empty() && self.reaper.search.is_none() {
                self.reaper.search = Some(SearchPosition { at_ttls: false, after: ArcStr::new() });
            }
        }
        self.search_doomed(cx.now);
        let pause_ms = 60_000 / u64::from(self.config.reaper_max_per_minute.max(1));
        while cx.now.mono >= self.reaper.next_delete
            && let Some(path) = self.reaper.doomed.pop_front()
        {
            self.reaper.next_delete = Mono(self.reaper.next_delete.0.max(cx.now.mono.0) + pause_ms);
            self.propose_reaping(cx, &path);
        }
    }

    fn propose_reaping(&mut self, cx: &mut Context<'_>, path: &str) {
        // Since the search, the znode may have been used again, or another znode may have its path. Upstream checks
        // only for children and ephemerals here, and would delete a persistent znode.
        let node = self.pipeline.overlay.get(&self.tree, path);
        if !node.is_some_and(|node| self.is_doomed(node.stat(), node.num_children, cx.now)) {
            return;
        }
        let origin = WriteOrigin::server(SessionId::NONE);
        let zxid = self.next_zxid();
        self.preparer(zxid, cx.now, origin).note_deleted(path);
        let txn = Txn::Delete { reaped: true, path: path.into() };
        self.append(cx, origin, txn);
    }

    /// Goes on with the search until the work budget is spent.
    fn search_doomed(&mut self, now: Now) {
        while !self.work.is_spent()
            && let Some(position) = self.reaper.search.take()
        {
            let of_kind = if position.at_ttls {
                self.tree.ttls_after(&position.after)
            } else {
                self.tree.containers_after(&position.after)
            };
            let portion: Vec<ArcStr> = of_kind.take(PORTION).cloned().collect();
            self.work.add(portion.len() * 2);
            self.reaper.search = match (portion.last(), position.at_ttls) {
                (Some(last), at_ttls) => Some(SearchPosition { at_ttls, after: last.clone() }),
                (None, false) => Some(SearchPosition { at_ttls: true, after: ArcStr::new() }),
                (None, true) => None,
            };
            let is_doomed = |path: &ArcStr| {
                self.tree.get(path).is_some_and(|node| self.is_doomed(&node.stat, node.num_children, now))
            };
            let doomed: Vec<ArcStr> = portion.into_iter().filter(is_doomed).collect();
            self.reaper.doomed.extend(doomed);
        }
    }

    /// Whether a znode without children is to be deleted: a container that has had children; a container that never
    /// had, after its limit, if there is one; a TTL znode that was not changed for its TTL.
    fn is_doomed(&self, stat: &StatPersisted, num_children: u32, now: Now) -> bool {
        let StatPersisted { cversion, mtime, ephemeral_owner, .. } = *stat;
        let age_ms = now.wall_ms - mtime;
        let never_used_ms = self.config.container_max_never_used_ms;
        num_children == 0
            && match ephemeral_owner.kind(self.config.types) {
                NodeKind::Container => cversion > 0 || (never_used_ms > 0 && age_ms > never_used_ms),
                // A znode with a TTL of 0 never expires, as in upstream.
                NodeKind::Ttl(ttl_ms) => ttl_ms > 0 && age_ms > ttl_ms,
                NodeKind::Persistent | NodeKind::Ephemeral(_) => false,
            }
    }
}
