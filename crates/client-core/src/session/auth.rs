//! Identities, shown on every connection.

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
    /// Numbers of those that are sent and not answered.
    sent: VecDeque<u64>,
    count: u64,
}

#[derive(Debug)]
struct Identity {
    number: u64,
    info: AuthInfo,
    /// Who waits to hear whether the server accepts it.
    waiting: Option<Waiting>,
    /// Some server has accepted it.
    accepted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: RequestId,
    /// As long as there is no connection, since when it waits for one.
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

    /// A connection is lost on which they were shown.
    pub(super) fn on_disconnected(&mut self, now: Mono) {
        self.sent.clear();
        for waiting in self.known.iter_mut().filter_map(|identity| identity.waiting.as_mut()) {
            waiting.since = now;
        }
    }

    /// Since when the first of those waits who wait for a connection, given that there is none.
    pub(super) fn waiting_since(&self) -> Option<Mono> {
        self.known.iter().filter_map(|identity| identity.waiting).map(|waiting| waiting.since).min()
    }

    /// Those who have waited since `latest` or longer, and get no answer: what they wanted to show is shown to nobody.
    pub(super) fn give_up(&mut self, latest: Mono) -> Vec<RequestId> {
        let mut given_up = Vec::new();
        self.known.retain(|identity| {
            let overdue = identity.waiting.filter(|waiting| waiting.since <= latest);
            given_up.extend(overdue.map(|waiting| waiting.id));
            overdue.is_none()
        });
        given_up
    }

    /// The same of all who wait.
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

    /// Shows all identities on a new connection.
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
            // Refused at its first showing: this one is not shown again, the others stay.
            Some(Waiting { id, .. }) if fatal => {
                self.identities.known.remove(place);
                effects.push(Effect::Failed { id, failure: Failure::AuthFailed });
            }
            Some(Waiting { id, .. }) => effects.push(Effect::Reply { id, asked: now, zxid: None, error }),
            // One of several servers refuses what another accepts: the next may do better.
            None if accepted => self.drop_link(now, effects),
            None => self.end(Failure::AuthFailed, effects),
        }
    }
}
