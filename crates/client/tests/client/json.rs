//! Types of the client as JSON, with the feature `serde`.

use ostler_client::{Acl, ConnectionState, CreateMode, Perms, SessionId, SessionState, Stat, Version, Zxid};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

#[track_caller]
fn is_json<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, expected: Value) {
    assert_eq!(serde_json::to_value(value).unwrap(), expected);
    assert_eq!(&serde_json::from_value::<T>(expected).unwrap(), value);
}

/// Numbers of 64 bits that are no plain counts are texts: most readers of JSON take numbers for doubles.
#[test]
fn ids_are_texts_and_options_have_their_names() {
    is_json(&SessionId(-2), json!("0xfffffffffffffffe"));
    is_json(&Zxid(0x1_0000_0002), json!("0x100000002"));
    let stat = Stat { czxid: Zxid(7), ephemeral_owner: 0x1000_0000_0000_0001, ..Stat::default() };
    let json = serde_json::to_value(stat).unwrap();
    assert_eq!((&json["czxid"], &json["ephemeral_owner"]), (&json!("0x7"), &json!("0x1000000000000001")));
    is_json(&stat, json);
    is_json(&Acl::world(Perms::READ), json!({"perms": 1, "id": {"scheme": "world", "id": "anyone"}}));
    is_json(&Version::Exactly(3), json!({"Exactly": 3}));
    is_json(&CreateMode::EphemeralSequential, json!("EphemeralSequential"));
    let state = SessionState::new(ConnectionState::Suspended, Some(SessionId(1)));
    is_json(&state, json!({"state": "Suspended", "session": "0x1"}));
}
