//! The servers of a client by their numbers, which the session uses.

use crate::connect_string::HostPort;
use ostler_client_core::RankedHost;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

/// The rank of a server; those of a lower rank are tried first.
pub(crate) type RankOf = Arc<dyn Fn(HostPort) -> u8 + Send + Sync>;

/// The servers that a client may connect to. The list can change.
pub(crate) struct Servers {
    listed: RwLock<Listed>,
    rank: Option<RankOf>,
}

#[derive(Debug, Default)]
struct Listed {
    /// The present list, without duplicates.
    current: Vec<usize>,
    /// Those of the present list and of the one before it: an attempt at one of those may still begin.
    by_number: HashMap<usize, HostPort>,
    next_number: usize,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter().map(HostPort::to_string)).finish()
    }
}

impl Servers {
    pub(crate) fn new(hosts: Vec<HostPort>, rank: Option<RankOf>) -> Servers {
        // A connect string may name a server twice. It then gets twice as many clients, as with ZooKeeper's client.
        let by_number: HashMap<usize, HostPort> = hosts.into_iter().enumerate().collect();
        let next_number = by_number.len();
        let listed = Listed { current: (0..next_number).collect(), by_number, next_number };
        Servers { listed: RwLock::new(listed), rank }
    }

    /// The server with this number, if it is still known.
    pub(crate) fn get(&self, number: usize) -> Option<HostPort> {
        self.read(|listed| listed.by_number.get(&number).cloned())
    }

    /// The present list.
    pub(crate) fn all(&self) -> Vec<HostPort> {
        self.read(|listed| {
            listed.current.iter().filter_map(|number| listed.by_number.get(number).cloned()).collect()
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.read(|listed| listed.current.len())
    }

    /// The numbers of the present list.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        self.read(|listed| listed.current.clone())
    }

    /// The ranks of the present list, in its order.
    pub(crate) fn ranks(&self) -> Vec<u8> {
        self.all().iter().map(|server| self.rank(server)).collect()
    }

    /// Replaces the list. A server that was in it before keeps its number.
    pub(crate) fn replace(&self, hosts: &[HostPort]) -> Vec<RankedHost> {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let former = listed.current.clone();
        let mut current: Vec<usize> = Vec::new();
        for server in hosts {
            let known =
                former.iter().chain(&current).find(|number| listed.by_number.get(*number) == Some(server));
            let number = known.copied().unwrap_or(listed.next_number);
            if !current.contains(&number) {
                current.push(number);
            }
            if number == listed.next_number {
                listed.next_number += 1;
                listed.by_number.insert(number, server.clone());
            }
        }
        listed.by_number.retain(|number, _| current.contains(number) || former.contains(number));
        let ranked = |number: &usize| RankedHost {
            host: *number,
            rank: listed.by_number.get(number).map_or(0, |server| self.rank(server)),
        };
        let ranked = current.iter().map(ranked).collect();
        listed.current = current;
        ranked
    }

    fn rank(&self, server: &HostPort) -> u8 {
        self.rank.as_ref().map_or(0, |rank| rank(server.clone()))
    }

    fn read<T>(&self, look: impl FnOnce(&Listed) -> T) -> T {
        look(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &str) -> Vec<HostPort> {
        names.chars().map(|name| HostPort::new(name, 1)).collect()
    }

    fn numbers(servers: &Servers, names: &str) -> Vec<usize> {
        servers.replace(&hosts(names)).iter().map(|ranked| ranked.host).collect()
    }

    #[test]
    fn a_server_keeps_its_number_and_no_number_is_used_again() {
        let servers = Servers::new(hosts("abc"), None);
        assert_eq!(numbers(&servers, "cda"), [2, 3, 0]);
        assert_eq!(servers.get(1), Some(HostPort::new("b", 1)), "an attempt at b may still begin");
        assert_eq!(numbers(&servers, "bb"), [4]);
        assert_eq!((servers.get(1), servers.len()), (None, 1));
    }

    #[test]
    fn the_memory_of_former_servers_is_bounded() {
        let servers = Servers::new(hosts("a"), None);
        for n in 0..1000 {
            servers.replace(&[HostPort::new(format!("h{n}"), 1)]);
        }
        assert_eq!(servers.read(|listed| listed.by_number.len()), 2);
    }

    #[test]
    fn ranks_are_those_of_the_application() {
        let rank: RankOf = Arc::new(|server| u8::from(server.host != "b") + server.port as u8);
        let servers = Servers::new(hosts("ab"), Some(rank));
        assert_eq!(servers.ranks(), [2, 1]);
        assert_eq!(
            servers.replace(&hosts("bc")).iter().map(|ranked| ranked.rank).collect::<Vec<_>>(),
            [1, 2]
        );
    }
}
