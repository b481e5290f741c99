//! Replies, events and pings of an attached session.

use super::{Link, Session};
use crate::{
    effect::{Effect, Effects, Failure},
    input::AttemptId,
    sent::{Purpose, Registering, Sent, WatchChange, WatchRequest},
    time::Mono,
    watch_table::{EntryKind, EventKind, LASTING, REMOVE_ANY, UnneededEntry, WatchKind},
};
use alloc::{boxed::Box, string::String, vec};
use ostler_proto::{
    error::ErrorCode,
    event::{EventType, WatcherEvent},
    id::{Xid, Zxid},
    jute::Reader,
    reply::ReplyHeader,
    request::{MultiOp, PathVersion, Request},
};

impl Session {
    pub(super) fn frame(&mut self, now: Mono, from: AttemptId, payload: &[u8], effects: &mut Effects) {
        match self.link {
            Link::Handshake { attempt, asked, .. } if attempt == from => {
                self.handshake_reply(now, asked, payload, effects);
            }
            Link::Sasl { attempt, .. } if attempt == from => self.sasl_reply(now, payload, effects),
            Link::Online { attempt, .. } if attempt == from => {
                let understood = self.online_frame(now, payload, effects);
                // The server violates the protocol, so later frames cannot be trusted.
                understood.unwrap_or_else(|| self.drop_link(now, effects));
            }
            _ => {}
        }
    }

    /// `None` for a frame that violates the protocol.
    fn online_frame(&mut self, now: Mono, payload: &[u8], effects: &mut Effects) -> Option<()> {
        if let Some(granted) = &mut self.granted {
            granted.liveness.on_heard(now);
        }
        let mut r = Reader::new(payload);
        let header = ReplyHeader::read(&mut r).ok()?;
        match header.xid {
            Xid::NOTIFICATION => self.event(now, &header, &WatcherEvent::read(&mut r).ok()?, effects),
            Xid::PING => self.granted.as_mut()?.liveness.on_pong(now).then_some(()),
            Xid::AUTH => {
                self.auth_reply(now, header.error, effects);
                Some(())
            }
            Xid::SET_WATCHES => self.rearmed(now, &header, effects),
            _ => self.reply(now, &header, effects),
        }
    }

    fn reply(&mut self, now: Mono, header: &ReplyHeader, effects: &mut Effects) -> Option<()> {
        if self.sent.front()?.xid != header.xid {
            return None;
        }
        let Sent { at, writes, purpose, .. } = self.sent.pop_front()?;
        self.answered(now, at, header, writes);
        match purpose {
            Purpose::Application { id, watch_change } => {
                let zxid = (header.zxid > 0).then(|| Zxid::from_wire(header.zxid));
                effects.push(Effect::Reply { id, asked: at, zxid, error: header.error });
                match watch_change.map(|watch_change| *watch_change) {
                    Some(WatchChange::Registering(registering)) => {
                        self.registered(now, registering, header.error, effects);
                    }
                    Some(WatchChange::Removing { path, kind }) if header.error == 0 => {
                        self.end_watches(&path, kind, effects);
                    }
                    _ => {}
                }
                if header.error == ErrorCode::SessionClosedRequireSaslAuth.code() {
                    self.end(Failure::AuthFailed, effects);
                }
            }
            Purpose::RemoveWatches { path, kind } => self.removed(now, path, kind, header.error, effects),
            // The watch is not set. A new connection sets all watches again.
            Purpose::Renewal if is_throttled(header.error) => return None,
            Purpose::Renewal | Purpose::Proof => {}
            Purpose::Close => self.end(Failure::Closed, effects),
        }
        Some(())
    }

