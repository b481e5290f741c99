//! T3: writes in the order sent, reads and syncs in their place between them.

use crate::{
    member::Member,
    sight::Sight,
    wire::{
        WireRequest, children, close_session, create, delete, exists, get, multi, ping, set, set_at, sync,
        unknown,
    },
};
use ostler_proto::{
    error::ErrorCode,
    id::{Xid, Zxid},
    op::Op,
};

#[test]
fn t3_writes_of_a_client_apply_in_the_order_sent() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a").data(b"0"));
    for version in 0..50 {
        m.send(a, set_at("/a", Some(format!("{}", version + 1).as_bytes()), version));
    }
    m.send(a, delete("/a"));
    m.send(a, create("/a").data(b"again"));
    m.flush();
    let mut expected = vec!["1: /a".to_string()];
    expected.extend((1..=50).map(|n| format!("{}: v{n}", n + 1)));
    expected.extend(["52: ok".into(), "53: /a".into()]);
    assert_eq!(m.seen(a), expected);
    assert_eq!(m.data("/a").as_deref(), Some("again"));
}

/// Each of them is work, however little it asks for.
#[test]
fn very_many_requests_behind_a_write_have_their_turn_in_parts() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    for _ in 0..4000 {
        m.send(a, exists("/a"));
    }
    m.forget();
    m.disk_does(usize::MAX);
    assert!(m.server.has_backlog(), "some are left");
    assert!((1000..4001).contains(&m.sights.len()), "{}", m.sights.len());
    m.flush();
    assert_eq!(m.seen(a).len(), 4001);
}

#[test]
fn t3_writes_of_many_clients_in_one_batch_commit_in_the_order_of_arrival() {
    let mut m = Member::new();
    let clients: Vec<_> = (0..10).map(|_| m.join()).collect();
    m.ask(clients[0], create("/a")).unwrap();
    let sessions = m.applied().0;
    for round in 0..10 {
        for client in &clients {
            m.send(*client, set("/a", format!("{round} {client:?}").as_bytes()));
        }
    }
    // One report of the disk commits all.
    m.disk_does(usize::MAX);
    assert_eq!(m.disk.waiting(), 0);
    let order: Vec<_> = m.sights.iter().map(|(conn, _)| *conn).collect();
    let expected: Vec<_> = (0..10).flat_map(|_| clients.iter().map(|client| client.conn)).collect();
    assert_eq!(order, expected);
    for (n, (_, sight)) in m.sights.iter().enumerate() {
        let Sight::Reply(reply) = sight else { panic!("{sight:?}") };
        assert_eq!(reply.zxid, Some(Zxid(sessions + 1 + n as u64)));
    }
}

#[test]
fn t3_nothing_is_acknowledged_before_the_disk_has_it() {
    let mut m = Member::new();
    let (a, b, reader) = (m.join(), m.join(), m.join());
    m.send(a, create("/a"));
    m.send(a, create("/b"));
    m.send(b, create("/a"));
    m.send(reader, exists("/a"));
    assert_eq!((m.seen(a), m.seen(b)), (vec![], vec![]), "a failure waits like a success");
    assert_eq!(m.seen(reader), ["1: NoNode"], "nobody sees it either");
    m.disk_does(1);
    m.send(reader, exists("/a"));
    assert_eq!((m.seen(a), m.seen(b)), (vec!["1: /a".to_string()], vec![]));
    assert_eq!(m.seen(reader), ["2: v0"]);
    m.disk_does(1);
    assert_eq!((m.seen(a), m.seen(b)), (vec!["2: /b".to_string()], vec![]));
    m.disk_does(1);
    assert_eq!(m.seen(b), ["1: NodeExists"]);
}

