//! Fuzzes a server's SASL tokens as a client reads them.

use ostler_sasl::digest_md5::{ChallengeResponse, Profile, SaslCredentials, directives, is_proof, respond};

const CNONCE: &str = "00112233445566778899aabbccddeeff";

/// The answer to a challenge repeats the challenge's nonce and realm. The client accepts only the right proof.
pub fn check(token: &[u8]) {
    let credentials = SaslCredentials { user: "us\"er\\".into(), password: "p\u{e9}".into() };
    let Some(ChallengeResponse { token: answered, proof }) =
        respond(Profile::Clients, &credentials, token, CNONCE)
    else {
        return;
    };
    let asked = directives(token).expect("a challenge that has an answer is understood");
    let said = directives(&answered).expect("what was written is read");
    let value = |of: &[(String, String)], key: &str| {
        of.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    };
    assert_eq!(value(&said, "username"), Some(credentials.user));
    assert_eq!(value(&said, "nonce"), value(&asked, "nonce"));
    assert_eq!(value(&said, "realm"), Some(value(&asked, "realm").unwrap_or_default()));
    assert_eq!(value(&said, "cnonce").as_deref(), Some(CNONCE));
    assert_eq!(value(&said, "qop").as_deref(), Some("auth"));
    let response = value(&said, "response").expect("an answer has its response");
    assert!(response.len() == 32 && response.bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert_ne!(response, proof, "a server that repeats the answer proves nothing");
    assert!(is_proof(format!("rspauth={proof}").as_bytes(), &proof));
    assert!(!is_proof(&answered, &proof) && !is_proof(format!("rspauth={}", &proof[1..]).as_bytes(), &proof));
}
