//! The configuration beside zoo.cfg, where that cannot be written.

use crate::restricted_disk::RestrictedDisk;
use ostler_persistence::{KeepingOptions, Persistence, recovery::Restoring, snapshots::SnapshotOptions};
use ostler_proto::{id::ServerId, membership::Membership};
use ostler_server_core::PersistOp;
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    folders::DataFolders,
    names::Compression,
    txnlog::LogOptions,
};
use std::{fs, io, path::Path, sync::Arc};
use tempfile::TempDir;

/// The system's, but nothing changes in this folder: permissions do not bind whoever may be root. Where zoo.cfg is a mount
/// by itself only what exists cannot be replaced.
fn read_only(folder: &Path, mounted: bool) -> impl Disk + use<> {
    let folder = folder.to_owned();
    let may_change = move |path: &Path| {
        let (inside, exists) = (path.starts_with(&folder), path.exists());
        match mounted {
            true if inside && exists && path.ends_with("zoo.cfg") => Err(io::ErrorKind::ResourceBusy.into()),
            false if inside => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => Ok(()),
        }
    };
    RestrictedDisk { may_change, shows: |_: &Path| true }
}

const SERVERS: &str = "server.1=a:1:2;3\nserver.2=b:1:2\nserver.3=c:1:2\n";

fn member(dir: &TempDir, mounted: bool) -> Persistence {
    let conf = dir.path().join("conf");
    fs::create_dir(&conf).unwrap();
    fs::write(conf.join("zoo.cfg"), SERVERS).unwrap();
    let options = KeepingOptions {
        restoring: Restoring::default(),
        log: LogOptions::default(),
        snapshots: SnapshotOptions {
            compression: Compression::None,
            digest: true,
            last_processed: true,
            keep: None,
        },
        reconfigurable: Some((conf.join("zoo.cfg"), ServerId(1))),
    };
    let folders = DataFolders::open(&OsDisk, &dir.path().join("data"), None, true).unwrap();
    Persistence::start(Arc::new(read_only(&conf, mounted)), folders, options).unwrap().0
}

fn save(member: &mut Persistence, membership: &Membership, active: bool) -> Result<(), StorageError> {
    member.carry_out(PersistOp::SaveConfig { membership: membership.clone(), active }).map(drop)
}

#[test]
fn the_first_number_needs_not_be_kept_where_nothing_can_be_written_but_a_change_does() {
    for mounted in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut member = member(&dir, mounted);
        let own = Membership::parse(SERVERS).unwrap();
        assert!(!member.starts_with(&own), "the leader is to refuse changes");

        let numbered = Membership { version: 0x1_0000_0000, ..own.clone() };
        save(&mut member, &numbered, false).unwrap();
        save(&mut member, &numbered, true).unwrap();
        let of_another =
            Membership::parse("server.1=a:1:2\nserver.2=b:1:2;3\nserver.3=c:1:2\nversion=200000000").unwrap();
        save(&mut member, &of_another, true).unwrap();
        save(&mut member, &Membership { version: 0x2_0000_0007, ..own }, true).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("conf/zoo.cfg")).unwrap(), SERVERS);

        let change = Membership::parse("server.1=a:1:2;3\nserver.2=b:1:2\nversion=200000008").unwrap();
        let error = save(&mut member, &change, true).unwrap_err();
        assert!(matches!(error, StorageError::ConfigNotKept { .. }), "{error}");
        let first = Membership::parse("server.1=a:1:2\nserver.4=d:1:2\nversion=300000000").unwrap();
        save(&mut member, &first, true).expect_err("others decide there");
    }
}
