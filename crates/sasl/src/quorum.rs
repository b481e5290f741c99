//! SASL between servers: the packets, and both sides of a login by DIGEST-MD5 or Kerberos (`QuorumAuth`).
//!
//! The server that has opened the connection is the SASL client. Tokens travel in packets of their own, inside TLS if
//! there is TLS, before anything else of the protocol.

use crate::digest_md5::{
    Profile, RefusedLogin, SaslCredentials, ServerExchange, ServerStep, Users, is_proof, respond,
};
use crate::gssapi::{GssapiAnswer, GssapiClient, GssapiError, GssapiServer, GssapiStep, SecurityContext};
use alloc::{string::String, sync::Arc, vec::Vec};

/// The first bytes of each packet.
pub const MAGIC: [u8; 8] = [0x5f, 0x24, 0x35, 0x01, 0x35, 0x01, 0xed, 0xcc];
/// The bytes before the token: [`MAGIC`], the status and the length.
pub const HEADER: usize = 16;
/// The most bytes of a token. A ticket of Kerberos with many groups has tens of kilobytes.
const TOKEN_MAX: i32 = 64 << 10;
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
        "the other server has refused the login: is the user of QuorumLearner, with this password or ticket, known there?"
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
    /// Kerberos has failed, on this side.
    #[error(transparent)]
    Gssapi(#[from] GssapiError),
    /// A server asks for another identity than its own.
    #[error("{principal:?} wants to act as another server")]
    OtherIdentity {
        /// The principal that is proven.
        principal: String,
    },
    /// The principal is not that of a server of the ensemble.
    #[error(
        "{principal:?} is no server of this ensemble: the part after the slash has to be the host of a server.N line, and these \
         are {hosts}"
    )]
    OtherHost {
        /// The principal.
        principal: String,
        /// The hosts of the server.N lines.
        hosts: String,
    },
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

/// How a server proves who it is.
#[derive(Debug)]
pub enum OwnLogin<C> {
    /// By DIGEST-MD5.
    Digest {
        /// The user and the password.
        credentials: SaslCredentials,
        /// A text that nobody can predict, of letters and digits.
        cnonce: String,
    },
    /// By Kerberos.
    Gssapi(GssapiClient<C>),
}

/// The side that has opened the connection.
#[derive(Debug)]
pub struct Learner<C> {
    login: OwnLogin<C>,
    /// The answer that proves the other server, once the response is sent.
    proof: Option<String>,
}

impl<C: SecurityContext> Learner<C> {
    /// Begins a login.
    pub fn new(login: OwnLogin<C>) -> Learner<C> {
        Learner { login, proof: None }
    }

    /// The first packet.
    ///
    /// # Errors
    /// If Kerberos has no token for the other server.
    pub fn begin(&mut self) -> Result<Vec<u8>, QuorumLoginError> {
        match &mut self.login {
            OwnLogin::Digest { .. } => Ok(packet(Status::InProgress, b"")),
            OwnLogin::Gssapi(login) => match login.step(None)? {
                GssapiStep::Send(token) => Ok(packet(Status::InProgress, &token)),
                GssapiStep::Complete => Err(QuorumLoginError::NotProven),
            },
        }
    }

    /// A packet has come. Returns the next one to send; `None` if the login has succeeded.
    ///
    /// # Errors
    /// If the login has failed, or the other server has not proven who it is.
    pub fn heard(&mut self, status: Status, token: &[u8]) -> Result<Option<Vec<u8>>, QuorumLoginError> {
        if status == Status::Error {
            return Err(QuorumLoginError::RefusedThere);
        }
        match &mut self.login {
            OwnLogin::Digest { credentials, cnonce } => match (status, &self.proof) {
                (Status::InProgress, None) => {
                    let answer = respond(Profile::Quorum, credentials, token, cnonce)
                        .ok_or(QuorumLoginError::OtherMechanism)?;
                    self.proof = Some(answer.proof);
                    Ok(Some(packet(Status::InProgress, &answer.token)))
                }
                (Status::Success, Some(proof)) if is_proof(token, proof) => Ok(None),
                _ => Err(QuorumLoginError::NotProven),
            },
            OwnLogin::Gssapi(login) => match (status, login.step(Some(token))?) {
                (Status::InProgress, GssapiStep::Send(next)) => Ok(Some(packet(Status::InProgress, &next))),
                (Status::Success, GssapiStep::Complete) => Ok(None),
                _ => Err(QuorumLoginError::NotProven),
            },
        }
    }
}

