//! Fuzzes the explanation of elections from the records that other servers give.

use ostler_explain::{
    file::ElectionsFile,
    occasion::occasions,
    page::Page,
    records::Elections,
    witness::{TimedRecord, witnesses},
};

/// Records of this many servers are explained together.
const SERVERS: usize = 3;
/// An explanation has at most this many bytes for each byte of the records: their names become sentences.
const GROWTH: usize = 4_000;
const FRAME: usize = 64 << 10;

/// The input is split at zero bytes into the answers of servers, as JSON. Plausible ones are explained.
pub fn check(bytes: &[u8]) {
    let parts = bytes.splitn(SERVERS, |byte| *byte == 0);
    let records = parts.filter_map(|part| serde_json::from_slice::<Elections>(part).ok());
    let plausible = records.filter(|record| record.check().is_ok());
    let answers = plausible.map(|elections| {
        let asked_ms = elections.now_ms;
        TimedRecord { elections, asked_ms, answered_ms: asked_ms + 3 }
    });
    let witnesses = witnesses(answers.collect());
    let occasions = occasions(&witnesses);
    let page = Page::new(&occasions, &witnesses, &[]).to_string();
    let file = ElectionsFile::new(&occasions, occasions.len(), (&witnesses, Vec::new()), 0);
    let json = serde_json::to_vec(&file).expect("the file has only numbers and strings");
    let most = FRAME + bytes.len() * GROWTH;
    assert!(page.len() <= most && json.len() <= most, "{} and {} bytes", page.len(), json.len());
}
