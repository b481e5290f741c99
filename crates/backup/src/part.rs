//! The manifest of a backup. A backup is a row of parts, `00000001/part.json` and so on; each is one JSON object.
//!
//! A part has a base (a snapshot of the server, byte by byte) and segments (the log after it, as log files of
//! ZooKeeper). Objects are stored before the manifest names them, and a manifest is replaced as a whole. So a crash
//! leaves the manifest of before, and at most an object that nothing names.
//!
//! The parts together are the history of one server. `continues_after` says where a part goes on: records above it in
//! earlier parts were taken back, and do not count. `None` says that the log before was not copied to its end.

use crate::{
    error::Result,
    store::{Store, Stored, stored},
};
use ostler_proto::id::Zxid;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const FORMAT: u32 = 1;
/// The end of the names of manifests.
pub const MANIFEST: &str = "/part.json";

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// [`FORMAT`].
    pub format: u32,
    /// The number of the part, from 1 on.
    pub part: u32,
    /// A random name of the process that writes the part.
    pub writer: String,
    /// How often the manifest was replaced.
    pub revision: u64,
    /// The server's files.
    pub source: Source,
    /// The zxid of the earlier parts after which this part goes on.
    #[serde(with = "optional_zxid")]
    pub continues_after: Option<Zxid>,
    /// The snapshot.
    pub base: Base,
    /// The log, in order.
    pub segments: Vec<Segment>,
    /// All transactions up to here were committed, as far as the backup knows. It says nothing of what is before a gap in
    /// the log when it is behind it.
    #[serde(with = "zxid")]
    pub confirmed_through: Zxid,
    /// How the backup knows this.
    pub confirmed_by: Confirmation,
    /// The highest epoch in the server's epoch files and log.
    pub highest_epoch: u32,
    /// The last transaction that was copied, with the SHA-256 of its record. `None` if it is the base.
    pub last_record: Option<LastRecord>,
    /// When the manifest was written, in ms since 1970.
    pub written_ms: i64,
    /// The SHA-256 of this object with an empty string here.
    pub sha256: String,
}

/// The server whose files were copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The folder of snapshots.
    pub snapshots: String,
    /// The folder of logs.
    pub logs: String,
    /// The server id, from `myid`; `None` for a standalone server.
    pub server_id: Option<i64>,
    /// Whether there are TTL znodes (`extendedTypesEnabled`); `None` if the configuration was not read.
    pub extended_types: Option<bool>,
}

/// A base: a snapshot file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The name of the object. Its last part is the name of the snapshot file.
    pub object: String,
    /// The zxid in the name.
    #[serde(with = "zxid")]
    pub zxid: Zxid,
    /// From this transaction on the base and the log give the exact tree. Java writes its snapshots while the tree
    /// changes, and then this is above `zxid`.
    #[serde(with = "zxid")]
    pub exact_from: Zxid,
    /// A time at or after that of the transaction, in ms since 1970. `None` in manifests of before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 in lower-case hex.
    pub sha256: String,
}

/// A part of the log: a log file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The name of the object. Its last part is the name of a log file.
    pub object: String,
    /// The first transaction.
    #[serde(with = "zxid")]
    pub first: Zxid,
    /// The last transaction.
    #[serde(with = "zxid")]
    pub last: Zxid,
    /// The number of records.
    pub records: u64,
    /// The latest time of a record, in ms since 1970.
    pub latest_ms: i64,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 in lower-case hex.
    pub sha256: String,
}

/// The last record of a backup, to find it again in the server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRecord {
    /// Its zxid.
    #[serde(with = "zxid")]
    pub zxid: Zxid,
    /// The SHA-256 of its bytes.
    pub sha256: String,
}

/// How a backup knows that transactions were committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// Nothing shows it yet.
    Nothing,
    /// A later epoch follows in the server's log, and its leader had the transactions. After an epoch with 1,000
    /// transactions or more this is known only of what came before that epoch.
    LaterEpoch,
    /// The server is standalone: what is in its log is committed.
    Standalone,
    /// The server said how far it has applied its log.
    Server,
}

impl Base {
    /// Size and SHA-256 of the object.
    pub fn stored(&self) -> Stored {
        Stored { bytes: self.bytes, sha256: self.sha256.clone() }
    }
}

impl Segment {
    /// Size and SHA-256 of the object.
    pub fn stored(&self) -> Stored {
        Stored { bytes: self.bytes, sha256: self.sha256.clone() }
    }
}

impl Part {
    /// The name of the manifest of part `number`.
    pub fn name(number: u32) -> String {
        format!("{number:08}{MANIFEST}")
    }

    /// The name of an object of this part.
    pub fn object(&self, file: &str) -> String {
        format!("{:08}/{file}", self.part)
    }

