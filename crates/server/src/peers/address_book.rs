//! The addresses of all servers, as far as this server knows them.

use ostler_proto::{
    id::ServerId,
    membership::{Member, Membership, PeerAddress},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The number of servers that are kept although no configuration names them. Beyond it the one whose greeting is the
/// oldest is dropped. It comes back with its next greeting.
pub(super) const UNLISTED_MAX: usize = 100;

/// The servers of the configuration, and those that named an address in their greeting.
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
    /// Servers that no configuration names, in the order of their last greetings.
    unlisted: VecDeque<(ServerId, Member)>,
    /// The new addresses of members whose greetings came from other addresses than those of the configuration. This happens
    /// while servers are restarted one by one with new server.N lines.
    moved: BTreeMap<ServerId, Member>,
    /// See [`AddressBook::own_member`].
    own: Option<Member>,
}

impl Pages {
    fn find(&self, server: ServerId) -> Option<&Member> {
        let unlisted = || self.unlisted.iter().find(|(id, _)| *id == server).map(|(_, member)| member);
        self.members.get(&server).or_else(unlisted)
    }
}

impl AddressBook {
    /// A book with the servers of these configurations, of which the first is in force.
    pub(crate) fn new<'m>(me: ServerId, all: impl IntoIterator<Item = &'m Membership>) -> AddressBook {
        let book = AddressBook { pages: Mutex::default(), me, own: watch::Sender::new(None) };
        book.replace(all);
        book
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the configurations. The first is in force; where they differ, a later one counts.
    pub(crate) fn replace<'m>(&self, all: impl IntoIterator<Item = &'m Membership>) {
        let all: Vec<&Membership> = all.into_iter().collect();
        let in_force = all.first().and_then(|in_force| in_force.servers.get(&self.me)).cloned();
        self.own.send_if_modified(|before| {
            let changed = *before != in_force;
            before.clone_from(&in_force);
            changed
        });
        let pending = all.iter().find_map(|membership| membership.servers.get(&self.me)).cloned();
        let members = all.into_iter().flat_map(|membership| membership.servers.clone()).collect();
        let mut pages = self.lock();
        (pages.members, pages.moved) = (members, BTreeMap::new());
        // A change that is not in force yet may be given up. Until then this server listens where it did.
        pages.own = in_force.or(pages.own.take()).or(pending);
    }

    /// The addresses at which the other servers find this one. A server that the configuration does not name any more, or
    /// not yet, keeps its ports and still has to name them in its greetings.
    pub(crate) fn own_addresses(&self) -> Vec<PeerAddress> {
        self.own_member().map_or_else(Vec::new, |own| own.addresses)
    }

    /// This server in the last configuration that was in force and named it; in a pending one if there is none.
    pub(crate) fn own_member(&self) -> Option<Member> {
        self.lock().own.clone()
    }

    /// This server's entry in the configuration in force, now and after each change.
    pub(crate) fn own(&self) -> watch::Receiver<Option<Member>> {
        self.own.subscribe()
    }

    /// A server's addresses, if they are known.
    pub(crate) fn find(&self, server: ServerId) -> Option<Member> {
        self.lock().find(server).cloned()
    }

    /// The hosts of all servers of the configurations.
    pub(super) fn all_hosts(&self) -> Vec<String> {
        let pages = self.lock();
        let addresses = pages.members.values().flat_map(|member| &member.addresses);
        addresses.map(|address| address.host.clone()).collect()
    }

    /// Whether an address of a server is known.
    pub(crate) fn has(&self, server: ServerId) -> bool {
        self.lock().find(server).is_some()
    }

    /// Whether a configuration names a server.
    pub(crate) fn is_member(&self, server: ServerId) -> bool {
        self.lock().members.contains_key(&server)
    }

    /// The address that a member has named in its greeting, if the configuration has another one.
    pub(crate) fn moved(&self, server: ServerId) -> Option<Member> {
        self.lock().moved.get(&server).cloned()
    }

    /// Whether another server has named the address that the configuration has for this one. Then the other server would
    /// answer there.
    pub(crate) fn is_taken(&self, server: ServerId) -> bool {
        let pages = self.lock();
        let Some(member) = pages.members.get(&server) else { return false };
        let address = |at: &PeerAddress| (at.host.to_ascii_lowercase(), at.election_port);
        let own: Vec<_> = member.addresses.iter().map(address).collect();
        let others = pages.moved.iter().filter(|(id, _)| **id != server);
        others.flat_map(|(_, moved)| &moved.addresses).any(|at| own.contains(&address(at)))
    }

    /// Forgets the address that a member has named: it is at the address of the configuration again.
    pub(crate) fn forget_moved(&self, server: ServerId) {
        self.lock().moved.remove(&server);
    }

    /// Notes the election address that a server has named in its greeting. A member is called there only if it cannot be
    /// reached at the address of the configuration, and until the configuration changes.
    pub(crate) fn note_greeting(&self, server: ServerId, (host, election_port): (String, u16)) {
        let mut pages = self.lock();
        if let Some(member) = pages.members.get(&server) {
            let quorum_port = member.addresses.first().map_or(0, |at| at.quorum_port);
            let addresses = vec![PeerAddress { host, quorum_port, election_port }];
            let moved = Member { addresses, ..member.clone() };
            pages.moved.insert(server, moved);
            return;
        }
        let addresses = vec![PeerAddress { host, quorum_port: 0, election_port }];
        pages.unlisted.retain(|(id, _)| *id != server);
        if pages.unlisted.len() >= UNLISTED_MAX {
            pages.unlisted.pop_front();
        }
        pages.unlisted.push_back((server, Member { addresses, observer: true, client: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_unlisted_servers_the_one_with_the_oldest_greeting_is_dropped() {
        let membership = Membership::parse("server.1=a:1:2").unwrap();
        let book = AddressBook::new(ServerId(1), [&membership]);
        let greets = |id: i64| book.note_greeting(ServerId(id), (format!("h{id}"), 3));
        let last = 10 + UNLISTED_MAX as i64;
        (10..last).for_each(greets);
        // A second greeting: server 10 is no longer the oldest.
        greets(10);
        (last..last + 2).for_each(greets);
        for (id, known) in [(1, true), (10, true), (11, false), (12, false), (13, true), (last + 1, true)] {
            assert_eq!(book.has(ServerId(id)), known, "{id}");
        }
    }

    #[test]
    fn an_address_is_taken_once_another_server_has_named_it() {
        let membership = Membership::parse("server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2").unwrap();
        let book = AddressBook::new(ServerId(3), [&membership]);
        let taken = || [1, 2, 3].map(|id| book.is_taken(ServerId(id)));
        book.note_greeting(ServerId(1), ("b".into(), 2));
        assert_eq!(taken(), [false, true, false]);
        book.note_greeting(ServerId(2), ("a".into(), 2));
        assert_eq!(taken(), [true, true, false]);
        book.note_greeting(ServerId(1), ("b".into(), 9));
        assert_eq!(taken(), [true, false, false], "another port is another address");
        book.replace([&membership]);
        assert_eq!(taken(), [false; 3]);
    }

    #[test]
    fn a_server_keeps_its_own_addresses_while_no_configuration_names_it() {
        let hosts = |book: &AddressBook| -> Vec<String> {
            book.own_addresses().into_iter().map(|address| address.host).collect()
        };
        let others = Membership::parse("server.1=a:1:2").unwrap();
        let book = AddressBook::new(ServerId(2), [&others]);
        assert_eq!(hosts(&book), Vec::<String>::new());
        let with_own = Membership::parse("server.1=a:1:2\nserver.2=b:1:2").unwrap();
        book.replace([&others, &with_own]);
        assert_eq!(hosts(&book), ["b"], "a change that is not in force yet names it");
        book.replace([&others]);
        assert_eq!(hosts(&book), ["b"]);
        let moved = Membership::parse("server.1=a:1:2\nserver.2=d:1:2").unwrap();
        book.replace([&others, &moved]);
        assert_eq!(hosts(&book), ["b"], "it listens there until the change is in force");
        book.replace([&Membership::parse("server.2=c:1:2").unwrap()]);
        assert_eq!(hosts(&book), ["c"]);
    }

    #[test]
    fn the_new_address_of_a_member_is_kept_until_the_configuration_changes() {
        let membership = Membership::parse("server.1=a:1:2\nserver.2=b:1:2").unwrap();
        let book = AddressBook::new(ServerId(1), [&membership]);
        let two = ServerId(2);
        book.note_greeting(two, ("c".into(), 3));
        assert_eq!(book.moved(two).unwrap().addresses[0].host, "c");
        assert_eq!(book.find(two).unwrap().addresses[0].host, "b", "the configuration does not change");
        book.forget_moved(two);
        assert_eq!(book.moved(two), None);
        book.note_greeting(two, ("c".into(), 3));
        book.replace([&membership]);
        assert_eq!(book.moved(two), None);
    }
}
