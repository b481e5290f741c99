//! What is between the members of an ensemble: each is reached through a proxy before each of its two ports, which
//! finds out who calls and does to the bytes what the test wants.

mod caller;
mod door;
mod links;

pub(crate) use links::Links;

use crate::{error::TestkitError, port::ReservedPort, runtime::OwnRuntime};
use door::Door;
use ostler_proto::id::ServerId;
use ostler_server::PeerListeners;
use std::{collections::BTreeMap, net::TcpListener};
use tokio::{sync::watch, task::JoinHandle};

/// Which of a member's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerPort {
    Quorum,
    Election,
}

/// Where the others reach a member.
#[derive(Debug)]
pub(crate) struct PeerPorts {
    pub(crate) quorum: ReservedPort,
    pub(crate) election: ReservedPort,
}

#[derive(Debug)]
pub(crate) struct Network {
    links: watch::Sender<Links>,
    doors: BTreeMap<ServerId, [JoinHandle<()>; 2]>,
    runtime: OwnRuntime,
}

impl Network {
    pub(crate) fn new() -> Result<Network, TestkitError> {
        let links = watch::Sender::new(Links::default());
        Ok(Network { links, doors: BTreeMap::new(), runtime: OwnRuntime::new("test-network")? })
    }

    /// Changes the rules.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Links)) {
        self.links.send_modify(change);
    }

    /// Listens for a member. What comes arrives at the sockets that are returned.
    pub(crate) fn open(
        &mut self,
        server: ServerId,
        ports: &PeerPorts,
    ) -> Result<PeerListeners, TestkitError> {
        let _context = self.runtime.handle().enter();
        let (quorum, quorum_door) = self.door(server, &ports.quorum, PeerPort::Quorum)?;
        let (election, election_door) = self.door(server, &ports.election, PeerPort::Election)?;
        self.doors.insert(server, [quorum_door, election_door]);
        Ok(PeerListeners { quorum, election })
    }

    fn door(
        &self,
        server: ServerId,
        public: &ReservedPort,
        port: PeerPort,
    ) -> Result<(TcpListener, JoinHandle<()>), TestkitError> {
        let behind = TcpListener::bind("127.0.0.1:0").map_err(TestkitError::Port)?;
        let target = behind.local_addr().map_err(TestkitError::Port)?;
        let listener = public.listen()?;
        let door = Door { server, port, target, links: self.links.clone() };
        Ok((behind, self.runtime.handle().spawn(door.accept(listener))))
    }

    /// A member is down: its ports refuse. Connections end with it by themselves, as far as the rules let that be
    /// known.
    pub(crate) async fn close(&mut self, server: ServerId) {
        for door in self.doors.remove(&server).into_iter().flatten() {
            door.abort();
            let _ = door.await;
        }
    }
}
