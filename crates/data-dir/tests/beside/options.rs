//! How the servers of these tests keep what they keep.

use ostler_data_dir::{KeepingOptions, recovery::Restoring, snapshots::SnapshotOptions};
use ostler_proto::id::ServerId;
use ostler_storage::{names::Compression, txnlog::LogOptions};
use std::path::PathBuf;

/// The lines of an ensemble of three.
pub(crate) const SERVERS: &str = "server.1=a:1:2;3\nserver.2=b:1:2\nserver.3=c:1:2\n";

/// A server alone, with a configuration that never changes. It purges nothing.
pub(crate) fn alone() -> KeepingOptions {
    KeepingOptions {
        restoring: Restoring::default(),
        log: LogOptions::default(),
        snapshots: SnapshotOptions {
            compression: Compression::None,
            digest: true,
            last_processed: true,
            keep: None,
        },
        reconfigurable: None,
        is_member: false,
    }
}

/// Server 1 of an ensemble whose configuration may change beside this zoo.cfg.
pub(crate) fn member_one(zoo_cfg: PathBuf) -> KeepingOptions {
    KeepingOptions { reconfigurable: Some((zoo_cfg, ServerId(1))), is_member: true, ..alone() }
}
