//! Names and data are those that the real clients have made: Curator 5.9.0, kazoo 2.11.0. Those of ZooKeeper's recipes are
//! by its sources.

use super::*;
use std::collections::HashMap;

const FIRST: i64 = 0x0128_929d_9ff3_0885;
const SECOND: i64 = 0x0146_98b3_6606_5c1e;

fn queues(znodes: &[(&str, i64)]) -> Queues {
    let mut queues = Queues::new();
    for (path, session) in znodes {
        let session = (*session != 0).then_some(SessionId(*session));
        let parent = path::parent(path).unwrap().into();
        queues.entry(parent).or_default().extend(Contender::of(path, session));
    }
    queues.retain(|_, queue| !queue.is_empty());
    queues
}

fn facts(known: &[(&str, u64, u64, &str)]) -> HashMap<Box<str>, Facts> {
    let facts =
        |czxid, mzxid, data: &str| Facts { czxid: Zxid(czxid), mzxid: Zxid(mzxid), data: data.into() };
    known.iter().map(|(path, czxid, mzxid, data)| ((*path).into(), facts(*czxid, *mzxid, data))).collect()
}

/// The groups, each as a line: path, kind, library, confidence, the znodes that hold, `|`, those that wait.
fn lines(znodes: &[(&str, i64)], known: &[(&str, u64, u64, &str)], data: &[(&str, &str)]) -> Vec<String> {
    let known = facts(known);
    let groups = recognise(queues(znodes), |path| known.get(path));
    groups
        .into_iter()
        .map(|mut group| {
            if let Some((_, data)) = data.iter().find(|(path, _)| **path == *group.path) {
                group.refine(data.as_bytes());
            }
            line(&group)
        })
        .collect()
}

fn line(group: &Group) -> String {
    let short = |one: &Contender| {
        let name = path::name(&one.path);
        name[name.len().saturating_sub(12)..].to_owned()
    };
    let (holding, waiting) = group.queue.split_at(group.holding);
    let join = |some: &[Contender]| some.iter().map(short).collect::<Vec<_>>().join(" ");
    let (kind, maker) = (group.kind.name(), group.maker().name());
    format!(
        "{} {kind} {maker} {}: {} | {}",
        group.path,
        group.confidence.name(),
        join(holding),
        join(waiting)
    )
}

