//! A log file in memory, as a backup stores it.

use super::{HEADER, MAGIC, writer::frame};
use ostler_proto::id::Zxid;

/// Builds the bytes of a log file from records. Such a file has no reserved space at its end.
#[derive(Debug)]
pub struct LogImage {
    bytes: Vec<u8>,
}

impl LogImage {
    /// A file without records. `before` is the zxid before its first record; zero if it is not known.
    pub fn after(before: Zxid) -> LogImage {
        LogImage { bytes: [&MAGIC[..], &before.0.to_be_bytes()].concat() }
    }

    /// Appends a record as it was logged: TxnHeader, txn and digest. It must not be empty, and no longer than a frame.
    pub fn push(&mut self, record: &[u8]) {
        frame(record, &mut self.bytes);
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the file has no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER
    }

    /// The bytes of the file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        disk::{Disk, OsDisk},
        txnlog::{Advance, FileEnd, LogFileReader},
    };
    use ostler_proto::{id::SessionId, txn::TxnHeader};

    fn record(zxid: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = TxnHeader { session: SessionId(1), cxid: 0, zxid: Zxid(zxid), time_ms: 0, code: -11 };
        header.write(&mut bytes);
        bytes
    }

    #[test]
    fn an_image_is_read_as_a_log_from_its_start_and_from_a_record_on() {
        let mut image = LogImage::after(Zxid(4));
        assert!(image.is_empty());
        image.push(&record(5));
        let second = image.size() as u64;
        image.push(&record(6));
        assert!(!image.is_empty());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.5");
        std::fs::write(&path, image.into_bytes()).unwrap();
        let mut whole = LogFileReader::open(&OsDisk, &path).unwrap();
        assert_eq!(whole.before().unwrap(), Some(Zxid(4)));
        assert_eq!(whole.advance().unwrap(), Advance::Record(Zxid(5)));
        assert_eq!(whole.advance().unwrap(), Advance::Record(Zxid(6)));
        assert_eq!(whole.advance().unwrap(), Advance::End(FileEnd::EndOfFile));
        let mut rest = LogFileReader::resume(OsDisk.open(&path).unwrap(), &path, second).unwrap();
        assert_eq!(rest.advance().unwrap(), Advance::Record(Zxid(6)));
        assert_eq!(rest.record().unwrap().offset, second);
        let mut behind = LogFileReader::resume(OsDisk.open(&path).unwrap(), &path, 10_000).unwrap();
        assert_eq!(behind.advance().unwrap(), Advance::End(FileEnd::EndOfFile));
    }
}
