//! Recognises the transaction that a leader has made of a forwarded write.

use crate::audit::ZnodeType;
use alloc::boxed::Box;
use ostler_proto::{
    op,
    request::Request,
    txn::{Txn, TxnRecord},
};

/// A forwarded write, as far as its transaction has it, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardedWrite {
    pub(crate) xid: i32,
    /// The operation number.
    pub(crate) code: i32,
    pub(crate) target: WriteTarget,
}

/// The znode of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteTarget {
    /// The write has none, or several.
    None,
    Path(Box<str>),
    /// A sequential znode: the leader puts a number behind this path.
    Sequential(Box<str>),
}

/// Whether the leader may have made this transaction of a write of its session with this xid, operation number and target.
///
/// The operation and the path have to fit, too. A session that has moved may use the same xid for another write at another
/// server, and that one is not done here. Upstream compares the xid alone.
pub(crate) fn is_made_of(record: &TxnRecord<'_>, (xid, code): (i32, i32), target: &WriteTarget) -> bool {
    let is_of_operation = code == record.header.code || record.header.code == op::ERROR;
    xid == record.header.cxid && is_of_operation && target.fits(&record.txn)
}

impl ForwardedWrite {
    /// Whether the leader may have made this transaction of it.
    pub(crate) fn fits(&self, record: &TxnRecord<'_>) -> bool {
        is_made_of(record, (self.xid, self.code), &self.target)
    }
}

impl WriteTarget {
    pub(crate) fn of(request: &Request<'_>) -> WriteTarget {
        match request {
            Request::Create(create) if is_sequential(create.flags) => {
                WriteTarget::Sequential((&*create.path).into())
            }
            Request::Create(create) => WriteTarget::Path((&*create.path).into()),
            Request::Delete(delete) => WriteTarget::Path((&*delete.path).into()),
            Request::SetData(set) => WriteTarget::Path((&*set.path).into()),
            Request::SetAcl { path, .. } => WriteTarget::Path((&**path).into()),
            _ => WriteTarget::None,
        }
    }

    /// Whether a transaction may be of this znode. One without a path fits: a refused write, or a multi.
    fn fits(&self, txn: &Txn<'_>) -> bool {
        let path = match txn {
            Txn::Create(create) => &create.path,
            Txn::Delete { path, .. } | Txn::SetData { path, .. } | Txn::SetAcl { path, .. } => path,
            _ => return true,
        };
        match self {
            // A reconfiguration has the znode of the configuration.
            WriteTarget::None => true,
            WriteTarget::Path(asked) => **asked == **path,
            WriteTarget::Sequential(asked) => is_numbered(path, asked),
        }
    }
}

fn is_sequential(flags: i32) -> bool {
    ZnodeType::from_flags(flags).is_some_and(ZnodeType::is_sequential)
}

/// Whether a path is this one with the number of a sequential znode: ten characters or more, of which the first may be a
/// minus.
pub(crate) fn is_numbered(path: &str, asked: &str) -> bool {
    let Some(number) = path.strip_prefix(asked) else { return false };
    let digits = number.strip_prefix('-').unwrap_or(number);
    number.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sequential_znodes_are_recognised() {
        for path in ["/a-0000000007", "/a-2147483647", "/a--000000001", "/a--2147483648"] {
            assert!(is_numbered(path, "/a-"), "{path}");
        }
        for path in ["/a-", "/a-7", "/a-b0000000007", "/b-0000000007", "/a-0000000007/b", "/a-00000-0007"] {
            assert!(!is_numbered(path, "/a-"), "{path}");
        }
        assert!(is_numbered("/q/0000000001", "/q/"));
    }
}
