//! Session ids in JSON: as text in hexadecimal, as ZooKeeper writes them. A number in JSON has only 53 bits everywhere.

use alloc::string::String;
use ostler_proto::id::SessionId;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(session: &SessionId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(session)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SessionId, D::Error> {
    let text = String::deserialize(from)?;
    super::session_of(&text)
        .ok_or_else(|| D::Error::custom("a session id is 0x and up to 16 hexadecimal digits"))
}
