//! Identities (addAuth), which are sent on every connection.

use super::{Link, Session};
use crate::{
    config::AuthInfo,
    effect::{Effect, Effects, Failure},
    input::RequestId,
    time::Mono,
};
use alloc::{collections::VecDeque, vec::Vec};
use core::time::Duration;
use ostler_proto::{error::ErrorCode, id::Xid, request::Request};

#[derive(Debug, Default)]
pub(super) struct Identities {
    known: Vec<Identity>,
    /// The numbers of identities that are sent and not answered.
    sent: VecDeque<u64>,
    count: u64,
}

#[derive(Debug)]
struct Identity {
    number: u64,
    info: AuthInfo,
    /// The request that waits for the server to accept the identity.
    waiting: Option<Waiting>,
    /// A server has accepted the identity before.
    accepted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: RequestId,
    /// Without a connection: since when the request waits for one.
    since: Mono,
}

impl Identities {
    pub(super) fn new(known: &[AuthInfo]) -> Identities {
        let mut identities = Identities::default();
        for info in known {
            identities.add(info.clone(), None);
        }
        identities
    }

    fn add(&mut self, info: AuthInfo, waiting: Option<Waiting>) {
        self.count += 1;
        self.known.push(Identity { number: self.count, info, waiting, accepted: false });
    }

    /// The connection is lost on which they were sent.
    pub(super) fn on_disconnected(&mut self, now: Mono) {
        self.sent.clear();
        for waiting in self.known.iter_mut().filter_map(|identity| identity.waiting.as_mut()) {
            waiting.since = now;
        }
    }

    /// Without a connection: since when the request waits that has waited longest for one.
    pub(super) fn waiting_since(&self) -> Option<Mono> {
        self.known.iter().filter_map(|identity| identity.waiting).map(|waiting| waiting.since).min()
    }

    /// Removes the identities whose requests have waited since `latest` or longer, and returns these requests.
    pub(super) fn give_up(&mut self, latest: Mono) -> Vec<RequestId> {
        let mut given_up = Vec::new();
        self.known.retain(|identity| {
            let overdue = identity.waiting.filter(|waiting| waiting.since <= latest);
            given_up.extend(overdue.map(|waiting| waiting.id));
            overdue.is_none()
        });
        given_up
    }

    /// The same for all waiting requests.
    pub(super) fn give_up_all(&mut self) -> Vec<RequestId> {
        self.give_up(Mono(Duration::MAX))
    }

    fn send(&mut self, from: usize, effects: &mut Effects) {
        for identity in &self.known[from..] {
            let AuthInfo { scheme, auth } = &identity.info;
            let request = Request::Auth { scheme: Some(scheme.into()), auth: Some(auth) };
            request.write_frame(Xid::AUTH, &mut effects.bytes);
            self.sent.push_back(identity.number);
        }
    }
}

impl Session {
    pub(super) fn add_auth(&mut self, now: Mono, id: RequestId, auth: AuthInfo, effects: &mut Effects) {
        if let Link::Ended(failure) = self.link {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if self.closing.is_some() {
            effects.push(Effect::Failed { id, failure: Failure::Closed });
            return;
        }
        self.identities.add(auth, Some(Waiting { id, since: now }));
        if self.is_online() {
            let last = self.identities.known.len() - 1;
            self.identities.send(last, effects);
        }
    }

    /// Sends all identities on a new connection.
    pub(super) fn send_identities(&mut self, effects: &mut Effects) {
        self.identities.send(0, effects);
    }

    /// An auth packet is answered. Servers answer these apart from other requests.
    pub(super) fn auth_reply(&mut self, now: Mono, error: i32, effects: &mut Effects) {
        let Some(number) = self.identities.sent.pop_front() else { return self.drop_link(now, effects) };
        let Some(place) = self.identities.known.iter().position(|identity| identity.number == number) else {
            return;
        };
        let identity = &mut self.identities.known[place];
        let waiting = identity.waiting.take();
        if error == 0 {
            identity.accepted = true;
            if let Some(Waiting { id, .. }) = waiting {
                effects.push(Effect::Reply { id, asked: now, zxid: None, error });
            }
            return;
        }
        let (accepted, fatal) = (identity.accepted, error == ErrorCode::AuthFailed.code());
        match waiting {
            // Refused when it was sent for the first time: it is not sent again. The others stay.
            Some(Waiting { id, .. }) if fatal => {
                self.identities.known.remove(place);
                effects.push(Effect::Failed { id, failure: Failure::AuthFailed });
            }
            Some(Waiting { id, .. }) => effects.push(Effect::Reply { id, asked: now, zxid: None, error }),
            // Another server has accepted it, so the next server is tried.
            None if accepted => self.drop_link(now, effects),
            None => self.end(Failure::AuthFailed, effects),
        }
    }
}
