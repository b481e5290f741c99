//! Fuzzes four-letter words: which bytes are a word, which words are allowed, and what they print for odd names.

use crate::script::Script;
use ostler_server::admin::four_letter::{
    EphemeralsOfSession, NamespaceQuota, ServerView, TELNET_CLOSE, TimeBucket, WatchesOfSession, Whitelist,
    Word, refusal, render,
};

/// The input has four bytes of a socket, a whitelist, and names of znodes.
pub fn check(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let choice = script.byte();
    let asked = i32::from_be_bytes([script.byte(), script.byte(), script.byte(), script.byte()]);
    let word = match Word::from_length(asked) {
        Some(word) => {
            assert_eq!(word.name().as_bytes(), asked.to_be_bytes());
            assert_ne!(asked, TELNET_CLOSE);
            word
        }
        // Most bytes are no word: then another word is printed.
        None => Word::ALL[usize::from(choice) % Word::ALL.len()],
    };
    let size = usize::from(script.byte());
    let list = String::from_utf8_lossy(script.take(size));
    let whitelist = Whitelist::new(Some(&list), choice & 128 != 0);
    assert!(whitelist.allows(Word::Srvr));
    if !whitelist.allows(word) {
        assert!(refusal(word).contains(word.name()));
    }
    let text = render(word, &view(&mut script));
    assert!(text.len() <= 40 * bytes.len() + (64 << 10), "{} bytes for {word:?}", text.len());
}

fn view(script: &mut Script<'_>) -> ServerView {
    let mut view = ServerView { serving: script.byte() & 1 == 0, ..ServerView::default() };
    view.version = name(script);
    view.zxid_last = u64::from(script.short()) << 48 | u64::from(script.short());
    view.latency.sum_ms = u64::from(script.short()) << 48;
    view.latency.count = script.byte().into();
    view.trace_mask = i64::from(script.short()) << 48;
    while !script.is_over() {
        let session_id = i64::from(script.short() as i16) << 48;
        match script.byte() % 4 {
            0 => view.watches.push(WatchesOfSession { session_id, paths: vec![name(script), name(script)] }),
            1 => view.ephemerals.push(EphemeralsOfSession { session_id, paths: vec![name(script)] }),
            2 => {
                // Up to the year 4000 or so.
                let expires_at_wall_ms = i64::from(script.short()) * 1_000_000_001;
                view.session_expiry.push(TimeBucket { expires_at_wall_ms, members: vec![session_id, 1] });
            }
            _ => view.gauges.quotas.push(NamespaceQuota {
                namespace: name(script),
                count_limit: Some(session_id),
                bytes_usage: Some(session_id.wrapping_neg()),
                ..NamespaceQuota::default()
            }),
        }
    }
    view
}

fn name(script: &mut Script<'_>) -> String {
    let size = usize::from(script.byte() & 31);
    String::from_utf8_lossy(script.take(size)).into_owned()
}
