//! Syncs: a client waits until everything that was proposed before is applied. Also the wait of a session that has come
//! back, until its earlier writes are decided.

use crate::{
    connections::request_queue::Waiting,
    context::Context,
    effect::{Effect, PeerMessage},
    input::ConnId,
    server::Server,
};
use ostler_proto::{
    id::{SessionId, Zxid},
    quorum_packet::Packet,
};
use ostler_zab::leading::LinkId;

/// The zxid that a sync waits for while the leader has not answered it.
pub(crate) const UNANSWERED: Zxid = Zxid(u64::MAX);

/// A client or learner that waits until everything proposed before is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncWaiter {
    /// A client of this server, for its sync.
    Client(ConnId),
    /// A client that has come back to this server, until the earlier writes of its session are decided.
    ComeBack(ConnId),
    /// A learner, for a client of its own.
    Learner(LinkId),
    /// A learner that asked whether a session lives. `valid` is the answer of that time; a session that was not valid
    /// then is not valid later.
    Session { learner: LinkId, session: SessionId, valid: bool },
}

impl Server {
    pub(super) fn release_syncs(&mut self, cx: &mut Context<'_>) {
        let applied = self.tree.last_processed();
        while self.pipeline.syncs.front().is_some_and(|(after, _)| *after <= applied) {
            match self.pipeline.syncs.pop_front() {
                Some((_, SyncWaiter::Client(conn) | SyncWaiter::ComeBack(conn))) => self.drain(cx, conn),
                Some((_, SyncWaiter::Learner(link))) => {
                    cx.effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(Packet::Sync) });
                }
                Some((_, SyncWaiter::Session { learner, session, valid })) => {
                    let lives = self.sessions.get(session).is_some_and(|state| !state.closing);
                    let packet = Packet::Revalidated { session, valid: valid && lives };
                    cx.effects.push(Effect::ToPeer { link: learner, message: PeerMessage::Packet(packet) });
                }
                None => {}
            }
        }
    }

    /// The leader has answered the oldest forwarded sync: everything that was proposed before it has come.
    pub(crate) fn synced(&mut self, cx: &mut Context<'_>) {
        let conn = match self.pipeline.syncs.pop_front() {
            Some((_, SyncWaiter::Client(conn))) => conn,
            Some((_, SyncWaiter::ComeBack(conn))) => return self.end_wait(cx, conn),
            Some((_, SyncWaiter::Learner(link))) => {
                let message = PeerMessage::Packet(Packet::Sync);
                return cx.effects.push(Effect::ToPeer { link, message });
            }
            // Only a leader answers whether a session lives.
            Some((_, SyncWaiter::Session { .. })) | None => return,
        };
        let Some(state) = self.connections.get_mut(conn) else { return };
        for waiting in &mut state.queue {
            if let Waiting::Sync { after, .. } = waiting
                && *after == UNANSWERED
            {
                *after = Zxid::ZERO;
                break;
            }
        }
        self.drain(cx, conn);
    }

    /// At a learner: the earlier writes of a session that came back here are decided. Its requests are served from now
    /// on.
    fn end_wait(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        let Some(state) = self.connections.get_mut(conn) else { return };
        let is_over =
            |first: &mut Waiting| matches!(first, Waiting::UnderWay { until } if *until == UNANSWERED);
        if state.queue.pop_front_if(is_over).is_some() {
            self.drain(cx, conn);
        }
    }

    /// At a learner: ends the wait of a session that came back, if its earlier writes are decided, even if its sync is
    /// not answered yet. A Java follower may pass on the answer of a sync and the commits in any order.
    pub(super) fn end_wait_of_own(&mut self, cx: &mut Context<'_>, session: SessionId) {
        let conn = self.sessions.get(session).and_then(|state| state.conn);
        if let Some(conn) = conn
            && !self.has_undecided_writes(session)
        {
            self.end_wait(cx, conn);
        }
    }
}
