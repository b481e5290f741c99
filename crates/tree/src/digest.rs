//! The tree's digest, version 2: the sum of a CRC-32 per znode, as upstream computes it, so that Java
//! servers and Ostler can compare their trees at every transaction.

use crc32fast::Hasher;
use ostler_proto::{id::Zxid, stat::StatPersisted};

/// Whether a znode counts: those below /zookeeper do not, since some of them change without a transaction.
pub fn counts(path: &str) -> bool {
    !path.starts_with("/zookeeper/")
}

/// CRC-32 of path and data. The root's path is empty here.
pub fn content_crc(path: &str, data: Option<&[u8]>) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(if path == "/" { b"" } else { path.as_bytes() });
    hasher.update(data.unwrap_or_default());
    hasher.finalize()
}

/// A znode's digest: the content's CRC carried on over 60 bytes of Stat. The field order is the digest's
/// own and differs from the one on disk.
pub fn node_digest(content_crc: u32, stat: &StatPersisted) -> u32 {
    let mut bytes = [0; 60];
    let longs = [stat.czxid.to_wire(), stat.mzxid.to_wire(), stat.pzxid.to_wire(), stat.ctime, stat.mtime];
    for (slot, value) in bytes.chunks_exact_mut(8).zip(longs) {
        slot.copy_from_slice(&value.to_be_bytes());
    }
    let ints = [stat.version, stat.cversion, stat.aversion];
    for (slot, value) in bytes[40..52].chunks_exact_mut(4).zip(ints) {
        slot.copy_from_slice(&value.to_be_bytes());
    }
    bytes[52..].copy_from_slice(&stat.ephemeral_owner.0.to_be_bytes());
    let mut hasher = Hasher::new_with_initial(content_crc);
    hasher.update(&bytes);
    hasher.finalize()
}

/// One line of the digest log (`hash` four-letter word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestEntry {
    /// A multiple of 128.
    pub zxid: Zxid,
    /// The tree's digest after it.
    pub digest: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_tree_has_the_digest_of_java() {
        let stat = StatPersisted::default();
        let root = node_digest(content_crc("/", Some(b"")), &stat);
        let zookeeper = node_digest(content_crc("/zookeeper", Some(b"")), &stat);
        assert_eq!((root, zookeeper), (0x0412_8908, 0x4db4_4d58));
    }
}
