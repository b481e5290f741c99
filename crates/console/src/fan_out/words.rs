//! Asks a member by four-letter words at its port for clients: Java's servers have no console, and an admin port may be closed.

use super::{Member, now_ms};
use ostler_explain::{
    ensemble::{ServerState, four_letter::Words},
    records::Elections,
    witness::TimedRecord,
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The time for all words.
const WITHIN: Duration = Duration::from_secs(1);
/// The longest answer.
const ANSWER_MAX: u64 = 1 << 20;

/// The state of a member by its words. `None` if it does not answer, or is another server.
pub(crate) async fn state(member: &Member) -> Option<ServerState> {
    let clients = member.clients.as_ref()?;
    let ask = |what: &'static str| async move {
        let answer = timeout(WITHIN, word(clients, what)).await;
        answer.ok().and_then(Result::ok).unwrap_or_default()
    };
    let (srvr, mntr, conf) = tokio::join!(ask("srvr"), ask("mntr"), ask("conf"));
    let words = Words { srvr, mntr, conf };
    let mut state = words.state()?;
    match words.server_id() {
        Some(id) if id == member.id.0 => {}
        Some(_) => return None,
        // Without its number it can be anybody, unless the configuration names its address for clients.
        None if !member.has_own_clients => return None,
        None => state.id = member.id.0,
    }
    state.address = Some(ostler_explain::ensemble::four_letter::host_and_port(&clients.0, clients.1));
    Some(state)
}

/// The record of a member's elections by the word `elec`. `None` if it does not give it, or is another server.
pub(crate) async fn elections(member: &Member) -> Option<TimedRecord> {
    let clients = member.clients.as_ref()?;
    let asked_ms = now_ms();
    let text = timeout(WITHIN, word(clients, "elec")).await.ok()?.ok()?;
    let elections: Elections = serde_json::from_str(&text).ok()?;
    let is_sound = elections.server == member.id && elections.check().is_ok();
    is_sound.then(|| TimedRecord { elections, asked_ms, answered_ms: now_ms() })
}

async fn word((host, port): &(String, u16), word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((&**host, *port)).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut text = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
