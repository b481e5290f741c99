//! The limit of new sessions whose beginning is not committed yet. Others wait in a line, while clients that come back to
//! their sessions pass: those have something to lose.

use super::line::Line;
use ostler_server_core::{ConnId, input::Mono};
use std::collections::HashSet;

/// New sessions under way at a time. More would not come faster: that number shares one write of the disk.
const UNDER_WAY_MAX: usize = 1000;
/// How long the turn of a connection is kept for it.
const TURN_KEPT_MS: u64 = 1000;

/// The new sessions under way, and the connections that wait.
#[derive(Debug)]
pub(crate) struct NewSessions {
    line: Line,
    opening: HashSet<ConnId>,
}

impl NewSessions {
    pub(crate) fn new() -> NewSessions {
        NewSessions { line: Line::new(UNDER_WAY_MAX, TURN_KEPT_MS), opening: HashSet::new() }
    }

    /// Whether a connection may open a session now. Otherwise it gets a place in the line.
    pub(crate) fn take_opening(&mut self, now: Mono, conn: ConnId) -> bool {
        let may = self.line.take_turn_of(now, conn);
        if may {
            self.opening.insert(conn);
        }
        may
    }

    /// The handshake of a connection is answered, or the connection is gone.
    pub(crate) fn ended(&mut self, conn: ConnId) {
        if self.opening.remove(&conn) {
            self.line.ended(1);
        }
    }

    /// A connection is gone.
    pub(crate) fn gone(&mut self, conn: ConnId) {
        self.ended(conn);
        self.line.gone(conn);
    }

    /// Whether there is a line.
    pub(crate) fn has_waiting(&self) -> bool {
        self.line.has_waiting()
    }

    /// The next connection whose turn it is, if there is room.
    pub(crate) fn next_turn(&mut self, now: Mono) -> Option<ConnId> {
        self.line.next_turn(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_new_sessions_waits_in_line() {
        let mut sessions = NewSessions::new();
        let count = UNDER_WAY_MAX as u64;
        assert!((0..count).all(|conn| sessions.take_opening(Mono(0), ConnId(conn))));
        assert!((count..3 * count).all(|conn| !sessions.take_opening(Mono(0), ConnId(conn))));
        assert_eq!(sessions.next_turn(Mono(1)), None);
        sessions.ended(ConnId(3));
        sessions.ended(ConnId(3));
        sessions.gone(ConnId(count));
        assert_eq!(sessions.next_turn(Mono(1)), Some(ConnId(count + 1)), "the first in line has gone");
        assert_eq!(sessions.next_turn(Mono(1)), None);
        assert!(sessions.take_opening(Mono(2), ConnId(count + 1)));
        (0..3 * count).for_each(|conn| sessions.gone(ConnId(conn)));
        assert_eq!(sessions.next_turn(Mono(3)), None);
        assert!(sessions.take_opening(Mono(3), ConnId(1)) && sessions.opening.len() == 1);
    }
}
