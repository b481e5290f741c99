//! The files beside zoo.cfg that hold the configuration of an ensemble that can be changed, as upstream writes them:
//! `zoo.cfg.dynamic.VERSION` is in force and named by zoo.cfg, `zoo.cfg.dynamic.next` was proposed.

use ostler_proto::{
    id::{ServerId, Zxid},
    membership::Membership,
};
use ostler_storage::{
    StorageError,
    disk::{Disk, replace_text, replace_text_like},
    error::IoContext,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Keys that move from zoo.cfg into the dynamic file, or make no sense beside it.
const MOVED: [&str; 3] = ["dynamicConfigFile", "peerType", "version"];
const MOVED_WITH_CLIENT: [&str; 2] = ["clientPort", "clientPortAddress"];

/// The files that hold the configuration of the ensemble.
pub(crate) struct ConfigFiles {
    zoo_cfg: PathBuf,
    disk: Arc<dyn Disk>,
    /// The configuration that a start would read from the files, if it is known.
    kept: Option<Membership>,
    /// Whether a warning was logged already.
    warned: bool,
}

impl ConfigFiles {
    pub(crate) fn beside(zoo_cfg: PathBuf, disk: Arc<dyn Disk>) -> ConfigFiles {
        let zoo_cfg = std::path::absolute(&zoo_cfg).unwrap_or(zoo_cfg);
        ConfigFiles { zoo_cfg, disk, kept: None, warned: false }
    }

    /// Notes the configuration with which the server starts, as the files have it. Returns false and logs a warning if
    /// another configuration could not be saved.
    pub(crate) fn start_with(&mut self, membership: &Membership) -> bool {
        self.kept = Some(membership.clone());
        self.probe(membership).inspect_err(|error| self.warn(error)).is_ok()
    }

    /// Tries the file operations that saving a change would need, without any change.
    fn probe(&self, membership: &Membership) -> Result<(), StorageError> {
        let probe = self.path_with(".dynamic.tmp");
        self.disk.create(&probe).during("create", &probe)?;
        self.disk.remove(&probe).during("remove", &probe)?;
        // A zoo.cfg that is mounted as a single file, as in containers, cannot be replaced, even if its folder is writable.
        // With version 0 it would be replaced soon anyway, when the first configuration gets its version.
        if membership.version == 0 {
            replace_text(&*self.disk, &self.zoo_cfg, &self.read(&self.zoo_cfg)?)?;
        }
        Ok(())
    }

    /// Saves a configuration that was proposed or, if `active`, is in force. If the files cannot be written at all, a
    /// configuration with the same decisions as the saved one need not be saved: the next start gets its version from the
    /// other servers.
    ///
    /// # Errors
    /// [`StorageError::ConfigNotKept`] if the files cannot be written and the decisions differ; other errors of the disk.
    pub(crate) fn save(
        &mut self,
        membership: &Membership,
        active: bool,
        me: ServerId,
    ) -> Result<(), StorageError> {
        let own_client = membership.servers.get(&me).is_some_and(|member| member.client.is_some());
        let saved = match active {
            true => self.save_active(membership, own_client),
            false => self.save_next(membership),
        };
        match saved {
            Ok(()) if active => self.kept = Some(membership.clone()),
            Ok(()) => {}
            Err(error) if !is_unwritable(&error) => return Err(error),
            Err(error) if self.kept.as_ref().is_some_and(|kept| same_decisions(kept, membership)) => {
                self.warn(&error);
            }
            Err(error) => {
                let (file, source) = (self.zoo_cfg.clone(), Box::new(error));
                return Err(StorageError::ConfigNotKept { file, source });
            }
        }
        Ok(())
    }

    fn warn(&mut self, error: &StorageError) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                %error,
                zoo_cfg = %self.zoo_cfg.display(),
                "changes of the ensemble cannot be kept, and a reconfig asked for while this server leads is refused: make \
                 the file and its folder writable for the server and start it again, or set reconfigEnabled=false"
            );
        }
    }

    fn path_with(&self, suffix: &str) -> PathBuf {
        let mut name = self.zoo_cfg.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// Saves a proposed configuration. This must be done before the proposal is acknowledged.
    fn save_next(&self, membership: &Membership) -> Result<(), StorageError> {
        replace_text(&*self.disk, &self.path_with(".dynamic.next"), &membership.to_string())
    }

    /// Saves a configuration that is in force, and lets zoo.cfg name its file. The file of a later proposal stays.
    fn save_active(&self, membership: &Membership, own_client: bool) -> Result<(), StorageError> {
        let dynamic = self.path_with(&format!(".dynamic.{:x}", membership.version));
        replace_text(&*self.disk, &dynamic, &membership.lines().join("\n"))?;
        let text = self.read(&self.zoo_cfg)?;
        let backup = self.path_with(".bak");
        if !self.disk.exists(&backup).during("look for", &backup)? {
            // The backup has the contents of zoo.cfg, including secrets, so it gets the same access rights.
            replace_text_like(&*self.disk, &backup, &text, &self.zoo_cfg)?;
        }
        replace_text(&*self.disk, &self.zoo_cfg, &zoo_cfg_with_dynamic(&text, &dynamic, own_client))?;
        let next = self.path_with(".dynamic.next");
        if self.disk.exists(&next).during("look for", &next)? {
            let proposed = Membership::parse(&self.read(&next)?);
            if proposed.is_ok_and(|proposed| proposed.version > membership.version) {
                return Ok(());
            }
            self.disk.remove(&next).during("remove", &next)?;
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<String, StorageError> {
        let read = || {
            let file = self.disk.open(path)?;
            let mut bytes = vec![0; file.size()? as usize];
            let length = file.read_at(&mut bytes, 0)?;
            bytes.truncate(length);
            String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        };
        read().during("read", path)
    }
}

/// Whether the system forbids to write there: no permission, a read-only file system, or a mounted zoo.cfg.
fn is_unwritable(error: &StorageError) -> bool {
    let StorageError::Io { source, .. } = error else { return false };
    let refusals =
        [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::ResourceBusy];
    refusals.contains(&source.kind())
}

/// Whether a start with one of these configurations has the same effect as with the other. Before the first change each
/// server may know only its own client address, and the first version comes with the addresses that the leader knows.
fn same_decisions(kept: &Membership, other: &Membership) -> bool {
    let without_clients = |of: &Membership| {
        let mut of = Membership { version: 0, ..of.clone() };
        of.servers.values_mut().for_each(|member| member.client = None);
        of
    };
    let first_number = Zxid(other.version).counter() == 0;
    kept.lines() == other.lines() || (first_number && without_clients(kept) == without_clients(other))
}

/// The text of zoo.cfg without the settings of the dynamic file, and with the name of that file. Comments and the order of
/// lines stay, other than in upstream.
fn zoo_cfg_with_dynamic(text: &str, dynamic: &Path, own_client: bool) -> String {
    let moves = |line: &&str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        let family = ["server.", "group.", "weight."].iter().any(|family| key.starts_with(family));
        let client = own_client && MOVED_WITH_CLIENT.contains(&key);
        !(family || client || MOVED.contains(&key))
    };
    let mut lines: Vec<String> = text.lines().filter(moves).map(Into::into).collect();
    lines.push(format!("dynamicConfigFile={}", dynamic.display()));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_storage::disk::OsDisk;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn zoo_cfg_names_the_configuration_in_force() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("zoo.cfg");
        let own = "# mine\ntickTime=500\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\ndataDir=/d\n";
        fs::write(&path, own).unwrap();
        let mut files = ConfigFiles::beside(path.clone(), Arc::new(OsDisk));
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let membership =
            Membership::parse("server.1=a:1:2;2181\nserver.2=b:1:2;2181\nversion=100000003").unwrap();

        assert!(files.start_with(&Membership { version: 0, ..membership.clone() }));
        assert_eq!(read("zoo.cfg"), own);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left of the probe");

        files.save_next(&membership).unwrap();
        let lines = "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant;0.0.0.0:2181";
        assert_eq!(read("zoo.cfg.dynamic.next"), format!("{lines}\nversion=100000003"));

        files.save_active(&membership, true).unwrap();
        assert_eq!(read("zoo.cfg.dynamic.100000003"), lines);
        assert_eq!(read("zoo.cfg.bak"), own);
        let named = dir.path().join("zoo.cfg.dynamic.100000003");
        assert_eq!(
            read("zoo.cfg"),
            format!("# mine\ntickTime=500\ndataDir=/d\ndynamicConfigFile={}\n", named.display())
        );
        assert!(!dir.path().join("zoo.cfg.dynamic.next").exists());

        let later = Membership { version: 0x3_0000_0001, ..membership.clone() };
        files.save_next(&later).unwrap();
        files.save_active(&Membership { version: 0x2_0000_0001, ..membership }, false).unwrap();
        assert_eq!(
            read("zoo.cfg.dynamic.next"),
            later.to_string(),
            "the proposal was logged, and may come into force"
        );
        assert_eq!(read("zoo.cfg.bak"), own, "the first one is kept");
        assert!(read("zoo.cfg").ends_with("zoo.cfg.dynamic.200000001\n"));
    }
}
