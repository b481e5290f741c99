//! Asks a server how it is, with four-letter words.

use ostler_server::admin::four_letter::NOT_SERVING;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// A running server answers within this time, also on a busy machine.
const PATIENCE: Duration = Duration::from_millis(400);

/// The state of a server, by its answers to four-letter words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerState {
    /// No process listens at its client port (yet).
    Refused,
    /// The server accepts connections and does not answer.
    Silent,
    /// The server has no leader.
    NotServing,
    Serving(Serving),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Serving {
    pub(super) mode: Mode,
    /// The last zxid that the server has applied.
    pub(super) zxid: u64,
    /// The number of connections of clients.
    pub(super) connections: u64,
    /// The number in the whole ensemble, as this server knows it; `None` if `mntr` is switched off.
    pub(super) sessions: Option<u64>,
}

/// The part that a serving server has in the ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Leader,
    Follower,
    Observer,
    Standalone,
    /// The server has no leader, and serves read-only clients.
    ReadOnly,
}

/// Asks a server. Takes at most a little longer than [`PATIENCE`].
pub(super) async fn ask(server: SocketAddr) -> ServerState {
    let both = async {
        let srvr = word(server, "srvr").await?;
        let mntr = if srvr.contains(NOT_SERVING) { String::new() } else { word(server, "mntr").await? };
        io::Result::Ok((srvr, mntr))
    };
    match timeout(PATIENCE, both).await {
        Ok(Ok((srvr, mntr))) => understood(&srvr, &mntr),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => ServerState::Refused,
        _ => ServerState::Silent,
    }
}

async fn word(server: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn understood(srvr: &str, mntr: &str) -> ServerState {
    if srvr.contains(NOT_SERVING) {
        return ServerState::NotServing;
    }
    serving(srvr, mntr).map_or(ServerState::Silent, ServerState::Serving)
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
    fn answers_to_four_letter_words_are_read() {
        let srvr = "Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.5/3\nReceived: 3\nSent: 2\nConnections: 5\n\
            Outstanding: 0\nZxid: 0x30000000a\nMode: leader\nProposal sizes last/min/max: 48/48/48\nNode count: 4\n";
        let mntr = "zk_version\t3.9.5\nzk_global_sessions\t7\nzk_local_sessions\t0\n";
        let expected = Serving { mode: Mode::Leader, zxid: 0x3_0000_000a, connections: 4, sessions: Some(7) };
        assert_eq!(understood(srvr, mntr), ServerState::Serving(expected.clone()));
        let without = Serving { sessions: None, ..expected };
        assert_eq!(understood(srvr, "mntr is not executed\n"), ServerState::Serving(without));
        assert_eq!(understood(NOT_SERVING, ""), ServerState::NotServing);
        assert_eq!(understood("", ""), ServerState::Silent);
        assert_eq!(understood(&srvr.replace("leader", "king"), mntr), ServerState::Silent);
    }
}
