//! Answers a write when its transaction is applied.

use crate::{
    connections::{
        Phase,
        request_queue::{AnswerForm, Waiting, WriteTxn},
    },
    context::Context,
    effect::CloseReason,
    input::{ConnId, RequestHead},
    server::Server,
};
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Zxid},
    path,
    reply::{Body, OpResult},
    txn::TxnCreateKind,
};
use ostler_tree::Outcome;

impl Server {
    /// Answers the write at the head of a connection's queue, then the requests behind it.
    pub(super) fn answer(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        committed: Zxid,
        session: SessionId,
        outcome: Outcome,
    ) {
        let Some(state) = self.connections.get_mut(conn) else { return };
        if matches!(state.phase, Phase::Closed { .. }) {
            return;
        }
        let Some(Waiting::Write { head, txn, form, .. }) = state.queue.pop_front() else {
            panic!("{committed} committed for {conn:?}, which waits for no write");
        };
        if let WriteTxn::Proposed(zxid) = txn {
            assert_eq!(zxid, committed, "writes of {conn:?} commit out of order");
        }
        let phase = state.phase;
        let moved = matches!(outcome, Outcome::Failed(code) if code == ErrorCode::SessionMoved.code());
        if moved && matches!(txn, WriteTxn::Forwarded { .. }) {
            // It may have been a late write from another server, with the same session and xid as this one.
            return self.close(cx, conn, CloseReason::SessionMoved);
        }
        match form {
            AnswerForm::Connected => {
                if let Phase::Opening { answer_read_only, .. } = phase {
                    self.stats.update_latency_ms.add(head.age_ms(cx.now.mono));
                    self.count_session(cx.now, conn, head);
                    self.connected(cx, conn, session, answer_read_only);
                }
            }
            AnswerForm::Upgraded => {}
            AnswerForm::Refused(error) => {
                self.reply_write(cx, conn, head, Err(error.code()));
            }
            AnswerForm::Close => {
                self.reply_write(cx, conn, head, Ok(Body::None));
                self.close(cx, conn, CloseReason::ClosedByClient);
            }
            AnswerForm::Reconfig => {
                let config = self.tree.get(path::CONFIG).and_then(|node| node.data.clone());
                let result = match outcome {
                    Outcome::DataSet(stat) => Ok(Body::Data(config, stat)),
                    Outcome::Failed(code) => Err(code),
                    _ => Ok(Body::None),
                };
                self.reply_write(cx, conn, head, result);
            }
            _ => {
                self.reply_write(cx, conn, head, body(outcome, form));
                if moved {
                    self.close(cx, conn, CloseReason::SessionMoved);
                }
            }
        }
        self.drain(cx, conn);
    }

    fn reply_write(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        head: RequestHead,
        result: Result<Body, i32>,
    ) {
        self.stats.update_latency_ms.add(head.age_ms(cx.now.mono));
        let result = result.map_err(|code| ErrorCode::from_code(code).unwrap_or(ErrorCode::MarshallingError));
        let refused = result.is_err();
        self.reply(cx, conn, head, result);
        // As in upstream's `cons`: a refused write does not count as the last operation.
        if refused && let Some(state) = self.connections.get_mut(conn) {
            state.stats.last_op = None;
        }
    }
}

fn body(outcome: Outcome, form: AnswerForm) -> Result<Body, i32> {
    Ok(match outcome {
        Outcome::Failed(code) => return Err(code),
        Outcome::Created { path, .. } if form == AnswerForm::Path => Body::Path((*path).into()),
        Outcome::Created { path, stat, .. } => Body::PathStat((*path).into(), stat),
        Outcome::DataSet(stat) | Outcome::AclSet(stat) => Body::Stat(stat),
        Outcome::Multi(outcomes) => Body::Multi(outcomes.into_iter().map(op_result).collect()),
        Outcome::Deleted | Outcome::Checked | Outcome::Session => Body::None,
    })
}

fn op_result(outcome: Outcome) -> OpResult {
    match outcome {
        Outcome::Created { path, kind: TxnCreateKind::Create, .. } => OpResult::Create((*path).into()),
        Outcome::Created { path, stat, .. } => OpResult::Create2((*path).into(), stat),
        Outcome::Deleted => OpResult::Delete,
        Outcome::DataSet(stat) | Outcome::AclSet(stat) => OpResult::SetData(stat),
        Outcome::Checked | Outcome::Session | Outcome::Multi(_) => OpResult::Check,
        Outcome::Failed(code) => OpResult::Error(code),
    }
}