#[test]
fn groups_of_curator() {
    let znodes = [
        ("/c/latch/_c_f29950a6-07f0-48d7-83ab-727ed6027f8a-latch-0000000001", SECOND),
        ("/c/latch/_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-0000000000", FIRST),
        ("/c/selector/_c_63e8c29f-bef7-4676-84c0-321fadc41636-lock-0000000000", FIRST),
        ("/c/selector/_c_5b3fcc10-13f7-4355-bdff-ec43ecca8a94-lock-0000000001", SECOND),
        ("/c/mutex/_c_03b4b2a5-4d8e-4928-880c-7155d4669c6d-lock-0000000001", SECOND),
        ("/c/mutex/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-0000000000", FIRST),
        ("/c/revocable/_c_eded1de2-ac28-4e80-b7e6-2104a3ef94b3-lock-0000000001", SECOND),
        ("/c/readers/_c_1be5171d-e955-4d46-8ef6-bdf879467c3d-__READ__0000000001", SECOND),
        ("/c/readers/_c_c8298c0e-70dd-4ca3-99c8-3702142b49ba-__READ__0000000000", FIRST),
        ("/c/writer/_c_d4ccf475-d43e-41a8-9910-09f611cba50a-__WRIT__0000000000", FIRST),
        ("/c/writer/_c_6d46a8e3-bc73-4645-9f76-f1b040817289-__WRIT__0000000001", SECOND),
        ("/c/semaphore/leases/_c_bf074ac6-0a52-4122-80c6-1c98a96d4cb7-lease-0000000001", SECOND),
        ("/c/semaphore/leases/_c_12d8baa3-7222-42b1-90da-bf9515b170db-lease-0000000000", FIRST),
        ("/c/full/leases/_c_22373b1b-44d0-4a85-a380-2e3daf604ed2-lease-0000000000", FIRST),
        ("/c/full/leases/_c_21de0704-f5e4-417e-a32e-06cda64118a7-lease-0000000001", SECOND),
        ("/c/full/locks/_c_4a563740-03f9-4920-af7f-37ee0fd7b4d2-lock-0000000001", SECOND),
        ("/c/full/locks/_c_7cc07a73-9149-4541-92cb-052420f943ca-lock-0000000002", FIRST),
    ];
    let data = [("/c/selector", "first"), ("/c/mutex", "127.0.0.1"), ("/c/revocable", "")];
    let known = [("/c/full/leases", 1, 1, "")];
    let found = lines(&znodes, &known, &data);
    assert_eq!(
        found,
        [
            // The lease of the next one stands for it; its znode below `locks` is not shown twice.
            "/c/full semaphore curator sure: e-0000000000 | e-0000000001 k-0000000002",
            "/c/latch latch curator sure: h-0000000000 | h-0000000001",
            "/c/mutex mutex curator likely: k-0000000000 | k-0000000001",
            "/c/readers read_write curator sure: __0000000000 __0000000001 | ",
            "/c/revocable mutex curator likely: k-0000000001 | ",
            "/c/selector selector curator likely: k-0000000000 | k-0000000001",
            "/c/semaphore semaphore curator sure: e-0000000000 e-0000000001 | ",
            "/c/writer read_write curator sure: __0000000000 | __0000000001",
        ]
    );
}

#[test]
fn groups_of_kazoo() {
    let znodes = [
        ("/k/lock/6a1b4b925f5a4d5abc16041c9d38188a__lock__0000000001", SECOND),
        ("/k/lock/5f967df430fc424f9be669fafab4a7eb__lock__0000000000", FIRST),
        ("/k/election/f264ca3ae0934559a0748ca833ed72dd__lock__0000000000", FIRST),
        ("/k/election/f39c1bce69db4c9b889006855081b4ce__lock__0000000001", SECOND),
        ("/k/mixed/d473dabf9fa142ccaf429583df40c8aa__rlock__0000000001", SECOND),
        ("/k/mixed/e895bc68329e4c4697d5e7724b7d273a__lock__0000000000", FIRST),
        ("/k/readers/6edc2f65e6844ea8b0c9ec5fc9b4dcdb__rlock__0000000000", FIRST),
        ("/k/readers/b6633ec5bfdc402ba368355696dec9d8__rlock__0000000001", SECOND),
        ("/k/semaphore/8223bb3c3590491d80396adbfede6ba2", FIRST),
        ("/k/semaphore-__lock__/2a1f4c21f4c44df1a4087394f537a224__lock__0000000001", SECOND),
        // Only the queue of a semaphore, and a lock whose path ends as such a queue.
        ("/k/free-__lock__/2a1f4c21f4c44df1a4087394f537a224__lock__0000000001", SECOND),
        ("/k/own-__lock__/2a1f4c21f4c44df1a4087394f537a224__lock__0000000001", SECOND),
        // A registry.
        ("/services/8223bb3c3590491d80396adbfede6ba2", FIRST),
    ];
    let known = [
        ("/k/semaphore", 1, 5, "1"),
        ("/k/free", 1, 5, "3"),
        ("/k/own", 1, 1, "text"),
        ("/services", 1, 1, "127.0.0.1"),
    ];
    assert_eq!(
        lines(&znodes, &known, &[]),
        [
            "/k/election election kazoo likely: __0000000000 | __0000000001",
            "/k/free semaphore kazoo sure:  | __0000000001",
            "/k/lock mutex kazoo likely: __0000000000 | __0000000001",
            "/k/mixed read_write kazoo sure: __0000000000 | __0000000001",
            "/k/own-__lock__ mutex kazoo likely: __0000000001 | ",
            "/k/readers read_write kazoo sure: __0000000000 __0000000001 | ",
            "/k/semaphore semaphore kazoo likely: adbfede6ba2 | __0000000001",
        ]
        .map(|line| line.replace("adbfede6ba2", "6adbfede6ba2"))
    );
}

