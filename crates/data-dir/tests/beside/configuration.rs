//! The configuration beside zoo.cfg: folders that cannot be written, and the mode, owner and links of zoo.cfg.

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
fn on_a_read_only_folder_the_first_version_need_not_be_saved_but_a_change_fails() {
    for mounted in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut member = member(&dir, mounted);
        let own = Membership::parse(SERVERS).unwrap();
        assert!(!member.starts_with(&own), "the leader must refuse changes");

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

/// A zoo.cfg written by an operator, which a server replaces when the configuration gets its first version.
struct OwnZooCfg {
    dir: TempDir,
}

impl OwnZooCfg {
    fn new(mode: u32) -> OwnZooCfg {
        let own = OwnZooCfg { dir: TempDir::new().unwrap() };
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

    /// Whether `path` itself is a link, and its mode, owner and group.
    fn look(path: &Path) -> (bool, u32, u32, u32) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.is_symlink(), found.mode() & 0o7777, found.uid(), found.gid())
    }

    /// Starts a server, and saves the configuration with its first version.
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

/// zoo.cfg and its backup may contain `superDigest`.
#[test]
fn a_private_zoo_cfg_and_its_backup_stay_private() {
    for mode in [0o600, 0o640] {
        let own = OwnZooCfg::new(mode);
        own.start_and_number();
        for file in ["conf/zoo.cfg", "conf/zoo.cfg.bak"] {
            let (_, found, ..) = OwnZooCfg::look(&own.path(file));
            assert_eq!(found, mode, "{file} has mode {found:o}, and zoo.cfg had {mode:o}");
        }
    }
}

#[test]
fn the_write_probe_at_a_start_keeps_the_mode_of_zoo_cfg() {
    let own = OwnZooCfg::new(0o600);
    let folders = DataFolders::open(&OsDisk, &own.path("data"), None, true).unwrap();
    let mut member = Persistence::start(Arc::new(OsDisk), folders, member_one(own.zoo_cfg())).unwrap().0;
    assert!(member.starts_with(&Membership::parse(SERVERS).unwrap()));
    let (_, found, ..) = OwnZooCfg::look(&own.zoo_cfg());
    assert_eq!(found, 0o600, "it has mode {found:o}");
}

/// Only root can change the owner of a file, so this tests something only if root runs it.
#[test]
fn a_zoo_cfg_of_another_user_keeps_its_owner() {
    let own = OwnZooCfg::new(0o600);
    let (user, group) = (4321, 5432);
    if std::os::unix::fs::chown(own.zoo_cfg(), Some(user), Some(group)).is_err() {
        return;
    }
    own.start_and_number();
    assert_eq!(OwnZooCfg::look(&own.zoo_cfg()), (false, 0o600, user, group));
}

/// Configuration management and containers use links.
#[test]
fn a_zoo_cfg_that_is_a_link_stays_a_link_to_the_changed_file() {
    let own = OwnZooCfg::new(0o600);
    let real = own.path("elsewhere/real.cfg");
    fs::rename(own.zoo_cfg(), &real).unwrap();
    symlink("../elsewhere/real.cfg", own.zoo_cfg()).unwrap();
    own.start_and_number();
    let (is_link, ..) = OwnZooCfg::look(&own.zoo_cfg());
    assert!(is_link, "the link has become a file");
    assert_eq!(fs::read_link(own.zoo_cfg()).unwrap(), Path::new("../elsewhere/real.cfg"));
    let text = fs::read_to_string(&real).unwrap();
    assert!(text.contains("dynamicConfigFile="), "the file behind the link is as before: {text}");
    let (_, found, ..) = OwnZooCfg::look(&real);
    assert_eq!(found, 0o600, "the file behind the link has mode {found:o}");
}
