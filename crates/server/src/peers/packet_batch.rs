//! Takes the packets that are at the front of a buffer, up to one that needs more than a step of the core.

use crate::driver::Turn;
use ostler_proto::{
    id::Zxid,
    quorum_packet::{Packet, PacketError, PacketSplit, split},
};

/// The packets that were taken off a buffer at once.
pub(super) struct PacketBatch {
    /// Bytes of the packets.
    pub(super) used: usize,
    /// Why the batch ends before the first incomplete packet; `None` if it does not.
    pub(super) stopped_by: Option<BatchStop>,
}

/// Something to deal with before the next packet.
pub(super) enum BatchStop {
    /// A tree follows, at this zxid.
    Tree(Zxid),
    /// The core cuts its log. The packets that follow are about the tree that is left.
    LogCut,
    /// The core has worked for this connection long enough: others come first.
    TurnOver,
    /// The bytes that follow are no packet.
    Malformed(PacketError),
}

/// Calls `step` with the complete packets of `bytes`, one by one. `data_max` is the limit of a packet's data in bytes.
pub(super) fn take_packets(
    bytes: &[u8],
    data_max: usize,
    to_leader: bool,
    mut step: impl FnMut(Packet<'_>) -> Turn,
) -> PacketBatch {
    let mut used = 0;
    loop {
        match split(&bytes[used..], data_max, to_leader) {
            // Only a leader sends a tree: none is read from a learner.
            PacketSplit::Packet(Packet::Snap(zxid), size) if !to_leader => {
                return PacketBatch { used: used + size, stopped_by: Some(BatchStop::Tree(zxid)) };
            }
            PacketSplit::Packet(packet @ Packet::Trunc(_), size) => {
                step(packet);
                return PacketBatch { used: used + size, stopped_by: Some(BatchStop::LogCut) };
            }
            PacketSplit::Packet(packet, size) => {
                let turn = step(packet);
                used += size;
                if turn == Turn::Over {
                    return PacketBatch { used, stopped_by: Some(BatchStop::TurnOver) };
                }
            }
            PacketSplit::Incomplete => return PacketBatch { used, stopped_by: None },
            PacketSplit::Bad(error) => {
                return PacketBatch { used, stopped_by: Some(BatchStop::Malformed(error)) };
            }
        }
    }
}
