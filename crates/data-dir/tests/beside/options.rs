//! The options of the servers in these tests.

use ostler_data_dir::{PersistenceOptions, recovery::RestoreOptions, snapshots::SnapshotOptions};
use ostler_proto::id::ServerId;
use ostler_storage::{names::Compression, txnlog::LogOptions};
use std::path::PathBuf;

/// The server lines of an ensemble of three.
pub(crate) const SERVERS: &str = "server.1=a:1:2;3\nserver.2=b:1:2\nserver.3=c:1:2\n";

/// A standalone server, which purges nothing.
pub(crate) fn standalone() -> PersistenceOptions {
    PersistenceOptions {
        restoring: RestoreOptions::default(),
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

/// Server 1 of an ensemble, whose changed configuration is saved beside this zoo.cfg.
pub(crate) fn member_one(zoo_cfg: PathBuf) -> PersistenceOptions {
    PersistenceOptions { reconfigurable: Some((zoo_cfg, ServerId(1))), is_member: true, ..standalone() }
}
