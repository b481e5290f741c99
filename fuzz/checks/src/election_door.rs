//! Fuzzes what the election port reads from a connection: a greeting, then votes.

use ostler_proto::{election::Notification, id::ServerId, membership::PeerAddress};
use ostler_server::decoders::{greeting, read_greeting, read_message};
use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest greeting: two numbers, a length, and the longest address.
const GREETING_MAX: usize = 20 + 2048;
const MESSAGE_MAX: usize = 512 << 10;

/// The first byte gives the size of the pieces in which the others arrive; the result must not depend on it. Reading a
/// greeting takes no byte of the vote that follows, and an incomplete greeting is refused. A greeting that is written
/// again is read the same.
pub fn check(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let mut read = Pieces { rest: stream, piece: usize::MAX };
    let whole = now(read_greeting(&mut read)).ok();
    let used = stream.len() - read.rest.len();
    assert!(used <= GREETING_MAX, "{used} bytes for a greeting");
    let mut in_pieces = Pieces { rest: stream, piece: usize::from(*piece).max(1) };
    assert_eq!(now(read_greeting(&mut in_pieces)).ok(), whole);
    let Some((caller, places)) = whole else { return };
    assert_eq!(in_pieces.rest, read.rest);
    for end in [0, used / 2, used - 1] {
        let cut = now(read_greeting(&mut Pieces { rest: &stream[..end], piece: usize::MAX }));
        assert!(cut.is_err(), "{end} of {used} bytes are a greeting, too");
    }
    if !places.is_empty() {
        check_written_again(caller, places);
    }
    assert_eq!(votes(read), votes(in_pieces));
}

fn check_written_again(caller: ServerId, places: Vec<(String, u16)>) {
    let address = |(host, port): &(String, u16)| PeerAddress {
        host: host.clone(),
        quorum_port: 0,
        election_port: *port,
    };
    let written = greeting(caller, &places.iter().map(address).collect::<Vec<_>>());
    // Bytes that were no UTF-8 have become longer characters.
    if written.len() <= GREETING_MAX {
        let again = now(read_greeting(&mut Pieces { rest: &written, piece: usize::MAX }));
        assert_eq!(again.ok(), Some((caller, places)));
    }
}

/// All complete messages, decoded if possible, and the bytes after them.
fn votes(mut read: Pieces<'_>) -> (Vec<Option<Notification>>, &[u8]) {
    let mut votes = Vec::new();
    let mut message = Vec::new();
    loop {
        let before = read.rest;
        if now(read_message(&mut read, &mut message)).is_err() {
            assert!(message.len() <= MESSAGE_MAX);
            return (votes, before);
        }
        assert_eq!(before.len() - read.rest.len(), 4 + message.len());
        assert_eq!(before[4..4 + message.len()], message);
        votes.push(Notification::read(&message).ok());
    }
}

/// Runs a future that never waits, because all bytes are there.
fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("it waits for bytes that are all there"),
    }
}

/// A connection on which at most `piece` bytes arrive at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = into.remaining().min(self.piece).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(n);
        into.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}
