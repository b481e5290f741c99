//! Changes of the servers that a client knows, and of the server that it is connected to.

use crate::{
    client::Client,
    connect_string::{self, HostPort},
    error::{Error, Result},
    servers::Servers,
    shared::Shared,
    tracing,
};
use ostler_client_core::OnChange;
use std::sync::Arc;

/// The list of a client's servers, for what changes it.
#[derive(Debug, Clone)]
pub(crate) struct ServerList {
    pub(crate) shared: Arc<Shared>,
    pub(crate) servers: Arc<Servers>,
}

impl ServerList {
    pub(crate) fn replace(&self, hosts: &[HostPort], on_change: OnChange) {
        if hosts.is_empty() || hosts == self.servers.all() {
            return;
        }
        tracing::debug!(?hosts, "the servers have changed");
        let ranked = self.servers.replace(hosts);
        self.shared.replace_servers(&ranked, on_change);
    }
}

impl Client {
    /// The servers that this client knows now: those of the connect string, or of the last change.
    pub fn servers(&self) -> Vec<HostPort> {
        self.handle.dialer.hosts.all()
    }

    /// The server that this client is connected to, if it is.
    pub fn connected_server(&self) -> Option<HostPort> {
        self.handle.dialer.hosts.get(self.shared().server()?)
    }

    /// Replaces the servers by those in `servers`, `host1:2181,host2:2181`. The session goes on. ZooKeeper's
    /// `updateServerList`.
    ///
    /// The session moves to another server if its server is not in the new list. If there are more servers than before, it
    /// moves with the probability at which all servers get equally many clients, once all of them have the new list. It
    /// moves as by [`change_server`](Client::change_server).
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// client.update_server_list("zoo1.example:2181,zoo2.example:2181")?;
    /// assert_eq!(client.servers().len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ConnectString`], also if there is a root: the root of a client does not change.
    pub fn update_server_list(&self, servers: &str) -> Result<()> {
        let parsed = connect_string::parse(servers)?;
        if !parsed.chroot.is_none() {
            return Err(Error::ConnectString {
                text: servers.into(),
                problem: "a list of servers has no root",
            });
        }
        let list = ServerList { shared: self.shared().clone(), servers: self.handle.dialer.hosts.clone() };
        list.replace(&parsed.hosts, OnChange::Rebalance);
        Ok(())
    }

    /// Leaves the server for another one, and keeps the session: for a server that is slow, too far away or about to be
    /// stopped. Without a connection, and with one server only, it has no effect.
    ///
    /// Requests that were handed over before are answered first, for at most a quarter of the session's timeout; later
    /// ones wait for the next server. The state is `Suspended` between the two connections, so holders of locks pause.
    ///
    /// The client never does this by itself. A slow answer can come from a full disk of the leader, a large request or
    /// this machine, and a move helps with none of them. If many clients moved off a busy server at once, they would
    /// overload the next one. A program that knows more can decide by [`metrics`](Client::metrics).
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// println!("leaving {:?}", client.connected_server().map(|server| server.to_string()));
    /// client.change_server();
    /// # Ok(()) }
    /// ```
    pub fn change_server(&self) {
        self.shared().change_server();
    }
}