#[test]
fn t3_failed_writes_take_zxids_and_are_answered_in_order() {
    let mut m = Member::new();
    let a = m.join();
    let first = m.applied().0 + 1;
    let xids = [
        m.send(a, create("/a")),
        m.send(a, create("/a")),
        m.send(a, delete("/missing")),
        m.send(a, set_at("/a", None, 5)),
        m.send(a, create("not a path")),
        m.send(a, set("/a", b"x")),
    ];
    m.flush();
    let order: Vec<_> = m.seen(a);
    let expected = ["1: /a", "2: NodeExists", "3: NoNode", "4: BadVersion", "5: BadArguments", "6: v1"];
    assert_eq!(order, expected);
    assert_eq!(m.applied(), Zxid(first + xids.len() as u64 - 1));
    m.crash(0);
    assert_eq!(m.applied(), Zxid(first + xids.len() as u64 - 1), "failures are in the log too");
}

#[test]
fn t3_a_write_that_does_not_decode_is_answered_in_its_place() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    let broken = WireRequest::new(Op::SetData, |out| out.extend([0, 0]));
    m.send(a, broken);
    let broken = WireRequest::new(Op::GetData, |out| out.extend([0, 0]));
    m.send(a, broken);
    m.send(a, set("/a", b""));
    assert_eq!(m.seen(a), [""; 0]);
    m.flush();
    assert_eq!(m.seen(a), ["1: /a", "2: MarshallingError", "3: MarshallingError", "4: v1"]);
}

#[test]
fn t3_reads_between_pipelined_writes_see_exactly_the_writes_before() {
    // However the disk batches them.
    for batch in 1..=4 {
        let mut m = Member::new();
        let (a, b) = (m.join(), m.join());
        m.send(a, get("/a"));
        m.send(a, create("/a").data(b"one"));
        m.send(a, get("/a"));
        m.send(a, exists("/b"));
        m.send(a, set("/a", b"two"));
        m.send(b, set("/a", b"of another"));
        m.send(a, get("/a"));
        m.send(a, delete("/a"));
        m.send(a, children("/"));
        while m.disk.waiting() > 0 {
            m.disk_does(batch);
        }
        let seen = m.seen(a);
        let expected =
            ["1: NoNode", "2: /a", "3: one v0", "4: NoNode", "5: v1", "6: two v1", "7: ok", "8: [zookeeper]"];
        assert_eq!(seen, expected, "in batches of {batch}");
        assert_eq!(m.seen(b), ["1: v2"]);
    }
}

#[test]
fn t3_the_zxid_of_a_read_lies_between_those_of_the_writes_around_it() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    m.send(a, ping());
    m.send(a, get("/a"));
    m.send(a, create("/b"));
    m.send(a, get("/a"));
    m.flush();
    let zxids = m.sights.iter().map(|(_, sight)| match sight {
        Sight::Reply(reply) => reply.zxid.unwrap().0,
        other => panic!("{other:?}"),
    });
    let zxids: Vec<_> = zxids.collect();
    assert_eq!(zxids, [2, 2, 2, 3, 3]);
}

#[test]
fn t3_a_read_does_not_wait_for_the_writes_of_others() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/a"));
    m.send(b, exists("/a"));
    m.send(b, ping());
    assert_eq!(m.seen(b), ["1: NoNode", "-2: ok"]);
}

#[test]
fn t3_a_client_never_sees_an_older_tree_than_it_saw() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/n").data(b"0")).unwrap();
    let mut last = 0;
    for n in 1..=30 {
        m.send(a, set("/n", n.to_string().as_bytes()));
        if n % 3 == 0 {
            m.disk_does(2);
        }
        m.send(b, get("/n"));
        for line in m.seen(b) {
            let value: u32 = line.split(' ').nth(1).unwrap().parse().unwrap();
            assert!(value >= last);
            last = value;
        }
    }
    assert!(last > 10);
}

