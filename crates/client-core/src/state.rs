//! The state of the connection, for the application.

use ostler_proto::id::SessionId;

/// The state of the connection. The names are those of Curator's `ConnectionState`, with `Connecting` and `Closed` added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ConnectionState {
    /// The client has not been connected yet.
    Connecting,
    /// Connected for the first time.
    Connected,
    /// The connection is lost; the session may still live. A holder of a lock or of leadership should stop.
    Suspended,
    /// Connected again, in the same session or, after `Lost`, in a new one.
    Reconnected,
    /// The session is over, or by this client's clock the server may expire it from now on.
    Lost,
    /// Connected to a read-only server, which is cut off from its ensemble.
    ReadOnly,
    /// The client is closed. No state follows.
    Closed,
}

impl ConnectionState {
    /// Whether requests reach a server now.
    pub fn is_connected(self) -> bool {
        matches!(self, ConnectionState::Connected | ConnectionState::Reconnected | ConnectionState::ReadOnly)
    }
}

/// A state of the connection, and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SessionState {
    /// The state of the connection.
    pub state: ConnectionState,
    /// The session. With `Lost` it is the lost one. `None` before the first connection.
    pub session: Option<SessionId>,
}

impl SessionState {
    /// A state with these fields, for example for a test of the code that handles states.
    pub const fn new(state: ConnectionState, session: Option<SessionId>) -> SessionState {
        SessionState { state, session }
    }
}
