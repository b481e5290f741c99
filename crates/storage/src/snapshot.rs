//! The format of snapshots. A file is named `snapshot.<zxid of its last transaction>[.gz|.snappy]`.
//!
//! ```text
//! file     = header sessions acls node* end seal digest? last?
//! header   = "ZKSN" version:i32=2 dbid:i64=-1
//! sessions = count:i32 (session:i64 timeout_ms:i32)*
//! acls     = count:i32 (index:i64 vector<ACL>)*
//! node     = path:string data:buffer acl:i64 StatPersisted       root first, parents before children
//! end      = "/"                                                 the root's path is the empty string
//! seal     = adler32:i64 "/"                                     over everything before it, seals included
//! digest   = zxid:i64 version:i32=2 digest:i64 seal
//! last     = zxid:i64 seal                                       ZooKeeper 3.9 and later
//! ```
//!
//! A Java snapshot is fuzzy: it can contain effects of transactions after its zxid, which are then applied again. The
//! digest has a zxid of its own, which is above the file's zxid in a fuzzy snapshot.
//!
//! A leader sends the part between header and seal to a learner too. [`body`] writes and reads that part on any stream.

pub mod body;
mod find;
mod reader;
mod snappy;
pub(crate) mod spare;
pub(crate) mod unrenamed;
mod writer;

pub use body::{SnapshotNode, SnapshotSink};
pub use find::{Problem, SnapshotFile, find_snapshots, remove_snapshots_after};
pub use reader::read_snapshot;
pub use writer::{SnapshotTarget, SnapshotWriter};

pub use crate::names::{Building, Compression};

use ostler_proto::id::Zxid;

/// "ZKSN", version 2, dbid -1.
const HEADER: [u8; 16] = *b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";

/// The string "/", which follows each checksum and so ends every file.
const SEAL_END: [u8; 5] = *b"\0\0\0\x01/";

/// The tree's digest at a zxid, as a snapshot has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotDigest {
    /// The last transaction before the digest was taken.
    pub zxid: Zxid,
    /// The version of the digest; 2 today.
    pub version: i32,
    /// The digest: the sum over all znodes.
    pub digest: u64,
}

/// The sections of a snapshot behind its znodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotTrailer {
    /// The digest; `None` if the file has none. Java writes a digest of zxid 0 if it knows none, as after a start
    /// without any log to replay.
    pub digest: Option<SnapshotDigest>,
    /// The server's last zxid when the snapshot was completed. ZooKeeper 3.8 does not write it.
    pub last_processed: Option<Zxid>,
}
