//! Asks servers for their records.

use ostler_explain::{
    records::{Elections, Implausible},
    witness::{TimedRecord, Witness, witnesses},
};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const PATIENCE: Duration = Duration::from_secs(3);
/// Above any record that a server keeps.
const ANSWER_MAX: u64 = 64 << 20;

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
    #[error("answered what no server answers: {0}")]
    Implausible(Implausible),
}

/// Asks all at once. Each server once, even if it is named twice.
pub(crate) fn all(servers: &[String]) -> (Vec<Witness>, Vec<(String, String)>) {
    let answers: Vec<Result<TimedRecord, Silence>> = thread::scope(|scope| {
        let asked: Vec<_> = servers.iter().map(|server| scope.spawn(|| one(server))).collect();
        let ended = |_| Err(Silence::Unreachable(io::ErrorKind::Other.into()));
        asked.into_iter().map(|answer| answer.join().unwrap_or_else(ended)).collect()
    });
    let (mut heard, mut silent) = (Vec::new(), Vec::new());
    for (server, answer) in servers.iter().zip(answers) {
        match answer {
            Ok(answer) => heard.push(answer),
            Err(silence) => silent.push((server.clone(), silence.to_string())),
        }
    }
    (witnesses(heard), silent)
}

fn one(server: &str) -> Result<TimedRecord, Silence> {
    let mut stream = connect(server).map_err(Silence::Unreachable)?;
    let asked_ms = wall_ms();
    let text = exchange(&mut stream).map_err(Silence::Unreachable)?;
    let answered_ms = wall_ms();
    let elections = read(&text)?;
    elections.check().map_err(Silence::Implausible)?;
    Ok(TimedRecord { elections, asked_ms, answered_ms })
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

pub(super) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_has_its_reasons() {
        assert!(matches!(read(""), Err(Silence::Unknown)));
        let refused = "elec is not executed because it is not in the whitelist.\n";
        assert!(matches!(read(refused), Err(Silence::NotAllowed)));
        assert!(matches!(read("imok"), Err(Silence::Unreadable(_))));
    }
}
