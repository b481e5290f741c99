//! The proxy before one port of one member.

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
/// Chunks on their way in one direction.
const ON_THE_WAY: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) server: ServerId,
    pub(super) port: PeerPort,
    /// Where the member really listens.
    pub(super) target: SocketAddr,
    pub(super) links: watch::Sender<Links>,
}

impl Door {
    /// Takes connections until it is dropped; those that it has taken go on.
    pub(super) async fn accept(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let door = self.clone();
                    tokio::spawn(async move { drop(door.serve(stream).await) });
                }
                // Out of descriptors, most likely: the test will fail by itself.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let (caller, words) = caller::identify(&mut stream, self.port).await?;
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
            done = self.connected(&mut stream, &mut behind, (caller, words)) => return done,
        }
        let deserted = |links: &Links| [(caller, me), (me, caller)].map(|(a, b)| links.is_deserted(a, b));
        // Whoever leaves goes at once; whoever is left finds out when the link is well again.
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
        // Two who cannot hear each other do not come to terms.
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
        (caller, words): (ServerId, Vec<u8>),
    ) -> io::Result<()> {
        let me = self.server;
        let ((from_caller, to_caller), (from_behind, mut to_behind)) = (stream.split(), behind.split());
        self.pass((caller, me), Instant::now()).await;
        to_behind.write_all(&words).await?;
        tokio::join!(
            self.carry((caller, me), from_caller, to_behind),
            self.carry((me, caller), from_behind, to_caller),
        );
        Ok(())
    }

    async fn pass(&self, (from, to): (ServerId, ServerId), came: Instant) {
        lane::pass(&mut self.links.subscribe(), |links| links.lane(from, to), came).await;
    }

    /// Carries bytes one way, and the end too.
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
