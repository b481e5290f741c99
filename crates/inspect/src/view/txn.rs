//! A transaction of the log as text and as JSON.

use super::{
    AclView, DataForm, DataView, acl_text, session_text,
    text::{Printable, error_name, time_text},
    zxid_text,
};
use ostler_proto::{
    id::{SessionId, Zxid},
    txn::{CreateTxn, Txn, TxnCreateKind, TxnRecord},
};
use serde::Serialize;
use std::fmt;

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TxnView {
    /// The zxid.
    #[serde(serialize_with = "zxid_text")]
    pub zxid: Zxid,
    /// The time of the leader's wall clock, in ms since 1970.
    pub time_ms: i64,
    /// The same time as UTC.
    pub time: String,
    /// The session that made the request.
    #[serde(serialize_with = "session_text")]
    pub session: SessionId,
    /// The xid of the request; 0 for transactions of the server itself.
    pub cxid: i32,
    /// The change.
    #[serde(flatten)]
    pub op: OpView,
    /// The digest of the tree after the transaction, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The change of a transaction, or of one part of a multi. Only the fields of its kind are set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OpView {
    /// The kind, with the names of TxnLogToolkit: `create`, `setData`, `multi`, ...
    pub op: &'static str,
    /// The path of the znode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The size of the data in bytes; null for null data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<Option<usize>>,
    /// The data, if they are wanted.
    #[serde(flatten)]
    pub data: Option<DataView>,
    /// The ACL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acl: Option<Vec<AclView>>,
    /// Whether the new znode is an ephemeral of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// The stored cversion of the parent after a create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_cversion: Option<i32>,
    /// The TTL of a new znode, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// The new version, or the version that a check wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// The timeout of a new session, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i32>,
    /// The ephemerals that end with the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemerals: Option<Vec<String>>,
    /// The code of a refused write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The name of this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The parts of a multi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<OpView>>,
}

impl TxnView {
    /// The view of a record.
    pub fn of(record: &TxnRecord<'_>, form: DataForm) -> TxnView {
        let header = &record.header;
        TxnView {
            zxid: header.zxid,
            time_ms: header.time_ms,
            time: time_text(header.time_ms),
            session: header.session,
            cxid: header.cxid,
            op: OpView::of(&record.txn, form),
            digest: record.digest.map(|digest| format!("{:#x}", digest.tree)),
        }
    }
}

impl OpView {
    /// The view of a change.
    pub fn of(txn: &Txn<'_>, form: DataForm) -> OpView {
        let named = |op| OpView { op, ..OpView::default() };
        match txn {
            Txn::CreateSession { timeout_ms } => {
                OpView { timeout_ms: Some(*timeout_ms), ..named("createSession") }
            }
            Txn::CloseSession(paths) => OpView {
                ephemerals: paths
                    .as_ref()
                    .map(|paths| paths.iter().map(|path| path.clone().into_owned()).collect()),
                ..named("closeSession")
            },
            Txn::Create(create) => OpView::of_create(create, form),
            Txn::Delete { reaped, path } => OpView {
                path: Some(path.clone().into_owned()),
                ..named(if *reaped { "deleteContainer" } else { "delete" })
            },
            Txn::SetData { reconfig, path, data, version } => OpView {
                path: Some(path.clone().into_owned()),
                data_bytes: Some(data.map(<[u8]>::len)),
                data: DataView::of(*data, form),
                version: Some(*version),
                ..named(if *reconfig { "reconfig" } else { "setData" })
            },
            Txn::SetAcl { path, acl, version } => OpView {
                path: Some(path.clone().into_owned()),
                acl: Some(AclView::list(acl)),
                version: Some(*version),
                ..named("setACL")
            },
            Txn::Check { path, version } => {
                OpView { path: Some(path.clone().into_owned()), version: Some(*version), ..named("check") }
            }
            Txn::Error(code) => {
                OpView { code: Some(*code), error: Some(error_name(*code)), ..named("error") }
            }
            Txn::Multi(parts) => OpView {
                parts: Some(parts.iter().map(|part| OpView::of(part, form)).collect()),
                ..named("multi")
            },
        }
    }

