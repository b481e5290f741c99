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
pub(super) const HEARD_OF_MAX: usize = 100;

/// The servers of the configuration, and those that said themselves where they are.
#[derive(Debug)]
pub(crate) struct AddressBook {
    pages: Mutex<Pages>,
    me: ServerId,
    /// This server in the configuration in force.
    own: watch::Sender<Option<Member>>,
}

#[derive(Debug, Default)]
struct Pages {
    members: BTreeMap<ServerId, Member>,
    /// Servers that no configuration names. The last to greet is the last.
    heard_of: VecDeque<(ServerId, Member)>,
    /// Members that have greeted from elsewhere than the configuration has them, and where they are: in a change by one
    /// restart after the other, some servers have new lines and some old ones.
    moved: BTreeMap<ServerId, Member>,
}

impl Pages {
    fn find(&self, server: ServerId) -> Option<&Member> {
        let heard_of = || self.heard_of.iter().find(|(id, _)| *id == server).map(|(_, member)| member);
        self.members.get(&server).or_else(heard_of)
    }
}

impl AddressBook {
    /// With the servers of these configurations, of which the first is in force.
    pub(crate) fn new<'m>(me: ServerId, all: impl IntoIterator<Item = &'m Membership>) -> AddressBook {
        let book = AddressBook { pages: Mutex::default(), me, own: watch::Sender::new(None) };
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
        let mut pages = self.lock();
        (pages.members, pages.moved) = (members, BTreeMap::new());
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

    /// Whether a configuration names a server.
    pub(crate) fn is_member(&self, server: ServerId) -> bool {
        self.lock().members.contains_key(&server)
    }

    /// Where a member is that has moved, as it has said itself.
    pub(crate) fn moved(&self, server: ServerId) -> Option<Member> {
        self.lock().moved.get(&server).cloned()
    }

    /// Whether another server has said that it is where the configuration has this one: two have changed places. Whoever
    /// answers there is not this one.
    pub(crate) fn is_taken(&self, server: ServerId) -> bool {
        let pages = self.lock();
        let Some(member) = pages.members.get(&server) else { return false };
        let place = |at: &PeerAddress| (at.host.to_ascii_lowercase(), at.election_port);
        let own: Vec<_> = member.addresses.iter().map(place).collect();
        let others = pages.moved.iter().filter(|(id, _)| **id != server);
        others.flat_map(|(_, moved)| &moved.addresses).any(|at| own.contains(&place(at)))
    }

    /// A server is where the configuration has it.
    pub(crate) fn is_back(&self, server: ServerId) {
        self.lock().moved.remove(&server);
    }

    /// A server is where it has said that its election port is. A member is called there, if it cannot be had where the
    /// configuration has it, until another configuration comes; whoever is none is called there only.
    pub(crate) fn heard_of(&self, server: ServerId, (host, election_port): (String, u16)) {
        let mut pages = self.lock();
        if let Some(member) = pages.members.get(&server) {
            let quorum_port = member.addresses.first().map_or(0, |at| at.quorum_port);
            let addresses = vec![PeerAddress { host, quorum_port, election_port }];
            let moved = Member { addresses, ..member.clone() };
            pages.moved.insert(server, moved);
            return;
        }
        let addresses = vec![PeerAddress { host, quorum_port: 0, election_port }];
        pages.heard_of.retain(|(id, _)| *id != server);
        if pages.heard_of.len() >= HEARD_OF_MAX {
            pages.heard_of.pop_front();
        }
        pages.heard_of.push_back((server, Member { addresses, observer: true, client: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_greeted_longest_ago_gives_way_to_who_comes() {
        let membership = Membership::parse("server.1=a:1:2").unwrap();
        let book = AddressBook::new(ServerId(1), [&membership]);
        let greets = |id: i64| book.heard_of(ServerId(id), (format!("h{id}"), 3));
        let last = 10 + HEARD_OF_MAX as i64;
        (10..last).for_each(greets);
        // It is known already.
        greets(10);
        (last..last + 2).for_each(greets);
        for (id, known) in [(1, true), (10, true), (11, false), (12, false), (13, true), (last + 1, true)] {
            assert_eq!(book.has(ServerId(id)), known, "{id}");
        }
    }

    #[test]
    fn two_that_have_changed_places_are_not_where_they_are_listed() {
        let membership = Membership::parse("server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2").unwrap();
        let book = AddressBook::new(ServerId(3), [&membership]);
        let taken = || [1, 2, 3].map(|id| book.is_taken(ServerId(id)));
        book.heard_of(ServerId(1), ("b".into(), 2));
        assert_eq!(taken(), [false, true, false]);
        book.heard_of(ServerId(2), ("a".into(), 2));
        assert_eq!(taken(), [true, true, false]);
        book.heard_of(ServerId(1), ("b".into(), 9));
        assert_eq!(taken(), [true, false, false], "another port is another place");
        book.replace([&membership]);
        assert_eq!(taken(), [false; 3]);
    }

    #[test]
    fn a_member_that_has_moved_is_called_there_until_another_configuration_comes() {
        let membership = Membership::parse("server.1=a:1:2\nserver.2=b:1:2").unwrap();
        let book = AddressBook::new(ServerId(1), [&membership]);
        let two = ServerId(2);
        book.heard_of(two, ("c".into(), 3));
        assert_eq!(book.moved(two).unwrap().addresses[0].host, "c");
        assert_eq!(book.find(two).unwrap().addresses[0].host, "b", "the configuration does not change");
        book.is_back(two);
        assert_eq!(book.moved(two), None);
        book.heard_of(two, ("c".into(), 3));
        book.replace([&membership]);
        assert_eq!(book.moved(two), None);
    }
}
