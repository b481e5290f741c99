//! Asks a server how far its history is committed.

use ostler_proto::id::Zxid;
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(3);
/// Above any answer to `srvr`.
const LONGEST_ANSWER: u64 = 64 << 10;

/// A server's answer about its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// The server has applied its history up to this transaction, and a server applies only what is committed.
    Through(Zxid),
    /// The server does not serve now, or in read-only mode. Then its tree can have transactions that are not committed.
    Unknown,
}

/// The least number of transactions in an epoch after which a leader moves on in place (`epochLength`).
const MOVES_AFTER: u32 = 1000;

/// Reads from a later epoch in a log which transactions before it are committed.
///
/// A leader that was elected had all that came before its epoch, or the server would not have kept it. But a leader at the
/// end of its counter moves on to the next epoch in place, and may log `(e+1, 1)` before the last transactions of `e` are
/// committed. It begins no such move before the last one is over, so all before the first transaction of `e` is committed
/// then. The move is always to the very next epoch, and only after a long one: all others are elections.
#[derive(Debug)]
pub(crate) struct EpochBorder {
    /// The last transaction before the epoch of the log's end. `None` if it is not known.
    before: Option<Zxid>,
}

impl EpochBorder {
    pub(crate) fn new(before: Option<Zxid>) -> EpochBorder {
        EpochBorder { before }
    }

    /// The transaction up to which all is committed because `next` follows `last` in the log, if that shows it.
    pub(crate) fn pass(&mut self, last: Zxid, next: Zxid) -> Option<Zxid> {
        if next.epoch() <= last.epoch() {
            return None;
        }
        let before = self.before.replace(last);
        let may_be_move = last.counter() >= MOVES_AFTER && last.epoch().next() == Some(next.epoch());
        if may_be_move { before } else { Some(last) }
    }
}

/// Asks the server at this client address by the four-letter word `srvr`, which servers allow by default.
pub(crate) fn ask(address: &str) -> io::Result<Committed> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE).and_then(exchange) {
            Ok(text) => return Ok(read(&text)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn exchange(mut stream: TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"srvr")?;
    let mut text = String::new();
    stream.take(LONGEST_ANSWER).read_to_string(&mut text)?;
    Ok(text)
}

fn read(text: &str) -> Committed {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let serves = value("Mode:").is_some_and(|mode| mode != "read-only");
    match value("Zxid:").and_then(crate::part::parse_zxid) {
        Some(zxid) if serves => Committed::Through(zxid),
        _ => Committed::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_election_confirms_the_end_of_an_epoch() {
        let at = |epoch, counter| Zxid::new(ostler_proto::id::Epoch(epoch), counter);
        let mut border = EpochBorder::new(None);
        assert_eq!(border.pass(at(1, 5000), at(1, 5001)), None);
        assert_eq!(border.pass(at(1, 5001), at(2, 1)), None, "it may have moved in place");
        assert_eq!(border.pass(at(2, 1000), at(3, 1)), Some(at(1, 5001)));
        assert_eq!(border.pass(at(3, 999), at(4, 1)), Some(at(3, 999)), "too short for a move");
        assert_eq!(border.pass(at(4, 5000), at(6, 1)), Some(at(4, 5000)), "no move leaves an epoch out");
    }

    /// A server takes no shorter `epochLength`, so no leader moves on in place before that.
    #[test]
    fn the_least_length_of_an_epoch_is_that_of_the_server() {
        let source = include_str!("../../server/src/boot/options.rs");
        let mut lines = source.lines().filter_map(|line| line.strip_prefix("const EPOCH_LENGTH_MIN: u32 = "));
        let least =
            lines.next().expect("the server has this constant").trim_end_matches(';').replace('_', "");
        assert_eq!(least.parse(), Ok(MOVES_AFTER));
    }

    #[test]
    fn an_epoch_of_the_least_length_may_end_by_a_move() {
        let mut border = EpochBorder::new(None);
        let at = |epoch, counter| Zxid::new(ostler_proto::id::Epoch(epoch), counter);
        assert_eq!(border.pass(at(1, MOVES_AFTER), at(2, 1)), None);
        assert_eq!(border.pass(at(2, MOVES_AFTER - 1), at(3, 1)), Some(at(2, MOVES_AFTER - 1)));
    }

    #[test]
    fn only_a_server_that_serves_knows_what_is_committed() {
        let answer = "Zookeeper version: 3.9\nZxid: 0x200000007\nMode: follower\nNode count: 5\n";
        assert_eq!(read(answer), Committed::Through(Zxid(0x2_0000_0007)));
        assert_eq!(read(&answer.replace("follower", "read-only")), Committed::Unknown);
        assert_eq!(read("This ZooKeeper instance is not currently serving requests\n"), Committed::Unknown);
        assert_eq!(read(""), Committed::Unknown);
    }
}
