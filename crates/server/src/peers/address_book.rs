//! Where each server is, as far as this one knows.

use ostler_proto::{
    id::ServerId,
    membership::{Member, Membership, PeerAddress},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Servers that no configuration names. Whoever has greeted longest ago gives way: it greets again if it is there.
const HEARD_OF_MAX: usize = 100;

/// The servers of the configuration, and those that said themselves where they are.
#[derive(Debug)]
pub(crate) struct AddressBook {
    pages: Mutex<Pages>,
    /// Servers may come that no configuration names yet.
    strangers: bool,
    me: ServerId,
    /// This server in the configuration in force.
    own: watch::Sender<Option<Member>>,
}

#[derive(Debug, Default)]
struct Pages {
    members: BTreeMap<ServerId, Member>,
    /// The last to greet is the last.
    heard_of: VecDeque<(ServerId, Member)>,
}

impl Pages {
    fn find(&self, server: ServerId) -> Option<&Member> {
        let heard_of = || self.heard_of.iter().find(|(id, _)| *id == server).map(|(_, member)| member);
        self.members.get(&server).or_else(heard_of)
    }
}

impl AddressBook {
    /// With the servers of these configurations, of which the first is in force.
    pub(crate) fn new<'m>(
        me: ServerId,
        all: impl IntoIterator<Item = &'m Membership>,
        strangers: bool,
    ) -> AddressBook {
        let book = AddressBook { pages: Mutex::default(), strangers, me, own: watch::Sender::new(None) };
        book.replace(all);
        book
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these are the configurations. The first is in force; a later one wins where they differ.
    pub(crate) fn replace<'m>(&self, all: impl IntoIterator<Item = &'m Membership>) {
        let all: Vec<&Membership> = all.into_iter().collect();
        let own = all.first().and_then(|in_force| in_force.servers.get(&self.me)).cloned();
        self.own.send_if_modified(|before| {
            let changed = *before != own;
            *before = own;
            changed
        });
        let members = all.into_iter().flat_map(|membership| membership.servers.clone()).collect();
        self.lock().members = members;
    }

    /// This server as the configuration in force has it, now and at each change.
    pub(crate) fn own(&self) -> watch::Receiver<Option<Member>> {
        self.own.subscribe()
    }

    /// A server's addresses.
    pub(crate) fn find(&self, server: ServerId) -> Option<Member> {
        self.lock().find(server).cloned()
    }

    /// Whether a server can be called.
    pub(crate) fn has(&self, server: ServerId) -> bool {
        self.lock().find(server).is_some()
    }

    /// A server has said where its election port is. `false` if it has no business here.
    pub(crate) fn heard_of(&self, server: ServerId, election: Option<(String, u16)>) -> bool {
        let mut pages = self.lock();
        if pages.members.contains_key(&server) {
            return true;
        }
        if !self.strangers {
            return false;
        }
        if let Some((host, election_port)) = election {
            let addresses = vec![PeerAddress { host, quorum_port: 0, election_port }];
            pages.heard_of.retain(|(id, _)| *id != server);
            if pages.heard_of.len() >= HEARD_OF_MAX {
                pages.heard_of.pop_front();
            }
            pages.heard_of.push_back((server, Member { addresses, observer: true, client: None }));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_greeted_longest_ago_gives_way_to_who_comes() {
        let membership = Membership::parse("server.1=a:1:2").unwrap();
        let book = AddressBook::new(ServerId(1), [&membership], true);
        let greets = |id: i64| book.heard_of(ServerId(id), Some((format!("h{id}"), 3)));
        let last = 10 + HEARD_OF_MAX as i64;
        assert!((10..last).all(greets));
        assert!(greets(10), "it is known already");
        assert!(greets(last) && greets(last + 1));
        for (id, known) in [(1, true), (10, true), (11, false), (12, false), (13, true), (last + 1, true)] {
            assert_eq!(book.has(ServerId(id)), known, "{id}");
        }
        assert!(book.heard_of(ServerId(7), None) && !book.has(ServerId(7)));
    }
}
