//! Writes and reads the body of a snapshot: sessions, ACLs and znodes. Snapshot files and the leader's stream to a
//! learner have the same body.

use crate::error::Refusal;
use ostler_proto::{
    acl::{Acl, read_acls, write_acls},
    id::SessionId,
    jute::{JuteError, Reader, Writer},
    stat::StatPersisted,
};
use simd_adler32::Adler32;
use std::{
    borrow::Cow,
    io::{self, Read, Write},
};

/// The number of bytes that are collected before they are hashed and written, and that are read at a time.
const CHUNK: usize = 1 << 18;
/// The longest string or buffer that is read from a snapshot. So no frame of a client may be longer.
pub const LONGEST_FIELD: usize = 1 << 28;
/// The size of a znode's ACL index and Stat.
const NODE_FIXED: usize = 8 + STAT;
const STAT: usize = 60;

/// A znode of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotNode<'a> {
    /// The path; the root's is "/" here, and empty in the file.
    pub path: Cow<'a, str>,
    /// The data; `None` for null, which is different from empty.
    pub data: Option<&'a [u8]>,
    /// The index of the znode's ACL in the snapshot; -1 for the open ACL, by which everybody may do everything.
    pub acl: i64,
    /// The Stat.
    pub stat: StatPersisted,
}

/// Takes the contents of a snapshot in the order of the file: sessions, ACLs, znodes.
pub trait SnapshotSink {
    /// Takes a session.
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal>;
    /// Takes an ACL. Znodes refer to it by the index.
    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal>;
    /// Takes a znode. Refuses it if its parent has not come before: the snapshot is bad then.
    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal>;
}

/// Writes the body of a snapshot to a stream, with a checksum over everything.
pub struct BodyWriter<W> {
    out: W,
    buffer: Vec<u8>,
    sum: Adler32,
    flushed: u64,
}

