//! Notes about clients that are refused or come near a limit: of the last one to two hours, in bounded memory.

use super::hot::Halves;
use crate::input::Mono;
use alloc::{collections::VecDeque, vec::Vec};
use core::net::IpAddr;
use ostler_proto::error::ErrorCode;

/// A half of the time that the counts are of, ms.
const HALF_MS: u64 = 3_600_000;
/// The most addresses of large requests, and of timeouts that were cut down.
const ADDRESSES_MAX: usize = 64;

/// The key of a refused request: its operation number, the error, and the client's address.
pub type Refused = (i32, i32, IpAddr);

/// A client whose wish for a session timeout was not granted as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutTimeout {
    /// The client's address.
    pub address: IpAddr,
    /// The timeout that it wanted, ms.
    pub asked_ms: i32,
    /// The timeout that it got, ms.
    pub got_ms: i32,
}

/// The notes.
#[derive(Debug)]
pub(crate) struct ClientNotes {
    refused: Halves<Refused>,
    began: Mono,
    /// The largest request of each address.
    large: VecDeque<(IpAddr, usize)>,
    cut: VecDeque<CutTimeout>,
}

/// A server's notes about its clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientNotesReport {
    /// Refused requests with about the number of them, the most frequent first.
    pub refused: Vec<(Refused, u64)>,
    /// Addresses with large requests, and the size of the largest in bytes.
    pub large: Vec<(IpAddr, usize)>,
    /// Timeouts that were cut down.
    pub cut: Vec<CutTimeout>,
}

impl ClientNotes {
    pub(crate) fn new(now: Mono) -> ClientNotes {
        ClientNotes { refused: Halves::default(), began: now, large: VecDeque::new(), cut: VecDeque::new() }
    }

    /// A request is refused. Errors that are part of a program's work, such as NONODE, are not noted.
    pub(crate) fn refused(&mut self, now: Mono, error: ErrorCode, code: i32, address: IpAddr) {
        if !is_refusal(error) {
            return;
        }
        let turns = (now.0.saturating_sub(self.began.0) / HALF_MS).min(2);
        if turns > 0 {
            (0..turns).for_each(|_| self.refused.turn());
            self.began = now;
        }
        let key = (code, error.code(), address);
        self.refused.later.add(&key, || key);
    }

    /// A large request has come.
    pub(crate) fn large(&mut self, address: IpAddr, bytes: usize) {
        if let Some((_, most)) = self.large.iter_mut().find(|(of, _)| *of == address) {
            *most = bytes.max(*most);
            return;
        }
        if self.large.len() == ADDRESSES_MAX {
            self.large.pop_front();
        }
        self.large.push_back((address, bytes));
    }

    /// A client has got another timeout than it wanted.
    pub(crate) fn cut(&mut self, cut: CutTimeout) {
        if let Some(of) = self.cut.iter_mut().find(|of| of.address == cut.address) {
            *of = cut;
            return;
        }
        if self.cut.len() == ADDRESSES_MAX {
            self.cut.pop_front();
        }
        self.cut.push_back(cut);
    }

    pub(crate) fn report(&self, limit: usize) -> ClientNotesReport {
        let refused = self.refused.top(limit).into_iter().map(|(key, count, _)| (key, count));
        let mut large: Vec<(IpAddr, usize)> = self.large.iter().copied().collect();
        large.sort_unstable_by_key(|(_, bytes)| core::cmp::Reverse(*bytes));
        ClientNotesReport { refused: refused.collect(), large, cut: self.cut.iter().copied().collect() }
    }
}

/// Whether an error says that the client may not do this, or that the server does not.
fn is_refusal(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::NoAuth
            | ErrorCode::Unimplemented
            | ErrorCode::MarshallingError
            | ErrorCode::BadArguments
            | ErrorCode::InvalidAcl
            | ErrorCode::AuthFailed
            | ErrorCode::NotReadOnly
            | ErrorCode::EphemeralOnLocalSession
            | ErrorCode::ReconfigDisabled
            | ErrorCode::QuotaExceeded
            | ErrorCode::ThrottledOp
            | ErrorCode::SessionMoved
            | ErrorCode::SessionClosedRequireSaslAuth
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn refusals_are_counted_by_operation_error_and_address() {
        let mut notes = ClientNotes::new(Mono(0));
        for _ in 0..3 {
            notes.refused(Mono(1), ErrorCode::NoAuth, 4, address(1));
        }
        notes.refused(Mono(1), ErrorCode::NoNode, 4, address(1));
        notes.refused(Mono(1), ErrorCode::Unimplemented, 4711, address(2));
        let refused = notes.report(10).refused;
        assert_eq!(refused[0], ((4, ErrorCode::NoAuth.code(), address(1)), 3));
        assert_eq!(refused.len(), 2);
        notes.refused(Mono(HALF_MS + 5), ErrorCode::NoAuth, 4, address(3));
        assert_eq!(notes.report(10).refused.len(), 3);
        notes.refused(Mono(2 * HALF_MS + 5), ErrorCode::NoAuth, 4, address(3));
        assert_eq!(notes.report(10).refused, [((4, ErrorCode::NoAuth.code(), address(3)), 2)]);
    }

    #[test]
    fn the_addresses_are_bounded() {
        let mut notes = ClientNotes::new(Mono(0));
        for n in 0..1000 {
            notes.large(address(n), n as usize);
            notes.large(address(n), 7);
            notes.cut(CutTimeout { address: address(n), asked_ms: 1, got_ms: 2 });
            notes.cut(CutTimeout { address: address(n), asked_ms: 3, got_ms: 4 });
            notes.refused(Mono(0), ErrorCode::NoAuth, 1, address(n));
        }
        let report = notes.report(9999);
        assert_eq!((report.large.len(), report.cut.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
        assert_eq!(report.large[0], (address(999), 999));
        assert_eq!(report.cut[ADDRESSES_MAX - 1].asked_ms, 3);
        assert!(report.refused.len() <= super::super::hot::sketch::COUNTERS);
    }
}
