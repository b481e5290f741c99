//! Operation codes (`ZooDefs.OpCode`).

/// An operation that a request asks for, named as in upstream. Not all of them are open to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Op {
    /// Creates a znode; the reply has its path.
    Create = 1,
    /// Deletes a znode.
    Delete = 2,
    /// Asks whether there is a znode; can set a watch.
    Exists = 3,
    /// Reads a znode's data; can set a watch.
    GetData = 4,
    /// Sets a znode's data.
    SetData = 5,
    /// Reads a znode's ACL.
    GetAcl = 6,
    /// Sets a znode's ACL.
    SetAcl = 7,
    /// Lists a znode's children; can set a watch.
    GetChildren = 8,
    /// Waits until the server has applied everything that is committed.
    Sync = 9,
    /// Keeps the session alive.
    Ping = 11,
    /// Lists a znode's children, and reads its Stat; can set a watch.
    GetChildren2 = 12,
    /// Checks the version of a znode, in a multi only.
    Check = 13,
    /// Does several writes, all or none.
    Multi = 14,
    /// Creates a znode; the reply has its path and its Stat.
    Create2 = 15,
    /// Changes the members of the ensemble.
    Reconfig = 16,
    /// Asks whether there are watches of a kind at a path.
    CheckWatches = 17,
    /// Removes watches of a kind at a path.
    RemoveWatches = 18,
    /// Creates a container, which is deleted after its last child.
    CreateContainer = 19,
    /// Deletes a container or TTL znode; only a server does that.
    DeleteContainer = 20,
    /// Creates a znode with a TTL.
    CreateTtl = 21,
    /// Does several reads.
    MultiRead = 22,
    /// Adds an identity to the session.
    Auth = 100,
    /// Sets the one-shot watches again after a reconnect.
    SetWatches = 101,
    /// Carries a token of a login by SASL.
    Sasl = 102,
    /// Lists the session's ephemerals.
    GetEphemerals = 103,
    /// Counts all znodes below a path.
    GetAllChildrenNumber = 104,
    /// Sets watches of all kinds again after a reconnect.
    SetWatches2 = 105,
    /// Sets a persistent watch, or a persistent recursive one.
    AddWatch = 106,
    /// Lists the session's identities.
    WhoAmI = 107,
    /// Begins a session; only in logs and between servers.
    CreateSession = -10,
    /// Ends the session.
    CloseSession = -11,
}

/// The code of an error in a multi's reply and in the log. It is not an operation.
pub const ERROR: i32 = -1;

impl Op {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The operation with this number on the wire. `None` if the number is unknown.
    pub fn from_code(code: i32) -> Option<Op> {
        Some(match code {
            1 => Op::Create,
            2 => Op::Delete,
            3 => Op::Exists,
            4 => Op::GetData,
            5 => Op::SetData,
            6 => Op::GetAcl,
            7 => Op::SetAcl,
            8 => Op::GetChildren,
            9 => Op::Sync,
            11 => Op::Ping,
            12 => Op::GetChildren2,
            13 => Op::Check,
            14 => Op::Multi,
            15 => Op::Create2,
            16 => Op::Reconfig,
            17 => Op::CheckWatches,
            18 => Op::RemoveWatches,
            19 => Op::CreateContainer,
            20 => Op::DeleteContainer,
            21 => Op::CreateTtl,
            22 => Op::MultiRead,
            100 => Op::Auth,
            101 => Op::SetWatches,
            102 => Op::Sasl,
            103 => Op::GetEphemerals,
            104 => Op::GetAllChildrenNumber,
            105 => Op::SetWatches2,
            106 => Op::AddWatch,
            107 => Op::WhoAmI,
            -10 => Op::CreateSession,
            -11 => Op::CloseSession,
            _ => return None,
        })
    }
}
