use super::super::groups::{Facts, Queues, recognise};
use super::*;
use ostler_proto::{
    id::{SessionId, Zxid},
    path,
};

/// A holder's znode of each kind of each library, and whether it may be deleted.
const HOLDERS: [(&str, bool); 21] = [
    ("/a/_c_970e5c47-4962-85e1-8c04-568be4164a0a-latch-0000000000", true),
    ("/a/_c_970e5c47-4962-85e2-8c04-568be4164a0a-lock-0000000000", true),
    ("/a/_c_970e5c47-4962-85e3-8c04-568be4164a0a-lock-0000000000", false),
    ("/a/_c_970e5c47-4962-85e4-8c04-568be4164a0a-__WRIT__0000000000", false),
    ("/a/_c_970e5c47-4962-85e4-8c04-568be4164a0a-__READ__0000000000", false),
    ("/a/leases/_c_970e5c47-4962-85e5-8c04-568be4164a0a-lease-0000000000", false),
    ("/a/leader", false),
    ("/a/_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-0000000000", false),
    ("/a/_c_970e5c47-4962-4e75-8c04-568be4164a0a-lock-0000000000", false),
    ("/a/_c_970e5c47-4962-4e75-8c04-568be4164a0a-__WRIT__0000000000", false),
    ("/a/_c_970e5c47-4962-4e75-8c04-568be4164a0a-__READ__0000000000", false),
    ("/a/leases/_c_970e5c47-4962-4e75-8c04-568be4164a0a-lease-0000000000", false),
    ("/a/5f967df430fc424f9be669fafab4a7eb__lock__0000000000", false),
    ("/election/5f967df430fc424f9be669fafab4a7eb__lock__0000000000", false),
    ("/a/5f967df430fc424f9be669fafab4a7eb__rlock__0000000000", false),
    ("/k/5f967df430fc424f9be669fafab4a7eb", false),
    ("/a/x-7-0000000000", false),
    ("/a/n_0000000000", false),
    ("/a/_c_22373b1b44d04a85a3802e3daf604ed2-lock-0000000001", false),
    ("/a/latch-0000000000", false),
    // Another library's id of version 8.
    ("/a/_c_970e5c47-4962-8e75-8c04-568be4164a0a-latch-0000000000", false),
];

fn group_of(path: &str) -> Group {
    let parent = path::parent(path).unwrap();
    let holder = Contender::of(path, Some(SessionId(7))).unwrap();
    let queues = Queues::from([(parent.into(), vec![holder])]);
    let id = b"0b0b3f5e-6c2c-4e0e-8a43-6f3b7a1b2c3d".to_vec();
    let data = if parent == "/k" { b"2".to_vec() } else { id };
    let known = Facts { czxid: Zxid(9), mzxid: Zxid(9), data };
    recognise(queues, |_| Some(&known)).pop().unwrap_or_else(|| panic!("{path} is no group"))
}

fn facts(watches_itself: Option<bool>, data: &[u8]) -> HolderFacts<'_> {
    HolderFacts { is_alive: true, watches_itself, data }
}

#[test]
fn only_a_leader_of_ostler_is_fenced() {
    for (path, is_own) in HOLDERS {
        let group = group_of(path);
        for watches_itself in [None, Some(false), Some(true)] {
            for data in [&b""[..], b"127.0.0.1", b"me", REVOKED] {
                let offer = for_holder(&group, facts(watches_itself, data));
                let may = is_own && watches_itself != Some(false);
                assert_eq!(offer.way == Way::Fence, may, "{path} {watches_itself:?} {data:?}");
                assert_ne!(offer.way, Way::None, "{path}");
            }
        }
    }
}

#[test]
fn a_revocation_is_offered_where_the_holder_waits_for_it() {
    let curator = ["-lock-0000000000", "-__WRIT__0000000000", "-__READ__0000000000"];
    for name in curator {
        let group = group_of(&format!("/a/_c_970e5c47-4962-4e75-8c04-568be4164a0a{name}"));
        let way = |watches_itself, data: &[u8]| for_holder(&group, facts(watches_itself, data)).way;
        assert_eq!(way(Some(true), b""), Way::Revoke);
        assert_eq!(way(Some(true), REVOKED), Way::Revoke);
        // A cache of the same program watches it, too.
        assert_eq!(way(Some(true), b"127.0.0.1"), Way::Expire);
        assert_eq!(way(Some(false), b""), Way::Expire);
        assert_eq!(way(None, b""), Way::Expire);
    }
    for (path, _) in HOLDERS.iter().filter(|(path, _)| !path.contains("_c_970e5c47")) {
        assert_eq!(for_holder(&group_of(path), facts(Some(true), b"")).way, Way::Expire, "{path}");
    }
}

#[test]
fn nothing_is_offered_without_a_holder_that_lives() {
    let group = group_of(HOLDERS[0].0);
    let dead = HolderFacts { is_alive: false, ..facts(None, b"") };
    assert_eq!(for_holder(&group, dead).way, Way::None);
    let mut empty = group;
    empty.holding = 0;
    assert_eq!(for_holder(&empty, facts(None, b"")).way, Way::None);
}

fn kinds(group: &Group, facts: QueueFacts) -> Vec<&'static str> {
    let alarms = alarms(group, facts);
    assert!(
        alarms.iter().all(|alarm| ALARMS.contains(&alarm.kind) && alarm.sentence.ends_with('.')),
        "{alarms:?}"
    );
    alarms.into_iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn alarms_of_a_queue() {
    let mut group = group_of(HOLDERS[0].0);
    assert!(kinds(&group, QueueFacts::default()).is_empty());
    let silent = |silent, timeout| QueueFacts { silence: Some((silent, timeout)), ..QueueFacts::default() };
    assert!(kinds(&group, silent(3000, 6000)).is_empty());
    assert_eq!(kinds(&group, silent(3001, 6000)), ["holder_silent"]);
    assert!(kinds(&group, silent(3001, 0)).is_empty());
    assert_eq!(kinds(&group, QueueFacts { dead: 1, ..QueueFacts::default() }), ["no_session"]);
    let again = Contender {
        path: "/a/_c_b70e5c47-4962-85e1-8c04-568be4164a0a-latch-0000000001".into(),
        ..group.queue[0].clone()
    };
    group.queue.push(again);
    assert_eq!(kinds(&group, QueueFacts::default()), ["same_session"]);
    group.queue[0].session = None;
    group.arrange(|_| None);
    assert_eq!(kinds(&group, QueueFacts::default()), ["no_holder", "no_session"]);
}

#[test]
fn a_session_may_have_several_leases() {
    let mut group = group_of(HOLDERS[5].0);
    let again = Contender {
        path: "/a/leases/_c_b70e5c47-4962-85e5-8c04-568be4164a0a-lease-0000000001".into(),
        ..group.queue[0].clone()
    };
    group.queue.push(again);
    group.arrange(|_| None);
    assert_eq!((group.holding, kinds(&group, QueueFacts::default())), (2, vec![]));
}
