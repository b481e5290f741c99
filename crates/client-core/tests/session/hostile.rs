//! Random inputs and frames in any order cause no panic. Each request has one outcome, and nothing follows the end.

use crate::rig::{Rig, RigEvent, SESSION, TIMEOUT, add_watch, children, config, exists, get};
use ostler_client_core::{AuthInfo, Config, Input, RequestId, SaslCredentials, SaslLogin, WatchId};
use ostler_proto::{event::EventType, id::SessionId};
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};

#[derive(Debug, Clone)]
enum ElectionEvent {
    Wait(u64),
    Deadline,
    Connected,
    Grant { session: i64, timeout_ms: u64, read_only: bool },
    Lose,
    Frame(Vec<u8>),
    Reply { xid: i32, error: i32 },
    Event { kind: u8, path: u8 },
    Ask { kind: u8, path: u8, bound: bool },
    Unwatch(u64),
    Auth,
    FoundReadWrite,
    Close,
}

fn random_input() -> impl Strategy<Value = ElectionEvent> {
    use ElectionEvent::{
        Ask, Auth, Close, Connected, Deadline, Event, FoundReadWrite, Frame, Grant, Lose, Reply, Unwatch,
        Wait,
    };
    prop_oneof![
        3 => (0_u64..20_000).prop_map(Wait),
        6 => Just(Deadline),
        6 => Just(Connected),
        6 => (prop_oneof![Just(SESSION.0), 0_i64..3], prop_oneof![Just(30_000), 0_u64..100], any::<bool>())
            .prop_map(|(session, timeout_ms, read_only)| Grant { session, timeout_ms, read_only }),
        2 => Just(Lose),
        2 => proptest::collection::vec(any::<u8>(), 0..60).prop_map(Frame),
        12 => (-9_i32..20, prop_oneof![Just(0), Just(-101), Just(-115), Just(-5), -130_i32..1])
            .prop_map(|(xid, error)| Reply { xid, error }),
        4 => (0_u8..4, 0_u8..3).prop_map(|(kind, path)| Event { kind, path }),
        12 => (0_u8..6, 0_u8..3, any::<bool>()).prop_map(|(kind, path, bound)| Ask { kind, path, bound }),
        6 => (0_u64..40).prop_map(Unwatch),
        1 => Just(Auth),
        1 => Just(FoundReadWrite),
        1 => Just(Close),
    ]
}

const PATHS: [&str; 3] = ["/", "/a", "/a/b"];
const EVENTS: [EventType; 4] = [
    EventType::NodeCreated,
    EventType::NodeDeleted,
    EventType::NodeDataChanged,
    EventType::NodeChildrenChanged,
];

fn apply(rig: &mut Rig, random_input: ElectionEvent) {
    let connected = rig.wanted.is_some();
    match random_input {
        ElectionEvent::Wait(ms) => rig.wait(Duration::from_millis(ms)),
        ElectionEvent::Deadline if rig.session.next_deadline().is_some() => rig.deadline(),
        ElectionEvent::Connected if connected => rig.step(Input::Connected(rig.attempt())),
        ElectionEvent::Grant { session, timeout_ms, read_only } if connected => {
            rig.grant(SessionId(session), Duration::from_millis(timeout_ms), read_only);
        }
        ElectionEvent::Lose if connected => rig.lose(),
        ElectionEvent::Frame(bytes) if connected => rig.frame(&bytes),
        ElectionEvent::Reply { xid, error } if connected => rig.reply(xid, 7, error),
        ElectionEvent::Event { kind, path } if connected => {
            rig.event(EVENTS[usize::from(kind)], PATHS[usize::from(path)]);
        }
        ElectionEvent::Ask { kind, path, bound } => {
            let path = PATHS[usize::from(path)];
            let request = match kind {
                0 => get(path, false),
                1 => get(path, true),
                2 => exists(path),
                3 => children(path),
                4 => add_watch(path, false),
                _ => add_watch(path, true),
            };
            let watch = rig.next_watch();
            rig.ask_as(&request, bound.then_some(SESSION), (kind > 0).then_some(watch));
        }
        ElectionEvent::Unwatch(watch) => rig.step(Input::Unwatch(WatchId(watch))),
        ElectionEvent::Auth => {
            let id = RequestId(rig.next_id());
            rig.step(Input::AddAuth {
                id,
                auth: AuthInfo { scheme: "digest".into(), auth: b"a:b".to_vec() },
            });
        }
        ElectionEvent::FoundReadWrite => rig.step(Input::FoundReadWrite { host: 1 }),
        ElectionEvent::Close => {
            let id = RequestId(rig.next_id());
            rig.step(Input::Close(id));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_input_in_any_order(
        happenings in proptest::collection::vec(random_input(), 1..120),
        read_only: bool,
        again: bool,
        sasl: bool,
    ) {
        let credentials = SaslCredentials { user: "u".into(), password: "p".into() };
        let mut rig = Rig::new(Config {
            read_only,
            new_session_after_loss: again,
            sasl: sasl.then_some(SaslLogin::DigestMd5(credentials)),
            connection_timeout: TIMEOUT / 2,
            ..config()
        });
        for random_input in happenings {
            apply(&mut rig, random_input);
            rig.clear_bytes();
        }
        let last = RequestId(rig.next_id());
        rig.step(Input::Close(last));
        if rig.wanted.is_some() {
            rig.lose();
        }
        let heard = rig.take_events();
        let mut outcomes: BTreeMap<u64, usize> = BTreeMap::new();
        for id in heard.iter().filter_map(|heard| match heard {
            RigEvent::Reply(id, _) | RigEvent::Failed(id, _) => Some(*id),
            _ => None,
        }) {
            *outcomes.entry(id).or_default() += 1;
        }
        for id in 1..=last.0 {
            prop_assert_eq!(outcomes.get(&id), Some(&1), "request {} in {:?}", id, heard);
        }
        prop_assert_eq!(heard.iter().filter(|heard| **heard == RigEvent::Ended).count(), 1);
        prop_assert_eq!(rig.session.watchers(), 0);
        prop_assert_eq!(rig.session.next_deadline(), None);
    }
}
