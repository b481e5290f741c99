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

/// Where the files are.
pub(crate) struct ConfigFiles {
    zoo_cfg: PathBuf,
    disk: Arc<dyn Disk>,
    /// What a start would read from them, where that is known.
    kept: Option<Membership>,
    warned: bool,
}

impl ConfigFiles {
    pub(crate) fn beside(zoo_cfg: PathBuf, disk: Arc<dyn Disk>) -> ConfigFiles {
        let zoo_cfg = std::path::absolute(&zoo_cfg).unwrap_or(zoo_cfg);
        ConfigFiles { zoo_cfg, disk, kept: None, warned: false }
    }

    /// The server starts with this configuration, which the files have. False, and a warning, if they could keep no other.
    pub(crate) fn start_with(&mut self, membership: &Membership) -> bool {
        self.kept = Some(membership.clone());
        self.probe(membership).inspect_err(|error| self.warn(error)).is_ok()
    }

    /// Tries what keeping a change would take, and leaves everything as it is.
    fn probe(&self, membership: &Membership) -> Result<(), StorageError> {
        let probe = self.with(".dynamic.tmp");
        self.disk.create(&probe).during("create", &probe)?;
        self.disk.remove(&probe).during("remove", &probe)?;
        // A zoo.cfg that a container has by itself, as a mount, cannot be replaced, whatever its folder allows. This one
        // is about to be replaced anyway, when the first configuration gets its number.
        if membership.version == 0 {
            replace_text(&*self.disk, &self.zoo_cfg, &self.read(&self.zoo_cfg)?)?;
        }
        Ok(())
    }

    /// Keeps a configuration that was proposed, or is in force. Where files cannot be written at all, one that decides
    /// what the kept one decides need not be kept; the next start finds its number with the others again.
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
            Err(error) if self.kept.as_ref().is_some_and(|kept| decide_alike(kept, membership)) => {
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

    fn with(&self, suffix: &str) -> PathBuf {
        let mut name = self.zoo_cfg.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// A configuration was proposed: it is kept before that is acknowledged.
    fn save_next(&self, membership: &Membership) -> Result<(), StorageError> {
        replace_text(&*self.disk, &self.with(".dynamic.next"), &membership.to_string())
    }

    /// A configuration is in force: zoo.cfg names its file from now on. One that was proposed later stays.
    fn save_active(&self, membership: &Membership, own_client: bool) -> Result<(), StorageError> {
        let dynamic = self.with(&format!(".dynamic.{:x}", membership.version));
        replace_text(&*self.disk, &dynamic, &membership.lines().join("\n"))?;
        let text = self.read(&self.zoo_cfg)?;
        let backup = self.with(".bak");
        if !self.disk.exists(&backup).during("look for", &backup)? {
            // It has what zoo.cfg has, secrets too.
            replace_text_like(&*self.disk, &backup, &text, &self.zoo_cfg)?;
        }
        replace_text(&*self.disk, &self.zoo_cfg, &renamed(&text, &dynamic, own_client))?;
        let next = self.with(".dynamic.next");
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

/// The system lets nothing be written there: no permission, a file system that is read-only, or a mounted zoo.cfg.
fn is_unwritable(error: &StorageError) -> bool {
    let StorageError::Io { source, .. } = error else { return false };
    let refusals =
        [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::ResourceBusy];
    refusals.contains(&source.kind())
}

/// Nothing is lost if a start finds the one in the place of the other. Before any change each server may know its own
/// client address only, and the first number comes with what the leader knows.
fn decide_alike(kept: &Membership, other: &Membership) -> bool {
    let without_clients = |of: &Membership| {
        let mut of = Membership { version: 0, ..of.clone() };
        of.servers.values_mut().for_each(|member| member.client = None);
        of
    };
    let first_number = Zxid(other.version).counter() == 0;
    kept.lines() == other.lines() || (first_number && without_clients(kept) == without_clients(other))
}

/// zoo.cfg without what the dynamic file has, and with its name. Comments and order stay, unlike upstream's.
fn renamed(text: &str, dynamic: &Path, own_client: bool) -> String {
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
        assert_eq!(read("zoo.cfg.dynamic.next"), later.to_string(), "it was logged, and may come into force");
        assert_eq!(read("zoo.cfg.bak"), own, "the first one is kept");
        assert!(read("zoo.cfg").ends_with("zoo.cfg.dynamic.200000001\n"));
    }
}