    /// A request sent at `at` has its reply now.
    fn answered(&mut self, now: Mono, at: Mono, header: &ReplyHeader, writes: bool) {
        if let Some(granted) = &mut self.granted {
            // A server can refuse a write without a quorum.
            match writes && header.error == 0 {
                true => granted.liveness.on_written(at, now),
                false => granted.liveness.on_answer(at, now),
            }
        }
        let zxid = Zxid::from_wire(header.zxid.max(0));
        self.seen = self.seen.max(zxid);
        // Watches that are not set again yet may have missed changes since the last connection. The reply to the last
        // chunk counts for all: events for the chunks before it came before it.
        if self.rearming.is_empty() {
            self.replied = self.replied.max(zxid);
        }
    }

    /// A request that sets a watch is answered.
    fn registered(&mut self, now: Mono, registering: Registering, error: i32, effects: &mut Effects) {
        let no_node = error == ErrorCode::NoNode.code();
        let kind = match (registering.request, error) {
            (WatchRequest::GetData | WatchRequest::Exists, 0) => Some(WatchKind::Data),
            (WatchRequest::Exists, _) if no_node => Some(WatchKind::Exist),
            (WatchRequest::GetChildren, 0) => Some(WatchKind::Child),
            (WatchRequest::Persistent, 0) => Some(WatchKind::Persistent),
            (WatchRequest::Recursive, 0) => Some(WatchKind::Recursive),
            _ => None,
        };
        // A removal may have waited for a registration that has failed now.
        let waiting =
            kind.is_none().then(|| self.leftover.get(&registering.registration.path).cloned()).flatten();
        if let Some(unneeded) = self.watches.finish(registering.registration, kind) {
            self.remove_at_server(now, unneeded, effects);
        } else if let Some(path) = waiting {
            self.remove_leftover(now, path, effects);
        }
    }

    fn event(
        &mut self,
        now: Mono,
        header: &ReplyHeader,
        event: &WatcherEvent<'_>,
        effects: &mut Effects,
    ) -> Option<()> {
        // Event types of later servers are ignored.
        let Some(kind) = EventType::from_code(event.kind) else { return Some(()) };
        let zxid = (header.zxid > 0).then(|| Zxid::from_wire(header.zxid));
        self.seen = self.seen.max(zxid.unwrap_or_default());
        let kind = EventKind::from(kind);
        let watchers = self.watches.fire(kind, &event.path);
        if !watchers.is_empty() {
            // An event with a zxid says that no other watch has missed an earlier change. While watches are being set again,
            // that is not certain.
            let zxid = zxid.filter(|_| self.rearming.is_empty());
            effects.push(Effect::Event { watchers, kind, path: event.path.clone().into_owned(), zxid });
        }
        // One-shot watches end when they fire. A removal may have waited for the last of them.
        if self.leftover.contains(&*event.path) && self.closing.is_none() {
            self.remove_leftover(now, event.path.as_ref().into(), effects);
        }
        Some(())
    }

    /// A chunk of watches is set again. `None` if an overloaded server has refused it: then the next connection sets the
    /// watches.
    fn rearmed(&mut self, now: Mono, header: &ReplyHeader, effects: &mut Effects) -> Option<()> {
        let rearming = self.rearming.pop_front().filter(|_| header.error == 0)?;
        self.answered(now, rearming.at, header, false);
        // Some of the watches may have been dropped meanwhile.
        let mut watchers = rearming.gaps;
        watchers.retain(|watch| self.watches.has(*watch));
        if !watchers.is_empty() {
            effects.push(Effect::Event { watchers, kind: EventKind::Gap, path: String::new(), zxid: None });
        }
        Some(())
    }

    /// Removes an entry that no watch needs. Without a connection there is nothing to remove.
    pub(super) fn remove_at_server(&mut self, now: Mono, unneeded: UnneededEntry, effects: &mut Effects) {
        if !self.is_online() || self.closing.is_some() {
            return;
        }
        // On servers before 3.9 its removal would also remove a persistent watch on the same path. So it stays until that
        // one is removed, or until it fires, which has no effect.
        if unneeded.entry.is_one_shot() && self.watches.is_lasting_needed(&unneeded.path) {
            self.leftover.insert(unneeded.path);
            return;
        }
        match self.leftover.contains(&unneeded.path) {
            true => self.remove_leftover(now, unneeded.path, effects),
            false => self.send_removal(now, unneeded.path, unneeded.entry.removal(), effects),
        }
    }

