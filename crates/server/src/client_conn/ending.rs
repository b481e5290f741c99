//! Why a client's connection ended, for the records that explain the ends of sessions.

use super::{ClientConn, End, Over};
use crate::driver::Loss;
use ostler_server_core::{
    CloseReason,
    sessions::ends::{EndCause, HostState},
};
use std::{fmt, io::ErrorKind, time::Duration};

/// Bytes that are no frame of a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Garbage {
    /// A frame with this length, which is below zero or above `jute.maxbuffer`.
    FrameLength(i32),
    /// The same, of the first frame.
    FirstFrameLength(i32),
    /// A frame that is too short for a request.
    NoRequestHeader,
    /// A first frame that cannot be read.
    NoHandshake,
    /// No first frame came within the time for it.
    NoHandshakeInTime,
    /// A request too many for `largeRequestMaxBytes`.
    LargeRequest,
    /// A connection too many for `connection_throttle_tokens`.
    TooManyNewConnections,
}

impl fmt::Display for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Garbage::FrameLength(_) => "a frame length below zero or above jute.maxbuffer",
            Garbage::FirstFrameLength(_) => "a first frame of impossible length",
            Garbage::NoRequestHeader => "no request header",
            Garbage::NoHandshake => "a first frame that is no handshake",
            Garbage::NoHandshakeInTime => "no handshake in time",
            Garbage::LargeRequest => {
                "a large request, and those of all connections take largeRequestMaxBytes"
            }
            Garbage::TooManyNewConnections => "more new connections than connection_throttle_tokens allows",
        })
    }
}

impl ClientConn {
    /// The task's own knowledge of the connection's end. If the core has closed the connection, it knows the cause better.
    pub(super) fn loss(&self, end: &End) -> Loss {
        let cause = match end {
            End::Garbage(Garbage::FrameLength(length) | Garbage::FirstFrameLength(length)) => {
                EndCause::FrameLength { length: i64::from(*length), limit: self.limits.frame_max as u64 }
            }
            End::Garbage(limit @ (Garbage::LargeRequest | Garbage::TooManyNewConnections)) => {
                EndCause::OverLimit { limit: limit.to_string() }
            }
            End::Garbage(garbage) => EndCause::BadFrame { problem: garbage.to_string() },
            End::Stalled(blocked_ms) => EndCause::SlowReader { blocked_ms: *blocked_ms },
            _ if self.outbox.is_overfull() => EndCause::TooManyUnread,
            End::Io(error) => match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
                    EndCause::ConnectionReset
                }
                ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    EndCause::ConnectionTimedOut
                }
                ErrorKind::InvalidData => EndCause::TlsFailed { error: error.to_string() },
                _ => EndCause::ConnectionFailed { error: error.to_string() },
            },
            End::Closed | End::Word(_) => match self.over {
                Some(Over::ByClient) => EndCause::ConnectionClosed,
                _ => EndCause::Lost,
            },
        };
        Loss { cause, host: self.host_state() }
    }

    /// How long the client's last bytes are read after the end. The host of a silent client has more time to
    /// acknowledge the end, as that shows whether it can be reached.
    pub(super) fn patience_at_end(&self) -> Duration {
        if self.was_silent() { Duration::from_secs(1) } else { Duration::from_millis(200) }
    }

    /// Whether the core has closed the connection, as nothing came for a session timeout.
    fn was_silent(&self) -> bool {
        matches!(self.outbox.close_reason(), Some(CloseReason::Silent | CloseReason::SessionExpired))
    }

    fn host_state(&self) -> HostState {
        if !self.was_silent() {
            return HostState::Unknown;
        }
        if self.other_side_closed {
            return HostState::Closed;
        }
        let Ok(local) = self.stream.local_addr() else { return HostState::Unknown };
        self.driver.host_probe.ask(local, self.peer, self.driver.clock.mono().0)
    }
}
