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
    fn only_a_server_that_serves_knows_what_is_committed() {
        let answer = "Zookeeper version: 3.9\nZxid: 0x200000007\nMode: follower\nNode count: 5\n";
        assert_eq!(read(answer), Committed::Through(Zxid(0x2_0000_0007)));
        assert_eq!(read(&answer.replace("follower", "read-only")), Committed::Unknown);
        assert_eq!(read("This ZooKeeper instance is not currently serving requests\n"), Committed::Unknown);
        assert_eq!(read(""), Committed::Unknown);
    }
}
