//! Operation codes (`ZooDefs.OpCode`).

/// An operation that a request asks for, named as in upstream. Not all of them are open to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Op {
    Create = 1,
    Delete = 2,
    Exists = 3,
    GetData = 4,
    SetData = 5,
    GetAcl = 6,
    SetAcl = 7,
    GetChildren = 8,
    Sync = 9,
    Ping = 11,
    GetChildren2 = 12,
    Check = 13,
    Multi = 14,
    Create2 = 15,
    Reconfig = 16,
    CheckWatches = 17,
    RemoveWatches = 18,
    CreateContainer = 19,
    DeleteContainer = 20,
    CreateTtl = 21,
    MultiRead = 22,
    Auth = 100,
    SetWatches = 101,
    Sasl = 102,
    GetEphemerals = 103,
    GetAllChildrenNumber = 104,
    SetWatches2 = 105,
    AddWatch = 106,
    WhoAmI = 107,
    CreateSession = -10,
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
