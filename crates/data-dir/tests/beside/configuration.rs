//! The configuration beside zoo.cfg: where that cannot be written, and what becomes of that file.

use crate::{
    options::{SERVERS, member_one},
    restricted_disk::RestrictedDisk,
};
use ostler_data_dir::Persistence;
use ostler_proto::membership::Membership;
use ostler_server_core::PersistOp;
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    folders::DataFolders,
};
use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};
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

fn member(dir: &TempDir, mounted: bool) -> Persistence {
    let conf = dir.path().join("conf");
    fs::create_dir(&conf).unwrap();
    fs::write(conf.join("zoo.cfg"), SERVERS).unwrap();
    let options = member_one(conf.join("zoo.cfg"));
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

/// A zoo.cfg of an operator's own, and what a server that was given another configuration makes of it.
struct Own {
    dir: TempDir,
}

impl Own {
    fn new(mode: u32) -> Own {
        let own = Own { dir: TempDir::new().unwrap() };
        fs::create_dir(own.path("conf")).unwrap();
        fs::create_dir(own.path("elsewhere")).unwrap();
        fs::write(own.zoo_cfg(), SERVERS).unwrap();
        fs::set_permissions(own.zoo_cfg(), fs::Permissions::from_mode(mode)).unwrap();
        own
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn zoo_cfg(&self) -> PathBuf {
        self.path("conf/zoo.cfg")
    }

    /// What is at `path` itself, a link or a file: mode, owner and group.
    fn look(path: &Path) -> (bool, u32, u32, u32) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.is_symlink(), found.mode() & 0o7777, found.uid(), found.gid())
    }

    /// A start, and the configuration that gets its first number.
    fn start_and_number(&self) {
        let folders = DataFolders::open(&OsDisk, &self.path("data"), None, true).unwrap();
        let mut member = Persistence::start(Arc::new(OsDisk), folders, member_one(self.zoo_cfg())).unwrap().0;
        let own = Membership::parse(SERVERS).unwrap();
        assert!(member.starts_with(&own));
        let before = Membership { version: 0x1_0000_0000, ..own };
        save(&mut member, &before, false).unwrap();
        save(&mut member, &before, true).unwrap();
        let text = fs::read_to_string(self.zoo_cfg()).unwrap();
        assert!(text.contains("dynamicConfigFile=") && text.contains("zoo.cfg.dynamic.100000000"), "{text}");
    }
}

/// It may hold `superDigest`, and so may its copy.
#[test]
fn a_zoo_cfg_that_only_its_owner_may_read_stays_so_and_its_copy_is_as_it_is() {
    for mode in [0o600, 0o640] {
        let own = Own::new(mode);
        own.start_and_number();
        for file in ["conf/zoo.cfg", "conf/zoo.cfg.bak"] {
            let (_, found, ..) = Own::look(&own.path(file));
            assert_eq!(found, mode, "{file} has mode {found:o}, and zoo.cfg had {mode:o}");
        }
    }
}

#[test]
fn a_start_that_tries_whether_zoo_cfg_can_be_written_keeps_its_mode() {
    let own = Own::new(0o600);
    let folders = DataFolders::open(&OsDisk, &own.path("data"), None, true).unwrap();
    let mut member = Persistence::start(Arc::new(OsDisk), folders, member_one(own.zoo_cfg())).unwrap().0;
    assert!(member.starts_with(&Membership::parse(SERVERS).unwrap()));
    let (_, found, ..) = Own::look(&own.zoo_cfg());
    assert_eq!(found, 0o600, "it has mode {found:o}");
}

/// Only root can give a file away, so this says something only where root runs it.
#[test]
fn a_zoo_cfg_of_another_owner_stays_that_owners() {
    let own = Own::new(0o600);
    let (user, group) = (4321, 5432);
    if std::os::unix::fs::chown(own.zoo_cfg(), Some(user), Some(group)).is_err() {
        return;
    }
    own.start_and_number();
    assert_eq!(Own::look(&own.zoo_cfg()), (false, 0o600, user, group));
}

/// Configuration management and containers put a link there.
#[test]
fn a_zoo_cfg_that_is_a_link_stays_a_link_and_the_file_behind_it_changes() {
    let own = Own::new(0o600);
    let real = own.path("elsewhere/real.cfg");
    fs::rename(own.zoo_cfg(), &real).unwrap();
    symlink("../elsewhere/real.cfg", own.zoo_cfg()).unwrap();
    own.start_and_number();
    let (is_link, ..) = Own::look(&own.zoo_cfg());
    assert!(is_link, "the link has become a file");
    assert_eq!(fs::read_link(own.zoo_cfg()).unwrap(), Path::new("../elsewhere/real.cfg"));
    let text = fs::read_to_string(&real).unwrap();
    assert!(text.contains("dynamicConfigFile="), "the file behind the link is as before: {text}");
    let (_, found, ..) = Own::look(&real);
    assert_eq!(found, 0o600, "the file behind the link has mode {found:o}");
}
