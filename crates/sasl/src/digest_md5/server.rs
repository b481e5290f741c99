//! The server's half, as the one of Java decides (`com.sun.security.sasl.digest.DigestMD5Server`).

use super::{COUNT, DigestInput, Profile, UserHash, Users, directives};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use subtle::ConstantTimeEq;

/// Longer tokens are refused. A real one has some hundred bytes.
const TOKEN_MAX: usize = 16 << 10;

/// Why a login is refused. The client does not hear the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedLogin {
    /// The token cannot be read, or it lacks a part.
    #[error("the response is malformed")]
    Malformed,
    /// The response is for another service, another realm or another challenge.
    #[error("the response is for another server or another challenge")]
    Mismatch,
    /// The user is unknown, or the password is wrong.
    #[error("the user is unknown, or the password is wrong")]
    WrongPassword,
    /// The client wants to act as another user.
    #[error("the client wants to act as another user")]
    OtherUser,
    /// The login is over, whether it has succeeded or failed.
    #[error("the login is over already")]
    Over,
}

/// The answer to a token.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// Send this, and wait for the response.
    Challenge(Vec<u8>),
    /// The user has proven the password. Send this, which proves that the server knows it, too.
    Complete {
        /// The proof.
        token: Vec<u8>,
        /// The user's name.
        user: String,
    },
    /// The login has failed. It cannot be tried again on this connection.
    Refused(RefusedLogin),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    Challenged,
    Over,
}

/// One login.
#[derive(Debug)]
pub struct ServerExchange {
    profile: Profile,
    nonce: String,
    stage: Stage,
}

impl ServerExchange {
    /// `nonce` is a text that nobody can predict, of letters and digits.
    pub fn new(profile: Profile, nonce: String) -> ServerExchange {
        ServerExchange { profile, nonce, stage: Stage::Begin }
    }

    /// A token of the client has come. The first one has no meaning, as in Java.
    pub fn step(&mut self, token: &[u8], users: &Users) -> ServerStep {
        match self.stage {
            Stage::Begin => {
                self.stage = Stage::Challenged;
                ServerStep::Challenge(self.challenge())
            }
            Stage::Challenged => {
                self.stage = Stage::Over;
                self.check(token, users).unwrap_or_else(ServerStep::Refused)
            }
            Stage::Over => ServerStep::Refused(RefusedLogin::Over),
        }
    }

    /// Without `qop`, `maxbuf` and `cipher`: only the login is protected.
    fn challenge(&self) -> Vec<u8> {
        let (realm, nonce) = (self.profile.realm(), &self.nonce);
        format!("realm=\"{realm}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess").into_bytes()
    }

    fn check(&self, token: &[u8], users: &Users) -> Result<ServerStep, RefusedLogin> {
        if token.len() > TOKEN_MAX {
            return Err(RefusedLogin::Malformed);
        }
        let found = Response::read(token)?;
        let is_for_this = found.realm.as_deref().is_none_or(|realm| realm == self.profile.realm())
            && found.nonce == self.nonce
            && found.uri == self.profile.uri()
            && found.count == COUNT
            && found.qop.as_deref().is_none_or(|qop| qop == "auth");
        if !is_for_this {
            return Err(RefusedLogin::Mismatch);
        }
        // An unknown user costs the same time as a wrong password.
        let nobody = UserHash([0; 16]);
        let known = users.hash_of(&found.user);
        let input = DigestInput {
            secret: known.unwrap_or(&nobody),
            nonce: &self.nonce,
            cnonce: &found.cnonce,
            uri: self.profile.uri(),
            authzid: found.authzid.as_deref(),
        };
        let is_right = input.response("AUTHENTICATE").as_bytes().ct_eq(found.response.as_bytes());
        if known.is_none() || !bool::from(is_right) {
            return Err(RefusedLogin::WrongPassword);
        }
        if found.authzid.as_deref().is_some_and(|authzid| authzid != found.user) {
            return Err(RefusedLogin::OtherUser);
        }
        let token = format!("rspauth={}", input.response("")).into_bytes();
        Ok(ServerStep::Complete { token, user: found.user })
    }
}

/// The parts of a response that count.
struct Response {
    user: String,
    realm: Option<String>,
    nonce: String,
    cnonce: String,
    count: String,
    qop: Option<String>,
    uri: String,
    response: String,
    authzid: Option<String>,
}

