//! SASL logins of clients. The shell speaks the mechanism, because GSSAPI blocks; the core decides what comes of it.

use crate::{
    context::Context,
    effect::{CloseReason, Effect},
    input::ConnId,
    server::Server,
};
use alloc::{vec, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{acl::Id, error::ErrorCode, id::Xid, reply::Body};

/// The most bytes of a token. A ticket of Kerberos with many groups has tens of kilobytes. Tokens of all connections wait
/// for the mechanism, so they are limited before it gets them.
const TOKEN_MAX: usize = 64 << 10;

/// The shell's answer to a client's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaslAnswer {
    /// The client has to answer this.
    Challenge(Vec<u8>),
    /// The client is this user. The token is the last one; GSSAPI has none.
    Complete {
        /// The token for the client.
        token: Option<Vec<u8>>,
        /// The user's name, as ACLs of the scheme `sasl` have it.
        user: alloc::string::String,
    },
    /// The login has failed.
    Refused,
}

impl Server {
    /// A client's token has come. It goes to the shell, and nothing waits for the shell's answer but the client.
    pub(crate) fn sasl_token(&mut self, cx: &mut Context<'_>, conn: ConnId, xid: Xid, token: &[u8]) {
        if !self.config.sasl {
            // No mechanism is configured: upstream answers with a null token, outside the order.
            return self.reply_at_once(cx, conn, xid, Ok(Body::Token(None)));
        }
        if token.len() > TOKEN_MAX {
            return self.refuse_login(cx, conn, xid);
        }
        let Some(state) = self.connections.get_mut(conn) else { return };
        // The shell works at one token of a connection at a time, so that no client can fill its memory. No client sends
        // the next one before it has the answer.
        if core::mem::replace(&mut state.sasl_under_way, true) {
            return self.close(cx, conn, CloseReason::Protocol);
        }
        cx.effects.push(Effect::SaslToken { conn, xid, token: token.into() });
    }

    /// The shell has worked at a token.
    pub(crate) fn sasl_answered(&mut self, cx: &mut Context<'_>, conn: ConnId, xid: Xid, answer: SaslAnswer) {
        let Some(state) = self.connections.get_mut(conn).filter(|state| !state.is_closed()) else { return };
        state.sasl_under_way = false;
        match answer {
            SaslAnswer::Challenge(token) => {
                self.reply_at_once(cx, conn, xid, Ok(Body::Token(Some(token))));
            }
            SaslAnswer::Complete { token, user } => {
                let mut ids = vec![Id::new("sasl", user.clone())];
                if self.config.sasl_super_users.contains(&user) {
                    ids.push(Id::new("super", ""));
                }
                ids.into_iter().for_each(|id| state.ids.add(id));
                self.reply_at_once(cx, conn, xid, Ok(Body::Token(token)));
            }
            SaslAnswer::Refused => self.refuse_login(cx, conn, xid),
        }
    }

    fn refuse_login(&mut self, cx: &mut Context<'_>, conn: ConnId, xid: Xid) {
        self.stats.auth_failed += 1;
        self.audit_failed_auth(cx, conn);
        let is_enforced = self.config.enforced_auth_schemes.iter().any(|scheme| scheme == "sasl");
        let may_stay = self.config.allow_sasl_failed_clients && !is_enforced;
        if may_stay || planted::is(Bug::RefusedLoginStays) {
            return self.reply_at_once(cx, conn, xid, Ok(Body::Token(None)));
        }
        let code = if is_enforced { ErrorCode::SessionClosedRequireSaslAuth } else { ErrorCode::AuthFailed };
        self.reply_at_once(cx, conn, xid, Ok(Body::RefusedLogin(code)));
        self.close(cx, conn, CloseReason::AuthFailed);
    }
}