    /// The last transaction of the part.
    pub fn last(&self) -> Zxid {
        self.segments.last().map_or(self.base.zxid, |segment| segment.last.max(self.base.zxid))
    }

    /// The manifest as it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let part = Part { sha256: self.own_sum(), ..self.clone() };
        let mut bytes = serde_json::to_vec_pretty(&part).expect("a manifest has only numbers and strings");
        bytes.push(b'\n');
        bytes
    }

    fn own_sum(&self) -> String {
        let bare = Part { sha256: String::new(), ..self.clone() };
        stored(&serde_json::to_vec(&bare).expect("a manifest has only numbers and strings")).sha256
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// It is missing or damaged, or of a later format.
    pub fn read(store: &Store, name: &str) -> Result<Part> {
        let bytes = store.get(name)?.ok_or_else(|| store.damaged(name, "it is missing"))?;
        let part: Part =
            serde_json::from_slice(&bytes).map_err(|error| store.damaged(name, &error.to_string()))?;
        if part.format != FORMAT {
            let reason = format!("it has format {}, and this program knows format {FORMAT}", part.format);
            return Err(store.damaged(name, &reason));
        }
        if part.own_sum() != part.sha256 {
            return Err(store.damaged(name, "its SHA-256 is not that of its contents"));
        }
        if Part::name(part.part) != name {
            return Err(store.damaged(name, &format!("it says that it is part {}", part.part)));
        }
        Ok(part)
    }

    /// Reads all manifests, in order.
    ///
    /// # Errors
    /// One is damaged, or the store cannot be read.
    pub fn read_all(store: &Store) -> Result<Vec<Part>> {
        store.list(MANIFEST)?.iter().map(|name| Part::read(store, name)).collect()
    }
}

/// Zxids in JSON are strings of hex digits, as servers print them.
mod zxid {
    use super::Zxid;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(zxid: &Zxid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(zxid)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Zxid, D::Error> {
        let text = String::deserialize(from)?;
        super::parse_zxid(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no zxid")))
    }
}

mod optional_zxid {
    use super::Zxid;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(zxid: &Option<Zxid>, to: S) -> Result<S::Ok, S::Error> {
        zxid.map(|zxid| zxid.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Zxid>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let zxid = super::parse_zxid(&text);
        zxid.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is no zxid")))
    }
}

/// The zxid in a text: hex digits behind `0x`, or a decimal number. `None` for other texts and for a zxid with the top
/// bit set, which no server has.
pub fn parse_zxid(text: &str) -> Option<Zxid> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    i64::try_from(number).is_ok().then_some(Zxid(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn part() -> Part {
        Part {
            format: FORMAT,
            part: 7,
            writer: "w".to_owned(),
            revision: 0,
            source: Source {
                snapshots: "/s".into(),
                logs: "/l".into(),
                server_id: Some(1),
                extended_types: None,
            },
            continues_after: Some(Zxid(0x1_0000_0001)),
            base: Base {
                object: "00000007/snapshot.5".into(),
                zxid: Zxid(5),
                exact_from: Zxid(5),
                time_ms: None,
                bytes: 1,
                sha256: "x".into(),
            },
            segments: Vec::new(),
            confirmed_through: Zxid(5),
            confirmed_by: Confirmation::Server,
            highest_epoch: 1,
            last_record: None,
            written_ms: 0,
            sha256: String::new(),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_stored_and_a_changed_one_is_refused() {
        let store = Store::in_memory(Default::default()).unwrap();
        let name = Part::name(7);
        store.put(&name, part().encode()).unwrap();
        let read = Part::read(&store, &name).unwrap();
        assert_eq!(Part { sha256: String::new(), ..read }, part());
        let text = String::from_utf8(part().encode()).unwrap();
        for (from, to, reason) in [
            ("\"0x5\"", "\"0x6\"", "SHA-256"),
            ("\"0x5\"", "\"5x\"", "no zxid"),
            ("\"format\": 1", "\"format\": 2", "format 2"),
        ] {
            assert!(text.contains(from), "{text}");
            store.put(&name, text.replace(from, to).into_bytes()).unwrap();
            let error = Part::read(&store, &name).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        store.put(&Part::name(8), part().encode()).unwrap();
        assert!(Part::read(&store, &Part::name(8)).unwrap_err().to_string().contains("part 7"));
    }

    #[test]
    fn zxids_are_read_in_hex_and_decimal() {
        assert_eq!(parse_zxid("0x100000002"), Some(Zxid(0x1_0000_0002)));
        assert_eq!(parse_zxid("17"), Some(Zxid(17)));
        assert_eq!(parse_zxid("0xffffffffffffffff"), None);
        assert_eq!(parse_zxid("0xg"), None);
        assert_eq!(parse_zxid(""), None);
    }
}
