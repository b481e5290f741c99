//! The advice in the error messages about a configuration that cannot be saved, and about an empty folder, works.

use crate::{
    options::{SERVERS, member_one},
    restricted_disk::RestrictedDisk,
};
use ostler_data_dir::{Persistence, is_incomplete};
use ostler_proto::{
    id::{Epoch, SessionId, Zxid},
    membership::Membership,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{PersistOp, effect::Record};
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    folders::DataFolders,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tempfile::TempDir;

const CHANGED: &str = "server.1=a:1:2;3\nserver.2=b:1:2\nserver.4=d:1:2\n";

/// A server's files. The configuration may be read-only.
struct ServerFiles {
    dir: TempDir,
    writable: Arc<AtomicBool>,
}

impl ServerFiles {
    fn new(writable: bool) -> ServerFiles {
        let place =
            ServerFiles { dir: TempDir::new().unwrap(), writable: Arc::new(AtomicBool::new(writable)) };
        fs::create_dir(place.dir.path().join("conf")).unwrap();
        fs::write(place.zoo_cfg(), SERVERS).unwrap();
        place
    }

    fn zoo_cfg(&self) -> PathBuf {
        self.dir.path().join("conf/zoo.cfg")
    }

    fn disk(&self) -> Arc<dyn Disk> {
        let (conf, writable) = (self.dir.path().join("conf"), self.writable.clone());
        let may_change = move |path: &Path| match path.starts_with(&conf) && !writable.load(Ordering::Relaxed)
        {
            true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            false => Ok(()),
        };
        Arc::new(RestrictedDisk { may_change, shows: |_: &Path| true })
    }

    fn folders(&self) -> DataFolders {
        DataFolders::open(&OsDisk, &self.dir.path().join("data"), None, true).unwrap()
    }

    fn start(&self, reconfig_enabled: bool) -> Persistence {
        let mut options = member_one(self.zoo_cfg());
        if !reconfig_enabled {
            options.reconfigurable = None;
        }
        Persistence::start(self.disk(), self.folders(), options).unwrap().0
    }

    /// The server lines and the version that the next start finds.
    fn written(&self) -> Membership {
        let text = fs::read_to_string(self.zoo_cfg()).unwrap();
        let Some(file) = text.lines().find_map(|line| line.strip_prefix("dynamicConfigFile=")) else {
            return Membership::parse(&text).unwrap();
        };
        let version = u64::from_str_radix(file.rsplit_once('.').unwrap().1, 16).unwrap();
        Membership { version, ..Membership::parse(&fs::read_to_string(file).unwrap()).unwrap() }
    }
}

fn changed() -> Membership {
    Membership { version: 0x1_0000_0005, ..Membership::parse(CHANGED).unwrap() }
}

fn save(server: &mut Persistence, membership: &Membership) -> Result<(), StorageError> {
    for active in [false, true] {
        server.carry_out(PersistOp::SaveConfig { membership: membership.clone(), active })?;
    }
    Ok(())
}

/// The server has stopped because it could not save a change.
fn stopped() -> ServerFiles {
    let place = ServerFiles::new(false);
    let mut server = place.start(true);
    assert!(!server.starts_with(&place.written()));
    let said = save(&mut server, &changed()).unwrap_err().to_string();
    assert!(
        said.contains("Make the file and its folder writable for the server and start it again"),
        "{said}"
    );
    assert!(said.contains("or write the server lines of the ensemble as it is now into the file"), "{said}");
    place
}

#[test]
fn after_the_folder_is_made_writable_changes_are_saved() {
    let place = stopped();
    place.writable.store(true, Ordering::Relaxed);
    let mut server = place.start(true);
    assert!(server.starts_with(&place.written()), "reconfig works if this server leads");
    save(&mut server, &changed()).unwrap();
    drop(server);
    assert_eq!(place.written(), changed());
    let mut server = place.start(true);
    assert!(server.starts_with(&place.written()));
}

#[test]
fn a_configuration_edited_by_hand_counts_like_a_saved_one() {
    let place = stopped();
    fs::write(place.zoo_cfg(), CHANGED).unwrap();
    for _ in 0..2 {
        let mut server = place.start(true);
        assert!(!server.starts_with(&place.written()), "it can keep no other");
        save(&mut server, &changed()).unwrap();
    }
}

#[test]
fn with_reconfig_disabled_the_folder_need_not_be_writable() {
    let place = ServerFiles::new(false);
    assert!(!place.start(true).starts_with(&place.written()));
    for _ in 0..2 {
        assert!(place.start(false).starts_with(&place.written()));
    }
}

fn append(zxid: Zxid) -> PersistOp {
    let txn = Txn::CreateSession { timeout_ms: 10_000 };
    let header = TxnHeader { session: SessionId(1), cxid: 0, zxid, time_ms: 0, code: txn.code() };
    let mut record = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut record);
    PersistOp::Append { zxid, record: Record(record.into()) }
}

/// A restart before the first epoch must not need the file again: the message says to create it once.
#[test]
fn initialize_counts_until_a_server_has_its_first_history() {
    for incomplete in [false, true] {
        let place = ServerFiles::new(true);
        let mut server = place.start(true);
        if incomplete {
            server.carry_out(PersistOp::MarkIncomplete).unwrap();
            server.carry_out(append(Zxid(1))).unwrap();
            server.sync().unwrap();
        }
        drop(server);
        assert_eq!(is_incomplete(&OsDisk, &place.folders()).unwrap(), incomplete);
        fs::write(place.dir.path().join("data/initialize"), "").unwrap();
        let says_so = || place.folders().has_initialize(&OsDisk).unwrap();
        for _ in 0..3 {
            drop(place.start(true));
            assert!(says_so(), "incomplete: {incomplete}");
        }
        let mut server = place.start(true);
        server.carry_out(PersistOp::SaveCurrent(Epoch(1))).unwrap();
        assert!(!says_so(), "data lost from now on must not go unnoticed");
        drop(server);
        assert!(!is_incomplete(&OsDisk, &place.folders()).unwrap());
    }
}

#[test]
fn initialize_is_removed_if_the_server_has_a_history() {
    let place = ServerFiles::new(true);
    place.start(true).carry_out(PersistOp::SaveCurrent(Epoch(1))).unwrap();
    fs::write(place.dir.path().join("data/initialize"), "").unwrap();
    drop(place.start(true));
    assert!(!place.folders().has_initialize(&OsDisk).unwrap());
}
