//! Identities, shown on every connection.

use super::{Link, Session};
use crate::{
    config::AuthInfo,
    effect::{Effect, Effects, Failure},
    input::RequestId,
    time::Mono,
};
use alloc::{collections::VecDeque, vec::Vec};
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
    waiting: Option<RequestId>,
    /// Some server has accepted it.
    accepted: bool,
}

impl Identities {
    pub(super) fn new(known: &[AuthInfo]) -> Identities {
        let mut identities = Identities::default();
        for info in known {
            identities.add(info.clone(), None);
        }
        identities
    }

    fn add(&mut self, info: AuthInfo, waiting: Option<RequestId>) {
        self.count += 1;
        self.known.push(Identity { number: self.count, info, waiting, accepted: false });
    }

    pub(super) fn on_disconnected(&mut self) {
        self.sent.clear();
    }

    /// Those who wait for an answer, and get none.
    pub(super) fn waiting(&mut self) -> Vec<RequestId> {
        self.known.iter_mut().filter_map(|identity| identity.waiting.take()).collect()
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
    pub(super) fn add_auth(&mut self, id: RequestId, auth: AuthInfo, effects: &mut Effects) {
        if let Link::Ended(failure) = self.link {
            effects.push(Effect::Failed { id, failure });
            return;
        }
        if self.closing.is_some() {
            effects.push(Effect::Failed { id, failure: Failure::Closed });
            return;
        }
        self.identities.add(auth, Some(id));
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
            if let Some(id) = waiting {
                effects.push(Effect::Reply { id, asked: now, zxid: None, error });
            }
            return;
        }
        let (accepted, fatal) = (identity.accepted, error == ErrorCode::AuthFailed.code());
        match waiting {
            // Refused at its first showing: this one is not shown again, the others stay.
            Some(id) if fatal => {
                self.identities.known.remove(place);
                effects.push(Effect::Failed { id, failure: Failure::AuthFailed });
            }
            Some(id) => effects.push(Effect::Reply { id, asked: now, zxid: None, error }),
            // One of several servers refuses what another accepts: the next may do better.
            None if accepted => self.drop_link(now, effects),
            None => self.end(Failure::AuthFailed, effects),
        }
    }
}
