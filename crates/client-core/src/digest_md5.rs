//! SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's servers use it: with the quality of protection `auth`, and one exchange for
//! each connection.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::Write;
use md5::{Digest, Md5};

/// The service part of ZooKeeper's digest-uri, and the host part, which is the same for all servers.
const URI: &str = "zookeeper/zk-sasl-md5";
/// The nonce count: each nonce is used once.
const COUNT: &str = "00000001";

/// A user's name and password for SASL DIGEST-MD5.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslCredentials {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
}

/// Without the secret, which must not appear in logs.
impl core::fmt::Debug for SaslCredentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SaslCredentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The client's response to a challenge, and the proof that the server must send back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeResponse {
    /// The token to send.
    pub token: Vec<u8>,
    /// The proof that shows that the server knows the password.
    pub proof: String,
}

/// Makes the response to a challenge; `None` if it is not a challenge of DIGEST-MD5.
pub fn respond(credentials: &SaslCredentials, challenge: &[u8], cnonce: &str) -> Option<ChallengeResponse> {
    let directives = directives(challenge)?;
    let find = |key: &str| directives.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str());
    let (nonce, realm) = (find("nonce")?, find("realm").unwrap_or_default());
    if find("algorithm") != Some("md5-sess")
        || !find("qop").unwrap_or("auth").split(',').any(|qop| qop.trim() == "auth")
    {
        return None;
    }
    let input = DigestInput { credentials, realm, nonce, cnonce, uri: URI };
    let SaslCredentials { user, .. } = credentials;
    let token = format!(
        "charset=utf-8,username={},realm={},nonce={},nc={COUNT},cnonce=\"{cnonce}\",digest-uri=\"{URI}\",\
         maxbuf=65536,response={},qop=auth",
        quoted(user),
        quoted(realm),
        quoted(nonce),
        input.response("AUTHENTICATE")
    );
    Some(ChallengeResponse { token: token.into_bytes(), proof: input.response("") })
}

/// Whether the server's last token has this proof.
pub fn is_proof(token: &[u8], proof: &str) -> bool {
    directives(token)
        .is_some_and(|found| found.iter().any(|(name, value)| name == "rspauth" && value == proof))
}

/// The values that the digests are made of.
struct DigestInput<'a> {
    credentials: &'a SaslCredentials,
    realm: &'a str,
    nonce: &'a str,
    cnonce: &'a str,
    uri: &'a str,
}

impl DigestInput<'_> {
    /// The response value. `method` is `AUTHENTICATE` for the client's, and empty for the server's.
    fn response(&self, method: &str) -> String {
        let DigestInput { credentials, realm, nonce, cnonce, uri } = self;
        let mut secret = single_byte(&credentials.user);
        secret.push(b':');
        secret.extend(single_byte(realm));
        secret.push(b':');
        secret.extend(single_byte(&credentials.password));
        let mut first = Md5::digest(&secret).to_vec();
        first.extend(format!(":{nonce}:{cnonce}").bytes());
        let first = hex(&Md5::digest(&first));
        let second = hex(&Md5::digest(format!("{method}:{uri}")));
        hex(&Md5::digest(format!("{first}:{nonce}:{COUNT}:{cnonce}:auth:{second}")))
    }
}

/// The bytes to hash for a text: Latin-1 if it has all of its characters, else UTF-8.
fn single_byte(text: &str) -> Vec<u8> {
    let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    latin.unwrap_or_else(|| text.as_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads `name=value` pairs, separated by commas; values may be quoted. `None` if the token is malformed.
pub fn directives(token: &[u8]) -> Option<Vec<(String, String)>> {
    let mut rest = core::str::from_utf8(token).ok()?.trim_start();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim_end().to_string(), &after[end..])
            }
        };
        found.push((name.trim().to_ascii_lowercase(), value));
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    Some(found)
}

/// The text up to the closing quote, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> SaslCredentials {
        SaslCredentials { user: "chris".into(), password: "secret".into() }
    }

    /// The example in section 4 of RFC 2831.
    #[test]
    fn responses_equal_those_of_the_rfcs_example() {
        let input = DigestInput {
            credentials: &credentials(),
            realm: "elwood.innosoft.com",
            nonce: "OA6MG9tEQGm2hh",
            cnonce: "OA6MHXh6VqTrRk",
            uri: "imap/elwood.innosoft.com",
        };
        assert_eq!(input.response("AUTHENTICATE"), "d388dad90d4bbd760a152321f2143af7");
        assert_eq!(input.response(""), "ea40f60335c427b5527b84dbabcdfffd");
    }

    #[test]
    fn challenges_with_quoted_values_are_read() {
        let challenge =
            br#"realm="a\"b, c",nonce="n=1",charset=utf-8, algorithm=md5-sess,qop="auth-conf, auth""#;
        let found = directives(challenge).unwrap();
        assert_eq!(found[0], ("realm".into(), "a\"b, c".into()));
        let answer = respond(&credentials(), challenge, "c").unwrap();
        let text = String::from_utf8(answer.token).unwrap();
        assert!(text.contains(r#"realm="a\"b, c",nonce="n=1""#), "{text}");
        assert!(is_proof(format!("rspauth={}", answer.proof).as_bytes(), &answer.proof));
        assert!(!is_proof(b"rspauth=0", &answer.proof));
    }

    #[test]
    fn malformed_and_unsupported_challenges_are_refused() {
        for token in
            ["", "nonce", "nonce=\"x", "nonce=1,algorithm=md5", "nonce=1,algorithm=md5-sess,qop=auth-int"]
        {
            assert_eq!(respond(&credentials(), token.as_bytes(), "c"), None, "{token}");
        }
        assert_eq!(respond(&credentials(), &[0xff, b'='], "c"), None);
    }
}
