//! Containers without children and TTL nodes past their time are deleted, a few at a time.

use crate::{
    effect::Effect,
    input::{Mono, Now},
    propose::Requester,
    server::Server,
};
use alloc::{collections::VecDeque, vec::Vec};
use arcstr::ArcStr;
use ostler_proto::{
    id::SessionId,
    stat::{NodeKind, StatPersisted},
    txn::Txn,
};

/// What is to be deleted, and when.
#[derive(Debug)]
pub(crate) struct Reaper {
    next_check: Mono,
    next_delete: Mono,
    doomed: VecDeque<ArcStr>,
    /// The last znode that was looked at; `None` while nobody looks.
    search: Option<SearchPosition>,
}

/// How far the search has come: first through the containers, then through the TTL nodes.
#[derive(Debug, Clone)]
struct SearchPosition {
    at_ttls: bool,
    after: ArcStr,
}

/// Znodes that are looked at before the work that is left is.
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
    pub(crate) fn reap(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if now.mono >= self.reaper.next_check {
            self.reaper.next_check = Mono(now.mono.0 + self.config.reaper_interval_ms.max(1));
            if self.reaper.doomed.is_empty() && self.reaper.search.is_none() {
                self.reaper.search = Some(SearchPosition { at_ttls: false, after: ArcStr::new() });
            }
        }
        self.look_for_doomed(now);
        let pause_ms = 60_000 / u64::from(self.config.reaper_max_per_minute.max(1));
        while now.mono >= self.reaper.next_delete
            && let Some(path) = self.reaper.doomed.pop_front()
        {
            self.reaper.next_delete = Mono(self.reaper.next_delete.0.max(now.mono.0) + pause_ms);
            self.propose_reaping(now, &path, effects);
        }
    }

    fn propose_reaping(&mut self, now: Now, path: &str, effects: &mut Vec<Effect>) {
        // Since it was found another may have taken its place, or used it again. Upstream looks only for
        // children and ephemerals here, and deletes a persistent znode that has the path by now.
        let node = self.overlay.get(&self.tree, path);
        if !node.is_some_and(|node| self.is_doomed(node.stat(), node.num_children, now)) {
            return;
        }
        let session = SessionId::NONE;
        let zxid = self.next_zxid();
        self.preparer(zxid, now, session, Requester::Server).forget(path);
        let txn = Txn::Delete { reaped: true, path: path.into() };
        self.append(now, session, 0, txn, None, effects);
    }

    /// Goes on with the search, for as long as there is work to spend.
    fn look_for_doomed(&mut self, now: Now) {
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

    /// A container that has had children; one that never had, where a limit is set; a TTL node unchanged
    /// for too long.
    fn is_doomed(&self, stat: &StatPersisted, num_children: u32, now: Now) -> bool {
        let StatPersisted { cversion, mtime, ephemeral_owner, .. } = *stat;
        let age_ms = now.wall_ms - mtime;
        let never_used_ms = self.config.container_max_never_used_ms;
        num_children == 0
            && match ephemeral_owner.kind(self.config.types) {
                NodeKind::Container => cversion > 0 || (never_used_ms > 0 && age_ms > never_used_ms),
                // None is upstream's word for "never".
                NodeKind::Ttl(ttl_ms) => ttl_ms > 0 && age_ms > ttl_ms,
                NodeKind::Persistent | NodeKind::Ephemeral(_) => false,
            }
    }
}
