//! SASL authentication, before any other request is sent.

use super::{Link, Session};
use crate::{
    config::SaslLogin,
    effect::{Effect, Effects, Failure},
    input::{AttemptId, SaslStep},
    time::Mono,
};
#[cfg(feature = "sasl")]
use alloc::{format, string::String};
use ostler_proto::{id::Xid, jute::Reader, reply::ReplyHeader, request::Request};
#[cfg(feature = "sasl")]
use ostler_sasl::digest_md5::{self, Profile};

/// The progress of the exchange.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The empty first token of DIGEST-MD5 is sent.
    #[cfg(feature = "sasl")]
    Begun(Xid),
    /// The response is sent. The server must answer with this proof.
    #[cfg(feature = "sasl")]
    Answered { xid: Xid, proof: String },
    /// The caller is asked for a token.
    Asked,
    /// The caller's token is sent.
    Said(Xid),
}

impl Session {
    pub(super) fn begin_sasl(
        &mut self,
        attempt: AttemptId,
        deadline: Mono,
        read_only: bool,
        effects: &mut Effects,
    ) {
        let exchange = match self.config.sasl {
            #[cfg(feature = "sasl")]
            Some(SaslLogin::DigestMd5(_)) => Exchange::Begun(self.send_token(&[], effects)),
            Some(SaslLogin::OfCaller) | None => {
                effects.push(Effect::SaslToken { attempt, token: None });
                Exchange::Asked
            }
        };
        self.link = Link::Sasl { attempt, deadline, read_only, exchange };
    }

    fn send_token(&mut self, token: &[u8], effects: &mut Effects) -> Xid {
        let xid = self.next_xid();
        Request::Sasl(token).write_frame(xid, &mut effects.bytes);
        xid
    }

    /// The caller's mechanism has answered.
    pub(super) fn sasl_step(&mut self, now: Mono, of: AttemptId, step: SaslStep, effects: &mut Effects) {
        let Link::Sasl { attempt, read_only, exchange: Exchange::Asked, .. } = self.link else { return };
        if attempt != of {
            return;
        }
        match step {
            SaslStep::Send(token) => {
                let xid = self.send_token(&token, effects);
                self.set_exchange(Exchange::Said(xid));
            }
            SaslStep::Complete => self.online(now, attempt, read_only, effects),
            SaslStep::Refused => self.end(Failure::AuthFailed, effects),
            SaslStep::Unavailable => self.drop_link(now, effects),
        }
    }

    fn set_exchange(&mut self, next: Exchange) {
        if let Link::Sasl { exchange, .. } = &mut self.link {
            *exchange = next;
        }
    }

    /// A frame during the exchange.
    pub(super) fn sasl_reply(&mut self, now: Mono, payload: &[u8], effects: &mut Effects) {
        let mut r = Reader::new(payload);
        let Ok(header) = ReplyHeader::read(&mut r) else { return self.drop_link(now, effects) };
        #[cfg(feature = "sasl")]
        let read_only = matches!(self.link, Link::Sasl { read_only: true, .. });
        let Link::Sasl { attempt, exchange, .. } = &self.link else { return };
        let attempt = *attempt;
        let is_expected = match exchange {
            #[cfg(feature = "sasl")]
            Exchange::Begun(xid) | Exchange::Answered { xid, .. } => header.xid == *xid,
            Exchange::Said(xid) => header.xid == *xid,
            Exchange::Asked => false,
        };
        if !is_expected {
            return self.drop_link(now, effects);
        }
        if header.error != 0 {
            return self.end(Failure::AuthFailed, effects);
        }
        // A server without SASL, or one that tolerates a failure, answers without a token.
        let token = r.buffer().ok().flatten();
        match (exchange, token, &self.config.sasl) {
            (Exchange::Said(_), token, _) => {
                effects.push(Effect::SaslToken { attempt, token: token.map(Into::into) });
                self.set_exchange(Exchange::Asked);
            }
            #[cfg(feature = "sasl")]
            (Exchange::Answered { proof, .. }, Some(token), _) if digest_md5::is_proof(token, proof) => {
                self.online(now, attempt, read_only, effects);
            }
            #[cfg(feature = "sasl")]
            (Exchange::Begun(_), Some(challenge), Some(SaslLogin::DigestMd5(credentials))) => {
                let cnonce = format!("{:016x}{:016x}", self.hosts.nonce(), self.hosts.nonce());
                match digest_md5::respond(Profile::Clients, credentials, challenge, &cnonce) {
                    Some(answer) => {
                        let xid = self.send_token(&answer.token, effects);
                        self.set_exchange(Exchange::Answered { xid, proof: answer.proof });
                    }
                    None => self.end(Failure::AuthFailed, effects),
                }
            }
            _ => self.end(Failure::AuthFailed, effects),
        }
    }
}
