//! SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's servers use it: with the quality of protection `auth`, and one exchange for
//! each connection.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::Write;
use md5::{Digest, Md5};

mod client;
mod server;
mod users;

pub use client::{ChallengeResponse, SaslCredentials, is_proof, respond};
pub use server::{RefusedLogin, ServerExchange, ServerStep};
pub use users::{Users, UsersError};

/// The two parties of a login. The realm and the digest-uri are the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Clients with servers.
    Clients,
    /// Servers of an ensemble with each other.
    Quorum,
}

impl Profile {
    /// The realm of the server.
    pub const fn realm(self) -> &'static str {
        match self {
            Profile::Clients => "zk-sasl-md5",
            Profile::Quorum => "zk-quorum-sasl-md5",
        }
    }

    /// The service and the realm.
    const fn uri(self) -> &'static str {
        match self {
            Profile::Clients => "zookeeper/zk-sasl-md5",
            Profile::Quorum => "zookeeper-quorum/zk-quorum-sasl-md5",
        }
    }
}

/// The nonce count: each nonce is used once.
const COUNT: &str = "00000001";

/// The user, realm and password, hashed: enough to speak for the user, and not the password.
#[derive(Clone, PartialEq, Eq)]
pub struct UserHash([u8; 16]);

/// Without the hash, which is as good as the password.
impl core::fmt::Debug for UserHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("UserHash(..)")
    }
}

impl UserHash {
    /// The hash of a user's password for a realm.
    pub fn new(user: &str, realm: &str, password: &str) -> UserHash {
        let mut secret = single_byte(user);
        secret.push(b':');
        secret.extend(single_byte(realm));
        secret.push(b':');
        secret.extend(single_byte(password));
        UserHash(Md5::digest(&secret).into())
    }

    /// Reads 32 hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<UserHash> {
        let mut hash = [0; 16];
        if digits.len() != 32 || !digits.is_ascii() {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(UserHash(hash))
    }
}

/// The values that the digests are made of.
struct DigestInput<'a> {
    secret: &'a UserHash,
    nonce: &'a str,
    cnonce: &'a str,
    uri: &'a str,
    /// The id that the client wants to act as, if it names one.
    authzid: Option<&'a str>,
}

impl DigestInput<'_> {
    /// The response value. `method` is `AUTHENTICATE` for the client's, and empty for the server's.
    fn response(&self, method: &str) -> String {
        let DigestInput { secret, nonce, cnonce, uri, authzid } = self;
        let mut first = secret.0.to_vec();
        first.extend(format!(":{nonce}:{cnonce}").bytes());
        if let Some(authzid) = authzid {
            first.push(b':');
            first.extend(single_byte(authzid));
        }
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
        let SaslCredentials { user, password } = credentials();
        let input = DigestInput {
            secret: &UserHash::new(&user, "elwood.innosoft.com", &password),
            authzid: None,
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
        let answer = respond(Profile::Clients, &credentials(), challenge, "c").unwrap();
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
            assert_eq!(respond(Profile::Clients, &credentials(), token.as_bytes(), "c"), None, "{token}");
        }
        assert_eq!(respond(Profile::Clients, &credentials(), &[0xff, b'='], "c"), None);
    }
}
