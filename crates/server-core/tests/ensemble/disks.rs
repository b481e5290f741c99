//! What a member says of what is not on its disk yet: nothing.

use crate::{follower::Follower, member::at};
use ostler_proto::quorum_packet::Packet;

/// A quorum has what its members have acknowledged.
#[test]
fn a_follower_acknowledges_what_is_on_its_disk_and_nothing_before() {
    let mut follower = Follower::start();
    let has_acknowledged =
        |follower: &Follower, zxid| follower.member.has_told(follower.leader.0 as i64, &Packet::Ack(zxid));
    let noted = |follower: &Follower| follower.member.server.summary().stats.writes.own_ack_ms.summary.count;
    let before = noted(&follower);
    follower.member.disk_waits = true;
    follower.hears_of_write(at(2, 2), 1);
    follower.hears_of_write(at(2, 3), 2);
    follower.member.passes(100);
    assert!(!has_acknowledged(&follower, at(2, 2)) && !has_acknowledged(&follower, at(2, 3)));
    follower.member.disk_catches_up();
    assert!(has_acknowledged(&follower, at(2, 3)));
    assert!(noted(&follower) > before, "how long it took is noted");
}