#[test]
fn groups_of_zookeepers_recipes_and_of_others() {
    let own = "/z/lock/x-83477798797379717-0000000002";
    let znodes = [
        (own, FIRST),
        ("/z/lock/x-91928738685934622-0000000003", SECOND),
        ("/z/fake/x-1234-0000000003", SECOND),
        ("/election/n_0000000010", FIRST),
        ("/election/n_0000000009", SECOND),
        ("/go/_c_22373b1b44d04a85a3802e3daf604ed2-lock-0000000001", FIRST),
        ("/app/leader-0000000004", FIRST),
        ("/app/config-0000000001", SECOND),
    ];
    assert_eq!(
        lines(&znodes, &[], &[]),
        [
            "/app election unknown guess: r-0000000004 | ",
            "/election election zookeeper guess: n_0000000009 | n_0000000010",
            "/go mutex unknown guess: k-0000000001 | ",
            "/z/fake write_lock zookeeper guess: 4-0000000003 | ",
            "/z/lock write_lock zookeeper sure: 7-0000000002 | 2-0000000003",
        ]
    );
}

#[test]
fn groups_of_ostler_have_tags() {
    let znodes = [
        ("/o/latch/_c_970e5c47-4962-85e1-8c04-568be4164a0a-latch-0000000000", FIRST),
        ("/o/selector/_c_970e5c47-4962-85e2-8c04-568be4164a0a-lock-0000000003", FIRST),
        ("/o/mutex/_c_970e5c47-4962-85e3-8c04-568be4164a0a-lock-0000000003", FIRST),
        // A writer that becomes a reader, and a later writer.
        ("/o/rw/_c_970e5c47-4962-85e4-8c04-568be4164a0a-__WRIT__0000000003", FIRST),
        ("/o/rw/_c_a70e5c47-4962-85e4-8c04-568be4164a0a-__READ__0000000003", FIRST),
        ("/o/rw/_c_b70e5c47-4962-85e4-8c04-568be4164a0a-__WRIT__0000000004", SECOND),
        ("/o/semaphore/leases/_c_970e5c47-4962-85e5-8c04-568be4164a0a-lease-0000000000", FIRST),
        ("/o/unfair/leader", FIRST),
        // Somebody else's leader, and one whose parent was written later.
        ("/x/leader", FIRST),
        ("/y/leader", FIRST),
        // Curator and Ostler in one election.
        ("/both/_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-0000000000", FIRST),
        ("/both/_c_970e5c47-4962-85e1-8c04-568be4164a0a-latch-0000000001", SECOND),
    ];
    let id = "0b0b3f5e-6c2c-4e0e-8a43-6f3b7a1b2c3d";
    let known = [
        ("/o/unfair", 3, 9, id),
        ("/o/unfair/leader", 9, 9, "a"),
        ("/x", 3, 9, "text"),
        ("/x/leader", 9, 9, "a"),
        ("/y", 3, 10, id),
        ("/y/leader", 9, 9, "a"),
    ];
    let found = lines(&znodes, &known, &[("/o/selector", "me"), ("/o/mutex", "me")]);
    assert_eq!(
        found,
        [
            // The first one decides who has made the group: it holds.
            "/both latch curator sure: h-0000000000 | h-0000000001",
            "/o/latch latch ostler sure: h-0000000000 | ",
            "/o/mutex mutex ostler sure: k-0000000003 | ",
            "/o/rw read_write ostler sure: __0000000003 __0000000003 | __0000000004",
            "/o/selector selector ostler sure: k-0000000003 | ",
            "/o/semaphore semaphore ostler sure: e-0000000000 | ",
            "/o/unfair election ostler sure: leader | ",
        ]
    );
}

