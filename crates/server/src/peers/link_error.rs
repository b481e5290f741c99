//! Why a connection of the quorum port ends.

use super::{peer_security::SecurityError, tree_stream::TreeStreamError};
use ostler_proto::quorum_packet::PacketError;
use std::{io, time::Duration};

/// Why a connection of the quorum port ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the caller did not say within {0:?} which server it is")]
    Unidentified(Duration),
    #[error("the caller sends more than a learner may send before it has the history")]
    TooMuchAtFirst,
    #[error(transparent)]
    Malformed(#[from] PacketError),
    #[error(transparent)]
    Tree(#[from] TreeStreamError),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LinkError {
    /// Whether the peer has broken the protocol. Other connections end because the network or a server does.
    pub(super) fn is_breach(&self) -> bool {
        matches!(
            self,
            LinkError::TooMuchAtFirst
                | LinkError::Malformed(_)
                | LinkError::Security(_)
                | LinkError::Tree(TreeStreamError::Damaged(_))
        )
    }
}
