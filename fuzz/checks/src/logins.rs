//! Fuzzes what callers send before they are known: SASL tokens of clients and of servers, and the first bytes of a
//! connection that may be TLS.

use ostler_sasl::{
    digest_md5::{Profile, ServerExchange, ServerStep, Users},
    quorum::{Accepted, Acceptor, HEADER, read_header},
};
use ostler_tls::detect::{FirstBytes, HEADER as RECORD_HEADER, detect};

const NONCE: &str = "00112233445566778899aabbccddeeff00112233";

/// Whoever does not know the password is never let in. Bytes once taken for TLS, or for plain text, stay that.
pub fn check(bytes: &[u8]) {
    let users = Users::new(Profile::Clients, [("bob", "a password that nobody guesses")]);
    let mut exchange = ServerExchange::new(Profile::Clients, NONCE.into());
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Challenge(_)));
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Refused(_)));
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Refused(_)));

    let mut acceptor = Acceptor::new(&users, NONCE.into());
    let mut rest = bytes;
    while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
        let Ok((status, length)) = read_header(header) else { break };
        let Some((token, after)) = after.split_at_checked(length) else { break };
        assert!(!matches!(acceptor.heard(status, token), Accepted::Done(_)));
        rest = after;
    }

    let mut decided = None;
    for length in 0..=bytes.len().min(2 * RECORD_HEADER) {
        let found = detect(&bytes[..length]);
        assert!(decided.is_none_or(|before| before == found));
        assert!(length < RECORD_HEADER || found != FirstBytes::Undecided);
        decided = Some(found).filter(|found| *found != FirstBytes::Undecided);
    }
}