/// How a server lets others in.
#[derive(Debug)]
pub enum ExpectedLogin<C> {
    /// By DIGEST-MD5.
    Digest {
        /// The users that may log in.
        users: Arc<Users>,
        /// A text that nobody can predict, of letters and digits.
        nonce: String,
    },
    /// By Kerberos.
    Gssapi {
        /// The login.
        login: GssapiServer<C>,
        /// The hosts of the server.N lines: one of them is in the principal of each server.
        hosts: Vec<String>,
    },
}

/// The side that was called.
#[derive(Debug)]
pub struct Acceptor<C> {
    login: Accepting<C>,
    rounds: u32,
}

#[derive(Debug)]
enum Accepting<C> {
    Digest { users: Arc<Users>, exchange: ServerExchange },
    Gssapi { login: GssapiServer<C>, hosts: Vec<String> },
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

impl<C: SecurityContext> Acceptor<C> {
    /// Begins a login.
    pub fn new(expected: ExpectedLogin<C>) -> Acceptor<C> {
        let login = match expected {
            ExpectedLogin::Digest { users, nonce } => {
                Accepting::Digest { users, exchange: ServerExchange::new(Profile::Quorum, nonce) }
            }
            ExpectedLogin::Gssapi { login, hosts } => Accepting::Gssapi { login, hosts },
        };
        Acceptor { login, rounds: 0 }
    }

    /// A packet has come.
    pub fn heard(&mut self, status: Status, token: &[u8]) -> Accepted {
        self.rounds += 1;
        let answer = match (status, self.rounds) {
            (Status::Error, _) => Err(QuorumLoginError::RefusedThere),
            (_, rounds) if rounds > ROUNDS_MAX => Err(QuorumLoginError::TooManyRounds),
            _ => self.answer(token),
        };
        answer.unwrap_or_else(|why| Accepted::Refused(packet(Status::Error, b""), why))
    }

    fn answer(&mut self, token: &[u8]) -> Result<Accepted, QuorumLoginError> {
        match &mut self.login {
            Accepting::Digest { users, exchange } => match exchange.step(token, users) {
                ServerStep::Challenge(challenge) => {
                    Ok(Accepted::More(packet(Status::InProgress, &challenge)))
                }
                ServerStep::Complete { token, .. } => Ok(Accepted::Done(packet(Status::Success, &token))),
                ServerStep::Refused(why) => Err(QuorumLoginError::RefusedHere(why)),
            },
            Accepting::Gssapi { login, hosts } => match login.step(token)? {
                GssapiAnswer::Challenge(challenge) => {
                    Ok(Accepted::More(packet(Status::InProgress, &challenge)))
                }
                GssapiAnswer::Complete { principal, wanted } => {
                    if !hosts.iter().any(|host| Some(&**host) == host_of(&principal)) {
                        return Err(QuorumLoginError::OtherHost { principal, hosts: hosts.join(", ") });
                    }
                    if !wanted.is_empty() && wanted != principal {
                        return Err(QuorumLoginError::OtherIdentity { principal });
                    }
                    Ok(Accepted::Done(packet(Status::Success, b"")))
                }
            },
        }
    }
}

/// The host of `service/host@REALM`; none of another form. A principal without a host is no server (CVE-2023-44981). The
/// library writes a backslash before a slash or an `@` that is part of a name.
fn host_of(principal: &str) -> Option<&str> {
    if principal.contains('\\') {
        return None;
    }
    let parts: Vec<&str> = principal.split(['/', '@']).collect();
    match (&parts[..], principal.find('/'), principal.find('@')) {
        ([_, host, _], Some(slash), Some(at)) if slash < at => Some(host),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