    /// Removes all entries of a path at once, if none of them is needed.
    fn remove_leftover(&mut self, now: Mono, path: Box<str>, effects: &mut Effects) {
        if !self.watches.is_any_needed(&path) {
            self.leftover.remove(&path);
            self.send_removal(now, path, REMOVE_ANY, effects);
        }
    }

    fn send_removal(&mut self, now: Mono, path: Box<str>, kind: i32, effects: &mut Effects) {
        let request = Request::RemoveWatches { path: path.as_ref().into(), kind };
        let purpose = Purpose::RemoveWatches { path: path.clone(), kind };
        self.send_own(now, &request, purpose, effects);
    }

    /// A removeWatches is answered. Servers before 3.9 do not know the types of persistent watches. There all entries of
    /// the path are removed at once, when none is needed. If the server was overloaded, the request is sent again.
    fn removed(&mut self, now: Mono, path: Box<str>, kind: i32, error: i32, effects: &mut Effects) {
        if self.closing.is_some() {
            return;
        }
        let unknown_type = error == ErrorCode::MarshallingError.code() && kind > REMOVE_ANY;
        if unknown_type || (is_throttled(error) && kind == REMOVE_ANY) {
            self.leftover.insert(path.clone());
            self.remove_leftover(now, path.clone(), effects);
            // The remaining watches may need a kind that the removed one has replaced.
            if unknown_type {
                self.renew(now, &path, &LASTING, effects);
            }
        } else if is_throttled(error) {
            let entry = EntryKind::of_removal(kind).filter(|entry| !self.watches.is_needed(*entry, &path));
            if let Some(entry) = entry {
                self.remove_at_server(now, UnneededEntry { path, entry }, effects);
            }
        }
    }

    /// The application has removed entries at the server. The watches end that needed them. All registrations that are
    /// answered by now were sent before the removal.
    fn end_watches(&mut self, path: &str, kind: i32, effects: &mut Effects) {
        let ended = self.watches.end_on_path(path, kind);
        if !ended.is_empty() {
            effects.push(Effect::WatchesRemoved(ended));
        }
    }

    /// Sends a request of the session itself.
    pub(super) fn send_own(
        &mut self,
        now: Mono,
        request: &Request<'_>,
        purpose: Purpose,
        effects: &mut Effects,
    ) {
        let xid = self.next_xid();
        request.write_frame(xid, &mut effects.bytes);
        let writes = request.takes_quorum();
        self.note_sent(now);
        self.sent.push_back(Sent { xid, at: now, writes, purpose });
    }

    pub(super) fn note_sent(&mut self, now: Mono) {
        if let Some(granted) = &mut self.granted {
            granted.liveness.on_sent(now);
        }
    }

    pub(super) fn online_deadline(&mut self, now: Mono, effects: &mut Effects) {
        let Some(granted) = &mut self.granted else { return };
        if now >= granted.liveness.silent_at() {
            return self.drop_link(now, effects);
        }
        // The write is a sign of life as well, so it replaces a ping that is due at the same time.
        if granted.liveness.proof_at().is_some_and(|at| now >= at) && self.closing.is_none() {
            let anything = MultiOp::Check(PathVersion { path: "/".into(), version: -1 });
            granted.liveness.on_proof(now);
            self.send_own(now, &Request::Multi(vec![anything]), Purpose::Proof, effects);
        }
        if let Some(granted) = self.granted.as_mut().filter(|granted| now >= granted.liveness.ping_at()) {
            granted.liveness.on_ping(now);
            Request::Ping.write_frame(Xid::PING, &mut effects.bytes);
        }
        self.probe(now, effects);
    }
}

/// Whether an overloaded server has refused the request and done nothing.
fn is_throttled(error: i32) -> bool {
    error == ErrorCode::ThrottledOp.code()
}
