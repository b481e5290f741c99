//! Work that did not fit into one hold of the member: it goes on at the next [`Input::Deadline`], which is due at once.
//!
//! What can be done in parts is: the requests of one connection that waited behind a write, a setWatches of many
//! paths or a multiRead of many operations among them; transactions that have committed; and taking out the watches of connections that are gone. Sessions
//! that end and the search for containers and TTL nodes to delete keep their own place. None of
//! them changes the order of anything. What a connection has asked for is answered before its next write is applied, so a
//! transaction waits, and all after it, while requests of its connection are left that came before it.
//!
//! [`Input::Deadline`]: crate::Input::Deadline

use crate::{
    effect::Effect,
    input::{ConnId, Now},
    server::{Outstanding, Server},
};
use alloc::{collections::VecDeque, vec::Vec};

/// What is left to do.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Connections with requests that wait for nothing but their turn, each once.
    conns: VecDeque<ConnId>,
    /// Transactions have committed and are not applied.
    pub(crate) commits: bool,
    /// Sessions have not ended whose time is over.
    pub(crate) sessions: bool,
    /// Whose turn it is first.
    commits_first: bool,
    /// The connection whose multiRead is under way, if it still is, see [`crate::multi_read`].
    pub(crate) multi_read: Option<ConnId>,
    /// Transactions that wait are applied before another multiRead begins.
    pub(crate) commits_are_next: bool,
}

impl Server {
    /// Whether work is left that goes on at the next deadline, which is at once.
    pub fn has_backlog(&self) -> bool {
        let reaps = self.proposals.is_some() && self.reaper.is_searching();
        let left = &self.backlog;
        left.commits || left.sessions || !left.conns.is_empty() || self.watches.has_departed() || reaps
    }

    /// Steps of work since the start, see [`crate::work`].
    pub fn work_done(&self) -> u64 {
        self.work.done()
    }

    /// Goes on with what is left, for one hold.
    pub(crate) fn go_on(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.backlog.commits_first = !self.backlog.commits_first;
        if self.backlog.commits_first {
            self.go_on_committing(now, effects);
        }
        self.go_on_serving(now, effects);
        self.go_on_committing(now, effects);
        while !self.work.is_spent() && self.watches.has_departed() {
            self.work.add(self.watches.clear_departed());
        }
    }

    fn go_on_committing(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.backlog.commits {
            self.commit_decided(now, effects);
        }
    }

    /// One after the other, each for as long as there is work to spend.
    fn go_on_serving(&mut self, now: Now, effects: &mut Vec<Effect>) {
        while !self.work.is_spent()
            && let Some(conn) = self.backlog.conns.pop_front()
        {
            if let Some(state) = self.conns.get_mut(&conn) {
                state.behind = false;
                self.drain(now, conn, effects);
            }
        }
    }

    /// The rest of a connection's requests has to wait for its turn.
    pub(crate) fn leave_for_later(&mut self, conn: ConnId) {
        if let Some(state) = self.conns.get_mut(&conn)
            && !state.behind
        {
            state.behind = true;
            self.backlog.conns.push_back(conn);
        }
    }

    /// Whether requests of a connection wait for nothing but their turn.
    pub(crate) fn is_behind_with(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|state| state.behind)
    }

    /// Whether the connection that a transaction answers has requests left that came before it.
    pub(crate) fn has_to_wait(&self, proposal: &Outstanding) -> bool {
        proposal.conn.is_some_and(|conn| self.is_behind_with(conn))
    }

    /// Serves what was left of a connection's requests, however much it is: something is to be answered that came after.
    pub(crate) fn catch_up_with(&mut self, now: Now, conn: ConnId, effects: &mut Vec<Effect>) {
        while self.is_behind_with(conn) {
            // No other multiRead is in the way, and no transaction has its turn first.
            self.finish_multi_read(now, effects);
            self.backlog.commits_are_next = false;
            self.backlog.conns.retain(|other| *other != conn);
            if let Some(state) = self.conns.get_mut(&conn) {
                state.behind = false;
            }
            self.work.begin();
            self.drain(now, conn, effects);
        }
    }
}
