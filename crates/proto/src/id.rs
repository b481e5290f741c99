//! Identities: bare integers on the wire, types here.

use core::fmt;

/// Transaction id: the epoch (a leader's time) in the upper 32 bits, the count of writes in it in the lower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zxid(pub u64);

impl Zxid {
    /// Before the first transaction.
    pub const ZERO: Zxid = Zxid(0);

    /// Puts epoch and counter together.
    pub fn new(epoch: Epoch, counter: u32) -> Zxid {
        Zxid(u64::from(epoch.0) << 32 | u64::from(counter))
    }

    /// As written on the wire and on disk.
    pub fn from_wire(value: i64) -> Zxid {
        Zxid(value as u64)
    }

    /// As written on the wire and on disk.
    pub fn to_wire(self) -> i64 {
        self.0 as i64
    }

    /// Whose epoch.
    pub fn epoch(self) -> Epoch {
        Epoch((self.0 >> 32) as u32)
    }

    /// The count of writes in its epoch.
    pub fn counter(self) -> u32 {
        self.0 as u32
    }

    /// The zxid after this one. A full counter moves the epoch on, so the order never breaks.
    pub fn next(self) -> Zxid {
        Zxid(self.0 + 1)
    }

    /// The zxid before this one; zero stays zero.
    pub fn previous(self) -> Zxid {
        Zxid(self.0.saturating_sub(1))
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// The epoch of one leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u32);

impl Epoch {
    /// No epoch is above this one: a zxid is signed on the wire, and a negative one stands for none.
    pub const LAST: Epoch = Epoch(i32::MAX as u32);

    /// The one after it, unless it is the last or claims to be above that.
    pub fn next(self) -> Option<Epoch> {
        (self < Epoch::LAST).then(|| Epoch(self.0 + 1))
    }
}

/// A server's number in its ensemble (`myid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ServerId(pub i64);

/// The byte below the server's in the id of a session with a secret password.
const SECRET_MARK: i64 = 0xff << 48;

/// A client session. The top byte is the id of the server that made it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionId(pub i64);

impl SessionId {
    /// No session: what a client sends that wants a new one.
    pub const NONE: SessionId = SessionId(0);

    /// An id for a session that a server makes: its number in the top byte, as upstream has it, so that ids of an
    /// ensemble never meet; below it 56 bits of chance, where upstream counts up from its clock. Of such an id nobody
    /// learns another, and it tells nothing of when the server started or how many sessions it has made.
    pub fn drawn(server: ServerId, chance: u64) -> SessionId {
        // With nothing below the top byte an id could be none, or i64::MIN, which marks container nodes as an owner.
        let below = (chance & (u64::MAX >> 8)).max(1);
        let drawn = SessionId(server.0 << 56 | below as i64);
        if drawn.has_secret() { SessionId(drawn.0 ^ 1 << 48) } else { drawn }
    }

    /// The same, for a session whose password is made with a secret: all servers know it by the byte below the first.
    ///
    /// Where ids count up, these are the highest bits of a clock in ms that runs for 34 years: since the machine's start in
    /// Java, and since 2004 in servers of earlier versions.
    pub fn drawn_with_secret(server: ServerId, chance: u64) -> SessionId {
        SessionId(server.0 << 56 | SECRET_MARK | (chance & (u64::MAX >> 16)) as i64)
    }

    /// Whether the session's password is made with a secret, and does not follow from the id alone.
    pub fn has_secret(self) -> bool {
        self.0 & SECRET_MARK == SECRET_MARK
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// A client's number for a request, echoed in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Xid(pub i32);

impl Xid {
    /// Watch events.
    pub const NOTIFICATION: Xid = Xid(-1);
    /// Pings and their replies.
    pub const PING: Xid = Xid(-2);
    /// Auth packets.
    pub const AUTH: Xid = Xid(-4);
    /// Watches that a client sets again after a reconnect.
    pub const SET_WATCHES: Xid = Xid(-8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_counter_moves_the_epoch_on() {
        let last = Zxid::new(Epoch(4), u32::MAX);
        assert_eq!(last.next(), Zxid::new(Epoch(5), 0));
        assert!(last < last.next());
    }

    #[test]
    fn a_session_id_carries_the_server_and_chance() {
        let drawn = |server, chance| SessionId::drawn(ServerId(server), chance).0;
        assert_eq!(drawn(1, 0xabcd_ef01_2345_6789), 0x01cd_ef01_2345_6789);
        assert_eq!(drawn(255, u64::MAX) as u64, 0xfffe_ffff_ffff_ffff, "this one would have a secret");
        assert_eq!(drawn(128, 7 << 56), i64::MIN + 1, "the owner of a container is no session");
        assert_eq!(drawn(256, 0), 1, "no session is no session");
        let secret = SessionId::drawn_with_secret(ServerId(3), 0xabcd_ef01_2345_6789);
        assert_eq!(secret.0, 0x03ff_ef01_2345_6789);
        assert!(secret.has_secret() && !SessionId(drawn(3, u64::MAX)).has_secret());
    }
}