#[test]
fn t3_sync_then_read_is_current() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/a").data(b"x"));
    m.send(b, sync("/a"));
    m.send(b, get("/a"));
    m.send(a, set("/a", b"y"));
    assert_eq!(m.seen(b), [""; 0], "what was proposed before the sync has not committed");
    m.disk_does(1);
    assert_eq!(m.seen(b), ["1: /a", "2: x v0"], "what came after it is not waited for");
    m.flush();
    m.send(b, sync("/nowhere"));
    assert_eq!(m.seen(b), ["3: /nowhere"], "with nothing outstanding there is nothing to wait for");
}

#[test]
fn t3_syncs_keep_their_place_between_writes_and_reads() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(b, create("/of-b"));
    m.send(a, create("/a"));
    m.send(a, sync("/"));
    m.send(a, get("/of-b"));
    m.send(a, sync("/"));
    m.send(a, create("/a/x"));
    m.send(a, sync("/"));
    m.send(b, sync("/"));
    let mut seen = Vec::new();
    while m.disk.waiting() > 0 {
        m.disk_does(1);
        seen.push((m.seen(a).join("; "), m.seen(b).join("; ")));
    }
    let expected = [("", "1: /of-b"), ("1: /a; 2: /; 3:  v0; 4: /", ""), ("5: /a/x; 6: /", "2: /")];
    let expected = expected.map(|(a, b)| (a.to_string(), b.to_string()));
    assert_eq!(seen, expected);
}

#[test]
fn t3_nothing_is_taken_after_close_session() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    m.send(a, close_session());
    let before = m.disk.last();
    m.send(a, create("/late"));
    m.send(a, get("/a"));
    assert_eq!(m.disk.last(), before);
    m.flush();
    assert_eq!(m.seen(a), ["1: /a", "2: ok", "closed: ClosedByClient"]);
}

#[test]
fn t3_an_unknown_operation_is_refused_in_its_place() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    let xid = m.send(a, unknown());
    assert_eq!(m.seen(a), [""; 0]);
    m.flush();
    let refusal = m.reply(a, xid);
    assert_eq!((refusal.zxid, refusal.result), (None, Err(ErrorCode::Unimplemented)));
    assert_eq!(m.seen(a), ["1: /a", "closed: Protocol"]);
}

#[test]
fn t3_writes_of_a_connection_that_is_gone_still_happen() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/a"));
    m.send(a, get("/a"));
    m.send(a, sync("/a"));
    m.send(a, multi(&[create("/b").into()]));
    m.hang_up(a);
    m.flush();
    assert!(m.has("/a") && m.has("/b"));
    assert_eq!(m.seen(a), [""; 0], "there is nobody to tell");
    assert_eq!(m.send(b, get("/a")), Xid(1));
}

/// A standalone server is a quorum of one: its counter goes on in the next epoch, whose number is on disk before.
#[test]
fn the_counter_of_a_standalone_server_moves_on_in_place() {
    use ostler_proto::id::Epoch;
    use ostler_server_core::PersistOp;
    use ostler_zab::EpochLength;
    let mut m = Member::new();
    let length = EpochLength { in_place: Some(3), enough: 5, most: 6 };
    m.server.set_standalone_epochs(Epoch(4), length);
    let client = m.join();
    for name in ["/a", "/b", "/c", "/d"] {
        m.send(client, create(name));
    }
    m.flush();
    let zxids: Vec<Zxid> = m.disk.records().map(|(zxid, _)| zxid).collect();
    let expected = [Zxid(1), Zxid(2), Zxid(3), Zxid::new(Epoch(5), 1), Zxid::new(Epoch(5), 2)];
    assert_eq!(zxids, expected, "above the epoch that was accepted in an ensemble");
    let epochs: Vec<&PersistOp> =
        m.disk.acts().iter().filter(|act| !matches!(act, PersistOp::Append { .. })).collect();
    assert!(
        matches!(epochs[..], [PersistOp::SaveAccepted(Epoch(5)), PersistOp::SaveCurrent(Epoch(5))]),
        "{epochs:?}"
    );
    assert_eq!(m.server.tree().last_processed(), Zxid::new(Epoch(5), 2));
}
