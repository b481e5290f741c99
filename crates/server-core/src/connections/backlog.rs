//! Work that exceeded the budget of a step. It goes on at the next [`Input::Deadline`], which is due at once.
//!
//! Done in parts are: the requests of a connection that waited behind a write, also within a long setWatches or
//! multiRead; committed transactions; and the removal of watches of closed connections. The ends of sessions and the
//! search of the reaper note their own position.
//!
//! None of this changes the order of requests. A connection's requests are answered before its next write is applied:
//! while some are left, that transaction waits, and all after it.
//!
//! [`Input::Deadline`]: crate::Input::Deadline

use crate::{context::Context, input::ConnId, pipeline::Outstanding, server::Server};
use alloc::collections::VecDeque;

/// The work that is left.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Connections with requests that wait for their turn only, each of them once.
    conns: VecDeque<ConnId>,
    /// Transactions are committed and not applied.
    pub(crate) commits: bool,
    /// Sessions have expired and not ended.
    pub(crate) sessions: bool,
    /// Whether the next step begins with commits, else with connections. They alternate.
    commits_first: bool,
    /// The connection whose multiRead was begun last, see [`crate::requests::multi_read`].
    pub(crate) multi_read: Option<ConnId>,
    /// Waiting transactions are applied before another multiRead begins.
    pub(crate) commits_are_next: bool,
}

impl Server {
    /// Whether work is left. Then the next deadline is due at once.
    pub fn has_backlog(&self) -> bool {
        let reaps = self.leads() && self.reaper.is_searching();
        let left = &self.backlog;
        left.commits || left.sessions || !left.conns.is_empty() || self.watches.has_departed() || reaps
    }

    /// The units of work since the start, see [`crate::work`].
    pub fn work_done(&self) -> u64 {
        self.work.done()
    }

    /// Goes on with the work that is left, until the work budget is spent.
    pub(crate) fn resume_backlog(&mut self, cx: &mut Context<'_>) {
        self.backlog.commits_first = !self.backlog.commits_first;
        if self.backlog.commits_first {
            self.resume_commits(cx);
        }
        self.resume_requests(cx);
        self.resume_commits(cx);
        while !self.work.is_spent() && self.watches.has_departed() {
            self.work.add(self.watches.clear_departed());
        }
    }

    fn resume_commits(&mut self, cx: &mut Context<'_>) {
        if self.backlog.commits {
            self.commit_decided(cx);
        }
    }

    /// Serves one connection after the other until the work budget is spent.
    fn resume_requests(&mut self, cx: &mut Context<'_>) {
        while !self.work.is_spent()
            && let Some(conn) = self.backlog.conns.pop_front()
        {
            if let Some(state) = self.connections.get_mut(conn) {
                state.behind = false;
                self.drain(cx, conn);
            }
        }
    }

    /// Leaves the rest of a connection's requests until its next turn.
    pub(crate) fn defer_requests(&mut self, conn: ConnId) {
        if let Some(state) = self.connections.get_mut(conn)
            && !state.behind
        {
            state.behind = true;
            self.backlog.conns.push_back(conn);
        }
    }

    /// Whether requests of a connection wait for their turn only.
    pub(crate) fn is_behind_with(&self, conn: ConnId) -> bool {
        self.connections.get(conn).is_some_and(|state| state.behind)
    }

    /// Whether the connection that waits for a proposal has earlier requests left.
    pub(crate) fn has_to_wait(&self, proposal: &Outstanding) -> bool {
        proposal.conn.is_some_and(|conn| self.is_behind_with(conn))
    }

    /// Serves the rest of a connection's requests whatever the budget: a later request has to be answered now.
    pub(crate) fn catch_up_with(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        while self.is_behind_with(conn) {
            // So that no other multiRead and no transaction has its turn first.
            self.finish_multi_read(cx);
            self.backlog.commits_are_next = false;
            self.backlog.conns.retain(|other| *other != conn);
            if let Some(state) = self.connections.get_mut(conn) {
                state.behind = false;
            }
            self.work.begin();
            self.drain(cx, conn);
        }
    }
}
