//! SASL between servers: the packets, and both sides of a login by DIGEST-MD5 (`QuorumAuth`).
//!
//! The server that has opened the connection is the SASL client. Tokens travel in packets of their own, inside TLS if
//! there is TLS, before anything else of the protocol.

use crate::digest_md5::{
    Profile, RefusedLogin, SaslCredentials, ServerExchange, ServerStep, Users, is_proof, respond,
};
use alloc::{string::String, vec::Vec};

/// The first bytes of each packet.
pub const MAGIC: [u8; 8] = [0x5f, 0x24, 0x35, 0x01, 0x35, 0x01, 0xed, 0xcc];
/// The bytes before the token: [`MAGIC`], the status and the length.
pub const HEADER: usize = 16;
/// The most bytes of a token.
const TOKEN_MAX: i32 = 16 << 10;
/// The most tokens of one login, as upstream.
const ROUNDS_MAX: u32 = 5;

/// Where a login stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// More tokens follow.
    InProgress,
    /// The login has succeeded.
    Success,
    /// The login has failed; the connection is closed.
    Error,
}

/// Why a packet or a login is no good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuorumLoginError {
    /// These bytes are no packet of a login.
    #[error("the other server does not log in; set quorum.auth.learnerRequireSasl=true there")]
    NoPacket,
    /// The status or the length of a token is out of range.
    #[error("the packet of a login is malformed")]
    Malformed,
    /// The other server has refused the login.
    #[error(
        "the other server has refused the login: are the user and the password of QuorumLearner known there?"
    )]
    RefusedThere,
    /// The other server has not proven that it knows the password.
    #[error("the other server has not proven that it knows the password")]
    NotProven,
    /// The challenge is not one of DIGEST-MD5.
    #[error("the other server's challenge is not one of DIGEST-MD5")]
    OtherMechanism,
    /// This server has refused the login.
    #[error("the login is refused: {0}")]
    RefusedHere(RefusedLogin),
    /// There were too many tokens.
    #[error("the login takes more than {ROUNDS_MAX} tokens")]
    TooManyRounds,
}

/// The header of a packet: the status, and the number of bytes of the token that follows.
pub fn read_header(header: &[u8; HEADER]) -> Result<(Status, usize), QuorumLoginError> {
    let (magic, rest) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(QuorumLoginError::NoPacket);
    }
    let number = |at: usize| i32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
    let status = match number(0) {
        0 => Status::InProgress,
        1 => Status::Success,
        -1 => Status::Error,
        _ => return Err(QuorumLoginError::Malformed),
    };
    match number(4) {
        // A null token.
        -1 => Ok((status, 0)),
        length @ 0..=TOKEN_MAX => Ok((status, length as usize)),
        _ => Err(QuorumLoginError::Malformed),
    }
}

/// The bytes of a packet.
pub fn packet(status: Status, token: &[u8]) -> Vec<u8> {
    let status: i32 = match status {
        Status::InProgress => 0,
        Status::Success => 1,
        Status::Error => -1,
    };
    let mut bytes = Vec::with_capacity(HEADER + token.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&status.to_be_bytes());
    bytes.extend_from_slice(&(token.len() as i32).to_be_bytes());
    bytes.extend_from_slice(token);
    bytes
}

/// The side that has opened the connection.
#[derive(Debug)]
pub struct Learner<'a> {
    credentials: &'a SaslCredentials,
    cnonce: String,
    proof: Option<String>,
}

impl<'a> Learner<'a> {
    /// `cnonce` is a text that nobody can predict, of letters and digits.
    pub fn new(credentials: &'a SaslCredentials, cnonce: String) -> Learner<'a> {
        Learner { credentials, cnonce, proof: None }
    }

    /// The first packet.
    pub fn begin(&self) -> Vec<u8> {
        packet(Status::InProgress, b"")
    }

    /// A packet has come. Returns the next one to send; `None` if the login has succeeded.
    pub fn heard(&mut self, status: Status, token: &[u8]) -> Result<Option<Vec<u8>>, QuorumLoginError> {
        match (status, &self.proof) {
            (Status::Error, _) => Err(QuorumLoginError::RefusedThere),
            (Status::InProgress, None) => {
                let answer = respond(Profile::Quorum, self.credentials, token, &self.cnonce)
                    .ok_or(QuorumLoginError::OtherMechanism)?;
                self.proof = Some(answer.proof);
                Ok(Some(packet(Status::InProgress, &answer.token)))
            }
            (Status::Success, Some(proof)) if is_proof(token, proof) => Ok(None),
            (Status::Success | Status::InProgress, _) => Err(QuorumLoginError::NotProven),
        }
    }
}

/// The side that was called.
#[derive(Debug)]
pub struct Acceptor<'a> {
    users: &'a Users,
    exchange: ServerExchange,
    rounds: u32,
}

