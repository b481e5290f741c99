//! A client whose connection the test can cut, and a second client that stays connected.

use crate::{proxy::Proxy, server::TestServer};
use ostler_client::{Client, ClientBuilder, ConnectionState, RetryPolicy};
use std::time::Duration;

/// A client without retries behind a proxy, and a second client with a direct connection.
pub(crate) struct Stage {
    _server: TestServer,
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
    pub(crate) direct: Client,
}

impl Stage {
    pub(crate) async fn set() -> Stage {
        Stage::with(|builder| builder).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Stage {
        let server = TestServer::start_with(|config| config.sessions.min_session_timeout_ms = 100);
        let proxy = Proxy::to(server.address).await;
        let builder = Client::builder(&proxy.address.to_string()).retry(RetryPolicy::none());
        let builder = adjust(builder.session_timeout(Duration::from_secs(6)));
        let client = builder.connect().await.unwrap();
        let direct = server.client().await;
        direct.create("/p", b"").await.unwrap();
        direct.create("/p/x", b"").await.unwrap();
        Stage { _server: server, proxy, client, direct }
    }

    /// Cuts the connection at this message. There is no connection until [`Stage::reopen`].
    pub(crate) fn lose_at(&self, message: i64) {
        self.proxy.shut(true);
        self.proxy.cut_at(message);
    }

    pub(crate) fn reopen(&self) {
        self.proxy.cut_at(i64::MIN / 2);
        self.proxy.shut(false);
    }

    /// Cuts the connection now. There is no connection until [`Stage::reopen`].
    pub(crate) async fn lose(&self) {
        self.proxy.shut(true);
        self.proxy.cut();
        self.reaches(ConnectionState::Suspended).await;
    }

    pub(crate) async fn reaches(&self, wanted: ConnectionState) {
        let mut states = self.client.states();
        while states.next().await.unwrap().state != wanted {}
    }

    pub(crate) async fn is_there(&self) -> bool {
        self.direct.exists("/p/x").await.unwrap().is_some()
    }

    pub(crate) async fn until_gone(&self) {
        while let (Some(_), changed) = self.direct.exists("/p/x").watch().await.unwrap() {
            let deleted = tokio::time::timeout(Duration::from_secs(10), changed).await;
            deleted.expect("the znode is not deleted").unwrap();
        }
    }

    /// Waits until the client has had this number of replies to deletes.
    pub(crate) async fn until_answered(&self, replies: u64) {
        let answered = |client: &Client| client.metrics().operations.get("delete").map_or(0, |of| of.replies);
        let client = self.client.with_retry(RetryPolicy::forever(Duration::from_millis(5)));
        while answered(&client) < replies {
            client.exists("/").await.unwrap();
        }
        // Requests that follow from that reply were sent before this one, so they are done when it is answered.
        client.exists("/").await.unwrap();
    }
}
