//! The network between the members of an ensemble: a proxy in front of each of their two peer ports. It finds out which
//! member calls, and applies the faults of that link.

mod caller;
mod links;
mod port_proxy;

pub(crate) use links::Links;

use crate::{error::TestkitError, port::ReservedPort, runtime::OwnRuntime};
use ostler_proto::id::ServerId;
use ostler_server::PeerListeners;
use port_proxy::PortProxy;
use std::{collections::BTreeMap, net::TcpListener};
use tokio::{sync::watch, task::JoinHandle};

/// One of the two peer ports of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerPort {
    Quorum,
    Election,
}

/// The ports at which the others reach a member.
#[derive(Debug)]
pub(crate) struct PeerPorts {
    pub(crate) quorum: ReservedPort,
    pub(crate) election: ReservedPort,
}

#[derive(Debug)]
pub(crate) struct Network {
    links: watch::Sender<Links>,
    proxies: BTreeMap<ServerId, [JoinHandle<()>; 2]>,
    runtime: OwnRuntime,
}

impl Network {
    pub(crate) fn new() -> Result<Network, TestkitError> {
        let links = watch::Sender::new(Links::default());
        Ok(Network { links, proxies: BTreeMap::new(), runtime: OwnRuntime::new("test-network")? })
    }

    /// Changes the faults of links.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Links)) {
        self.links.send_modify(change);
    }

    /// Opens the proxies of a member. Returns the listeners at which their connections arrive.
    pub(crate) fn open(
        &mut self,
        server: ServerId,
        ports: &PeerPorts,
    ) -> Result<PeerListeners, TestkitError> {
        let _context = self.runtime.handle().enter();
        let (quorum, quorum_proxy) = self.proxy(server, &ports.quorum, PeerPort::Quorum)?;
        let (election, election_proxy) = self.proxy(server, &ports.election, PeerPort::Election)?;
        self.proxies.insert(server, [quorum_proxy, election_proxy]);
        Ok(PeerListeners { quorum, election })
    }

    fn proxy(
        &self,
        server: ServerId,
        public: &ReservedPort,
        port: PeerPort,
    ) -> Result<(TcpListener, JoinHandle<()>), TestkitError> {
        let behind = TcpListener::bind("127.0.0.1:0").map_err(TestkitError::Port)?;
        let target = behind.local_addr().map_err(TestkitError::Port)?;
        let listener = public.listen()?;
        let proxy = PortProxy { server, port, target, links: self.links.clone() };
        Ok((behind, self.runtime.handle().spawn(proxy.accept(listener))))
    }

    /// Closes the proxies of a member that is down, so that its ports refuse connections. Connections end by themselves, as
    /// far as the faults of the links let the others notice.
    pub(crate) async fn close(&mut self, server: ServerId) {
        for proxy in self.proxies.remove(&server).into_iter().flatten() {
            proxy.abort();
            let _ = proxy.await;
        }
    }
}
