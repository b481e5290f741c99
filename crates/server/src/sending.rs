//! Bytes on their way from an outbox to a socket.

use crate::room::{Copied, Lent, Unread};
use ostler_proto::{shared::SharedBytes, strings::StringParts};
use std::{cell::RefCell, io::IoSlice, sync::Arc};

/// Larger buffers are freed after use. Bytes that wait in them are counted, see [`Room`](crate::room::Room).
pub(crate) const KEEP_MAX: usize = 16 << 10;
/// Buffers that each thread keeps for its next connection. An idle connection has none.
const SPARES_MAX: usize = 4;

thread_local! {
    /// The connections of a thread take turns with the same few buffers, so these stay in the processor's cache.
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn take_spare() -> Vec<u8> {
    SPARES.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn keep_spare(mut bytes: Vec<u8>) {
    SPARES.with_borrow_mut(|spares| {
        if bytes.capacity() <= KEEP_MAX && spares.len() < SPARES_MAX {
            bytes.clear();
            spares.push(bytes);
        }
    });
}

/// A part of what goes out to a client.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// A small buffer. A thread may keep it for its next connection.
    Own(Vec<u8>),
    /// A large buffer, whose bytes are counted.
    Copied(Copied),
    /// Data that a znode has too.
    Shared(Lent<SharedBytes>),
    /// One part of a long list of names.
    Listed { list: Arc<Lent<Arc<StringParts>>>, part: usize },
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Own(bytes) => bytes,
            Chunk::Copied(copied) => &copied.bytes,
            Chunk::Shared(lent) => lent.get(),
            Chunk::Listed { list, part } => &list.get().parts()[*part],
        }
    }

    pub(crate) fn own(&mut self) -> Option<&mut [u8]> {
        match self {
            Chunk::Own(bytes) => Some(bytes),
            Chunk::Copied(copied) => Some(&mut copied.bytes),
            Chunk::Shared(_) | Chunk::Listed { .. } => None,
        }
    }
}

/// Bytes taken from an outbox and partly written.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    pub(crate) chunks: Vec<Chunk>,
    /// Bytes of the first chunk that are already written.
    written: usize,
    /// The count of the notifications among the chunks.
    pub(crate) unread: Option<Unread>,
}

impl Sending {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether any chunk is counted, see [`Room`](crate::room::Room).
    pub(crate) fn takes_room(&self) -> bool {
        self.chunks.iter().any(|chunk| !matches!(chunk, Chunk::Own(_)))
    }

    /// The bytes to write next, in one call.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let first = self.chunks.iter().take(1).map(|chunk| &chunk.bytes()[self.written..]);
        let rest = self.chunks.iter().skip(1).take(63).map(Chunk::bytes);
        first.chain(rest).map(IoSlice::new).collect()
    }

    /// The rest of the only chunk. Nearly every write has one chunk.
    pub(crate) fn single(&self) -> Option<&[u8]> {
        match &self.chunks[..] {
            [one] => Some(&one.bytes()[self.written..]),
            _ => None,
        }
    }

    /// Forgets the first `n` bytes: they were written.
    pub(crate) fn advance(&mut self, n: usize) {
        self.written += n;
        let mut done = 0;
        for chunk in &self.chunks {
            let len = chunk.bytes().len();
            if self.written < len {
                break;
            }
            self.written -= len;
            done += 1;
        }
        for chunk in self.chunks.drain(..done) {
            if let Chunk::Own(bytes) = chunk {
                keep_spare(bytes);
            }
        }
        if self.chunks.is_empty() {
            self.unread = None;
        }
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn shrink(&mut self) {
        self.chunks.shrink_to_fit();
    }
}
