//! The client follows the ensemble's configuration, `/zookeeper/config`, so that its list of servers stays current.

use crate::{
    builder::ClientBuilder,
    connect_string::{ConnectString, HostPort},
    error::{Error, Result},
    operation::{OperationContext, finish},
    reads,
    retry::RetryPolicy,
    server_list::ServerList,
    tracing,
    watch::{self, Watch},
};
use bytes::Bytes;
use ostler_client_core::{Chroot, OnChange};
use ostler_proto::{
    membership::{Member, Membership},
    path,
    request::{PathWatch, Request},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// The waits after a configuration that could not be read.
const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(60), u32::MAX);

/// Maps a member's address to the one by which this client reaches it.
type Mapping = Arc<dyn Fn(HostPort) -> Option<HostPort> + Send + Sync>;

/// How the client follows the ensemble.
#[derive(Clone)]
pub(crate) struct Following {
    mapping: Option<Mapping>,
    /// With TLS, and without a mapping: the port of all servers.
    port: Option<u16>,
}

impl ClientBuilder {
    /// Follows the ensemble's configuration: when servers are added, removed or moved by `reconfig`, the client knows
    /// their addresses, and needs only one server of its connect string at the start. Off by default. Curator's
    /// `ensembleTracker`.
    ///
    /// The configuration has the addresses that servers have for their clients. They are used only if clients reach the
    /// servers by them: not through a proxy, or from outside of a cluster's network. A configuration without such
    /// addresses is ignored. 0.0.0.0 stands for the server's own name.
    ///
    /// A connection that is up stays, even if its server is no longer in the list, because a removed server answers until
    /// it is stopped. The new list counts from the next attempt on. [`Client::change_server`](crate::Client::change_server) moves
    /// at once.
    ///
    /// With TLS the configuration has the wrong ports. The client then takes the port of the connect string.
    ///
    /// # Errors
    /// The builder fails with [`Error::ConnectString`] if there is TLS, and the connect string has not one port for all
    /// servers.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let servers = server.address.to_string();
    /// use ostler_client::Client;
    ///
    /// let client = Client::builder(&servers).follow_ensemble().await?;
    /// println!("{:?}", client.servers());
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn follow_ensemble(mut self) -> Self {
        self.following = Some(Following { mapping: None, port: None });
        self
    }

    /// [`follow_ensemble`](ClientBuilder::follow_ensemble) for clients that reach the servers by other addresses. `address`
    /// gets the address in the configuration, and returns the one to connect to, or `None` to leave that server out.
    pub fn follow_ensemble_with(
        mut self,
        address: impl Fn(HostPort) -> Option<HostPort> + Send + Sync + 'static,
    ) -> Self {
        self.following = Some(Following { mapping: Some(Arc::new(address)), port: None });
        self
    }
}

impl Following {
    /// # Errors
    /// [`Error::ConnectString`] if the servers' ports for TLS are not known.
    pub(crate) fn checked(self, text: &str, parsed: &ConnectString, tls: bool) -> Result<Following> {
        if !tls || self.mapping.is_some() {
            return Ok(self);
        }
        let port = parsed.hosts.first().map(|server| server.port);
        match port.filter(|port| parsed.hosts.iter().all(|server| server.port == *port)) {
            Some(port) => Ok(Following { port: Some(port), ..self }),
            None => Err(Error::ConnectString {
                text: text.into(),
                problem: "to follow the ensemble by TLS, all servers need one port; \
                          or use follow_ensemble_with",
            }),
        }
    }

    /// Follows the configuration until the client is closed.
    pub(crate) async fn run(self, list: ServerList) {
        let mut refused = 0;
        loop {
            let ended = match read(&list).await {
                Ok((text, watch)) => {
                    refused = 0;
                    self.apply(&list, &text);
                    watch.await.err()
                }
                Err(error) => Some(error),
            };
            match ended {
                None => continue,
                Some(error) if error.is_closed() => return,
                Some(error) => {
                    if refused == 0 && error.code().is_some() {
                        tracing::warn!(%error, "the ensemble's configuration cannot be read");
                    }
                    tracing::debug!(%error, "trying to read the configuration again");
                    refused += 1;
                    sleep(WAITS.next_wait(refused, Duration::ZERO, refused.into()).unwrap_or_default()).await;
                }
            }
        }
    }

    fn apply(&self, list: &ServerList, text: &[u8]) {
        let found = client_addresses(text);
        let mapped = found.into_iter().filter_map(|server| match (&self.mapping, self.port) {
            (Some(mapping), _) => mapping(server),
            (None, Some(port)) => Some(HostPort { port, ..server }),
            (None, None) => Some(server),
        });
        list.replace(&mapped.collect::<Vec<_>>(), OnChange::Stay);
    }
}

/// Reads the configuration, and sets a watch on it. This holds no client: one that is dropped meanwhile is closed.
async fn read(list: &ServerList) -> Result<(Bytes, Watch)> {
    let pending = watch::one_shot(&list.shared, &Chroot::none(), path::CONFIG);
    let request = Request::GetData(PathWatch { path: path::CONFIG.into(), watch: true });
    let call = list.shared.submit(&request, None, Some(pending.guard.id()));
    let context = OperationContext { operation: "getConfig", path: path::CONFIG.into(), session: None };
    let (text, _) = finish(call, &context, |reply| reads::data(&reply.ok()?.body)).await?;
    Ok((text, pending.set()))
}

/// The addresses for clients in the text of a configuration; none if the text is empty, has none, or cannot be read.
fn client_addresses(text: &[u8]) -> Vec<HostPort> {
    let parsed = std::str::from_utf8(text).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|text| Membership::parse(text).map_err(|error| error.to_string()));
    match parsed {
        Ok(membership) => membership.servers.values().filter_map(client_address).collect(),
        Err(problem) => {
            tracing::debug!(problem, "the ensemble's configuration is ignored");
            Vec::new()
        }
    }
}

fn client_address(member: &Member) -> Option<HostPort> {
    let client = member.client.as_ref()?;
    let host = match client.is_wildcard() {
        true => &member.addresses.first()?.host,
        false => &client.host,
    };
    (client.port > 0).then(|| HostPort::new(host, client.port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_clients_are_read_as_curator_reads_them() {
        let all = |text: &str| {
            client_addresses(text.as_bytes()).iter().map(HostPort::to_string).collect::<Vec<_>>().join(" ")
        };
        for (text, addresses) in [
            ("", ""),
            ("version=1", ""),
            ("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=0", ""),
            (
                "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:observer;c:5\nversion=100000000",
                "a:2181 c:5",
            ),
            ("server.10=a:1:2;2181\nserver.9=b:1:2\nversion=a", "a:2181"),
            ("server.1=[2001:db8::1]:1:2:participant;[::]:7", "[2001:db8::1]:7"),
            ("server.1=x", ""),
        ] {
            assert_eq!(all(text), addresses, "{text}");
        }
        assert_eq!(client_addresses(&[0xff]), []);
    }

    #[test]
    fn with_tls_the_connect_string_needs_one_port() {
        let follow = |text: &str, tls| {
            let following = Following { mapping: None, port: None };
            following
                .checked(text, &crate::connect_string::parse(text).unwrap(), tls)
                .map(|following| following.port)
        };
        assert_eq!(follow("a:1,b:2", false).unwrap(), None);
        assert_eq!(follow("a:3,b:3", true).unwrap(), Some(3));
        assert!(follow("a:1,b:2", true).is_err());
    }
}