/// The answer of [`Acceptor`].
#[derive(Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Send this, and read the next packet.
    More(Vec<u8>),
    /// Send this: the login has succeeded.
    Done(Vec<u8>),
    /// Send this, and close the connection.
    Refused(Vec<u8>, QuorumLoginError),
}

impl<'a> Acceptor<'a> {
    /// `nonce` is a text that nobody can predict, of letters and digits.
    pub fn new(users: &'a Users, nonce: String) -> Acceptor<'a> {
        Acceptor { users, exchange: ServerExchange::new(Profile::Quorum, nonce), rounds: 0 }
    }

    /// A packet has come.
    pub fn heard(&mut self, status: Status, token: &[u8]) -> Accepted {
        self.rounds += 1;
        let refused = |why| Accepted::Refused(packet(Status::Error, b""), why);
        if status == Status::Error {
            return refused(QuorumLoginError::RefusedThere);
        }
        if self.rounds > ROUNDS_MAX {
            return refused(QuorumLoginError::TooManyRounds);
        }
        match self.exchange.step(token, self.users) {
            ServerStep::Challenge(challenge) => Accepted::More(packet(Status::InProgress, &challenge)),
            ServerStep::Complete { token, .. } => Accepted::Done(packet(Status::Success, &token)),
            ServerStep::Refused(why) => refused(QuorumLoginError::RefusedHere(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Status, &[u8]) {
        let (status, length) = read_header(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(bytes.len(), HEADER + length);
        (status, &bytes[HEADER..])
    }

    fn credentials(password: &str) -> SaslCredentials {
        SaslCredentials { user: "zk".into(), password: password.into() }
    }

    /// Runs a login to its end.
    fn log_in(password: &str) -> (Result<(), QuorumLoginError>, Accepted) {
        let users = Users::new(Profile::Quorum, [("zk", "secret")]);
        let own = credentials(password);
        let (mut learner, mut acceptor) = (Learner::new(&own, "c".into()), Acceptor::new(&users, "n".into()));
        let mut said = learner.begin();
        loop {
            let (status, token) = read(&said);
            let accepted = acceptor.heard(status, token);
            let (Accepted::More(answer) | Accepted::Done(answer) | Accepted::Refused(answer, _)) = &accepted;
            let (status, token) = read(answer);
            match learner.heard(status, token) {
                Ok(Some(next)) => said = next,
                Ok(None) => return (Ok(()), accepted),
                Err(why) => return (Err(why), accepted),
            }
        }
    }

    #[test]
    fn the_first_packet_is_that_of_java() {
        let own = credentials("secret");
        let first = Learner::new(&own, "c".into()).begin();
        assert_eq!(first, [0x5f, 0x24, 0x35, 1, 0x35, 1, 0xed, 0xcc, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn servers_with_the_same_password_let_each_other_in() {
        let (learner, acceptor) = log_in("secret");
        assert_eq!(learner, Ok(()));
        assert!(matches!(acceptor, Accepted::Done(_)));
    }

    #[test]
    fn a_server_with_another_password_is_refused() {
        let (learner, acceptor) = log_in("wrong");
        assert_eq!(learner, Err(QuorumLoginError::RefusedThere));
        let why = QuorumLoginError::RefusedHere(RefusedLogin::WrongPassword);
        assert_eq!(acceptor, Accepted::Refused(packet(Status::Error, b""), why));
    }

    #[test]
    fn a_server_that_proves_nothing_is_not_believed() {
        let own = credentials("secret");
        let mut learner = Learner::new(&own, "c".into());
        assert_eq!(learner.heard(Status::Success, b""), Err(QuorumLoginError::NotProven));
        let challenge = b"realm=\"zk-quorum-sasl-md5\",nonce=\"n\",charset=utf-8,algorithm=md5-sess";
        assert!(learner.heard(Status::InProgress, challenge).unwrap().is_some());
        assert_eq!(learner.heard(Status::Success, b"rspauth=00"), Err(QuorumLoginError::NotProven));
        assert_eq!(learner.heard(Status::InProgress, challenge), Err(QuorumLoginError::NotProven));
    }

    #[test]
    fn headers_out_of_range_are_refused() {
        let mut header = *packet(Status::InProgress, b"").first_chunk::<HEADER>().unwrap();
        header[12..].copy_from_slice(&(TOKEN_MAX + 1).to_be_bytes());
        assert_eq!(read_header(&header), Err(QuorumLoginError::Malformed));
        header[12..].copy_from_slice(&(-1_i32).to_be_bytes());
        assert_eq!(read_header(&header), Ok((Status::InProgress, 0)));
        header[11] = 7;
        assert_eq!(read_header(&header), Err(QuorumLoginError::Malformed));
        header[0] = 0;
        assert_eq!(read_header(&header), Err(QuorumLoginError::NoPacket));
    }
}