impl<W: Write> BodyWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        BodyWriter { out, buffer: Vec::with_capacity(2 * CHUNK), sum: Adler32::new(), flushed: 0 }
    }

    /// Writes all sessions, with their timeouts in ms. To be called first.
    pub fn sessions(&mut self, sessions: impl ExactSizeIterator<Item = (SessionId, i32)>) -> io::Result<()> {
        self.buffer.length(sessions.len());
        for (id, timeout_ms) in sessions {
            self.buffer.i64(id.0);
            self.buffer.i32(timeout_ms);
            self.flush_full()?;
        }
        Ok(())
    }

    /// Writes all ACLs, with their indexes. To be called second.
    pub fn acls<'a>(&mut self, acls: impl ExactSizeIterator<Item = (i64, &'a [Acl])>) -> io::Result<()> {
        self.buffer.length(acls.len());
        for (index, acl) in acls {
            self.buffer.i64(index);
            write_acls(&mut self.buffer, acl);
            self.flush_full()?;
        }
        Ok(())
    }

    /// Writes a znode. The root comes first, and parents before their children.
    pub fn node(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        acl: i64,
        stat: &StatPersisted,
    ) -> io::Result<()> {
        self.buffer.string(if path == "/" { "" } else { path });
        self.buffer.buffer(data);
        self.buffer.i64(acl);
        stat.write(&mut self.buffer);
        self.flush_full()
    }

    /// Writes the end mark behind the last znode.
    pub fn end(&mut self) -> io::Result<()> {
        self.buffer.string("/");
        self.flush_full()
    }

    /// The number of bytes so far.
    pub fn written(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Writes the rest of the buffer and returns the stream.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_all()?;
        Ok(self.out)
    }

    pub(super) fn raw(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes a seal: the checksum over everything so far, and "/".
    pub(super) fn seal(&mut self) -> io::Result<()> {
        self.flush_all()?;
        let sum = self.sum.finish();
        self.buffer.i64(i64::from(sum));
        self.buffer.string("/");
        Ok(())
    }

    fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK { self.flush_all() } else { Ok(()) }
    }

    fn flush_all(&mut self) -> io::Result<()> {
        self.sum.write(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// The reason why the body of a snapshot could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The stream could not be read or decompressed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The stream ends early, or a value in it is malformed.
    #[error("{0}")]
    Malformed(#[from] JuteError),
    /// A string or buffer is longer than [`LONGEST_FIELD`].
    #[error("a string or buffer of {0} bytes")]
    TooLong(usize),
    /// The ACL with this index is null.
    #[error("ACL {0} is null")]
    NullAcl(i64),
    /// The sink refused a session, an ACL or a znode.
    #[error("{0}")]
    Refused(Refusal),
}

/// Reads the body of a snapshot from a stream, with a checksum over the bytes taken.
pub struct BodyReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// `start..filled` of the buffer is not taken yet; `hashed..start` is not in the checksum yet.
    start: usize,
    filled: usize,
    hashed: usize,
    /// The number of bytes that were taken before those of the buffer.
    base: u64,
    sum: Adler32,
}

impl<R: Read> BodyReader<R> {
    /// A reader of `input`. It has a buffer of its own, so it reads more from `input` than is taken.
    pub fn new(input: R) -> Self {
        BodyReader {
            input,
            buffer: vec![0; CHUNK],
            start: 0,
            filled: 0,
            hashed: 0,
            base: 0,
            sum: Adler32::new(),
        }
    }

    /// The number of bytes that were taken. For a compressed snapshot these are bytes of its contents.
    pub fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Reads sessions, ACLs and znodes up to the end mark into `sink`.
    pub fn body(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), BodyError> {
        self.sessions(sink)?;
        self.acls(sink)?;
        while self.node(sink)? {}
        Ok(())
    }

    fn sessions(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), BodyError> {
        for _ in 0..self.count()? {
            let mut r = Reader::new(self.take(12)?);
            let (id, timeout_ms) = (SessionId(r.i64()?), r.i32()?);
            sink.session(id, timeout_ms).map_err(BodyError::Refused)?;
        }
        Ok(())
    }

    fn acls(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), BodyError> {
        for _ in 0..self.count()? {
            let index = Reader::new(self.peek(8)?).i64()?;
            let entries = Reader::new(&self.peek(12)?[8..]).length()?.ok_or(BodyError::NullAcl(index))?;
            let mut size = 12;
            for _ in 0..entries {
                size += 4;
                size += 4 + self.length_at(size)?.unwrap_or(0);
                size += 4 + self.length_at(size)?.unwrap_or(0);
                check_length(size)?;
            }
            let acl = read_acls(&mut Reader::new(&self.take(size)?[8..]))?;
            sink.acl(index, acl).map_err(BodyError::Refused)?;
        }
        Ok(())
    }

    /// Reads one znode. Returns false at the end mark.
    fn node(&mut self, sink: &mut dyn SnapshotSink) -> Result<bool, BodyError> {
        let path_end = 4 + self.length_at(0)?.unwrap_or(0);
        if path_end == 5 && self.peek(5)?[4] == b'/' {
            self.take(5)?;
            return Ok(false);
        }
        let data_end = path_end + 4 + self.length_at(path_end)?.unwrap_or(0);
        let mut r = Reader::new(self.take(data_end + NODE_FIXED)?);
        let path = match r.text()? {
            Cow::Borrowed("") => Cow::Borrowed("/"),
            path => path,
        };
        let (data, acl) = (r.buffer()?, r.i64()?);
        let stat = StatPersisted::read(&mut r)?;
        sink.node(SnapshotNode { path, data, acl, stat }).map_err(BodyError::Refused)?;
        Ok(true)
    }

    /// Takes a count; null is 0.
    fn count(&mut self) -> Result<usize, BodyError> {
        Ok(Reader::new(self.take(4)?).length()?.unwrap_or(0))
    }

    /// The length field at `at` bytes from here.
    fn length_at(&mut self, at: usize) -> Result<Option<usize>, BodyError> {
        let length = Reader::new(&self.peek(at + 4)?[at..]).length()?;
        check_length(length.unwrap_or(0))?;
        Ok(length)
    }

    /// The bytes that were read from the stream but not taken.
    pub fn into_rest(mut self) -> Vec<u8> {
        self.buffer.truncate(self.filled);
        self.buffer.split_off(self.start)
    }

    /// Takes `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&[u8], BodyError> {
        self.need(n)?;
        self.start += n;
        Ok(&self.buffer[self.start - n..self.start])
    }

    /// The next `n` bytes, without taking them.
    pub fn peek(&mut self, n: usize) -> Result<&[u8], BodyError> {
        self.need(n)?;
        Ok(&self.buffer[self.start..self.start + n])
    }

    /// The next `n` bytes, or fewer if the stream ends, without taking them.
    pub(super) fn peek_at_most(&mut self, n: usize) -> Result<&[u8], BodyError> {
        while self.filled - self.start < n && self.read_more(n)? {}
        Ok(&self.buffer[self.start..self.filled.min(self.start + n)])
    }

    /// The checksum over all bytes taken.
    pub(super) fn checksum(&mut self) -> u32 {
        self.hash_taken();
        self.sum.finish()
    }

    fn need(&mut self, n: usize) -> Result<(), BodyError> {
        while self.filled - self.start < n {
            if !self.read_more(n)? {
                return Err(JuteError::Truncated.into());
            }
        }
        Ok(())
    }

    fn hash_taken(&mut self) {
        self.sum.write(&self.buffer[self.hashed..self.start]);
        self.hashed = self.start;
    }

    /// Reads once from the stream, on the way to `n` bytes in the buffer. Returns false at the end of the stream. The
    /// buffer grows with the bytes that arrive, not with the lengths that are claimed.
    fn read_more(&mut self, n: usize) -> Result<bool, BodyError> {
        if self.start + n > self.buffer.len() && self.start > 0 {
            self.hash_taken();
            self.buffer.copy_within(self.start..self.filled, 0);
            self.base += self.start as u64;
            self.filled -= self.start;
            (self.start, self.hashed) = (0, 0);
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => {
                    let got = got?;
                    self.filled += got;
                    return Ok(got > 0);
                }
            }
        }
    }
}

fn check_length(length: usize) -> Result<(), BodyError> {
    if length > LONGEST_FIELD { Err(BodyError::TooLong(length)) } else { Ok(()) }
}
