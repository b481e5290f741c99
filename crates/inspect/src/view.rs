//! Transactions and znodes as an operator reads them: lines of text, and values for JSON.

mod text;
mod txn;

pub use text::{Printable, error_name, time_text};
pub use txn::{OpView, TxnView};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_proto::{
    acl::{Acl, Perms},
    id::{SessionId, Zxid},
    stat::{EphemeralOwner, ExtendedTypes, NodeKind, StatPersisted},
};
use serde::{Serialize, Serializer};
use std::fmt;

/// How the data of znodes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataForm {
    /// Only their size.
    #[default]
    Size,
    /// As text; data that are no UTF-8 as base64.
    Text,
    /// As base64.
    Base64,
}

/// How owner fields are read. A folder does not say whether its servers have TTL znodes. An owner with a top byte of
/// 255 is taken for one: a server with this id is rare.
pub const TYPES: ExtendedTypes = ExtendedTypes { enabled: true, emulate_353: false };

/// The data of a znode in the wanted form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum DataView {
    /// The data are UTF-8.
    #[serde(rename = "data")]
    Text(String),
    /// The data as base64.
    #[serde(rename = "data_base64")]
    Base64(String),
}

impl DataView {
    /// The view of data. `None` if only the size is wanted, or if the data are null.
    pub fn of(data: Option<&[u8]>, form: DataForm) -> Option<DataView> {
        let data = data?;
        match (form, std::str::from_utf8(data)) {
            (DataForm::Size, _) => None,
            (DataForm::Text, Ok(text)) => Some(DataView::Text(text.to_owned())),
            (DataForm::Text, Err(_)) | (DataForm::Base64, _) => Some(DataView::Base64(STANDARD.encode(data))),
        }
    }
}

impl fmt::Display for DataView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataView::Text(text) => write!(f, "data {text:?}"),
            DataView::Base64(text) => write!(f, "base64 {text}"),
        }
    }
}

/// One entry of an ACL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AclView {
    /// The scheme.
    pub scheme: String,
    /// The id in the scheme. The id of the scheme digest has a hash of the password.
    pub id: String,
    /// The permissions, of `cdrwa`.
    pub perms: String,
}

impl AclView {
    /// The views of a list.
    pub fn list(acl: &[Acl]) -> Vec<AclView> {
        acl.iter()
            .map(|entry| AclView {
                scheme: entry.id.scheme.clone(),
                id: entry.id.id.clone(),
                perms: letters(entry.perms),
            })
            .collect()
    }
}

impl fmt::Display for AclView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", Printable(&self.scheme), Printable(&self.id), self.perms)
    }
}

/// A list of ACL entries as text, joined by commas.
pub(crate) fn acl_text(acl: &[AclView]) -> String {
    acl.iter().map(AclView::to_string).collect::<Vec<_>>().join(",")
}

/// The letters of the permissions that are granted, in the order of zkCli.sh.
fn letters(perms: Perms) -> String {
    [('c', Perms::CREATE), ('d', Perms::DELETE), ('r', Perms::READ), ('w', Perms::WRITE), ('a', Perms::ADMIN)]
        .into_iter()
        .filter(|(_, perm)| perms.any_of(*perm))
        .map(|(letter, _)| letter)
        .collect()
}

/// The stored Stat of a znode. Its cversion counts creates of children only; clients see another number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatView {
    /// The zxid of the create.
    #[serde(serialize_with = "zxid_text")]
    pub czxid: Zxid,
    /// The zxid of the last change of the data.
    #[serde(serialize_with = "zxid_text")]
    pub mzxid: Zxid,
    /// The zxid of the last change of the children.
    #[serde(serialize_with = "zxid_text")]
    pub pzxid: Zxid,
    /// The time of the create, in ms since 1970.
    pub ctime_ms: i64,
    /// The time of the last change of the data, in ms since 1970.
    pub mtime_ms: i64,
    /// The version of the data.
    pub version: i32,
    /// The number of children that were ever created.
    pub cversion: i32,
    /// The version of the ACL.
    pub aversion: i32,
    /// The owner field as it is stored.
    pub owner: String,
    /// The kind of the znode, as the owner field says it.
    #[serde(flatten)]
    pub kind: KindView,
}

impl StatView {
    /// The view of a Stat.
    pub fn of(stat: &StatPersisted) -> StatView {
        let owner = stat.ephemeral_owner;
        StatView {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            ctime_ms: stat.ctime,
            mtime_ms: stat.mtime,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            owner: format!("{:#x}", owner.0),
            kind: KindView::of(owner),
        }
    }
}

/// The kind of a znode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "node", rename_all = "lowercase")]
pub enum KindView {
    /// The znode stays until it is deleted.
    Persistent,
    /// The znode ends with its session.
    Ephemeral {
        /// The session.
        #[serde(serialize_with = "session_text")]
        session: SessionId,
    },
    /// The znode is deleted some time after its last child.
    Container,
    /// The znode is deleted if it is not changed for a time.
    Ttl {
        /// The time in ms.
        ttl_ms: i64,
    },
}

impl KindView {
    /// The kind by the owner field.
    pub fn of(owner: EphemeralOwner) -> KindView {
        match owner.kind(TYPES) {
            NodeKind::Persistent => KindView::Persistent,
            NodeKind::Ephemeral(session) => KindView::Ephemeral { session },
            NodeKind::Container => KindView::Container,
            NodeKind::Ttl(ttl_ms) => KindView::Ttl { ttl_ms },
        }
    }
}

impl fmt::Display for KindView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KindView::Persistent => write!(f, "persistent"),
            KindView::Ephemeral { session } => write!(f, "ephemeral of session {session}"),
            KindView::Container => write!(f, "container"),
            KindView::Ttl { ttl_ms } => write!(f, "TTL of {ttl_ms} ms"),
        }
    }
}

/// A zxid in JSON is a text, `0x100000002`: most readers of JSON take numbers for doubles.
pub fn zxid_text<S: Serializer>(zxid: &Zxid, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(zxid)
}

/// A session id in JSON, as a text.
pub fn session_text<S: Serializer>(session: &SessionId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(session)
}
