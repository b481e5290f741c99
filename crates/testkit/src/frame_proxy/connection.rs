//! One client's connection through the proxy.

use super::{
    Direction,
    flow::Flow,
    gate::Gate,
    plan::{CutPoint, Mark, Plan},
    words,
};
use crate::lane;
use ostler_proto::request::RequestHeader;
use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc, watch},
    time::Instant,
};

/// The largest frame in bytes. Neither servers nor clients send larger ones.
const FRAME_MAX: usize = 64 << 20;
/// The number of frames that can wait in one direction.
const LANE: usize = 1024;
/// How long the other side may take to notice that a connection was cut.
const LINGER: Duration = Duration::from_secs(5);
const EVENT_XID: i32 = -1;
const PING_XID: i32 = -2;

/// The state that all connections of a proxy share.
#[derive(Debug)]
pub(crate) struct Shared {
    plan: Mutex<Plan>,
    pub(crate) flow: watch::Sender<Flow>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { plan: Mutex::default(), flow: watch::Sender::new(Flow::default()) }
    }
}

impl Shared {
    pub(crate) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was passed to the server and has no reply yet.
struct Unanswered {
    number: u64,
    /// `None` for a handshake.
    xid: Option<i32>,
}

/// The end of a connection: the proxy has cut it, or one side has closed it.
struct End;

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End
    }
}

struct Connection<'s> {
    shared: &'s Shared,
    /// The index of the server among the proxy's servers.
    place: usize,
    unanswered: Mutex<VecDeque<Unanswered>>,
    answered: Notify,
}

