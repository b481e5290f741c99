//! Moves to another server: because the application wants one, or because the list of servers has changed.

use super::{Link, Session};
use crate::{effect::Effects, hosts::RankedHost, input::OnChange, time::Mono};

impl Session {
    pub(super) fn replace_servers(&mut self, now: Mono, servers: &[RankedHost], on_change: OnChange) {
        if servers.is_empty() {
            return;
        }
        let knew_none = self.hosts.is_empty();
        if on_change == OnChange::Rebalance && self.is_online() {
            if self.hosts.rebalance(servers, self.dialed) {
                self.leave(now);
            }
        } else {
            self.hosts.replace(servers);
        }
        match &mut self.link {
            Link::Waiting { until } if knew_none => *until = now,
            _ => {}
        }
    }

    pub(super) fn move_off(&mut self, now: Mono) {
        if self.is_online() && self.hosts.skip(self.dialed) {
            self.leave(now);
        }
    }

    /// From now on requests wait for the next connection.
    fn leave(&mut self, now: Mono) {
        let patience = self.timeout().unwrap_or(self.config.session_timeout) / 4;
        self.leaving.get_or_insert(now + patience);
    }

    /// Gives up the connection once everything that was sent on it is answered, or took too long.
    pub(super) fn leave_if_answered(&mut self, now: Mono, effects: &mut Effects) {
        let Some(until) = self.leaving.filter(|_| self.is_online() && self.closing.is_none()) else { return };
        if self.sent.is_empty() || now >= until {
            self.drop_link(now, effects);
            // A probe may have come to the same server again meanwhile.
            self.hosts.skip(self.dialed);
            if let Link::Waiting { until } = &mut self.link {
                *until = now;
            }
        }
    }
}
