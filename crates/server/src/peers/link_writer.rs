//! Writes what is queued for a peer to its connection.

use super::{
    link_error::LinkError,
    peer_outbox::{PeerOutbox, Segment},
    peer_stream::PeerWrite,
    tree_stream,
};
use ostler_proto::{id::Zxid, quorum_packet::Packet};
use ostler_server_core::Record;
use std::{borrow::Cow, io};
use tokio::io::AsyncWriteExt;

/// A buffer for packets that has become larger than this is freed after it was sent.
const KEPT_BUFFER_MAX: usize = 256 << 10;
/// Records of a history that are encoded at a time.
const RECORDS_AT_A_TIME: usize = 500;

/// Sends the messages of an outbox until it is closed and empty, or given up. `moved` is called for each piece of a tree
/// or history.
pub(super) async fn write_outbox(
    outbox: &PeerOutbox,
    write: PeerWrite,
    moved: impl FnMut(),
) -> Result<(), LinkError> {
    tokio::select! {
        ended = write_all(outbox, write, moved) => ended,
        () = outbox.given_up() => Ok(()),
    }
}

async fn write_all(
    outbox: &PeerOutbox,
    mut write: PeerWrite,
    mut moved: impl FnMut(),
) -> Result<(), LinkError> {
    let (mut segments, mut spare) = (Vec::new(), Vec::new());
    while outbox.next(&mut segments, &mut spare).await {
        for segment in segments.drain(..) {
            match segment {
                Segment::Bytes(mut bytes) => {
                    write.write_all(&bytes).await?;
                    bytes.clear();
                    spare = if bytes.capacity() <= KEPT_BUFFER_MAX { bytes } else { Vec::new() };
                }
                Segment::Tree(frozen) => tree_stream::send(frozen, &mut write, &mut moved).await?,
                Segment::History(records) => write_history(&records, &mut write, &mut moved).await?,
            }
        }
        write.flush().await?;
    }
    Ok(write.shutdown().await?)
}

/// Sends each record with its commit.
async fn write_history(
    records: &[(Zxid, Record)],
    write: &mut PeerWrite,
    mut moved: impl FnMut(),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for some in records.chunks(RECORDS_AT_A_TIME) {
        bytes.clear();
        for (zxid, record) in some {
            Packet::Proposal { zxid: *zxid, record: Cow::Borrowed(&record.0) }.write(&mut bytes);
            Packet::Commit(*zxid).write(&mut bytes);
        }
        write.write_all(&bytes).await?;
        moved();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::PeerMessage;
    use std::{sync::Arc, time::Duration};
    use tokio::{
        net::{TcpListener, TcpStream},
        time::timeout,
    };

    #[tokio::test]
    async fn a_closed_connection_ends_although_its_peer_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_never_read, _) = listener.accept().await.unwrap();
        let outbox = Arc::new(PeerOutbox::default());
        let record = vec![7; 1 << 20];
        for counter in 0..64 {
            let zxid = Zxid(counter);
            outbox.push(PeerMessage::Proposal(zxid, Record(record.as_slice().into())));
        }
        let (queue, write) = (outbox.clone(), PeerWrite::Plain(stream.into_split().1));
        let writing = tokio::spawn(async move { write_outbox(&queue, write, || {}).await });
        // By then the writer has begun, and waits for the peer to read.
        while outbox.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        outbox.close();
        timeout(Duration::from_secs(60), writing).await.unwrap().unwrap().unwrap();
    }
}
