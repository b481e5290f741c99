//! A proxy between a client and a server that understands frames, and can break the connection at a chosen one.

mod connection;
mod flow;
mod gate;
mod plan;

pub use flow::Direction;
pub use gate::Held;
pub use plan::{CutPoint, Seen};

use crate::{error::TestkitError, runtime::OwnRuntime};
use connection::Shared;
use flow::Flow;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Passes frames between clients and one server, and numbers them: requests (handshakes included) from 1 on, in the
/// order in which they come from clients, and watch events from 1 on. Pings have no number, and always pass: when they
/// come depends on the clock.
///
/// So a test can break an exchange at each of its messages. It runs the exchange once to see how many there are, and
/// then once for each [`CutPoint`]. While a request waits for the cut at its reply no later request is passed on, so a
/// cut splits even a pipelined exchange at one place: every request before it is done and answered, none after it has
/// reached the server. Only a watch event that is on its way may come through or not.
///
/// Several connections at once (a client that comes back, several clients, several servers) share the numbers and the
/// faults. Four-letter words do not pass: they are no frames.
#[derive(Debug)]
pub struct FrameProxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    // Dropped last: connections end with it.
    _runtime: OwnRuntime,
}

impl FrameProxy {
    /// A proxy on a free port of 127.0.0.1 in front of `server`. It connects anew for each client, so the server may
    /// go and come back.
    pub async fn start(server: SocketAddr) -> Result<FrameProxy, TestkitError> {
        FrameProxy::before(&[server]).await
    }

    /// The same in front of several servers, with a port for each.
    pub async fn before(servers: &[SocketAddr]) -> Result<FrameProxy, TestkitError> {
        let runtime = OwnRuntime::new("test-proxy")?;
        let (shared, mut addresses) = (Arc::new(Shared::default()), Vec::new());
        for (place, server) in servers.iter().enumerate() {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            // On the proxy's own thread, whatever the caller's does.
            let bound = runtime.handle().spawn(bound).await.map_err(|_| TestkitError::Panicked)?;
            let listener = bound.map_err(TestkitError::Port)?;
            addresses.push(listener.local_addr().map_err(TestkitError::Port)?);
            runtime.handle().spawn(accept(listener, (place, *server), shared.clone()));
        }
        Ok(FrameProxy { addresses, shared, _runtime: runtime })
    }

    /// Where clients connect, for each server.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where clients connect to the only server, or the first.
    ///
    /// # Panics
    ///
    /// Without a server.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The same as clients want it: `127.0.0.1:port,127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        let all: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// Breaks the connection when it comes to this point, once.
    pub fn cut_at(&self, point: CutPoint) {
        self.shared.plan().cut_at(point);
    }

    /// Holds the frame at this point, and all behind it in its direction, until the test says what becomes of it.
    pub fn hold_at(&self, point: CutPoint) -> Held {
        let (held, gate) = gate::pair();
        self.shared.plan().hold_at(point, gate);
        held
    }

    /// Breaks all connections at once. Whether a request that is under way reaches the server is left to chance.
    pub fn cut_now(&self) {
        self.shared.flow.send_modify(|flow| flow.generation += 1);
    }

    /// Breaks all connections at once, and each new one as soon as it is made.
    pub fn block(&self) {
        self.shared.flow.send_modify(|flow| {
            flow.generation += 1;
            flow.blocked = true;
        });
    }

    /// Passes nothing in this direction from now on, and tells nobody, as a network does that loses packets. What is
    /// sent meanwhile arrives after [`heal`](FrameProxy::heal).
    pub fn silence(&self, direction: Direction) {
        self.shared.flow.send_modify(|flow| flow.lane_mut(direction).silent = true);
    }

    /// Lets each frame in this direction take so long, those that are on their way included.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.shared.flow.send_modify(|flow| flow.lane_mut(direction).delay = by);
    }

    /// Takes back `block`, `silence` and `delay`. Planned cuts and holds stay.
    pub fn heal(&self) {
        self.shared.flow.send_modify(Flow::heal);
    }

    /// Begins to count anew, and forgets all planned cuts and holds. Requests that wait for their replies keep their
    /// old numbers, and no plan finds them: so this is for a moment in which nothing is under way.
    pub fn reset(&self) {
        self.shared.plan().reset();
    }

    /// How many requests have come.
    pub fn requests(&self) -> u64 {
        self.shared.plan().requests()
    }

    /// How many watch events have come.
    pub fn events(&self) -> u64 {
        self.shared.plan().events()
    }

    /// All requests and events since the start or the last reset, in the order in which they came.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.plan().seen().to_vec()
    }

    /// The planned cuts that have happened.
    pub fn cuts(&self) -> Vec<CutPoint> {
        self.shared.plan().cuts().to_vec()
    }
}

async fn accept(listener: TcpListener, server: (usize, SocketAddr), shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let shared = shared.clone();
                    connections.spawn(async move { connection::serve(client, server, &shared).await });
                }
                // Out of descriptors, most likely: the test will fail by itself.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
