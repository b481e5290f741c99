//! Where each server is, as far as this one knows.

use ostler_proto::{
    id::ServerId,
    membership::{Member, Membership, PeerAddress},
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Servers that no configuration names; more than these are not remembered.
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
    heard_of: BTreeMap<ServerId, Member>,
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
        let pages = self.lock();
        pages.members.get(&server).or_else(|| pages.heard_of.get(&server)).cloned()
    }

    /// A server has said where its election port is. `false` if it has no business here.
    pub(crate) fn heard_of(&self, server: ServerId, election: Option<(String, u16)>) -> bool {
        let mut pages = self.lock();
        if pages.members.contains_key(&server) {
            return true;
        }
        if !self.strangers || pages.heard_of.len() >= HEARD_OF_MAX {
            return false;
        }
        if let Some((host, election_port)) = election {
            let addresses = vec![PeerAddress { host, quorum_port: 0, election_port }];
            pages.heard_of.insert(server, Member { addresses, observer: true, client: None });
        }
        true
    }
}
