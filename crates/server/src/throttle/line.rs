//! A limit of what is under way at a time, and the line of the connections that wait for their turn.

use ostler_server_core::{ConnId, input::Mono};
use std::collections::{HashSet, VecDeque};

/// The number of those under way, and the connections that wait.
#[derive(Debug)]
pub(crate) struct Line {
    max: usize,
    /// How long a turn is kept for its connection.
    kept_ms: u64,
    under_way: usize,
    line: VecDeque<ConnId>,
    /// Those in `line`.
    in_line: HashSet<ConnId>,
    /// Connections whose turn it is, and until when it is kept for them.
    turns: VecDeque<(ConnId, Mono)>,
}

impl Line {
    /// `max`: those under way at a time, at least 1. `kept_ms`: how long a turn is kept, at least 1 ms.
    pub(crate) fn new(max: usize, kept_ms: u64) -> Line {
        Line {
            max: max.max(1),
            kept_ms: kept_ms.max(1),
            under_way: 0,
            line: VecDeque::new(),
            in_line: HashSet::new(),
            turns: VecDeque::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Counts one that does not wait.
    pub(crate) fn pass(&mut self) {
        self.under_way += 1;
    }

    /// Whether it is a connection's turn; it counts then. Otherwise the connection gets a place in the line.
    pub(crate) fn take_turn_of(&mut self, now: Mono, conn: ConnId) -> bool {
        self.forget_lapsed(now);
        let turn = self.turns.iter().position(|(of, _)| *of == conn);
        let is_free = self.line.is_empty() && self.has_room();
        if turn.and_then(|turn| self.turns.remove(turn)).is_some() || is_free {
            self.under_way += 1;
            return true;
        }
        if self.in_line.insert(conn) {
            self.line.push_back(conn);
        }
        false
    }

    /// This number of those under way are over.
    pub(crate) fn ended(&mut self, count: usize) {
        self.under_way = self.under_way.saturating_sub(count);
    }

    /// A connection is gone.
    pub(crate) fn gone(&mut self, conn: ConnId) {
        // Its place in the line is skipped when its turn comes: there may be many, and all go at once.
        self.in_line.remove(&conn);
        self.turns.retain(|(of, _)| *of != conn);
    }

    /// Whether there is a line.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.line.is_empty()
    }

    /// The next connection whose turn it is, if there is room.
    pub(crate) fn next_turn(&mut self, now: Mono) -> Option<ConnId> {
        self.forget_lapsed(now);
        while self.has_room() {
            let conn = self.line.pop_front()?;
            if self.in_line.remove(&conn) {
                self.turns.push_back((conn, now.after(self.kept_ms)));
                return Some(conn);
            }
        }
        None
    }

    fn forget_lapsed(&mut self, now: Mono) {
        self.turns.retain(|(_, until)| *until > now);
    }

    fn has_room(&self) -> bool {
        self.under_way + self.turns.len() < self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_their_turns_in_the_order_in_which_they_came() {
        let mut line = Line::new(2, 100);
        assert!(line.take_turn_of(Mono(0), ConnId(1)) && line.take_turn_of(Mono(0), ConnId(2)));
        for conn in 3..6 {
            assert!(!line.take_turn_of(Mono(0), ConnId(conn)));
        }
        assert!(!line.take_turn_of(Mono(0), ConnId(3)), "it keeps its place");
        assert_eq!(line.next_turn(Mono(1)), None);
        line.ended(1);
        assert_eq!(line.next_turn(Mono(1)), Some(ConnId(3)));
        assert_eq!(line.next_turn(Mono(1)), None, "its place is kept");
        assert!(!line.take_turn_of(Mono(2), ConnId(1)), "others stand in line before it");
        assert!(line.take_turn_of(Mono(2), ConnId(3)));
        line.ended(2);
        assert_eq!(line.next_turn(Mono(3)), Some(ConnId(4)));
        assert_eq!(line.next_turn(Mono(3)), Some(ConnId(5)));
    }

    #[test]
    fn a_turn_that_is_not_taken_goes_to_others() {
        let mut line = Line::new(1, 100);
        assert!(line.take_turn_of(Mono(0), ConnId(1)));
        assert!(!line.take_turn_of(Mono(0), ConnId(2)) && !line.take_turn_of(Mono(0), ConnId(3)));
        line.ended(1);
        assert_eq!(line.next_turn(Mono(0)), Some(ConnId(2)));
        assert!(!line.take_turn_of(Mono(99), ConnId(3)));
        assert!(!line.take_turn_of(Mono(100), ConnId(3)), "it is in line");
        assert_eq!(line.next_turn(Mono(100)), Some(ConnId(3)));
        assert!(line.take_turn_of(Mono(101), ConnId(3)));
    }

    #[test]
    fn connections_that_are_gone_lose_their_places() {
        let mut line = Line::new(1, 100);
        assert!(line.take_turn_of(Mono(0), ConnId(1)));
        for conn in 2..5 {
            assert!(!line.take_turn_of(Mono(0), ConnId(conn)));
        }
        line.gone(ConnId(2));
        line.ended(1);
        assert_eq!(line.next_turn(Mono(0)), Some(ConnId(3)));
        line.gone(ConnId(3));
        assert_eq!(line.next_turn(Mono(0)), Some(ConnId(4)));
        assert!(line.line.is_empty() && line.in_line.is_empty());
    }
}
