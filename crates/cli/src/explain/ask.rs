//! Asks servers for their records.

use ostler_server::admin::elections::Elections;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const PATIENCE: Duration = Duration::from_secs(3);
/// Above any record that a server keeps.
const ANSWER_MAX: u64 = 64 << 20;

/// A server that has answered.
#[derive(Debug, Clone)]
pub(crate) struct Witness {
    pub(crate) elections: Elections,
    /// By how much its clock is ahead of that of the first server that answered, if that can be told.
    pub(crate) ahead_ms: i64,
    /// How far its times may be off, beside that.
    pub(crate) unsure_ms: i64,
}

/// Why a server says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Silence {
    #[error("did not answer: {0}")]
    Unreachable(io::Error),
    #[error("does not allow the word elec: add it to 4lw.commands.whitelist in its zoo.cfg")]
    NotAllowed,
    #[error("does not know the word elec: it is no Ostler server, or an older one")]
    Unknown,
    #[error("answered what cannot be read: {0}")]
    Unreadable(serde_json::Error),
}

/// An answer, and the clock here around it.
struct Answer {
    elections: Elections,
    asked_ms: i64,
    answered_ms: i64,
}

impl Answer {
    fn ahead_ms(&self) -> i64 {
        self.elections.now_ms - (self.asked_ms + self.answered_ms) / 2
    }

    fn unsure_ms(&self) -> i64 {
        (self.answered_ms - self.asked_ms) / 2 + 1
    }
}

/// Asks all at once. Each server once, even if it is named twice.
pub(crate) fn all(servers: &[String]) -> (Vec<Witness>, Vec<(String, Silence)>) {
    let answers: Vec<Result<Answer, Silence>> = thread::scope(|scope| {
        let asked: Vec<_> = servers.iter().map(|server| scope.spawn(|| one(server))).collect();
        let ended = |_| Err(Silence::Unreachable(io::ErrorKind::Other.into()));
        asked.into_iter().map(|answer| answer.join().unwrap_or_else(ended)).collect()
    });
    let (mut heard, mut silent): (Vec<Answer>, Vec<_>) = (Vec::new(), Vec::new());
    for (server, answer) in servers.iter().zip(answers) {
        match answer {
            Ok(answer) if heard.iter().any(|other| other.elections.server == answer.elections.server) => {}
            Ok(answer) => heard.push(answer),
            Err(silence) => silent.push((server.clone(), silence)),
        }
    }
    (witnesses(heard), silent)
}

/// A clock counts as wrong only if the way there and back does not explain the difference.
fn witnesses(heard: Vec<Answer>) -> Vec<Witness> {
    let (first_ahead, first_unsure) =
        heard.first().map_or((0, 0), |first| (first.ahead_ms(), first.unsure_ms()));
    let witness = |answer: Answer| {
        let ahead = answer.ahead_ms() - first_ahead;
        let unsure_ms = answer.unsure_ms() + first_unsure;
        let ahead_ms = if ahead.abs() > unsure_ms { ahead } else { 0 };
        Witness { elections: answer.elections, ahead_ms, unsure_ms }
    };
    heard.into_iter().map(witness).collect()
}

fn one(server: &str) -> Result<Answer, Silence> {
    let mut stream = connect(server).map_err(Silence::Unreachable)?;
    let asked_ms = wall_ms();
    let text = exchange(&mut stream).map_err(Silence::Unreachable)?;
    let answered_ms = wall_ms();
    let elections = read(&text)?;
    Ok(Answer { elections, asked_ms, answered_ms })
}

fn read(text: &str) -> Result<Elections, Silence> {
    if text.is_empty() {
        return Err(Silence::Unknown);
    }
    if text.contains("not in the whitelist") {
        return Err(Silence::NotAllowed);
    }
    serde_json::from_str(text).map_err(Silence::Unreadable)
}

fn connect(server: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn exchange(stream: &mut TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"elec")?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    let _ = stream.shutdown(Shutdown::Both);
    Ok(text)
}

fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(now_ms: i64, asked_ms: i64, answered_ms: i64) -> Answer {
        let elections = Elections { now_ms, ..Elections::default() };
        Answer { elections, asked_ms, answered_ms }
    }

    #[test]
    fn a_clock_is_corrected_only_if_it_is_surely_wrong() {
        let heard = vec![answer(1_000, 998, 1_002), answer(1_003, 998, 1_002), answer(6_000, 998, 1_002)];
        let witnesses = witnesses(heard);
        let ahead: Vec<(i64, i64)> = witnesses.iter().map(|one| (one.ahead_ms, one.unsure_ms)).collect();
        assert_eq!(ahead, [(0, 6), (0, 6), (5_000, 6)]);
    }

    #[test]
    fn silence_has_its_reasons() {
        assert!(matches!(read(""), Err(Silence::Unknown)));
        let refused = "elec is not executed because it is not in the whitelist.\n";
        assert!(matches!(read(refused), Err(Silence::NotAllowed)));
        assert!(matches!(read("imok"), Err(Silence::Unreadable(_))));
    }
}
