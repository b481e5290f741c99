//! The habits of a client's library: a few bits of each connection, set by the handshake and by each request.

use ostler_proto::{connect::ConnectRequest, id::SessionId, op::Op, path, request::Request};

/// The requests after the handshake among which the question for the configuration is looked for.
pub(crate) const FIRST_REQUESTS: u64 = 8;

/// The handshake and the requests of a connection, in 16 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Habits {
    /// A bit for each operation, see [`Habits::has_asked`].
    asked: u64,
    /// The first positive xid; 0 before.
    pub first_xid: i32,
    /// The flag for read-only servers in the handshake: 0 if it is missing, 1 for no and 2 for yes.
    flag: u8,
    /// The client came back with a session.
    pub came_back: bool,
    /// One of the first requests was for the configuration of the ensemble.
    pub reads_config: bool,
}

impl Habits {
    /// Notes a handshake.
    pub(crate) fn shake_hands(&mut self, request: &ConnectRequest<'_>) {
        self.flag = request.read_only.map_or(0, |read_only| 1 + u8::from(read_only));
        self.came_back = request.session != SessionId::NONE;
    }

    /// Notes a request.
    pub(crate) fn ask(&mut self, xid: i32, code: i32) {
        self.asked |= bit(code);
        if self.first_xid == 0 && xid > 0 {
            self.first_xid = xid;
        }
    }

    /// Notes one of the first requests.
    pub(crate) fn begin(&mut self, request: &Request<'_>) {
        self.reads_config |= matches!(request, Request::GetData(read) if read.path == path::CONFIG);
    }

    /// Whether the client has asked for this operation.
    pub fn has_asked(&self, op: Op) -> bool {
        self.asked & bit(op.code()) != 0
    }

    /// Whether the client has asked for an operation that this server does not know.
    pub fn has_asked_unknown(&self) -> bool {
        self.asked & UNKNOWN != 0
    }

    /// The flag for read-only servers in the handshake; `None` if it was missing.
    pub fn read_only(&self) -> Option<bool> {
        (self.flag > 0).then_some(self.flag == 2)
    }
}

const UNKNOWN: u64 = 1 << 63;

/// The bit of an operation. Operations have the numbers from 1 to 22 and from 100 to 107, and -11.
fn bit(code: i32) -> u64 {
    match code {
        0..=31 => 1 << code,
        100..=127 => 1 << (code - 100 + 32),
        -11 => 1 << 62,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_bit_of_its_own() {
        assert!(size_of::<Habits>() <= 16);
        let codes: alloc::vec::Vec<i32> = (-20..200)
            .filter(|code| Op::from_code(*code).is_some_and(|op| op != Op::CreateSession))
            .collect();
        for code in &codes {
            let mut habits = Habits::default();
            habits.ask(7, *code);
            let asked: alloc::vec::Vec<i32> = codes
                .iter()
                .copied()
                .filter(|code| Op::from_code(*code).is_some_and(|op| habits.has_asked(op)))
                .collect();
            assert_eq!((asked, habits.has_asked_unknown()), (alloc::vec![*code], false));
        }
        let mut habits = Habits::default();
        habits.ask(-4, 4711);
        assert!(habits.has_asked_unknown() && habits.first_xid == 0);
    }
}
