//! The proxy in front of one port of one member.

use super::{Links, PeerPort, caller};
use crate::lane;
use ostler_proto::id::ServerId;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
    time::Instant,
};

const CHUNK: usize = 64 << 10;
/// The number of chunks that can wait in one direction.
const ON_THE_WAY: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct PortProxy {
    pub(super) server: ServerId,
    pub(super) port: PeerPort,
    /// The address at which the member itself listens.
    pub(super) target: SocketAddr,
    pub(super) links: watch::Sender<Links>,
}

impl PortProxy {
    /// Accepts connections until it is dropped. Accepted connections go on.
    pub(super) async fn accept(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let proxy = self.clone();
                    tokio::spawn(async move { drop(proxy.serve(stream).await) });
                }
                // Most likely the process has no file descriptors left, and the test will fail anyway.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let (caller, first_bytes) = caller::identify(&mut stream, self.port).await?;
        let me = self.server;
        let mut links = self.links.subscribe();
        let cuts = links.borrow().cuts(caller, me);
        let over = async |links: &mut watch::Receiver<Links>| {
            let _ = links.wait_for(|now| now.is_cut(caller, me) || now.cuts(caller, me) != cuts).await;
        };
        let mut behind = tokio::select! {
            () = over(&mut links) => return Ok(()),
            behind = self.connect(caller) => behind?,
        };
        tokio::select! {
            () = over(&mut links) => {}
            done = self.connected(&mut stream, &mut behind, (caller, first_bytes)) => return done,
        }
        let deserted = |links: &Links| [(caller, me), (me, caller)].map(|(a, b)| links.is_deserted(a, b));
        // The deserting side is closed at once, the other side when the link is healed.
        let (left, kept) = match deserted(&links.borrow()) {
            [false, false] => return Ok(()),
            [true, _] => (stream, behind),
            [_, true] => (behind, stream),
        };
        drop(left);
        let _ = links.wait_for(|now| deserted(now) == [false, false]).await;
        drop(kept);
        Ok(())
    }

    async fn connect(&self, caller: ServerId) -> io::Result<TcpStream> {
        // Over a silent link no connection can be established.
        let mut links = self.links.subscribe();
        let _ = links.wait_for(|now| !now.is_silent(caller, self.server)).await;
        let behind = TcpStream::connect(self.target).await?;
        behind.set_nodelay(true)?;
        Ok(behind)
    }

    async fn connected(
        &self,
        stream: &mut TcpStream,
        behind: &mut TcpStream,
        (caller, first_bytes): (ServerId, Vec<u8>),
    ) -> io::Result<()> {
        let me = self.server;
        let ((from_caller, to_caller), (from_behind, mut to_behind)) = (stream.split(), behind.split());
        self.pass((caller, me), Instant::now()).await;
        to_behind.write_all(&first_bytes).await?;
        tokio::join!(
            self.carry((caller, me), from_caller, to_behind),
            self.carry((me, caller), from_behind, to_caller),
        );
        Ok(())
    }

    async fn pass(&self, (from, to): (ServerId, ServerId), came: Instant) {
        lane::pass(&mut self.links.subscribe(), |links| links.lane(from, to), came).await;
    }

    /// Passes on bytes in one direction, and the end of the stream.
    async fn carry(&self, way: (ServerId, ServerId), mut read: ReadHalf<'_>, mut write: WriteHalf<'_>) {
        let (sender, mut chunks) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
        let reading = async {
            loop {
                let mut chunk = Vec::with_capacity(CHUNK);
                let read = read.read_buf(&mut chunk).await;
                let ended = !matches!(read, Ok(1..));
                // An empty chunk is the end.
                if sender.send((Instant::now(), chunk)).await.is_err() || ended {
                    return;
                }
            }
        };
        let writing = async {
            while let Some((came, chunk)) = chunks.recv().await {
                self.pass(way, came).await;
                if chunk.is_empty() || write.write_all(&chunk).await.is_err() {
                    break;
                }
            }
            let _ = write.shutdown().await;
            chunks.close();
        };
        tokio::join!(reading, writing);
    }
}
