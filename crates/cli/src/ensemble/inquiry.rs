//! Asks a server how it is, with four-letter words.

use ostler_server::admin::four_letter::NOT_SERVING;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// A server that runs answers in less, also on a busy machine.
const PATIENCE: Duration = Duration::from_millis(400);

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nobody listens (yet).
    Refused,
    /// It listens and says nothing.
    Silent,
    /// It has no leader.
    NotServing,
    Serving(Serving),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Serving {
    pub(super) mode: Mode,
    /// The last that it applied.
    pub(super) zxid: u64,
    /// Those of clients.
    pub(super) connections: u64,
    /// Of the whole ensemble, as this server knows them; `None` if `mntr` is switched off.
    pub(super) sessions: Option<u64>,
}

/// The part that a serving server has in the ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Leader,
    Follower,
    Observer,
    Standalone,
    /// It has no leader, and serves who is content to read.
    ReadOnly,
}

/// Never takes much longer than [`PATIENCE`].
pub(super) async fn ask(server: SocketAddr) -> Answer {
    let both = async {
        let srvr = word(server, "srvr").await?;
        let mntr = if srvr.contains(NOT_SERVING) { String::new() } else { word(server, "mntr").await? };
        io::Result::Ok((srvr, mntr))
    };
    match timeout(PATIENCE, both).await {
        Ok(Ok((srvr, mntr))) => understood(&srvr, &mntr),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Answer::Refused,
        _ => Answer::Silent,
    }
}

async fn word(server: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn understood(srvr: &str, mntr: &str) -> Answer {
    if srvr.contains(NOT_SERVING) {
        return Answer::NotServing;
    }
    serving(srvr, mntr).map_or(Answer::Silent, Answer::Serving)
}

fn serving(srvr: &str, mntr: &str) -> Option<Serving> {
    let of = |key: &str| srvr.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    let mode = match of("Mode")? {
        "leader" => Mode::Leader,
        "follower" => Mode::Follower,
        "observer" => Mode::Observer,
        "standalone" => Mode::Standalone,
        "read-only" => Mode::ReadOnly,
        _ => return None,
    };
    let zxid = u64::from_str_radix(of("Zxid")?.strip_prefix("0x")?, 16).ok()?;
    let asking = 1;
    let connections = of("Connections")?.parse::<u64>().ok()?.saturating_sub(asking);
    let sessions = mntr.lines().find_map(|line| line.strip_prefix("zk_global_sessions")?.trim().parse().ok());
    Some(Serving { mode, zxid, connections, sessions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        let srvr = "Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.5/3\nReceived: 3\nSent: 2\nConnections: 5\n\
            Outstanding: 0\nZxid: 0x30000000a\nMode: leader\nProposal sizes last/min/max: 48/48/48\nNode count: 4\n";
        let mntr = "zk_version\t3.9.5\nzk_global_sessions\t7\nzk_local_sessions\t0\n";
        let expected = Serving { mode: Mode::Leader, zxid: 0x3_0000_000a, connections: 4, sessions: Some(7) };
        assert_eq!(understood(srvr, mntr), Answer::Serving(expected.clone()));
        let without = Serving { sessions: None, ..expected };
        assert_eq!(understood(srvr, "mntr is not executed\n"), Answer::Serving(without));
        assert_eq!(understood(NOT_SERVING, ""), Answer::NotServing);
        assert_eq!(understood("", ""), Answer::Silent);
        assert_eq!(understood(&srvr.replace("leader", "king"), mntr), Answer::Silent);
    }
}
