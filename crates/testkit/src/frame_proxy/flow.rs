//! Faults that apply to all frames of a proxy.

use crate::lane::Lane;

/// A direction through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the clients: requests.
    ToServer,
    /// To the clients: replies and events.
    ToClient,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    /// Grows with each cut of all connections. Connections of an earlier generation are closed.
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
