//! Reads a snapshot file into a sink and checks its seals.

use super::{
    Compression, HEADER, SEAL_END, SnapshotDigest, SnapshotFile, SnapshotSink, SnapshotTrailer,
    body::{BodyError, BodyReader},
    snappy::SnappyReader,
};
use crate::{
    disk::{Disk, DiskFile},
    error::{Result, StorageError},
};
use flate2::read::GzDecoder;
use ostler_proto::{
    id::Zxid,
    jute::{JuteError, Reader},
};
use std::io::{self, BufReader, Read};

/// The longest digest of a version below 2, which is a string.
const OLD_DIGEST: usize = 64;
/// The size of a seal: checksum and "/".
const SEAL: usize = 8 + SEAL_END.len();

/// Reads a snapshot into `sink` and checks its seals. Every problem is a [`StorageError::BadSnapshot`]. Then the sink
/// can have a part of the snapshot.
pub fn read_snapshot(
    disk: &dyn Disk,
    file: &SnapshotFile,
    sink: &mut dyn SnapshotSink,
) -> Result<SnapshotTrailer> {
    read(disk, file, sink).map_err(|(error, offset)| {
        let reason = match error {
            BodyError::Malformed(JuteError::Truncated) => "it ends early".to_owned(),
            other => other.to_string(),
        };
        StorageError::BadSnapshot { file: file.path.clone(), offset, reason }
    })
}

fn read(
    disk: &dyn Disk,
    file: &SnapshotFile,
    sink: &mut dyn SnapshotSink,
) -> std::result::Result<SnapshotTrailer, (BodyError, u64)> {
    let opened = disk.open(&file.path).map_err(|error| (error.into(), 0))?;
    let input = FileReader { file: opened, position: 0 };
    match file.compression {
        Compression::None => read_stream(input, sink),
        Compression::Gz => read_stream(GzDecoder::new(input), sink),
        Compression::Snappy => read_stream(SnappyReader::new(BufReader::with_capacity(1 << 18, input)), sink),
    }
}

fn read_stream(
    input: impl Read,
    sink: &mut dyn SnapshotSink,
) -> std::result::Result<SnapshotTrailer, (BodyError, u64)> {
    let mut reader = BodyReader::new(input);
    read_sections(&mut reader, sink).map_err(|error| (error, reader.position()))
}

fn read_sections<R: Read>(
    reader: &mut BodyReader<R>,
    sink: &mut dyn SnapshotSink,
) -> std::result::Result<SnapshotTrailer, BodyError> {
    if reader.take(HEADER.len())?[..4] != HEADER[..4] {
        return Err(malformed("it does not start with a snapshot header (ZKSN)"));
    }
    reader.body(sink)?;
    check_seal(reader)?;
    read_trailer(reader)
}

/// Reads the sections behind the znodes. They have no tags, and the file can end before each of them. If only the
/// second one is there (Java with its digest switched off), the size shows it.
fn read_trailer<R: Read>(reader: &mut BodyReader<R>) -> std::result::Result<SnapshotTrailer, BodyError> {
    let mut trailer = SnapshotTrailer::default();
    if reader.peek_at_most(8 + SEAL + 1)?.len() > 8 + SEAL {
        let Some(digest) = read_digest(reader)? else { return Ok(trailer) };
        trailer.digest = Some(digest);
    }
    if reader.peek_at_most(8 + SEAL)?.len() == 8 + SEAL {
        trailer.last_processed = Some(Zxid::from_wire(Reader::new(reader.take(8)?).i64()?));
        check_seal(reader)?;
    }
    Ok(trailer)
}

