//! Fuzzes packets of the quorum port: an incomplete packet is never taken for a whole one, and a packet that is written
//! again is read the same.

use ostler_proto::quorum_packet::{PacketSplit, split};

const LIMIT: usize = 1 << 16;

/// The first byte gives the direction.
pub fn check(bytes: &[u8]) {
    let Some((direction, mut rest)) = bytes.split_first() else { return };
    let to_leader = direction & 1 == 1;
    while let PacketSplit::Packet(packet, used) = split(rest, LIMIT, to_leader) {
        assert!(0 < used && used <= rest.len());
        for end in [0, used / 2, used - 1] {
            assert_eq!(split(&rest[..end], LIMIT, to_leader), PacketSplit::Incomplete, "{packet:?}");
        }
        let mut written = Vec::new();
        packet.write(&mut written);
        let whole = written.len();
        assert_eq!(split(&written, LIMIT, to_leader), PacketSplit::Packet(packet, whole));
        rest = &rest[used..];
    }
}
