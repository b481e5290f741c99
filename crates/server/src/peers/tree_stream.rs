//! A whole tree on the wire. Encoding and decoding are work for a thread of their own; the connection's task only
//! moves bytes.

use ostler_persistence::recovery;
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

/// Sends a tree.
pub(super) async fn send(frozen: Box<FrozenTree>, write: &mut OwnedWriteHalf) -> io::Result<()> {
    let (sender, mut pieces) = mpsc::channel(PIECES);
    let encoded = spawn_blocking(move || recovery::write_stream(&frozen, PieceWriter(sender)));
    while let Some(piece) = pieces.recv().await {
        write.write_all(&piece).await?;
    }
    encoded.await?
}

/// Receives a tree that begins with `first`. Returns the bytes behind it, too.
pub(super) async fn receive(
    first: Vec<u8>,
    read: &mut OwnedReadHalf,
    zxid: Zxid,
    types: ExtendedTypes,
) -> io::Result<(Tree, Vec<u8>)> {
    let (sender, pieces) = mpsc::channel(PIECES);
    let mut decoded =
        spawn_blocking(move || decode(PieceReader { pieces, piece: first, taken: 0 }, zxid, types));
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let room = tokio::select! {
            biased;
            done = &mut decoded => return done?,
            room = sender.reserve() => room,
        };
        let Ok(room) = room else { return decoded.await? };
        tokio::select! {
            biased;
            done = &mut decoded => return done?,
            n = read.read_buf(&mut piece) => {
                if n? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                room.send(piece);
            }
        }
    }
}

fn decode(mut input: PieceReader, zxid: Zxid, types: ExtendedTypes) -> io::Result<(Tree, Vec<u8>)> {
    let bad = |error: ostler_storage::snapshot::body::BodyError| {
        io::Error::new(io::ErrorKind::InvalidData, format!("the leader's tree is damaged: {error}"))
    };
    let (tree, mut after) = recovery::read_stream(&mut input, zxid, types).map_err(bad)?;
    after.extend_from_slice(&input.piece[input.taken..]);
    input.pieces.close();
    while let Ok(piece) = input.pieces.try_recv() {
        after.extend(piece);
    }
    Ok((tree, after))
}
