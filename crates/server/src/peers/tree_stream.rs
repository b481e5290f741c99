//! A whole tree on a connection. A thread of its own encodes or decodes it; the task of the connection only moves bytes.

use super::peer_stream::{PeerRead, PeerWrite};
use ostler_data_dir::recovery;
use ostler_proto::{id::Zxid, stat::ExtendedTypes};
use ostler_storage::snapshot::body::BodyError;
use ostler_tree::{FrozenTree, Tree};
use std::io::{self, Read, Write};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::{JoinError, spawn_blocking},
};

/// Bytes of a piece that is read.
const PIECE: usize = 256 << 10;
/// Pieces that may wait between the task and the thread.
const PIECES: usize = 4;

/// Why a tree could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum TreeStreamError {
    /// The bytes that the leader has sent are no tree.
    #[error("the leader's tree is damaged: {0}")]
    Damaged(BodyError),
    /// The connection has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that encodes or decodes did not end by itself.
    #[error("the thread that encodes or decodes the tree has ended early: {0}")]
    Thread(#[from] JoinError),
}

/// The encoding thread's end of the pieces.
struct PieceWriter(mpsc::Sender<Vec<u8>>);

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.blocking_send(bytes.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The decoding thread's end of the pieces.
struct PieceReader {
    pieces: mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    taken: usize,
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            match self.pieces.blocking_recv() {
                Some(piece) => (self.piece, self.taken) = (piece, 0),
                None => return Ok(0),
            }
        }
        let n = into.len().min(self.piece.len() - self.taken);
        into[..n].copy_from_slice(&self.piece[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}

impl PieceReader {
    /// The bytes that were not read. Only the task that sends the pieces may call this: then no piece is on its way.
    fn rest(mut self) -> Vec<u8> {
        let mut rest = self.piece.split_off(self.taken);
        while let Ok(piece) = self.pieces.try_recv() {
            rest.extend(piece);
        }
        rest
    }
}

/// Sends a tree; `moved` is called for each piece.
pub(super) async fn send(
    frozen: Box<FrozenTree>,
    write: &mut PeerWrite,
    mut moved: impl FnMut(),
) -> Result<(), TreeStreamError> {
    let (sender, mut pieces) = mpsc::channel(PIECES);
    let encoded = spawn_blocking(move || recovery::write_stream(&frozen, PieceWriter(sender)));
    while let Some(piece) = pieces.recv().await {
        write.write_all(&piece).await?;
        moved();
    }
    Ok(encoded.await??)
}

/// Receives a tree that begins with `first`; `moved` is called for each piece. Returns the bytes after the tree, too.
pub(super) async fn receive(
    first: Vec<u8>,
    read: &mut PeerRead,
    zxid: Zxid,
    types: ExtendedTypes,
    mut moved: impl FnMut(),
) -> Result<(Tree, Vec<u8>), TreeStreamError> {
    let (sender, pieces) = mpsc::channel(PIECES);
    let mut decoded =
        spawn_blocking(move || decode(PieceReader { pieces, piece: first, taken: 0 }, zxid, types));
    let (tree, mut after, unread) = loop {
        let mut piece = Vec::with_capacity(PIECE);
        let room = tokio::select! {
            biased;
            done = &mut decoded => break done??,
            room = sender.reserve() => room,
        };
        let Ok(room) = room else { break decoded.await?? };
        tokio::select! {
            biased;
            done = &mut decoded => break done??,
            n = read.read_buf(&mut piece) => {
                if n? == 0 {
                    return Err(TreeStreamError::Io(io::ErrorKind::UnexpectedEof.into()));
                }
                room.send(piece);
                moved();
            }
        }
    };
    after.extend(unread.rest());
    Ok((tree, after))
}

/// Reads a tree from pieces that are all there, as `receive` does while they arrive.
pub fn decode_pieces(
    pieces: Vec<Vec<u8>>,
    zxid: Zxid,
    types: ExtendedTypes,
) -> Result<(Tree, Vec<u8>), TreeStreamError> {
    let (sender, receiver) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        sender.try_send(piece).expect("the channel has room for all pieces");
    }
    drop(sender);
    let input = PieceReader { pieces: receiver, piece: Vec::new(), taken: 0 };
    let (tree, mut after, unread) = decode(input, zxid, types)?;
    after.extend(unread.rest());
    Ok((tree, after))
}

/// Returns the tree, the bytes that were read after it, and the reader: more pieces may be sent until the sender notices
/// that the tree is complete.
fn decode(
    mut input: PieceReader,
    zxid: Zxid,
    types: ExtendedTypes,
) -> Result<(Tree, Vec<u8>, PieceReader), TreeStreamError> {
    let (tree, after) = recovery::read_stream(&mut input, zxid, types).map_err(TreeStreamError::Damaged)?;
    Ok((tree, after, input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_after_the_tree_are_kept_until_the_sender_notices_its_end() {
        let tree = Tree::fresh(ExtendedTypes::default());
        let (sender, mut encoded) = mpsc::channel(PIECES);
        let frozen = Box::new(tree.freeze());
        let writing = spawn_blocking(move || recovery::write_stream(&frozen, PieceWriter(sender)));
        let mut bytes = Vec::new();
        while let Some(piece) = encoded.recv().await {
            bytes.extend(piece);
        }
        writing.await.unwrap().unwrap();
        bytes.extend(*b"behind ");
        let (sender, pieces) = mpsc::channel(PIECES);
        sender.try_send(bytes).unwrap();
        let input = PieceReader { pieces, piece: Vec::new(), taken: 0 };
        let types = ExtendedTypes::default();
        let decoded = spawn_blocking(move || decode(input, Zxid::ZERO, types)).await.unwrap();
        let (_, mut after, unread) = decoded.unwrap();
        sender.try_send(b"the tree, ".to_vec()).unwrap();
        sender.try_send(b"in two pieces".to_vec()).unwrap();
        after.extend(unread.rest());
        assert_eq!(after, b"behind the tree, in two pieces");
    }
}
