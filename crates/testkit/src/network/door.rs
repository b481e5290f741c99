//! The proxy before one port of one member.

use super::{Links, PeerPort, caller};
use crate::lane;
use ostler_proto::id::ServerId;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
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
        tokio::select! {
            () = over(&mut links) => Ok(()),
            done = self.connected(stream, caller, words) => done,
        }
    }

    async fn connected(&self, stream: TcpStream, caller: ServerId, words: Vec<u8>) -> io::Result<()> {
        let me = self.server;
        // Two who cannot hear each other do not come to terms.
        let mut links = self.links.subscribe();
        let _ = links.wait_for(|now| !now.is_silent(caller, me)).await;
        let behind = TcpStream::connect(self.target).await?;
        behind.set_nodelay(true)?;
        let ((from_caller, to_caller), (from_behind, mut to_behind)) =
            (stream.into_split(), behind.into_split());
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
    async fn carry(&self, way: (ServerId, ServerId), mut read: OwnedReadHalf, mut write: OwnedWriteHalf) {
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
