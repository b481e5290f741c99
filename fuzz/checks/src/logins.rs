//! Fuzzes what callers send before they are known: SASL tokens of clients and of servers, and the first bytes of a
//! connection that may be TLS.

use ostler_sasl::{
    digest_md5::{Profile, ServerExchange, ServerStep, Users},
    gssapi::{ContextStep, GssapiServer, SecurityContext},
    quorum::{Accepted, Acceptor, ExpectedLogin, HEADER, read_header},
};
use ostler_tls::detect::{FirstBytes, HEADER as RECORD_HEADER, detect};

/// A context that the caller has established without its key: it can wrap nothing.
struct WithoutKey {
    is_begun: bool,
}

impl SecurityContext for WithoutKey {
    fn establish(&mut self, token: &[u8]) -> Result<ContextStep, String> {
        let is_established = std::mem::replace(&mut self.is_begun, true) || token.len().is_multiple_of(2);
        Ok(ContextStep { token: token.len().is_multiple_of(3).then(|| b"answer".to_vec()), is_established })
    }

    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        Ok(message.to_vec())
    }

    fn unwrap(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("wrapped with another key".into())
    }

    fn initiator(&self) -> Result<String, String> {
        Ok("zkquorum/zk1@REALM".into())
    }
}

fn is_never_let_in(mut acceptor: Acceptor<WithoutKey>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
        let Ok((status, length)) = read_header(header) else { break };
        let Some((token, after)) = after.split_at_checked(length) else { break };
        assert!(!matches!(acceptor.heard(status, token), Accepted::Done(_)));
        rest = after;
    }
}

const NONCE: &str = "00112233445566778899aabbccddeeff00112233";

/// Whoever does not know the password is never let in. Bytes once taken for TLS, or for plain text, stay that.
pub fn check(bytes: &[u8]) {
    let users = Users::new(Profile::Clients, [("bob", "a password that nobody guesses")]);
    let mut exchange = ServerExchange::new(Profile::Clients, NONCE.into());
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Challenge(_)));
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Refused(_)));
    assert!(matches!(exchange.step(bytes, &users), ServerStep::Refused(_)));

    let users = users.into();
    is_never_let_in(Acceptor::new(ExpectedLogin::Digest { users, nonce: NONCE.into() }), bytes);
    let login = GssapiServer::new(WithoutKey { is_begun: false });
    is_never_let_in(Acceptor::new(ExpectedLogin::Gssapi { login, hosts: vec!["zk1".into()] }), bytes);

    let mut decided = None;
    for length in 0..=bytes.len().min(2 * RECORD_HEADER) {
        let found = detect(&bytes[..length]);
        assert!(decided.is_none_or(|before| before == found));
        assert!(length < RECORD_HEADER || found != FirstBytes::Undecided);
        decided = Some(found).filter(|found| *found != FirstBytes::Undecided);
    }
}
