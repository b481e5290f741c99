//! Requests of the application.

use super::{Link, Session};
use crate::{
    effect::{Effect, Effects, Failure},
    input::{RequestId, WatchId},
    rearm,
    sent::{Purpose, Queued, Registering, Sent, WatchChange, WatchRequest},
    time::Mono,
    watch_table::{EntryKind, Registration},
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::{
    id::{SessionId, Xid},
    request::Request,
};

/// AddWatch's mode for recursive watches.
const RECURSIVE: i32 = 1;

/// A request as the caller has submitted it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubmittedRequest<'a> {
    pub(super) id: RequestId,
    /// The session that the request is bound to, if it is.
    pub(super) session: Option<SessionId>,
    pub(super) request: &'a Request<'a>,
    /// The watch that the request registers.
    pub(super) watch: Option<WatchId>,
}

impl Session {
    pub(super) fn request(&mut self, now: Mono, submitted: &SubmittedRequest<'_>, effects: &mut Effects) {
        let SubmittedRequest { id, session: bound, request, watch } = *submitted;
        assert!(request.op().is_some(), "{request:?} has no operation code and cannot be sent");
        if let Some(failure) = self.refusal(bound) {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        let watch_change = watch_change_of(request, watch, bound).map(Box::new);
        if self.is_online() && self.leaving.is_none() {
            self.send(now, id, request, watch_change, effects);
        } else {
            self.enqueue(now, submitted, watch_change, effects);
        }
    }

    fn refusal(&self, bound: Option<SessionId>) -> Option<Failure> {
        match self.link {
            Link::Ended(failure) => return Some(failure),
            _ if self.closing.is_some() => return Some(Failure::Closed),
            _ => {}
        }
        let current = self.granted.as_ref().map(|granted| granted.id);
        (bound.is_some() && bound != current).then_some(Failure::SessionChanged)
    }

    /// The watch of a request must also fit into a setWatches, because it is set again on the next connection. If it were
    /// too large there, the server would close every connection.
    fn too_large(&self, size: usize, watch_change: Option<&WatchChange>) -> Option<Failure> {
        let rearm_size = match watch_change {
            Some(WatchChange::Registering(registering)) => rearm::size_alone(&registering.registration.path),
            _ => 0,
        };
        let (size, limit) = (size.max(rearm_size), self.config.packet_max);
        (size > limit).then_some(Failure::TooLarge { size, limit })
    }

    fn send(
        &mut self,
        now: Mono,
        id: RequestId,
        request: &Request<'_>,
        watch_change: Option<Box<WatchChange>>,
        effects: &mut Effects,
    ) {
        let start = effects.bytes.len();
        let xid = self.next_xid();
        request.write_frame(xid, &mut effects.bytes);
        let size = (effects.bytes.len() - start).saturating_sub(4);
        if let Some(failure) = self.too_large(size, watch_change.as_deref()) {
            effects.bytes.truncate(start);
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if let Some(WatchChange::Registering(registering)) = watch_change.as_deref() {
            self.watches.begin(&registering.registration);
        }
        let writes = request.takes_quorum();
        self.note_sent(now);
        let taken = watch_change.as_deref().and_then(WatchChange::replaced_entries);
        self.sent.push_back(Sent {
            xid,
            at: now,
            writes,
            purpose: Purpose::Application { id, watch_change },
        });
        if let Some((path, entries)) = taken {
            self.renew(now, &path, entries, effects);
        }
    }

    /// On servers before 3.9 a watch replaces a watch of another kind on the same path. So lasting watches that are needed
    /// are set again right after it, also those that are not answered yet, because the server sets them first.
    pub(super) fn renew(&mut self, now: Mono, path: &str, entries: &[EntryKind], effects: &mut Effects) {
        for entry in entries.iter().copied() {
            if !self.watches.is_needed(entry, path) {
                continue;
            }
            self.watches.renewed(entry, path);
            let mode = if entry == EntryKind::Recursive { RECURSIVE } else { 0 };
            let request = Request::AddWatch { path: path.into(), mode };
            self.send_own(now, &request, Purpose::Renewal, effects);
        }
    }

    fn enqueue(
        &mut self,
        now: Mono,
        submitted: &SubmittedRequest<'_>,
        watch_change: Option<Box<WatchChange>>,
        effects: &mut Effects,
    ) {
        let SubmittedRequest { id, session: bound, request, .. } = *submitted;
        let mut frame = Vec::new();
        request.write_frame(Xid(0), &mut frame);
        let size = frame.len().saturating_sub(4);
        if let Some(failure) = self.too_large(size, watch_change.as_deref()) {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if let Some(WatchChange::Registering(registering)) = watch_change.as_deref() {
            self.watches.begin(&registering.registration);
        }
        let writes = request.takes_quorum();
        self.queue.push_back(Queued { id, bound, since: now, frame, writes, watch_change });
    }
}

fn watch_change_of(
    request: &Request<'_>,
    watch: Option<WatchId>,
    session: Option<SessionId>,
) -> Option<WatchChange> {
    match (request, watch) {
        (Request::RemoveWatches { path, kind }, _) => {
            Some(WatchChange::Removing { path: path.as_ref().into(), kind: *kind })
        }
        (_, Some(watch)) => registering(request, watch, session).map(WatchChange::Registering),
        _ => None,
    }
}

fn registering(request: &Request<'_>, watch: WatchId, session: Option<SessionId>) -> Option<Registering> {
    let (path, watch_request, entry) = match request {
        Request::GetData(read) => (&read.path, WatchRequest::GetData, EntryKind::Data),
        Request::Exists(read) => (&read.path, WatchRequest::Exists, EntryKind::Data),
        Request::GetChildren(read) | Request::GetChildren2(read) => {
            (&read.path, WatchRequest::GetChildren, EntryKind::Child)
        }
        Request::AddWatch { path, mode: RECURSIVE } => (path, WatchRequest::Recursive, EntryKind::Recursive),
        Request::AddWatch { path, .. } => (path, WatchRequest::Persistent, EntryKind::Persistent),
        _ => return None,
    };
    Some(Registering {
        registration: Registration { watch, path: path.as_ref().into(), entry, session },
        request: watch_request,
    })
}
