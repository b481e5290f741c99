//! A server or an ensemble, a client behind a proxy that can cut it off at any message, and one that goes there
//! straight.

use crate::servers::{Attach, Ensemble, PATIENCE, Servers, connect_string, faults, patiently};
use ostler_client::{Client, ClientBuilder, Error, RetryPolicy, SessionId};
use ostler_testkit::{Counts, CutPoint, FrameProxy, SeenFrame, TestOptions, TestServer, TestkitError};
use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

/// With this chance a client tries three servers in the order in which they are named.
const IN_ORDER: u64 = 1;

pub(crate) struct World<S = TestServer> {
    pub(crate) server: Arc<S>,
    pub(crate) proxy: FrameProxy,
    /// Goes through the proxy.
    pub(crate) client: Client,
    /// Goes straight to the servers.
    pub(crate) other: Client,
    /// The root of both clients.
    root: String,
}

fn options() -> TestOptions {
    TestOptions::new().setting("extendedTypesEnabled", "true")
}

pub(crate) async fn server() -> Arc<TestServer> {
    Arc::new(TestServer::start_with(options()).await.unwrap())
}

pub(crate) async fn ensemble() -> Arc<Ensemble> {
    Arc::new(Ensemble::start(options()).await)
}

pub(crate) fn builder(servers: &str) -> ClientBuilder {
    Client::builder(servers)
        .session_timeout(Duration::from_secs(30))
        .retry(RetryPolicy::times(100, Duration::from_millis(2)))
        .seed(IN_ORDER)
}

impl World {
    pub(crate) async fn new() -> World {
        World::on(server().await, "/w", None).await
    }

    /// At a server that others use as well. The cut is for the client's connection, from its handshake on.
    pub(crate) async fn on(server: Arc<TestServer>, root: &str, cut: Option<CutPoint>) -> World {
        let addresses = server.addresses();
        World::with_root(server, root, &addresses, cut).await
    }
}

impl World<Ensemble> {
    /// At an ensemble that others use as well. The client tries the leader first, or a follower, and what it sends and
    /// hears is counted once it is there.
    pub(crate) async fn attached(ensemble: Arc<Ensemble>, root: &str, attach: Attach) -> World<Ensemble> {
        patiently("the ensemble is whole", ensemble.until_whole()).await;
        let addresses = patiently("it has a leader", ensemble.addresses_from(attach)).await;
        let world = World::with_root(ensemble, root, &addresses, None).await;
        assert_eq!(world.proxy.seen().first(), Some(&SeenFrame::Handshake { number: 1, server: 0 }));
        patiently("the client syncs", world.client.sync("/")).await.unwrap();
        world.proxy.reset();
        world
    }
}

impl<S: Servers> World<S> {
    /// With a root of its own.
    async fn with_root(
        server: Arc<S>,
        root: &str,
        addresses: &[SocketAddr],
        cut: Option<CutPoint>,
    ) -> World<S> {
        // Not where the client begins: at a leader that does not know yet that it is none, `sync` waits for nobody.
        let elsewhere = if addresses.len() > 1 { &addresses[1..] } else { addresses };
        let direct = builder(&connect_string(elsewhere)).connect();
        let direct = patiently("the other client connects", direct).await.unwrap();
        patiently("the root is made", direct.create(root, b"")).await.unwrap();
        let other = direct.using_namespace(root).unwrap();
        let proxy = FrameProxy::start_for(addresses).await.unwrap();
        if let Some(cut) = cut {
            proxy.cut_at(cut);
        }
        let client = builder(&format!("{}{root}", proxy.connect_string())).connect();
        let client = patiently("the client connects", client).await.unwrap();
        World { server, proxy, client, other, root: root.to_owned() }
    }

    /// Another client that goes straight to the servers.
    pub(crate) async fn another(&self) -> Client {
        self.another_at(&self.server.addresses()).await
    }

    /// The same; it tries the servers in this order.
    pub(crate) async fn another_at(&self, servers: &[SocketAddr]) -> Client {
        builder(&format!("{}{}", connect_string(servers), self.root)).connect().await.unwrap()
    }

    /// The other client sees all that the client has been answered: its own server can be behind.
    pub(crate) async fn let_other_see(&self) {
        self.other.sync("/").await.unwrap();
    }

    /// The client sees all that the other one has been answered.
    pub(crate) async fn let_client_see(&self) {
        until_answered(|| self.client.sync("/")).await.unwrap();
    }

    /// Ends the client's session at the servers, which disconnect the client.
    pub(crate) async fn expire(&self) {
        loop {
            let session = self.client.session().await.unwrap();
            match self.server.expire(session.id()).await {
                Err(TestkitError::NoSession(_)) => session.ended().await,
                expired => return expired.unwrap(),
            }
        }
    }

    /// The same, whatever the client makes of it: it can have ended already, and the client not know yet.
    pub(crate) async fn expire_now(&self) {
        if let Some(session) = self.client.session_id() {
            self.expire_session(session).await;
        }
    }

