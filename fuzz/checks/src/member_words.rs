//! Fuzzes the judgement of an ensemble from the four-letter words of its servers.

use ostler_explain::ensemble::{Observed, findings, four_letter::Words, quorum_count, verdict};

/// The answers of this many servers are judged together.
const SERVERS: usize = 3;

/// The input is split at zero bytes into `srvr`, `mntr` and `conf` of one server after the other.
pub fn check(bytes: &[u8]) {
    let texts: Vec<String> = bytes
        .splitn(SERVERS * 3, |byte| *byte == 0)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    let text = |at: usize| texts.get(at).cloned().unwrap_or_default();
    let observed = |server: usize| {
        let words = Words { srvr: text(server * 3), mntr: text(server * 3 + 1), conf: text(server * 3 + 2) };
        let answer = words.state().ok_or_else(|| "no answer of a server".to_owned());
        Observed { url: format!("server-{server}"), id: words.server_id(), answer }
    };
    let all: Vec<Observed> = (0..SERVERS).map(observed).collect();
    let found = findings(&all);
    let count = quorum_count(&all);
    let judged = verdict(&all, &found);
    let json = serde_json::to_vec(&(&all, &count, &judged)).expect("states have only numbers and strings");
    let told: usize = found.iter().map(|finding| finding.text().len()).sum();
    let most = (64 << 10) + bytes.len() * 200;
    assert!(json.len() + told <= most, "{} and {told} bytes", json.len());
}
