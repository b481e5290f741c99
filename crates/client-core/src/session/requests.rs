//! Requests of the application.

use super::{Link, Session};
use crate::{
    effect::{Effect, Effects, Failure},
    input::{RequestId, WatchId},
    rearm,
    sent::{By, Queued, Registering, Sent, Side, What},
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

impl Session {
    pub(super) fn request(
        &mut self,
        now: Mono,
        id: RequestId,
        bound: Option<SessionId>,
        request: &Request<'_>,
        watch: Option<WatchId>,
        effects: &mut Effects,
    ) {
        assert!(request.op().is_some(), "only a server makes {request:?} of what it cannot read");
        if let Some(failure) = self.refusal(bound) {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        let side = side_of(request, watch, bound).map(Box::new);
        if self.is_online() {
            self.send(now, id, request, side, effects);
        } else {
            self.enqueue(now, id, bound, request, side, effects);
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

    /// A watch has to fit in a request of its own as well: it is set again on the next connection, and a server that
    /// took offence at that would end each connection there is.
    fn too_large(&self, size: usize, side: Option<&Side>) -> Option<Failure> {
        let again = match side {
            Some(Side::Registering(registering)) => rearm::size_alone(&registering.registration.path),
            _ => 0,
        };
        let (size, limit) = (size.max(again), self.config.packet_max);
        (size > limit).then_some(Failure::TooLarge { size, limit })
    }

    fn send(
        &mut self,
        now: Mono,
        id: RequestId,
        request: &Request<'_>,
        side: Option<Box<Side>>,
        effects: &mut Effects,
    ) {
        let start = effects.bytes.len();
        let xid = self.next_xid();
        request.write_frame(xid, &mut effects.bytes);
        let size = (effects.bytes.len() - start).saturating_sub(4);
        if let Some(failure) = self.too_large(size, side.as_deref()) {
            effects.bytes.truncate(start);
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if let Some(Side::Registering(registering)) = side.as_deref() {
            self.watches.begin(&registering.registration);
        }
        let writes = request.takes_quorum();
        self.note_sent(now);
        let taken = side.as_deref().and_then(Side::takes_place);
        self.sent.push_back(Sent { xid, at: now, writes, what: What::Asked { id, side } });
        if let Some((path, entries)) = taken {
            self.renew(now, &path, entries, effects);
        }
    }

    /// On servers before 3.9 a watch takes the place of another kind on the same path. So those that last are set
    /// again, right behind, if they are needed: also those that are not answered yet, as the server has them first.
    pub(super) fn renew(&mut self, now: Mono, path: &str, entries: &[EntryKind], effects: &mut Effects) {
        for entry in entries.iter().copied() {
            if !self.watches.is_needed(entry, path) {
                continue;
            }
            self.watches.renewed(entry, path);
            let mode = if entry == EntryKind::Recursive { RECURSIVE } else { 0 };
            let request = Request::AddWatch { path: path.into(), mode };
            self.send_own(now, &request, What::Renewal, effects);
        }
    }

    fn enqueue(
        &mut self,
        now: Mono,
        id: RequestId,
        bound: Option<SessionId>,
        request: &Request<'_>,
        side: Option<Box<Side>>,
        effects: &mut Effects,
    ) {
        let mut frame = Vec::new();
        request.write_frame(Xid(0), &mut frame);
        let size = frame.len().saturating_sub(4);
        if let Some(failure) = self.too_large(size, side.as_deref()) {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if let Some(Side::Registering(registering)) = side.as_deref() {
            self.watches.begin(&registering.registration);
        }
        let writes = request.takes_quorum();
        self.queue.push_back(Queued { id, bound, since: now, frame, writes, side });
    }
}

fn side_of(request: &Request<'_>, watch: Option<WatchId>, session: Option<SessionId>) -> Option<Side> {
    match (request, watch) {
        (Request::RemoveWatches { path, kind }, _) => {
            Some(Side::Removing { path: path.as_ref().into(), kind: *kind })
        }
        (_, Some(watch)) => registering(request, watch, session).map(Side::Registering),
        _ => None,
    }
}

fn registering(request: &Request<'_>, watch: WatchId, session: Option<SessionId>) -> Option<Registering> {
    let (path, by, entry) = match request {
        Request::GetData(read) => (&read.path, By::GetData, EntryKind::Data),
        Request::Exists(read) => (&read.path, By::Exists, EntryKind::Data),
        Request::GetChildren(read) | Request::GetChildren2(read) => {
            (&read.path, By::GetChildren, EntryKind::Child)
        }
        Request::AddWatch { path, mode: RECURSIVE } => (path, By::Recursive, EntryKind::Recursive),
        Request::AddWatch { path, .. } => (path, By::Persistent, EntryKind::Persistent),
        _ => return None,
    };
    Some(Registering { registration: Registration { watch, path: path.as_ref().into(), entry, session }, by })
}
