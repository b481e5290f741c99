//! SASL authentication, before any other request is sent.

use super::{Link, Session};
use crate::{
    effect::{Effects, Failure},
    input::AttemptId,
    time::Mono,
};
use alloc::{format, string::String};
use ostler_proto::{id::Xid, jute::Reader, reply::ReplyHeader, request::Request};
use ostler_sasl::digest_md5::{self, Profile};

/// The progress of the exchange.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The empty first token is sent.
    Begun,
    /// The response is sent. The server must answer with this proof.
    Answered { proof: String },
}

impl Session {
    pub(super) fn begin_sasl(
        &mut self,
        attempt: AttemptId,
        deadline: Mono,
        read_only: bool,
        effects: &mut Effects,
    ) {
        let xid = self.send_token(&[], effects);
        self.link = Link::Sasl { attempt, deadline, read_only, xid, exchange: Exchange::Begun };
    }

    fn send_token(&mut self, token: &[u8], effects: &mut Effects) -> Xid {
        let xid = self.next_xid();
        Request::Sasl(token).write_frame(xid, &mut effects.bytes);
        xid
    }

    /// A frame during the exchange.
    pub(super) fn sasl_reply(&mut self, now: Mono, payload: &[u8], effects: &mut Effects) {
        let mut r = Reader::new(payload);
        let Ok(header) = ReplyHeader::read(&mut r) else { return self.drop_link(now, effects) };
        let cnonce = format!("{:016x}{:016x}", self.hosts.nonce(), self.hosts.nonce());
        let Link::Sasl { attempt, read_only, xid, exchange, .. } = &mut self.link else { return };
        if header.xid != *xid {
            return self.drop_link(now, effects);
        }
        let (attempt, read_only) = (*attempt, *read_only);
        // A server without SASL, or one that tolerates a failure, answers without a token.
        let token = r.buffer().ok().flatten().filter(|_| header.error == 0);
        let next = match (&*exchange, token, &self.config.sasl) {
            (Exchange::Begun, Some(challenge), Some(credentials)) => {
                digest_md5::respond(Profile::Clients, credentials, challenge, &cnonce)
            }
            (Exchange::Answered { proof }, Some(token), _) if digest_md5::is_proof(token, proof) => {
                return self.online(now, attempt, read_only, effects);
            }
            _ => None,
        };
        match next {
            Some(answer) => {
                let xid = self.send_token(&answer.token, effects);
                if let Link::Sasl { xid: last, exchange, .. } = &mut self.link {
                    (*last, *exchange) = (xid, Exchange::Answered { proof: answer.proof });
                }
            }
            None => self.end(Failure::AuthFailed, effects),
        }
    }
}
