//! Clients that prove who they are by SASL and by certificates, in runs that have this. Each identity has to be in the
//! lists that the client asks for with `auth`, and a wrong password must give none.

use crate::{
    acl_checks::IDENTITIES,
    client::{Client, Intent},
    network::Caller,
    wire,
    world::{Event, World},
};
use ostler_proto::{
    acl::Id,
    error::ErrorCode,
    id::{Xid, Zxid},
    reply::{Body, Reply},
};
use ostler_sasl::digest_md5::{
    Profile, SaslCredentials, ServerExchange, ServerStep, Users, is_proof, respond,
};
use ostler_server_core::{ConnId, Input, SaslAnswer};
use std::collections::BTreeMap;

/// The users that every server knows.
const USERS: [(&str, &str); 2] = [("kim", "one"), ("lee/host@REALM", "two")];
/// The subjects of clients' certificates.
const SUBJECTS: [&str; 2] = ["CN=kim,O=Example", "CN=lee"];

/// A client's login on its present connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Login {
    /// The client does not log in, or has logged in.
    #[default]
    Done,
    /// The empty first token is sent.
    Begun,
    /// The response is sent; the server has to answer with this proof. `None`: with a wrong password there is none.
    Answered(Option<String>),
}

/// The servers' sides of logins.
#[derive(Debug, Default)]
pub(crate) struct Exchanges(BTreeMap<ConnId, ServerExchange>);

impl Client {
    /// The identities of the client's connection, in the order in which it proves them.
    pub(crate) fn ids(&self) -> Vec<Id> {
        let certificate = self.certificate.map(|which| Id::new("x509", SUBJECTS[which]));
        let user = self.sasl_user.map(|which| Id::new("sasl", USERS[which].0));
        let digests = IDENTITIES[..self.identities].iter().map(|(_, id)| Id::new("digest", *id));
        certificate.into_iter().chain(user).chain(digests).collect()
    }
}

impl World {
    /// Chooses how clients prove who they are.
    pub(crate) fn choose_logins(&mut self) {
        for client in 0..self.clients.len() {
            let (certificate, user) = (self.chance.below(4) as usize, self.chance.below(4) as usize);
            let of = &mut self.clients[client];
            of.certificate = Some(certificate).filter(|which| *which < SUBJECTS.len());
            of.sasl_user = Some(user).filter(|which| *which < USERS.len());
        }
    }

    /// The identity that the certificate of a new connection proves.
    pub(crate) fn certificate_of(&self, caller: Caller) -> Option<Id> {
        let Caller::Client(client) = caller else { return None };
        self.clients[client].certificate.map(|which| Id::new("x509", SUBJECTS[which]))
    }

    /// Begins the login of a client that has a session, if it has a user.
    pub(crate) fn begin_login(&mut self, client: usize) {
        if self.clients[client].sasl_user.is_some() {
            self.clients[client].login = Login::Begun;
            self.ask(client, Intent::Sasl, wire::sasl(b""));
        }
    }

    /// The server's mechanism works at a token, outside the core.
    pub(crate) fn work_at_token(&mut self, id: i64, conn: ConnId, xid: Xid, token: Vec<u8>) {
        let (life, delay) = (self.nodes[&id].life, self.chance.between(1, 20));
        self.after(delay, Event::SaslWorked { id, life, conn, xid, token });
    }

    /// The server's mechanism has worked at a token.
    pub(crate) fn token_worked(&mut self, id: i64, conn: ConnId, xid: Xid, token: &[u8]) {
        let users = Users::new(Profile::Clients, USERS);
        let nonce = format!("nonce{}", conn.0);
        let exchange =
            self.exchanges.0.entry(conn).or_insert_with(|| ServerExchange::new(Profile::Clients, nonce));
        let answer = match exchange.step(token, &users) {
            ServerStep::Challenge(challenge) => SaslAnswer::Challenge(challenge),
            ServerStep::Complete { token, user } => SaslAnswer::Complete { token: Some(token), user },
            ServerStep::Refused(_) => SaslAnswer::Refused,
        };
        self.step(id, Input::SaslAnswered { conn, xid, answer });
    }

    /// A client gets an answer to its token. Returns whether it has logged in.
    pub(crate) fn login_answered(&mut self, client: usize, reply: &Reply) -> bool {
        let of = &mut self.clients[client];
        of.sent.retain(|sent| sent.xid != reply.xid);
        assert_eq!(reply.zxid, Some(Zxid::ZERO), "[answers] logins are outside the order of requests");
        let login = std::mem::take(&mut of.login);
        match (&login, &reply.result) {
            (Login::Begun, Ok(Body::Token(Some(challenge)))) => {
                let (user, password) = USERS[of.sasl_user.unwrap_or_default()];
                let is_wrong = self.chance.one_in(8);
                let password = if is_wrong { "wrong" } else { password };
                let credentials = SaslCredentials { user: user.into(), password: password.into() };
                let answer = respond(Profile::Clients, &credentials, challenge, "cnonce");
                let answer = answer.expect("[login] a challenge that a client can answer");
                self.clients[client].login = Login::Answered((!is_wrong).then_some(answer.proof));
                self.ask(client, Intent::Sasl, wire::sasl(&answer.token));
                false
            }
            (Login::Answered(Some(proof)), Ok(Body::Token(Some(token)))) => {
                assert!(
                    is_proof(token, proof),
                    "[login] the server has not proven that it knows the password"
                );
                self.count("login");
                true
            }
            (Login::Answered(None), Ok(Body::RefusedLogin(ErrorCode::AuthFailed))) => {
                self.count("login refused");
                self.clients[client].login = Login::Answered(None);
                false
            }
            (login, result) => panic!("[login] {login:?} is answered by {result:?}"),
        }
    }
}
