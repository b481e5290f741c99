//! A proxy between clients and servers that knows the frames of the protocol and can cut the connection at a chosen one.

mod connection;
mod flow;
mod gate;
mod plan;
mod words;

pub use flow::Direction;
pub use gate::HeldFrame;
pub use plan::{CutPoint, SeenFrame};

use crate::{error::TestkitError, port::ReservedPort, runtime::OwnRuntime};
use connection::Shared;
use flow::Flow;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Passes frames between clients and servers, and numbers them. Requests (including handshakes) are numbered from 1 on, in
/// the order in which clients send them. Watch events are numbered from 1 on as well. Pings have no number and always
/// pass, because their times depend on the clock.
///
/// A test can cut an exchange at each of its messages: it runs the exchange once to count them, and then once for each
/// [`CutPoint`]. If a cut is planned at the reply to a request, later requests wait. So even a pipelined exchange is cut
/// at one point: every request before the cut is done and answered, and none after it has reached the server. Only a
/// watch event on its way may or may not arrive.
///
/// All connections through the proxy (reconnects, several clients, several servers) share the numbers and the faults.
/// Four-letter words pass as well, without a number.
#[derive(Debug)]
#[must_use = "a proxy that is dropped ends its connections"]
pub struct FrameProxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    // Dropped last: connections end with it.
    _runtime: OwnRuntime,
}

impl FrameProxy {
    /// Starts a proxy on a free port of 127.0.0.1 in front of `server`. It opens a connection to the server for each
    /// client's connection, so the server may stop and restart.
    ///
    /// # Errors
    /// Those of [`start_for`](FrameProxy::start_for).
    pub async fn start(server: SocketAddr) -> Result<FrameProxy, TestkitError> {
        FrameProxy::start_for(&[server]).await
    }

    /// Starts a proxy in front of several servers, with a port for each.
    ///
    /// # Errors
    /// [`TestkitError::NoServers`] for an empty list; [`TestkitError::Port`] and [`TestkitError::Thread`] if this machine lacks
    /// something.
    pub async fn start_for(servers: &[SocketAddr]) -> Result<FrameProxy, TestkitError> {
        if servers.is_empty() {
            return Err(TestkitError::NoServers);
        }
        let runtime = OwnRuntime::new("test-proxy")?;
        let (shared, mut addresses) = (Arc::new(Shared::default()), Vec::new());
        for (place, server) in servers.iter().enumerate() {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            // Bound on the proxy's own thread, because the caller's may block.
            let bound = runtime.handle().spawn(bound).await.map_err(|_| TestkitError::Panicked)?;
            let listener = bound.map_err(TestkitError::Port)?;
            addresses.push(listener.local_addr().map_err(TestkitError::Port)?);
            runtime.handle().spawn(accept(listener, (place, *server), shared.clone()));
        }
        Ok(FrameProxy { addresses, shared, _runtime: runtime })
    }

    /// Starts a proxy on a reserved port.
    pub(crate) fn on(port: &ReservedPort, server: SocketAddr) -> Result<FrameProxy, TestkitError> {
        let (runtime, shared) = (OwnRuntime::new("test-proxy")?, Arc::new(Shared::default()));
        let listener = {
            let _context = runtime.handle().enter();
            port.listen()?
        };
        runtime.handle().spawn(accept(listener, (0, server), shared.clone()));
        Ok(FrameProxy { addresses: vec![port.address()], shared, _runtime: runtime })
    }

    /// The addresses for clients, one for each server.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address for clients of the first server.
    pub fn address(&self) -> SocketAddr {
        // A proxy without servers is not started.
        self.addresses[0]
    }

    /// The connect string for clients: `127.0.0.1:port,127.0.0.1:port`.
    pub fn connect_string(&self) -> String {
        let all: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// Plans a cut: the connection is closed, once, when the exchange reaches this point.
    pub fn cut_at(&self, point: CutPoint) {
        self.shared.plan().cut_at(point);
    }

    /// Plans a hold: the frame at this point, and all frames behind it in its direction, wait until the test decides with
    /// the returned [`HeldFrame`].
    pub fn hold_at(&self, point: CutPoint) -> HeldFrame {
        let (held, gate) = gate::pair();
        self.shared.plan().hold_at(point, gate);
        held
    }

    /// Closes all connections now. A request under way may or may not reach the server.
    pub fn cut_now(&self) {
        self.shared.flow.send_modify(|flow| flow.generation += 1);
    }

    /// Closes all connections now, and each new one at once, until [`heal`](FrameProxy::heal).
    pub fn block(&self) {
        self.shared.flow.send_modify(|flow| {
            flow.generation += 1;
            flow.blocked = true;
        });
    }

    /// Holds back all frames in this direction, without notice to either side, as a network does that loses packets. They
    /// arrive after [`heal`](FrameProxy::heal).
    pub fn silence(&self, direction: Direction) {
        self.shared.flow.send_modify(|flow| flow.lane_mut(direction).silent = true);
    }

    /// Delays each frame in this direction by this time, including frames that are on their way.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.shared.flow.send_modify(|flow| flow.lane_mut(direction).delay = by);
    }

    /// Ends `block`, `silence` and `delay`. Planned cuts and holds stay.
    pub fn heal(&self) {
        self.shared.flow.send_modify(Flow::heal);
    }

    /// Starts the numbers from 1 again, and removes all planned cuts and holds. Call it while no request is under way:
    /// requests without a reply keep their old numbers, so no plan applies to them.
    pub fn reset(&self) {
        self.shared.plan().reset();
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.plan().requests()
    }

    /// The number of watch events so far.
    pub fn events(&self) -> u64 {
        self.shared.plan().events()
    }

    /// All requests and events since the start or the last reset, in order.
    pub fn seen(&self) -> Vec<SeenFrame> {
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
                // Most likely the process has no file descriptors left, and the test will fail anyway.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
