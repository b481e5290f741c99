//! The core's effects on clients' connections, in their order.

use crate::{
    fan_out::{FanOut, Notification, Outboxes},
    log_throttle::SharedLogBudget,
    responses::Responses,
};
use ostler_proto::{connect::ConnectResponse, id::Xid, reply::Reply};
use ostler_server_core::{CloseReason, ConnId};

/// Carries out the effects of one step.
pub(crate) struct ClientEffects<'a> {
    fan: FanOut,
    outboxes: &'a Outboxes,
    responses: &'a mut Responses,
    refused_log: &'a SharedLogBudget,
    /// Replies that went to a connection.
    answered: usize,
}

impl<'a> ClientEffects<'a> {
    pub(crate) fn new(
        outboxes: &'a Outboxes,
        responses: &'a mut Responses,
        refused_log: &'a SharedLogBudget,
    ) -> ClientEffects<'a> {
        ClientEffects { fan: FanOut::default(), outboxes, responses, refused_log, answered: 0 }
    }

    pub(crate) fn reply(&mut self, conn: ConnId, reply: &Reply) {
        self.fan.before_others_to(conn, self.outboxes);
        if let Some(outbox) = self.outboxes.get(&conn) {
            let size = outbox.reply(reply);
            self.answered += 1;
            self.responses.count_reply(size, !matches!(reply.xid, Xid::PING | Xid::AUTH));
        }
    }

    pub(crate) fn notify(&mut self, conns: Vec<ConnId>, notification: Notification<'_>) {
        let receivers = conns.len();
        let size = self.fan.add(conns, notification, self.outboxes);
        self.responses.count_notification(size, receivers);
    }

    pub(crate) fn connected(&mut self, conn: ConnId, response: &ConnectResponse) {
        self.fan.before_others_to(conn, self.outboxes);
        if let Some(outbox) = self.outboxes.get(&conn) {
            outbox.connected(response);
        }
    }

    pub(crate) fn close(&mut self, conn: ConnId, reason: CloseReason) {
        self.fan.before_others_to(conn, self.outboxes);
        if let Some(outbox) = self.outboxes.get(&conn) {
            outbox.close(reason);
        }
        log_close(conn, reason, self.refused_log);
    }

    /// Sends the notifications that are still held back. Returns the number of replies.
    pub(crate) fn finish(mut self) -> usize {
        self.fan.send(self.outboxes);
        self.answered
    }
}

/// `refused_log` limits the lines about refused clients, which may come back at once.
fn log_close(conn: ConnId, reason: CloseReason, refused_log: &SharedLogBudget) {
    let is_refused = matches!(
        reason,
        CloseReason::ClientAhead
            | CloseReason::PasswordUnknown
            | CloseReason::AuthFailed
            | CloseReason::OtherEnsemble
            | CloseReason::Protocol
    );
    let ending = if is_refused { refused_log.take_line().ending() } else { Some("") };
    let Some(ending) = ending else { return };
    match reason {
        CloseReason::ClosedByClient => tracing::debug!(?conn, "closed by its client"),
        CloseReason::SessionExpired => tracing::info!(?conn, "closed: its session has expired"),
        CloseReason::SessionMoved => tracing::info!(?conn, "closed: its session came back elsewhere"),
        CloseReason::ClientAhead => tracing::warn!(
            ?conn,
            "refused: the client has seen a later zxid than this server has; is this the right data folder?{ending}"
        ),
        CloseReason::PasswordUnknown => tracing::info!(
            ?conn,
            "refused: this server cannot judge the password of the session; the client may try another server{ending}"
        ),
        CloseReason::AuthFailed => tracing::warn!(?conn, "closed: authentication failed{ending}"),
        CloseReason::OtherEnsemble => {
            tracing::warn!(
                ?conn,
                "closed: the client names an ensemble that is none of ensembleAuthName{ending}"
            );
        }
        CloseReason::ReadOnly => {
            tracing::debug!(
                ?conn,
                "refused: this server has no leader, and serves only clients that are content to read"
            );
        }
        CloseReason::Silent => {
            tracing::info!(?conn, "closed: it was silent for as long as its session may be")
        }
        CloseReason::NotServing => tracing::debug!(?conn, "closed: this server has no leader"),
        CloseReason::ClosedByOperator => tracing::info!(?conn, "closed on demand"),
        CloseReason::Protocol => tracing::warn!(?conn, "closed: it sent what no client sends{ending}"),
    }
}