impl Response {
    fn read(token: &[u8]) -> Result<Response, RefusedLogin> {
        let directives = directives(token).ok_or(RefusedLogin::Malformed)?;
        let find = |name: &str| {
            let mut found = directives.iter().filter(|(of, _)| of == name).map(|(_, value)| value);
            match (found.next(), found.next()) {
                (_, Some(_)) => Err(RefusedLogin::Malformed),
                (value, None) => Ok(value.map(ToString::to_string)),
            }
        };
        let need = |name: &str| find(name)?.ok_or(RefusedLogin::Malformed);
        Ok(Response {
            user: need("username")?,
            realm: find("realm")?,
            nonce: need("nonce")?,
            cnonce: need("cnonce")?,
            count: need("nc")?,
            qop: find("qop")?,
            uri: need("digest-uri")?,
            response: need("response")?,
            authzid: find("authzid")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest_md5::{SaslCredentials, is_proof, respond};

    const NONCE: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCD";

    fn users(profile: Profile) -> Users {
        Users::new(profile, [("bob", "bobsecret"), ("j\u{fc}rgen", "p\u{20ac}")])
    }

    fn begun(profile: Profile) -> (ServerExchange, Vec<u8>) {
        let mut exchange = ServerExchange::new(profile, NONCE.into());
        let ServerStep::Challenge(challenge) = exchange.step(b"anything", &users(profile)) else {
            panic!("the first token gets the challenge")
        };
        (exchange, challenge)
    }

    fn credentials(user: &str, password: &str) -> SaslCredentials {
        SaslCredentials { user: user.into(), password: password.into() }
    }

    #[test]
    fn the_challenge_is_that_of_java() {
        let expected = format!("realm=\"zk-sasl-md5\",nonce=\"{NONCE}\",charset=utf-8,algorithm=md5-sess");
        assert_eq!(begun(Profile::Clients).1, expected.into_bytes());
    }

    #[test]
    fn both_halves_understand_each_other() {
        for profile in [Profile::Clients, Profile::Quorum] {
            for (user, password) in [("bob", "bobsecret"), ("j\u{fc}rgen", "p\u{20ac}")] {
                let (mut exchange, challenge) = begun(profile);
                let answer = respond(profile, &credentials(user, password), &challenge, "c").unwrap();
                let ServerStep::Complete { token, user: known } =
                    exchange.step(&answer.token, &users(profile))
                else {
                    panic!("the login succeeds")
                };
                assert_eq!(known, user);
                assert!(is_proof(&token, &answer.proof));
                assert_eq!(
                    exchange.step(&answer.token, &users(profile)),
                    ServerStep::Refused(RefusedLogin::Over)
                );
            }
        }
    }

    #[test]
    fn unknown_users_and_wrong_passwords_look_alike() {
        for (user, password) in [("bob", "wrong"), ("eve", "bobsecret"), ("", "")] {
            let (mut exchange, challenge) = begun(Profile::Clients);
            let answer = respond(Profile::Clients, &credentials(user, password), &challenge, "c").unwrap();
            let refused = exchange.step(&answer.token, &users(Profile::Clients));
            assert_eq!(refused, ServerStep::Refused(RefusedLogin::WrongPassword));
            let again = exchange.step(&answer.token, &users(Profile::Clients));
            assert_eq!(again, ServerStep::Refused(RefusedLogin::Over), "there is no second try");
        }
    }

    #[test]
    fn a_response_for_something_else_is_refused() {
        let (_, challenge) = begun(Profile::Clients);
        let answer = respond(Profile::Clients, &credentials("bob", "bobsecret"), &challenge, "c").unwrap();
        let good = String::from_utf8(answer.token).unwrap();
        let refused = |token: &str| {
            let (mut exchange, _) = begun(Profile::Clients);
            match exchange.step(token.as_bytes(), &users(Profile::Clients)) {
                ServerStep::Refused(why) => why,
                step => panic!("{step:?} for {token}"),
            }
        };
        for (from, to, why) in [
            ("zookeeper/zk-sasl-md5", "zookeeper/other", RefusedLogin::Mismatch),
            ("nc=00000001", "nc=00000002", RefusedLogin::Mismatch),
            ("abcdef", "bcdefa", RefusedLogin::Mismatch),
            ("realm=\"zk-sasl-md5\"", "realm=\"other\"", RefusedLogin::Mismatch),
            ("qop=auth", "qop=auth-int", RefusedLogin::Mismatch),
            ("cnonce=\"c\"", "cnonce=\"d\"", RefusedLogin::WrongPassword),
            ("username=\"bob\"", "user=\"bob\"", RefusedLogin::Malformed),
            ("qop=auth", "username=\"bob\",qop=auth", RefusedLogin::Malformed),
            ("qop=auth", "qop=auth,authzid=\"ann\"", RefusedLogin::WrongPassword),
            ("charset=utf-8", "charset", RefusedLogin::Malformed),
        ] {
            assert!(good.contains(from), "{from}");
            assert_eq!(refused(&good.replace(from, to)), why, "{to}");
        }
        assert_eq!(refused(&"x".repeat(TOKEN_MAX + 1)), RefusedLogin::Malformed);
    }

    #[test]
    fn unknown_directives_and_spare_commas_do_not_matter() {
        let (mut exchange, challenge) = begun(Profile::Clients);
        let answer = respond(Profile::Clients, &credentials("bob", "bobsecret"), &challenge, "c").unwrap();
        let token = String::from_utf8(answer.token).unwrap().replace(",qop=auth", ", ,\t,x-more=\"1\"");
        let done = exchange.step(token.as_bytes(), &users(Profile::Clients));
        assert!(matches!(done, ServerStep::Complete { .. }), "{done:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_token_panics(token in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let (mut exchange, _) = begun(Profile::Clients);
            let step = exchange.step(&token, &users(Profile::Clients));
            proptest::prop_assert!(matches!(step, ServerStep::Refused(_)));
        }
    }
}