/// Reads the digest. `None` if the file ends inside of it: everything before is sealed, so upstream ignores such a
/// rest.
fn read_digest<R: Read>(
    reader: &mut BodyReader<R>,
) -> std::result::Result<Option<SnapshotDigest>, BodyError> {
    let mut r = Reader::new(reader.peek_at_most(12 + 4 + OLD_DIGEST + SEAL)?);
    let available = r.rest().len();
    let parsed = (|| {
        let (zxid, version) = (Zxid::from_wire(r.i64()?), r.i32()?);
        let digest = if version < 2 {
            let hex = r.string()?.unwrap_or("0".into());
            u64::from_str_radix(&hex, 16).map_err(|_| JuteError::UnknownType(version))?
        } else {
            r.i64()? as u64
        };
        let size = available - r.rest().len();
        r.take(SEAL)?;
        Ok((SnapshotDigest { zxid, version, digest }, size))
    })();
    match parsed {
        Ok((digest, size)) => {
            reader.take(size)?;
            check_seal(reader)?;
            Ok(Some(digest))
        }
        Err(JuteError::Truncated) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn check_seal<R: Read>(reader: &mut BodyReader<R>) -> std::result::Result<(), BodyError> {
    let sum = u64::from(reader.checksum());
    let seal = reader.take(SEAL)?;
    if seal[..8] != sum.to_be_bytes() || seal[8..] != SEAL_END {
        return Err(malformed("its contents do not fit its checksum"));
    }
    Ok(())
}

fn malformed(what: &'static str) -> BodyError {
    BodyError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

struct FileReader {
    file: Box<dyn DiskFile>,
    position: u64,
}

impl Read for FileReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(into, self.position)?;
        self.position += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::Refusal,
        snapshot::{SnapshotNode, body::BodyWriter},
    };
    use ostler_proto::{acl::Acl, id::SessionId};
    use simd_adler32::adler32;

    struct Discard;

    impl SnapshotSink for Discard {
        fn session(&mut self, _: SessionId, _: i32) -> std::result::Result<(), Refusal> {
            Ok(())
        }
        fn acl(&mut self, _: i64, _: Vec<Acl>) -> std::result::Result<(), Refusal> {
            Ok(())
        }
        fn node(&mut self, _: SnapshotNode<'_>) -> std::result::Result<(), Refusal> {
            Ok(())
        }
    }

    /// Appends a seal over all bytes so far.
    fn seal(bytes: &mut Vec<u8>) {
        let sum = adler32(&bytes.as_slice());
        bytes.extend_from_slice(&u64::from(sum).to_be_bytes());
        bytes.extend_from_slice(&SEAL_END);
    }

    /// Older versions of upstream wrote the digest as text. This one has as many digits as possible.
    #[test]
    fn a_digest_in_text_form_is_read() {
        let mut body = BodyWriter::new(Vec::new());
        body.sessions([].into_iter()).unwrap();
        body.acls([].into_iter()).unwrap();
        body.end().unwrap();
        let mut bytes = [&HEADER[..], &body.finish().unwrap()].concat();
        seal(&mut bytes);
        bytes.extend_from_slice(&9_u64.to_be_bytes());
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&(OLD_DIGEST as u32).to_be_bytes());
        bytes.extend_from_slice(format!("{:0>OLD_DIGEST$}", "4d").as_bytes());
        seal(&mut bytes);
        bytes.extend_from_slice(&7_u64.to_be_bytes());
        seal(&mut bytes);
        let digest = SnapshotDigest { zxid: Zxid(9), version: 1, digest: 0x4d };
        let expected = SnapshotTrailer { digest: Some(digest), last_processed: Some(Zxid(7)) };
        assert_eq!(read_stream(&*bytes, &mut Discard).unwrap(), expected);
    }

    #[test]
    fn a_read_that_a_signal_interrupts_is_repeated() {
        struct Interrupted<'a>(&'a [u8], bool);
        impl Read for Interrupted<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(into) }
            }
        }
        let mut reader = BodyReader::new(Interrupted(b"abcd", false));
        assert_eq!(reader.take(4).unwrap(), b"abcd");
    }

    #[test]
    fn the_written_bytes_are_counted_with_the_buffered_ones() {
        let mut body = BodyWriter::new(Vec::new());
        let mut last = body.written();
        for n in 0..20_000 {
            body.sessions([(SessionId(n), 1)].into_iter()).unwrap();
            assert!(body.written() > last);
            last = body.written();
        }
        assert_eq!(body.finish().unwrap().len() as u64, last);
    }
}
