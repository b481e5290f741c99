//! The tree's digest, version 2: the sum of a CRC-32 of each znode. It is computed as in upstream, so Java servers and
//! Ostler can compare their trees at every transaction.

use crc32fast::Hasher;
use ostler_proto::{id::Zxid, stat::StatPersisted};

/// Whether a znode is part of the digest. Those below /zookeeper are not, since some of them change without a
/// transaction.
pub fn counts(path: &str) -> bool {
    !path.starts_with("/zookeeper/")
}

/// The largest znode in bytes that is hashed in one piece, which is several times as fast as three small pieces.
const ONE_PIECE: usize = 512;

/// The digest of a znode; 0 if the znode does not count.
pub fn of_znode(path: &str, data: Option<&[u8]>, stat: &StatPersisted) -> u32 {
    if !counts(path) {
        return 0;
    }
    let (name, data) = (hashed_path(path), data.unwrap_or_default());
    let stat_bytes = hashed_stat(stat);
    let mut piece = [0; ONE_PIECE];
    let mut end = 0;
    for part in [name, data, &stat_bytes] {
        let Some(place) = piece.get_mut(end..end + part.len()) else {
            return in_parts(&[name, data, &stat_bytes]);
        };
        place.copy_from_slice(part);
        end += part.len();
    }
    crc32fast::hash(&piece[..end])
}

fn in_parts(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// The path as it is hashed: the root's path is empty.
fn hashed_path(path: &str) -> &[u8] {
    if path == "/" { b"" } else { path.as_bytes() }
}

/// The digest after a change of the Stat alone. The data are not needed: a CRC is linear, so its change depends on the
/// changed bits only.
pub fn with_stat(digest: u32, old: &StatPersisted, new: &StatPersisted) -> u32 {
    let mut changed = hashed_stat(old);
    changed.iter_mut().zip(hashed_stat(new)).for_each(|(old, new)| *old ^= new);
    // The CRC register starts and ends inverted; here it must be neither.
    let mut hasher = Hasher::new_with_initial(u32::MAX);
    hasher.update(&changed);
    digest ^ !hasher.finalize()
}

/// The Stat as it is hashed. The order of the fields differs from the one on disk.
fn hashed_stat(stat: &StatPersisted) -> [u8; 60] {
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
    bytes
}

/// An entry of the log of digests (four-letter word `hash`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestEntry {
    /// The zxid of a transaction, a multiple of 128.
    pub zxid: Zxid,
    /// The tree's digest after that transaction.
    pub digest: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use ostler_proto::{
        id::SessionId,
        txn::{DIGEST_VERSION, Txn, TxnDigest, TxnHeader, TxnRecord},
    };

    #[test]
    fn a_fresh_tree_has_the_digest_of_java() {
        let stat = StatPersisted::default();
        let digest = |path| of_znode(path, Some(b""), &stat);
        assert_eq!((digest("/"), digest("/zookeeper")), (0x0412_8908, 0x4db4_4d58));
        assert_eq!(digest("/zookeeper/config"), 0, "it changes without a transaction");
    }

    /// Applies a transaction that comes with another digest than this tree will have.
    fn differ(tree: &mut crate::Tree, zxid: u64) {
        let txn = Txn::CreateSession { timeout_ms: 1 };
        let header =
            TxnHeader { session: SessionId(1), cxid: 0, zxid: Zxid(zxid), time_ms: 0, code: txn.code() };
        let digest = Some(TxnDigest { version: DIGEST_VERSION, tree: 1 });
        tree.apply(&TxnRecord { header, txn, digest }, &mut Vec::new());
    }

    fn logged(tree: &crate::Tree) -> Vec<u64> {
        tree.digest_log().map(|entry| entry.zxid.0).collect()
    }

    #[test]
    fn digests_within_the_range_of_a_fuzzy_snapshot_are_neither_logged_nor_compared() {
        let mut tree = crate::Tree::fresh(Default::default());
        tree.finish_restore(Zxid(100), [], Some(Zxid(200)));
        differ(&mut tree, 128);
        differ(&mut tree, 256);
        assert_eq!((logged(&tree), tree.digest_mismatches()), ([256].into(), 1));
    }

    #[test]
    fn a_copy_of_a_changing_tree_is_compared_after_the_zxid_where_the_copying_ended() {
        let mut tree = crate::Tree::fresh(Default::default());
        tree.finish_restore(Zxid(100), [], None);
        tree.distrust_digests();
        differ(&mut tree, 128);
        tree.trust_digests_after(Zxid(256));
        differ(&mut tree, 256);
        assert_eq!((logged(&tree), tree.digest_mismatches()), ([].into(), 0));
        differ(&mut tree, 384);
        assert_eq!((logged(&tree), tree.digest_mismatches()), ([384].into(), 1));
        tree.trust_digests_after(Zxid(1000));
        differ(&mut tree, 512);
        assert_eq!(logged(&tree), [384, 512], "a trusted digest stays trusted");
    }

    #[test]
    fn a_digest_is_the_same_in_one_piece_and_in_parts() {
        let stat = StatPersisted { version: 7, mtime: 9, ..StatPersisted::default() };
        for size in [0, 1, 100, ONE_PIECE - 62, ONE_PIECE - 61, ONE_PIECE, 100_000] {
            let data = alloc::vec![b'x'; size];
            let whole = in_parts(&[b"/a", &data, &hashed_stat(&stat)]);
            assert_eq!(of_znode("/a", Some(&data), &stat), whole, "{size} bytes");
        }
    }

    #[test]
    fn a_digest_after_a_change_of_the_stat_is_the_digest_of_the_new_znode() {
        let old = StatPersisted { version: 7, mtime: 9, ..StatPersisted::default() };
        let new = StatPersisted { cversion: 1, pzxid: Zxid(77), ..old };
        let before = of_znode("/a", Some(b"data"), &old);
        assert_eq!(with_stat(before, &old, &new), of_znode("/a", Some(b"data"), &new));
        assert_eq!(with_stat(before, &old, &old), before);
    }
}
