//! Sources of the list of servers, such as a directory or DNS. They are asked at the start, and again when each server
//! has failed.

use crate::{
    builder::ClientBuilder,
    connect_string::{self, ConnectString, HostPort},
    error::{Error, Result},
    retry::RetryPolicy,
    server_list::ServerList,
    tracing,
};
use ostler_client_core::OnChange;
use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// Where a client's servers are looked up.
pub(crate) type ServerSource = Arc<dyn Fn() -> Finding + Send + Sync>;

pub(crate) type Finding = Pin<Box<dyn Future<Output = io::Result<Vec<HostPort>>> + Send>>;

/// How long the source may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The waits after a source that has failed.
const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(10), u32::MAX);
/// The least time between two questions.
const PAUSE: Duration = Duration::from_secs(1);
/// A connect string with this beginning names a record of DNS.
const SRV: &str = "dns-srv://";

/// Reads the connect string. With a source it need not have a server.
pub(crate) fn parse(
    text: &str,
    source: Option<ServerSource>,
) -> Result<(ConnectString, Option<ServerSource>)> {
    if let Some(rest) = text.strip_prefix(SRV) {
        if source.is_some() {
            let problem = "it names servers in DNS, and servers_from names another source";
            return Err(Error::ConnectString { text: text.into(), problem });
        }
        let (name, root) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let source =
            srv_source(name).map_err(|problem| Error::ConnectString { text: text.into(), problem })?;
        return Ok((connect_string::parse_any(root)?, Some(source)));
    }
    match source {
        Some(source) => Ok((connect_string::parse_any(text)?, Some(source))),
        None => Ok((connect_string::parse(text)?, None)),
    }
}

#[cfg(feature = "srv")]
fn srv_source(name: &str) -> std::result::Result<ServerSource, &'static str> {
    crate::srv::source(name)
}

#[cfg(not(feature = "srv"))]
fn srv_source(_: &str) -> std::result::Result<ServerSource, &'static str> {
    Err("servers from DNS need the feature `srv` of ostler-client")
}

/// Asks the source until the client is closed.
pub(crate) async fn run(list: ServerList, source: ServerSource) {
    let mut states = list.shared.subscribe();
    let closed = async move { while states.next().await.is_some() {} };
    let asking = async {
        loop {
            find(&list, &source).await;
            sleep(PAUSE).await;
            list.shared.each_failed.notified().await;
        }
    };
    tokio::select! {
        () = closed => {}
        () = asking => {}
    }
}

/// Asks the source until it has an answer.
async fn find(list: &ServerList, source: &ServerSource) {
    let mut tries = 0;
    loop {
        let found = timeout(ANSWER_WITHIN, source()).await;
        let problem = match found {
            Ok(Ok(servers)) if !servers.is_empty() => return list.replace(&servers, OnChange::Stay),
            Ok(Ok(_)) => "it has no servers".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not answer within {ANSWER_WITHIN:?}"),
        };
        tracing::debug!(problem, "the servers cannot be looked up");
        list.shared.note_error(format!("the servers cannot be looked up: {problem}"));
        tries += 1;
        sleep(WAITS.next_wait(tries, Duration::ZERO, tries.into()).unwrap_or(PAUSE)).await;
    }
}

impl ClientBuilder {
    /// Looks the servers up by `find`, for example in a directory of services. It is called at the start, and again each
    /// time when every server has failed. The connect string may then be only a root, such as `/app`, or empty; servers
    /// in it are tried until `find` has answered. If it fails or finds none, it is called again, after up to 10 s.
    ///
    /// With the feature `srv` there is a source of this kind: for the connect string `dns-srv://_zookeeper._tcp.example/app`
    /// the servers are those of the SRV records of that name. Both together are an
    /// [error](crate::Error::ConnectString).
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let port = server.address.port();
    /// use ostler_client::{Client, HostPort};
    ///
    /// let find = move || async move { Ok(vec![HostPort::new("127.0.0.1", port)]) };
    /// let client = Client::builder("/app").servers_from(find).await?;
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn servers_from<S, F>(mut self, find: S) -> Self
    where
        S: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<HostPort>>> + Send + 'static,
    {
        self.source = Some(Arc::new(move || Box::pin(find())));
        self
    }

    /// Tries the servers first for which `is_preferred` is true, for example those of the same zone. It gets a server
    /// as it is in the list. Among alike servers the order is random, as with ZooKeeper's client, which
    /// shuffles them so that the clients spread evenly.
    ///
    /// If no preferred server can be reached, the client uses another one and stays there, because a move would suspend
    /// its locks. [`Client::change_server`](crate::Client::change_server) makes it return.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let servers = server.address.to_string();
    /// use ostler_client::Client;
    ///
    /// let client = Client::builder(&servers).prefer(|server| server.host.ends_with(".zone-a.example")).await?;
    /// # client.close().await;
    /// # Ok(()) }
    /// ```
    pub fn prefer(self, is_preferred: impl Fn(HostPort) -> bool + Send + Sync + 'static) -> Self {
        self.rank_servers(move |server| u8::from(!is_preferred(server)))
    }

    /// [`prefer`](ClientBuilder::prefer) with more than two ranks: servers of a lower rank are tried first.
    pub fn rank_servers(mut self, rank: impl Fn(HostPort) -> u8 + Send + Sync + 'static) -> Self {
        self.rank = Some(Arc::new(rank));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_source_of_its_servers() {
        let source: ServerSource = Arc::new(|| Box::pin(async { Ok(Vec::new()) }));
        let both = parse("dns-srv://_zookeeper._tcp.example/app", Some(source.clone()));
        let error = both.err().expect("two sources are refused").to_string();
        assert!(error.contains("servers_from"), "{error}");
        assert!(parse("/app", Some(source)).is_ok());
    }
}