/// Serves a connection to its end.
pub(crate) async fn serve(client: TcpStream, (place, server): (usize, SocketAddr), shared: &Shared) {
    let mut flow = shared.flow.subscribe();
    let (generation, blocked) = {
        let now = flow.borrow_and_update();
        (now.generation, now.blocked)
    };
    if blocked {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let is_word = tokio::select! {
        is_word = words::begins_with_word(&client, &server) => is_word,
        _ = flow.wait_for(|now| now.generation != generation) => return,
    };
    if is_word {
        tokio::select! {
            () = words::pass(client, server, shared) => {}
            _ = flow.wait_for(|now| now.generation != generation) => {}
        }
        return;
    }
    let ((from_client, mut to_client), (from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let connection = Connection { shared, place, unanswered: Mutex::default(), answered: Notify::new() };
    let (client_reads, client_frames) = mpsc::channel(LANE);
    let (server_reads, server_frames) = mpsc::channel(LANE);
    let (mut from_client, mut from_server) = (from_client, from_server);
    tokio::select! {
        // These two never complete, so frames that arrived before the end of a side are still passed on.
        () = read_to_end(&mut from_client, client_reads) => {}
        () = read_to_end(&mut from_server, server_reads) => {}
        _ = connection.requests(client_frames, &mut to_server) => {}
        _ = connection.replies(server_frames, &mut to_client) => {}
        _ = flow.wait_for(|now| now.generation != generation) => {}
    }
    connection.give_up_replies();
    part(from_client, to_client).await;
}

/// Closes the client's side in order, so that the client still gets the frames that were passed on. A close with unread
/// bytes would reset the connection and discard them.
async fn part(mut read: OwnedReadHalf, mut write: OwnedWriteHalf) {
    let _ = write.shutdown().await;
    let mut rest = vec![0; 4096];
    let drained = async { while matches!(read.read(&mut rest).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(LINGER, drained).await;
}

async fn read_to_end(read: &mut (impl AsyncRead + Unpin), frames: mpsc::Sender<(Instant, Vec<u8>)>) {
    let _ = read_frames(read, frames).await;
    std::future::pending().await
}

/// Waits for the test's decision about a held frame.
async fn held_by(mut gate: Gate) -> Result<(), End> {
    if gate.passes().await { Ok(()) } else { Err(End) }
}

/// Reads frames, with their lengths and arrival times, until the connection ends.
async fn read_frames(
    read: &mut (impl AsyncRead + Unpin),
    frames: mpsc::Sender<(Instant, Vec<u8>)>,
) -> Result<(), End> {
    loop {
        let mut frame = vec![0; 4];
        read.read_exact(&mut frame).await?;
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        if length > FRAME_MAX {
            return Err(End);
        }
        frame.resize(4 + length, 0);
        read.read_exact(&mut frame[4..]).await?;
        frames.send((Instant::now(), frame)).await.map_err(|_| End)?;
    }
}

impl Connection<'_> {
    fn unanswered(&self) -> MutexGuard<'_, VecDeque<Unanswered>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn requests(
        &self,
        mut frames: mpsc::Receiver<(Instant, Vec<u8>)>,
        server: &mut OwnedWriteHalf,
    ) -> Result<(), End> {
        let mut first = true;
        while let Some((came, frame)) = frames.recv().await {
            self.lane(Direction::ToServer, came).await;
            let header = RequestHeader::read(&frame[4..]).ok().map(|(header, _)| header);
            let xid = header.filter(|_| !first).map(|header| header.xid.0);
            if xid == Some(PING_XID) {
                server.write_all(&frame).await?;
                continue;
            }
            let (number, alone) = {
                let mut plan = self.shared.plan();
                let number = match header {
                    Some(header) if !first => plan.request(header.code),
                    _ => plan.handshake(self.place),
                };
                (number, plan.begins_with(number))
            };
            first = false;
            if alone {
                let point = CutPoint::BeforeRequest(number);
                // Taken now, so that the test notices if the connection ends before all are answered.
                let held = self.shared.plan().held_at(point);
                self.until_answered(|_| true).await;
                match held {
                    Some(gate) => held_by(gate).await?,
                    None => self.mark(point).await?,
                }
            }
            let last = self.shared.plan().ends_with(number);
            self.unanswered().push_back(Unanswered { number, xid });
            server.write_all(&frame).await?;
            if last {
                self.until_answered(|waiting| waiting == number).await;
            }
        }
        Err(End)
    }

    async fn replies(
        &self,
        mut frames: mpsc::Receiver<(Instant, Vec<u8>)>,
        client: &mut OwnedWriteHalf,
    ) -> Result<(), End> {
        let mut first = true;
        while let Some((came, frame)) = frames.recv().await {
            self.lane(Direction::ToClient, came).await;
            // The reply to a handshake has no header.
            let xid = frame.get(4..8).filter(|_| !std::mem::take(&mut first));
            let xid = xid.map(|xid| i32::from_be_bytes([xid[0], xid[1], xid[2], xid[3]]));
            match xid {
                Some(EVENT_XID) => {
                    let number = self.shared.plan().event();
                    self.mark(CutPoint::BeforeEvent(number)).await?;
                    client.write_all(&frame).await?;
                }
                Some(PING_XID) => client.write_all(&frame).await?,
                xid => self.reply(xid, &frame, client).await?,
            }
        }
        Err(End)
    }

    async fn reply(&self, xid: Option<i32>, frame: &[u8], client: &mut OwnedWriteHalf) -> Result<(), End> {
        let number =
            self.unanswered().iter().find(|waiting| waiting.xid == xid).map(|waiting| waiting.number);
        if let Some(number) = number {
            self.mark(CutPoint::BeforeReply(number)).await?;
        }
        client.write_all(frame).await?;
        if let Some(number) = number {
            self.mark(CutPoint::AfterReply(number)).await?;
            self.unanswered().retain(|waiting| waiting.number != number);
            self.answered.notify_one();
        }
        Ok(())
    }

    /// Waits until no unanswered request matches.
    async fn until_answered(&self, matches: impl Fn(u64) -> bool) {
        while self.unanswered().iter().any(|waiting| matches(waiting.number)) {
            self.answered.notified().await;
        }
    }

    /// The connection has ended, and missing replies will not come.
    fn give_up_replies(&self) {
        let (mut plan, unanswered) = (self.shared.plan(), self.unanswered());
        for waiting in unanswered.iter() {
            plan.unanswered_for_good(waiting.number);
        }
    }

    /// Performs the planned action at this point.
    async fn mark(&self, point: CutPoint) -> Result<(), End> {
        let mark = self.shared.plan().at(point);
        match mark {
            None => Ok(()),
            Some(Mark::Cut) => Err(End),
            Some(Mark::Hold(gate)) => held_by(gate).await,
        }
    }

    /// Waits until a frame of this direction may pass.
    async fn lane(&self, direction: Direction, came: Instant) {
        lane::pass(&mut self.shared.flow.subscribe(), |flow| flow.lane(direction), came).await;
    }
}
