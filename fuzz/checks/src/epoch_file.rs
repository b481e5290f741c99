//! Fuzzes the reading of `acceptedEpoch` and `currentEpoch`.

use crate::ram_disk::RamDisk;
use ostler_storage::epochs::{EpochFile, read_epoch, write_epoch};
use std::path::Path;

/// An epoch that is read can be written and read again, and has a successor. Any other text is refused with an error
/// that names the file.
pub fn check(bytes: &[u8]) {
    let dir = Path::new("/data/version-2");
    for (which, name) in [(EpochFile::Accepted, "acceptedEpoch"), (EpochFile::Current, "currentEpoch")] {
        let disk = RamDisk::default();
        assert!(matches!(read_epoch(&disk, dir, which), Ok(None)));
        disk.put(&dir.join(name), bytes.to_vec());
        match read_epoch(&disk, dir, which) {
            Ok(None) => assert!(bytes.starts_with(b"-1"), "only this is Java's text for no epoch"),
            Ok(Some(epoch)) => {
                assert!(epoch.0.checked_add(1).is_some());
                write_epoch(&disk, dir, which, epoch).expect("memory does not fail");
                assert_eq!(read_epoch(&disk, dir, which).expect("what was written is read"), Some(epoch));
            }
            Err(error) => assert!(error.to_string().contains(name), "{error}"),
        }
    }
}