    /// Expires a session, if it is not over.
    pub(crate) async fn expire_session(&self, session: SessionId) {
        match self.server.expire(session).await {
            Err(TestkitError::NoSession(_)) => {}
            expired => expired.unwrap(),
        }
    }

    pub(crate) async fn until(&self, wanted: impl FnMut(&Counts) -> bool + Send + 'static) {
        self.server.until(wanted).await.unwrap();
    }

    /// Waits until the servers hold no watch.
    pub(crate) async fn no_watches(&self) {
        within(self.until(|counts| counts.watches == 0)).await;
    }

    /// Waits until the servers hold no ephemeral znode.
    pub(crate) async fn no_ephemerals(&self) {
        within(self.until(|counts| counts.ephemerals == 0)).await;
    }

    /// Gives the planned cuts that have happened.
    pub(crate) async fn end(self) -> Vec<CutPoint> {
        self.no_watches().await;
        self.client.close().await;
        self.no_ephemerals().await;
        self.other.close().await;
        self.proxy.cuts()
    }
}

/// Asks again in the next session, if one has ended.
pub(crate) async fn until_answered<T, F>(mut ask: impl FnMut() -> F) -> Result<T, Error>
where
    F: IntoFuture<Output = Result<T, Error>>,
{
    loop {
        match ask().await {
            Err(error) if error.is_connection_trouble() || error.is_session_over() => {}
            answer => return answer,
        }
    }
}

pub(crate) async fn within<T>(wait: impl Future<Output = T>) -> T {
    patiently("it", wait).await
}

/// Plays an exchange undisturbed, on a server that others use as well; gives its requests and events.
async fn count(server: &Arc<TestServer>, exchange: &impl AsyncFn(&World)) -> (u64, u64) {
    let play = async |number: usize| {
        let world = World::on(server.clone(), &format!("/whole-{number}"), None).await;
        within(exchange(&world)).await;
        let counted = (world.proxy.requests(), world.proxy.events());
        within(world.end()).await;
        counted
    };
    faults::count(play).await
}

/// Plays an exchange for each place at which the client's connection can break. After each there must be no watch left,
/// and no ephemeral znode once the client is closed.
pub(crate) async fn at_every_cut(exchange: impl AsyncFn(&World)) {
    let server = server().await;
    let (requests, events) = count(&server, &exchange).await;
    let play = async |number: usize, point: &CutPoint| {
        let world = World::on(server.clone(), &format!("/cut-{number}"), Some(*point)).await;
        let what = format!("cut {point} of {requests} requests, {events} events");
        patiently(&what, exchange(&world)).await;
        let happened = faults::comes_to(&world.proxy, *point);
        let ended = tokio::time::timeout(PATIENCE, world.end()).await;
        let cuts = ended.unwrap_or_else(|_| panic!("{what}: watches or ephemerals are left"));
        assert!(!happened || cuts == [*point], "{what}: {cuts:?}");
        happened
    };
    let cuts = faults::at_each(CutPoint::all(requests, events), play).await;
    println!("{requests} requests and {events} events: {cuts} cuts");
}

/// Plays an exchange; at one of its messages, if it comes to that, something happens before the connection breaks.
/// Gives what comes of both.
pub(crate) async fn struck_at<S, T, U>(
    world: &World<S>,
    point: CutPoint,
    exchange: impl Future<Output = T>,
    strike: impl Future<Output = U>,
) -> (T, Option<U>) {
    let mut held = world.proxy.hold_at(point);
    let strike = async {
        // Another order of messages can need fewer of them, and a frame that is to be held can be lost with its
        // connection.
        held.reached().await.ok()?;
        let struck = strike.await;
        held.cut();
        Some(struck)
    };
    let (mut strike, mut exchange) = (pin!(strike), pin!(exchange));
    tokio::select! {
        struck = &mut strike => (exchange.await, struck),
        done = &mut exchange => match faults::comes_to(&world.proxy, point) {
            true => (done, strike.await),
            false => (done, None),
        },
    }
}

/// Plays an exchange for each number of requests after which the client's session ends.
pub(crate) async fn with_expiry_after_every_request(exchange: impl AsyncFn(&World)) {
    let server = server().await;
    let (requests, _) = count(&server, &exchange).await;
    let play = async |number: usize, point: &CutPoint| {
        let world = World::on(server.clone(), &format!("/expiry-{number}"), None).await;
        let what = format!("expiry {point} of {requests}");
        let both = struck_at(&world, *point, exchange(&world), world.expire_now());
        let ((), struck) = patiently(&what, both).await;
        let ended = tokio::time::timeout(PATIENCE, world.end()).await;
        assert!(ended.is_ok(), "{what}: watches or ephemerals are left");
        struck.is_some()
    };
    let expired = faults::at_each((2..=requests).map(CutPoint::BeforeRequest), play).await;
    println!("{requests} requests, the session ended instead of {expired}");
}
