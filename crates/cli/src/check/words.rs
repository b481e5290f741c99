//! Asks a server by its four-letter words.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(3);
/// Above any answer that is needed here.
const ANSWER_MAX: u64 = 4 << 20;

/// The answer to one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The text.
    Text(String),
    /// The word is not in the whitelist of the server.
    NotAllowed,
    /// No answer, with the reason.
    None(String),
}

impl Answer {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Answer::Text(text) => Some(text),
            Answer::NotAllowed | Answer::None(_) => None,
        }
    }
}

/// Asks the server at `host:port`.
pub(super) fn ask(host: &str, port: u16, word: &str) -> Answer {
    match exchange(host, port, word) {
        Ok(text) if text.contains("is not executed because it is not in the whitelist") => Answer::NotAllowed,
        Ok(text) if text.is_empty() => Answer::None("it closed the connection without an answer".to_owned()),
        Ok(text) => Answer::Text(text),
        Err(error) => Answer::None(error.to_string()),
    }
}

fn exchange(host: &str, port: u16, word: &str) -> io::Result<String> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return talk(stream, word),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn talk(mut stream: TcpStream, word: &str) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(word.as_bytes())?;
    // A server may have closed the connection already, with its answer sent.
    let _ = stream.shutdown(Shutdown::Write);
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while (bytes.len() as u64) < ANSWER_MAX && Instant::now() < until {
        match stream.read(&mut piece)? {
            0 => break,
            got => bytes.extend_from_slice(&piece[..got]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of a line `key=value`.
pub(super) fn value<'a>(conf: &'a str, key: &str) -> Option<&'a str> {
    conf.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
}

/// The version in the first line of `srvr`, without the commit: `3.9.5`.
pub(super) fn version(srvr: &str) -> Option<&str> {
    let line = srvr.lines().find_map(|line| line.strip_prefix("Zookeeper version: "))?;
    line.split([',', ' ']).next().filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::TcpListener, thread};

    #[test]
    fn values_are_read_from_lines() {
        let conf = "clientPort=2181\ntickTime=2000\nserver.1=a:1:2\n";
        assert_eq!(value(conf, "tickTime"), Some("2000"));
        assert_eq!(value(conf, "tick"), None);
        assert_eq!(version("Zookeeper version: 3.9.5-293c, built on 2026\nMode: leader"), Some("3.9.5-293c"));
        assert_eq!(version("This ZooKeeper instance is not currently serving requests\n"), None);
    }

    #[test]
    fn each_kind_of_answer_is_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = ["conf is not executed because it is not in the whitelist.\n", "tickTime=5\n", ""];
        let server = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(ask("127.0.0.1", port, "conf"), Answer::NotAllowed);
        assert_eq!(ask("127.0.0.1", port, "conf"), Answer::Text("tickTime=5\n".to_owned()));
        assert!(matches!(ask("127.0.0.1", port, "conf"), Answer::None(_)));
        server.join().unwrap();
        assert!(matches!(ask("127.0.0.1", port, "conf"), Answer::None(_)));
    }
}
