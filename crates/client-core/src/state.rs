//! What an application is told of its connection.

use ostler_proto::id::SessionId;

/// State of the connection, in Curator's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// Before the first connection.
    Connecting,
    /// Connected for the first time.
    Connected,
    /// The connection is lost; the session may live. Whoever holds something by this session should act as if
    /// it did not.
    Suspended,
    /// Connected again, to the old session or, after `Lost`, to a new one.
    Reconnected,
    /// The session is over, or must be taken to be: by this client's clock the server may expire it from now on.
    Lost,
    /// Connected to a server that cannot write.
    ReadOnly,
    /// The client is closed; nothing follows.
    Closed,
}

impl ConnectionState {
    /// Whether requests reach a server now.
    pub fn is_connected(self) -> bool {
        matches!(self, ConnectionState::Connected | ConnectionState::Reconnected | ConnectionState::ReadOnly)
    }
}

/// A state and the session that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionState {
    /// The state.
    pub state: ConnectionState,
    /// The session: with `Lost` the one that is lost, `None` before the first connection.
    pub session: Option<SessionId>,
}
