//! Replies, events and pings of an attached session.

use super::{Link, Session};
use crate::{
    effect::{Effect, Effects, Failure},
    input::AttemptId,
    sent::{By, Registering, Sent, Side, What},
    time::Mono,
    watch_table::{EntryKind, EventKind, LASTING, REMOVE_ANY, Unneeded, WatchKind},
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
                // A server that does not keep to the protocol: nothing that follows can be trusted.
                understood.unwrap_or_else(|| self.drop_link(now, effects));
            }
            _ => {}
        }
    }

    /// `None` for a frame that makes no sense.
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
        let Sent { at, writes, what, .. } = self.sent.pop_front()?;
        self.answered(now, at, header, writes);
        match what {
            What::Asked { id, side } => {
                let zxid = (header.zxid > 0).then(|| Zxid::from_wire(header.zxid));
                effects.push(Effect::Reply { id, asked: at, zxid, error: header.error });
                match side.map(|side| *side) {
                    Some(Side::Registering(registering)) => {
                        self.registered(now, registering, header.error, effects);
                    }
                    Some(Side::Removing { path, kind }) if header.error == 0 => {
                        self.end_watches(&path, kind, effects);
                    }
                    _ => {}
                }
                if header.error == ErrorCode::SessionClosedRequireSaslAuth.code() {
                    self.end(Failure::AuthFailed, effects);
                }
            }
            What::RemoveWatches { path, kind } => self.removed(now, path, kind, header.error, effects),
            // Without it the watch that it was to serve hears of nothing: a new connection sets all watches again.
            What::Renewal if is_throttled(header.error) => return None,
            What::Renewal | What::Proof => {}
            What::Close => self.end(Failure::Closed, effects),
        }
        Some(())
    }

    /// A request sent at `at` has its reply now.
    fn answered(&mut self, now: Mono, at: Mono, header: &ReplyHeader, writes: bool) {
        if let Some(granted) = &mut self.granted {
            // A server can refuse a write by itself.
            match writes && header.error == 0 {
                true => granted.liveness.on_written(at, now),
                false => granted.liveness.on_answer(at, now),
            }
        }
        let zxid = Zxid::from_wire(header.zxid.max(0));
        self.seen = self.seen.max(zxid);
        // A watch that is not set again yet has not heard of what came since the last connection. The last part's
        // reply vouches for all parts: what happened to those before it was told before it.
        if self.rearming.is_empty() {
            self.replied = self.replied.max(zxid);
        }
    }

    /// What a reply means for the watch that the request asked for.
    fn registered(&mut self, now: Mono, registering: Registering, error: i32, effects: &mut Effects) {
        let no_node = error == ErrorCode::NoNode.code();
        let kind = match (registering.by, error) {
            (By::GetData | By::Exists, 0) => Some(WatchKind::Data),
            (By::Exists, _) if no_node => Some(WatchKind::Exist),
            (By::GetChildren, 0) => Some(WatchKind::Child),
            (By::Persistent, 0) => Some(WatchKind::Persistent),
            (By::Recursive, 0) => Some(WatchKind::Recursive),
            _ => None,
        };
        // Only what failed can leave something that has waited for it.
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
        // Kinds of later servers are none of ours.
        let Some(kind) = EventType::from_code(event.kind) else { return Some(()) };
        let zxid = (header.zxid > 0).then(|| Zxid::from_wire(header.zxid));
        self.seen = self.seen.max(zxid.unwrap_or_default());
        let kind = EventKind::from(kind);
        let watchers = self.watches.fire(kind, &event.path);
        if !watchers.is_empty() {
            effects.push(Effect::Event { watchers, kind, path: event.path.clone().into_owned(), zxid });
        }
        // One-shot watches that fire are gone, and with the last of them what its removal has waited for.
        if self.leftover.contains(&*event.path) && self.closing.is_none() {
            self.remove_leftover(now, event.path.as_ref().into(), effects);
        }
        Some(())
    }

    /// A chunk of watches is set again; `None` if it is not, by a server that has too much to do: then the next
    /// connection sets them.
    fn rearmed(&mut self, now: Mono, header: &ReplyHeader, effects: &mut Effects) -> Option<()> {
        let rearming = self.rearming.pop_front().filter(|_| header.error == 0)?;
        self.answered(now, rearming.at, header, false);
        // Some may have gone since they were set again.
        let mut watchers = rearming.gaps;
        watchers.retain(|watch| self.watches.has(*watch));
        if !watchers.is_empty() {
            effects.push(Effect::Event { watchers, kind: EventKind::Gap, path: String::new(), zxid: None });
        }
        Some(())
    }

    /// Removes an entry that nobody here needs any more. Without a connection there is nothing to remove.
    pub(super) fn remove_at_server(&mut self, now: Mono, unneeded: Unneeded, effects: &mut Effects) {
        if !self.is_online() || self.closing.is_some() {
            return;
        }
        // On servers before 3.9 its removal takes a persistent watch on the same path with it. So it stays until that
        // one goes, too, or it fires: nobody hears of that.
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
        let what = What::RemoveWatches { path: path.clone(), kind };
        self.send_own(now, &request, what, effects);
    }

    /// Servers before 3.9 do not know the types of persistent watches; there all entries of the path go at
    /// once, so it waits for the last. A server with too much to do is asked again.
    fn removed(&mut self, now: Mono, path: Box<str>, kind: i32, error: i32, effects: &mut Effects) {
        if self.closing.is_some() {
            return;
        }
        let unknown_type = error == ErrorCode::MarshallingError.code() && kind > REMOVE_ANY;
        if unknown_type || (is_throttled(error) && kind == REMOVE_ANY) {
            self.leftover.insert(path.clone());
            self.remove_leftover(now, path.clone(), effects);
            // What stays may need a kind that the other has taken the place of.
            if unknown_type {
                self.renew(now, &path, &LASTING, effects);
            }
        } else if is_throttled(error)
            && let Some(entry) = EntryKind::of_removal(kind)
            && !self.watches.is_needed(entry, &path)
        {
            self.remove_at_server(now, Unneeded { path, entry }, effects);
        }
    }

    /// The application has removed entries at the server, whoever needed them. All registrations that are
    /// answered so far were sent before that.
    fn end_watches(&mut self, path: &str, kind: i32, effects: &mut Effects) {
        let ended = self.watches.end_on_path(path, kind);
        if !ended.is_empty() {
            effects.push(Effect::WatchesRemoved(ended));
        }
    }

    /// Sends a request of the session's own.
    pub(super) fn send_own(&mut self, now: Mono, request: &Request<'_>, what: What, effects: &mut Effects) {
        let xid = self.next_xid();
        request.write_frame(xid, &mut effects.bytes);
        let writes = request.takes_quorum();
        self.note_sent(now);
        self.sent.push_back(Sent { xid, at: now, writes, what });
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
        // It is a sign of life as well, so a ping that is due at the same time is not needed.
        if granted.liveness.proof_at().is_some_and(|at| now >= at) && self.closing.is_none() {
            let anything = MultiOp::Check(PathVersion { path: "/".into(), version: -1 });
            granted.liveness.on_proof(now);
            self.send_own(now, &Request::Multi(vec![anything]), What::Proof, effects);
        }
        if let Some(granted) = &mut self.granted
            && now >= granted.liveness.ping_at()
        {
            granted.liveness.on_ping(now);
            Request::Ping.write_frame(Xid::PING, &mut effects.bytes);
        }
        self.probe(now, effects);
    }
}

/// Whether a server had too much to do, and did nothing.
fn is_throttled(error: i32) -> bool {
    error == ErrorCode::ThrottledOp.code()
}
