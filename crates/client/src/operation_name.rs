//! ZooKeeper's names of the operations.

use ostler_proto::op::Op;

/// ZooKeeper's name of an operation.
pub(crate) fn name(op: Op) -> &'static str {
    match op {
        Op::Create => "create",
        Op::Delete => "delete",
        Op::Exists => "exists",
        Op::GetData => "getData",
        Op::SetData => "setData",
        Op::GetAcl => "getACL",
        Op::SetAcl => "setACL",
        Op::GetChildren => "getChildren",
        Op::Sync => "sync",
        Op::Ping => "ping",
        Op::GetChildren2 => "getChildren2",
        Op::Check => "check",
        Op::Multi => "multi",
        Op::Create2 => "create2",
        Op::Reconfig => "reconfig",
        Op::CheckWatches => "checkWatches",
        Op::RemoveWatches => "removeWatches",
        Op::CreateContainer => "createContainer",
        Op::DeleteContainer => "deleteContainer",
        Op::CreateTtl => "createTTL",
        Op::MultiRead => "multiRead",
        Op::Auth => "addAuth",
        Op::SetWatches => "setWatches",
        Op::Sasl => "sasl",
        Op::GetEphemerals => "getEphemerals",
        Op::GetAllChildrenNumber => "getAllChildrenNumber",
        Op::SetWatches2 => "setWatches2",
        Op::AddWatch => "addWatch",
        Op::WhoAmI => "whoAmI",
        Op::CreateSession => "createSession",
        Op::CloseSession => "closeSession",
    }
}
