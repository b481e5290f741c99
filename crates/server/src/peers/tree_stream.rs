//! A whole tree on the wire. Encoding and decoding are work for a thread of their own; the connection's task only
//! moves bytes.

use ostler_data_dir::recovery;
use ostler_proto::{id::Zxid, stat::ExtendedTypes};
use ostler_tree::{FrozenTree, Tree};
use std::io::{self, Read, Write};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::{OwnedReadHalf, OwnedWriteHalf},
    sync::mpsc,
    task::spawn_blocking,
};

const PIECE: usize = 256 << 10;
const PIECES: usize = 4;

/// Bytes from one side to the other, in pieces.
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
    /// What was not read. For the task that sends the pieces, so that none is on its way.
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
    write: &mut OwnedWriteHalf,
    mut moved: impl FnMut(),
) -> io::Result<()> {
    let (sender, mut pieces) = mpsc::channel(PIECES);
    let encoded = spawn_blocking(move || recovery::write_stream(&frozen, PieceWriter(sender)));
    while let Some(piece) = pieces.recv().await {
        write.write_all(&piece).await?;
        moved();
    }
    encoded.await?
}

/// Receives a tree that begins with `first`; `moved` is called for each piece. Returns the bytes behind it, too.
pub(super) async fn receive(
    first: Vec<u8>,
    read: &mut OwnedReadHalf,
    zxid: Zxid,
    types: ExtendedTypes,
    mut moved: impl FnMut(),
) -> io::Result<(Tree, Vec<u8>)> {
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
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                room.send(piece);
                moved();
            }
        }
    };
    after.extend(unread.rest());
    Ok((tree, after))
}

/// Reads a tree of which all pieces have come, as `receive` reads them.
pub fn decode_pieces(pieces: Vec<Vec<u8>>, zxid: Zxid, types: ExtendedTypes) -> io::Result<(Tree, Vec<u8>)> {
    let (sender, receiver) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        sender.try_send(piece).map_err(io::Error::other)?;
    }
    drop(sender);
    let input = PieceReader { pieces: receiver, piece: Vec::new(), taken: 0 };
    let (tree, mut after, unread) = decode(input, zxid, types)?;
    after.extend(unread.rest());
    Ok((tree, after))
}

/// The tree, the bytes that were read after it, and where to read on: a piece may be sent as long as nobody has noticed
/// that the tree is whole.
fn decode(
    mut input: PieceReader,
    zxid: Zxid,
    types: ExtendedTypes,
) -> io::Result<(Tree, Vec<u8>, PieceReader)> {
    let bad = |error: ostler_storage::snapshot::body::BodyError| {
        io::Error::new(io::ErrorKind::InvalidData, format!("the leader's tree is damaged: {error}"))
    };
    let (tree, after) = recovery::read_stream(&mut input, zxid, types).map_err(bad)?;
    Ok((tree, after, input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_before_the_end_of_the_tree_is_noticed_is_kept() {
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
