//! The client's half.

use super::{COUNT, DigestInput, Profile, UserHash, directives, quoted};
use alloc::{format, string::String, vec::Vec};

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
pub fn respond(
    profile: Profile,
    credentials: &SaslCredentials,
    challenge: &[u8],
    cnonce: &str,
) -> Option<ChallengeResponse> {
    let directives = directives(challenge)?;
    let find = |key: &str| directives.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str());
    let (nonce, realm) = (find("nonce")?, find("realm").unwrap_or_default());
    if find("algorithm") != Some("md5-sess")
        || !find("qop").unwrap_or("auth").split(',').any(|qop| qop.trim() == "auth")
    {
        return None;
    }
    let SaslCredentials { user, password } = credentials;
    let (secret, uri) = (UserHash::new(user, realm, password), profile.uri());
    let input = DigestInput { secret: &secret, nonce, cnonce, uri, authzid: None };
    let token = format!(
        "charset=utf-8,username={},realm={},nonce={},nc={COUNT},cnonce=\"{cnonce}\",digest-uri=\"{uri}\",\
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
