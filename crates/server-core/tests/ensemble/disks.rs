//! A member says nothing of transactions that are not on its disk yet.

use crate::{
    follower::Follower,
    member::{at, config},
};
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

/// The disk is slow, and the leader is another one meanwhile: it hears of what it has sent itself.
#[test]
fn an_acknowledgement_for_one_leader_is_not_sent_to_the_next() {
    let mut follower = Follower::start();
    follower.member.disk_waits = true;
    follower.hears_of_write(at(2, 2), 1);
    follower.member.loses(follower.leader);
    follower.member.disk_waits = false;
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let next = follower.member.follows(&[2, 3], &ensemble, 3);
    follower.member.hears(next, Packet::Trunc(at(2, 1)));
    follower.member.hears_new_leader(next, 3, &ensemble);
    follower.member.hears(next, Packet::UpToDate);
    let told = |zxid| follower.member.has_told(next.0 as i64, &Packet::Ack(zxid));
    assert!(told(at(3, 0)) && !told(at(2, 2)));
}