#[test]
fn another_librarys_znode_in_the_queue_takes_part() {
    let znodes = [
        ("/l/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-0000000004", SECOND),
        ("/l/_c_22373b1b44d04a85a3802e3daf604ed2-lock-0000000003", FIRST),
        ("/l/leader-0000000001", FIRST),
    ];
    assert_eq!(lines(&znodes, &[], &[]), ["/l mutex unknown likely: k-0000000003 | k-0000000004"]);
    let group = &recognise(queues(&znodes), |_| None)[0];
    assert!(
        group.rule().ends_with("Programs of several libraries contend: curator, unknown."),
        "{}",
        group.rule()
    );
}

#[test]
fn nobody_holds_behind_a_znode_that_is_no_ephemeral() {
    let znodes = [
        ("/l/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-0000000004", SECOND),
        ("/l/_c_03b4b2a5-4d8e-4928-880c-7155d4669c6d-lock-0000000003", 0),
    ];
    assert_eq!(lines(&znodes, &[], &[]), ["/l mutex curator likely:  | k-0000000003 k-0000000004"]);
}

/// At the end of the parent's counter all numbers are equal, and on old servers they go on below zero.
#[test]
fn czxids_order_what_the_numbers_do_not() {
    let one = "/l/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-2147483647";
    let two = "/l/_c_03b4b2a5-4d8e-4928-880c-7155d4669c6d-lock-2147483647";
    let three = "/l/_c_a3b4b2a5-4d8e-4928-880c-7155d4669c6d-lock--2147483648";
    let czxids = HashMap::from([(one, Zxid(5)), (two, Zxid(6)), (three, Zxid(7))]);
    for some in [vec![two, one], vec![three, two, one]] {
        let znodes: Vec<(&str, i64)> = some.iter().map(|path| (*path, FIRST)).collect();
        let mut group = recognise(queues(&znodes), |_| None).remove(0);
        assert!(group.needs_czxids());
        group.arrange(|one| czxids.get(&*one.path).copied());
        assert!(group.queue.is_sorted_by_key(|one| czxids[&*one.path]), "{:?}", group.queue);
    }
}

/// The order and the leases stay when a queue is arranged again.
#[test]
fn a_semaphore_is_arranged_twice() {
    let znodes = [
        ("/s/leases/_c_22373b1b-44d0-4a85-a380-2e3daf604ed2-lease-0000000000", FIRST),
        ("/s/leases/_c_21de0704-f5e4-417e-a32e-06cda64118a7-lease-0000000001", SECOND),
        ("/s/locks/_c_4a563740-03f9-4920-af7f-37ee0fd7b4d2-lock-0000000001", SECOND),
        ("/s/locks/_c_7cc07a73-9149-4541-92cb-052420f943ca-lock-0000000002", SECOND),
    ];
    let known = facts(&[("/s/leases", 1, 1, "")]);
    let mut group = recognise(queues(&znodes), |path| known.get(path)).remove(0);
    let before = line(&group);
    assert_eq!(before, "/s semaphore curator sure: e-0000000000 | e-0000000001 k-0000000002");
    group.arrange(|_| None);
    assert_eq!(line(&group), before);
}

#[test]
fn what_recognition_wants_to_know_is_bounded_by_the_queues() {
    let znodes = [
        ("/l/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-0000000004", SECOND),
        ("/s/locks/_c_f35ff4c8-d338-4541-bf3e-ed783d55885e-lock-0000000004", SECOND),
        ("/k-__lock__/2a1f4c21f4c44df1a4087394f537a224__lock__0000000001", SECOND),
        ("/u/leader", SECOND),
    ];
    let wanted = wanted(&queues(&znodes));
    assert_eq!(wanted.iter().map(|path| &**path).collect::<Vec<_>>(), ["/k", "/s/leases", "/u", "/u/leader"]);
}