    fn of_create(create: &CreateTxn<'_>, form: DataForm) -> OpView {
        let (op, ttl_ms) = match create.kind {
            TxnCreateKind::Create => ("create", None),
            TxnCreateKind::Create2 => ("create2", None),
            TxnCreateKind::Container => ("createContainer", None),
            TxnCreateKind::Ttl(ttl_ms) => ("createTTL", Some(ttl_ms)),
        };
        OpView {
            op,
            path: Some(create.path.clone().into_owned()),
            data_bytes: Some(create.data.map(<[u8]>::len)),
            data: DataView::of(create.data, form),
            acl: Some(AclView::list(&create.acl)),
            ephemeral: Some(create.ephemeral),
            parent_cversion: Some(create.parent_cversion),
            ttl_ms,
            ..OpView::default()
        }
    }
}

impl fmt::Display for TxnView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} session {} cxid {:#x} zxid {} {}",
            self.time, self.session, self.cxid, self.zxid, self.op
        )?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, " digest {digest}"))
    }
}

impl fmt::Display for OpView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.op)?;
        if let Some(path) = &self.path {
            write!(f, " {}", Printable(path))?;
        }
        match self.data_bytes {
            None => {}
            Some(None) => write!(f, " null")?,
            Some(Some(bytes)) => write!(f, " {bytes} bytes")?,
        }
        if let Some(data) = &self.data {
            write!(f, " {data}")?;
        }
        if self.ephemeral == Some(true) {
            write!(f, " ephemeral")?;
        }
        if let Some(ttl_ms) = self.ttl_ms {
            write!(f, " ttl {ttl_ms} ms")?;
        }
        if let Some(acl) = &self.acl {
            write!(f, " acl {}", acl_text(acl))?;
        }
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        if let Some(cversion) = self.parent_cversion {
            write!(f, " parent-cversion {cversion}")?;
        }
        if let Some(timeout_ms) = self.timeout_ms {
            write!(f, " timeout {timeout_ms} ms")?;
        }
        if let (Some(code), Some(error)) = (self.code, &self.error) {
            write!(f, " {error} ({code})")?;
        }
        for path in self.ephemerals.iter().flatten() {
            write!(f, " {}", Printable(path))?;
        }
        for (number, part) in self.parts.iter().flatten().enumerate() {
            write!(f, "{} {part}", if number == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        acl::{Acl, Perms},
        txn::{TxnDigest, TxnHeader},
    };

    fn record(txn: Txn<'_>) -> TxnRecord<'_> {
        let header = TxnHeader {
            session: SessionId(0x17),
            cxid: 2,
            zxid: Zxid(0x1_0000_0003),
            time_ms: 1000,
            code: txn.code(),
        };
        TxnRecord { header, txn, digest: Some(TxnDigest { version: 2, tree: 0xabc }) }
    }

    fn create(data: Option<&'static [u8]>) -> Txn<'static> {
        Txn::Create(CreateTxn {
            kind: TxnCreateKind::Create,
            path: "/a".into(),
            data,
            acl: vec![Acl::world(Perms::ALL)].into(),
            ephemeral: true,
            parent_cversion: 4,
        })
    }

    #[test]
    fn a_transaction_is_one_line_of_text() {
        let multi = Txn::Multi(vec![create(Some(b"x\n")), Txn::Check { path: "/b".into(), version: 3 }]);
        assert_eq!(
            TxnView::of(&record(multi), DataForm::Text).to_string(),
            "1970-01-01T00:00:01.000Z session 0x17 cxid 0x2 zxid 0x100000003 multi: create /a 2 bytes data \"x\\n\" \
             ephemeral acl world:anyone:cdrwa parent-cversion 4; check /b version 3 digest 0xabc"
        );
        let error = TxnView::of(&record(Txn::Error(-101)), DataForm::Size);
        assert!(error.to_string().ends_with("zxid 0x100000003 error NoNode (-101) digest 0xabc"), "{error}");
    }

    #[test]
    fn json_has_null_data_apart_from_empty_data_and_values_only_if_wanted() {
        let json = |data, form| serde_json::to_value(TxnView::of(&record(create(data)), form)).unwrap();
        assert_eq!(json(None, DataForm::Text)["data_bytes"], serde_json::Value::Null);
        assert_eq!(json(Some(b""), DataForm::Size)["data_bytes"], 0);
        assert_eq!(json(Some(b"x"), DataForm::Size).get("data"), None);
        assert_eq!(json(Some(b"x"), DataForm::Text)["data"], "x");
        assert_eq!(json(Some(b"\xff"), DataForm::Text)["data_base64"], "/w==");
        assert_eq!(json(Some(b"x"), DataForm::Base64)["data_base64"], "eA==");
        assert_eq!(json(None, DataForm::Size)["acl"][0]["perms"], "cdrwa");
    }
}
