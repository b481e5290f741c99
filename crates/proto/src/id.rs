//! Ids of transactions, epochs, servers, sessions and requests. On the wire they are plain integers.

use core::fmt;

/// The id of a transaction: the epoch in the upper 32 bits, the number of the transaction within it in the lower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zxid(pub u64);

impl Zxid {
    /// The zxid of a server without transactions.
    pub const ZERO: Zxid = Zxid(0);

    /// The zxid of transaction `counter` in `epoch`.
    pub fn new(epoch: Epoch, counter: u32) -> Zxid {
        Zxid(u64::from(epoch.0) << 32 | u64::from(counter))
    }

    /// The zxid of a number on the wire or on disk.
    pub fn from_wire(value: i64) -> Zxid {
        Zxid(value as u64)
    }

    /// The number that stands for the zxid on the wire and on disk.
    pub fn to_wire(self) -> i64 {
        self.0 as i64
    }

    /// The epoch of the leader that proposed the transaction.
    pub fn epoch(self) -> Epoch {
        Epoch((self.0 >> 32) as u32)
    }

    /// The number of the transaction within its epoch.
    pub fn counter(self) -> u32 {
        self.0 as u32
    }

    /// The zxid after this one. A counter that overflows increments the epoch, so a later zxid is always greater.
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

/// The number of a leader's time in office.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Epoch(pub u32);

impl Epoch {
    /// The highest epoch. A zxid is signed on the wire, and a negative one means that there is none.
    pub const LAST: Epoch = Epoch(i32::MAX as u32);

    /// The epoch after this one. `None` from [`Epoch::LAST`] on.
    pub fn next(self) -> Option<Epoch> {
        (self < Epoch::LAST).then(|| Epoch(self.0 + 1))
    }
}

/// A server's number in its ensemble (`myid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ServerId(pub i64);

/// The second byte, all ones, in the id of a session whose password is made with a secret.
const SECRET_MARK: i64 = 0xff << 48;

/// The id of a client session. The top byte is the id of the server that made the session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionId(pub i64);

impl SessionId {
    /// No session. A client that wants a new session sends this id.
    pub const NONE: SessionId = SessionId(0);

    /// A random id for a new session. The top byte is the id of `server`, as upstream has it, so no two servers of an
    /// ensemble make the same id. The other 56 bits are from `random`, where upstream counts up from its clock. So an
    /// id shows neither the id of another session, nor when the server started, nor how many sessions it has made.
    #[doc(hidden)]
    pub fn random(server: ServerId, random: u64) -> SessionId {
        // With only zeros below the top byte the id could be `NONE`, or i64::MIN, the owner of container nodes.
        let below = (random & (u64::MAX >> 8)).max(1);
        let id = SessionId(server.0 << 56 | below as i64);
        if id.has_secret() { SessionId(id.0 ^ 1 << 48) } else { id }
    }

    /// A random id for a session whose password is made with a secret. All servers recognize such an id by its second
    /// byte, which is 255.
    ///
    /// An id of a server that counts up has 255 there only after 34 years of its clock, in ms. In Java the clock starts
    /// with the machine, in earlier versions of Ostler in 2004.
    #[doc(hidden)]
    pub fn random_with_secret(server: ServerId, random: u64) -> SessionId {
        SessionId(server.0 << 56 | SECRET_MARK | (random & (u64::MAX >> 16)) as i64)
    }

    /// Whether the session's password is made with a secret. Otherwise it follows from the id alone.
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

/// The number that a client gives to a request. The reply has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Xid(pub i32);

impl Xid {
    /// The number of watch events.
    pub const NOTIFICATION: Xid = Xid(-1);
    /// The number of pings and of their replies.
    pub const PING: Xid = Xid(-2);
    /// The number of auth packets.
    pub const AUTH: Xid = Xid(-4);
    /// The number of the request that sets a client's watches again after a reconnect.
    pub const SET_WATCHES: Xid = Xid(-8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflowing_counter_increments_the_epoch() {
        let last = Zxid::new(Epoch(4), u32::MAX);
        assert_eq!(last.next(), Zxid::new(Epoch(5), 0));
        assert!(last < last.next());
    }

    #[test]
    fn a_session_id_has_the_server_in_its_top_byte_and_random_bits_below() {
        let random = |server, random| SessionId::random(ServerId(server), random).0;
        assert_eq!(random(1, 0xabcd_ef01_2345_6789), 0x01cd_ef01_2345_6789);
        assert_eq!(
            random(255, u64::MAX) as u64,
            0xfffe_ffff_ffff_ffff,
            "with this id it would have a secret"
        );
        assert_eq!(random(128, 7 << 56), i64::MIN + 1, "i64::MIN is the owner of containers");
        assert_eq!(random(256, 0), 1, "0 is SessionId::NONE");
        let secret = SessionId::random_with_secret(ServerId(3), 0xabcd_ef01_2345_6789);
        assert_eq!(secret.0, 0x03ff_ef01_2345_6789);
        assert!(secret.has_secret() && !SessionId(random(3, u64::MAX)).has_secret());
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Zxids and sessions in JSON are texts, `0x100000002`: most readers of JSON take numbers for doubles.
#[cfg(feature = "serde")]
mod as_text {
    use super::{SessionId, Zxid};
    use alloc::string::String;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    impl Serialize for Zxid {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(&format_args!("{:#x}", self.0))
        }
    }

    impl<'a> Deserialize<'a> for Zxid {
        fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Zxid, D::Error> {
            let text = String::deserialize(from)?;
            number(&text).map(Zxid).ok_or_else(|| D::Error::custom(format_args!("{text} is no zxid")))
        }
    }

    impl Serialize for SessionId {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }

    impl<'a> Deserialize<'a> for SessionId {
        fn deserialize<D: Deserializer<'a>>(from: D) -> Result<SessionId, D::Error> {
            let text = String::deserialize(from)?;
            let id = number(&text).map(|number| SessionId(number as i64));
            id.ok_or_else(|| D::Error::custom(format_args!("{text} is no session id")))
        }
    }

    fn number(text: &str) -> Option<u64> {
        text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    }
}
