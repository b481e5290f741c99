//! A server, a client behind a proxy that can cut it off at any message, and one that nothing happens to.

use ostler_client::{Client, ClientBuilder, RetryPolicy};
use ostler_testkit::{CutPoint, FrameProxy, TestOptions, TestServer, TestkitError};
use std::{sync::Arc, time::Duration};

/// Nothing here takes so long; a test that waits for more hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) server: Arc<TestServer>,
    pub(crate) proxy: FrameProxy,
    /// Goes through the proxy.
    pub(crate) client: Client,
    /// Goes straight to the server.
    pub(crate) other: Client,
    /// The root of both clients.
    root: String,
}

pub(crate) async fn server() -> Arc<TestServer> {
    let options = TestOptions::new().setting("extendedTypesEnabled", "true");
    Arc::new(TestServer::start_with(options).await.unwrap())
}

pub(crate) fn builder(servers: &str) -> ClientBuilder {
    Client::builder(servers)
        .session_timeout(Duration::from_secs(30))
        .retry(RetryPolicy::times(100, Duration::from_millis(2)))
}

impl World {
    pub(crate) async fn new() -> World {
        World::on(server().await, "/w", None).await
    }

    /// With a root of its own at a server that others use as well. The cut is for the client's connection, from its
    /// handshake on.
    async fn on(server: Arc<TestServer>, root: &str, cut: Option<CutPoint>) -> World {
        let direct = builder(&server.connect_string()).connect().await.unwrap();
        direct.create(root, b"").await.unwrap();
        let other = direct.using_namespace(root).unwrap();
        let proxy = FrameProxy::start(server.address()).await.unwrap();
        if let Some(cut) = cut {
            proxy.cut_at(cut);
        }
        let client = builder(&format!("{}{root}", proxy.connect_string())).connect().await.unwrap();
        World { server, proxy, client, other, root: root.to_owned() }
    }

    /// Another client that goes straight to the server.
    pub(crate) async fn another(&self) -> Client {
        builder(&format!("{}{}", self.server.connect_string(), self.root)).connect().await.unwrap()
    }

    /// Ends the client's session at the server, which disconnects the client.
    pub(crate) async fn expire(&self) {
        loop {
            let session = self.client.session().await.unwrap();
            match self.server.expire(session.id()).await {
                Err(TestkitError::NoSession(_)) => session.ended().await,
                expired => return expired.unwrap(),
            }
        }
    }

    /// Waits until the server holds no watch.
    pub(crate) async fn no_watches(&self) {
        within(self.server.until(|counts| counts.watches == 0)).await.unwrap();
    }

    /// Waits until the server holds no ephemeral znode.
    pub(crate) async fn no_ephemerals(&self) {
        within(self.server.until(|counts| counts.ephemerals == 0)).await.unwrap();
    }

    async fn end(self) {
        self.no_watches().await;
        self.client.close().await;
        self.no_ephemerals().await;
        self.other.close().await;
    }
}

pub(crate) async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.expect("it takes too long")
}

/// Plays an exchange undisturbed, and then once for each place at which the client's connection can break. After each
/// there must be no watch left, and no ephemeral znode once the client is closed.
pub(crate) async fn at_every_cut(exchange: impl AsyncFn(&World)) {
    let server = server().await;
    let world = World::on(server.clone(), "/whole", None).await;
    within(exchange(&world)).await;
    let (requests, events) = (world.proxy.requests(), world.proxy.events());
    within(world.end()).await;
    let mut cuts = 0;
    for (number, point) in CutPoint::all(requests, events).enumerate() {
        let world = World::on(server.clone(), &format!("/cut-{number}"), Some(point)).await;
        let result = tokio::time::timeout(PATIENCE, exchange(&world)).await;
        cuts += world.proxy.cuts().len() as u64;
        assert!(result.is_ok(), "cut {point} of {requests} requests, {events} events: it takes too long");
        let ended = tokio::time::timeout(PATIENCE, world.end()).await;
        assert!(ended.is_ok(), "cut {point}: watches or ephemerals are left");
    }
    println!("{requests} requests and {events} events: {cuts} cuts");
    // Where others write at the same time, an exchange can do with fewer messages.
    assert!(cuts * 2 >= requests * 3 + events, "too few of the planned cuts have happened: {cuts}");
}

/// Plays an exchange once for each number of requests after which the client's session ends.
pub(crate) async fn with_expiry_after_every_request(exchange: impl AsyncFn(&World)) {
    let server = server().await;
    let world = World::on(server.clone(), "/whole", None).await;
    within(exchange(&world)).await;
    let requests = world.proxy.requests();
    within(world.end()).await;
    let expired = std::cell::Cell::new(0);
    for number in 2..=requests {
        let world = World::on(server.clone(), &format!("/expiry-{number}"), None).await;
        let mut held = world.proxy.hold_at(CutPoint::BeforeRequest(number));
        let expiry = async {
            // Another order of requests can need fewer of them.
            if held.reached().await.is_ok() {
                world.expire().await;
                held.cut();
                expired.set(expired.get() + 1);
            }
        };
        let both = async {
            let mut expiry = std::pin::pin!(expiry);
            let mut exchange = std::pin::pin!(exchange(&world));
            tokio::select! {
                () = &mut expiry => exchange.await,
                () = &mut exchange => {}
            }
        };
        let result = tokio::time::timeout(PATIENCE, both).await;
        assert!(result.is_ok(), "expiry instead of request {number} of {requests}: it takes too long");
        let ended = tokio::time::timeout(PATIENCE, world.end()).await;
        assert!(ended.is_ok(), "expiry instead of request {number}: watches or ephemerals are left");
    }
    println!("{requests} requests, the session ended instead of {}", expired.get());
    // On a busy machine requests that go together come in fewer frames.
    assert!(expired.get() * 2 >= requests - 1, "too few sessions have ended: {}", expired.get());
}
