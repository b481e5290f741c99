//! What becomes of all frames, whichever they are.

use std::time::Duration;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the clients: requests.
    ToServer,
    /// To the clients: replies and events.
    ToClient,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lane {
    pub(crate) silent: bool,
    pub(crate) delay: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    /// A connection of an earlier one is cut.
    pub(crate) generation: u64,
    pub(crate) blocked: bool,
    to_server: Lane,
    to_client: Lane,
}

impl Flow {
    pub(crate) fn heal(&mut self) {
        *self = Flow { generation: self.generation, ..Flow::default() };
    }

    pub(crate) fn lane(&self, direction: Direction) -> Lane {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    pub(crate) fn lane_mut(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}
