//! The files beside zoo.cfg that hold the configuration of an ensemble that can be changed, as upstream writes them:
//! `zoo.cfg.dynamic.VERSION` is in force and named by zoo.cfg, `zoo.cfg.dynamic.next` was proposed.

use ostler_proto::membership::Membership;
use ostler_storage::{
    StorageError,
    disk::{Disk, replace_text},
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
#[derive(Clone)]
pub(crate) struct ConfigFiles {
    zoo_cfg: PathBuf,
    disk: Arc<dyn Disk>,
}

impl ConfigFiles {
    pub(crate) fn beside(zoo_cfg: PathBuf, disk: Arc<dyn Disk>) -> ConfigFiles {
        ConfigFiles { zoo_cfg: std::path::absolute(&zoo_cfg).unwrap_or(zoo_cfg), disk }
    }

    fn with(&self, suffix: &str) -> PathBuf {
        let mut name = self.zoo_cfg.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// A configuration was proposed: it is kept before that is acknowledged.
    pub(crate) fn save_next(&self, membership: &Membership) -> Result<(), StorageError> {
        replace_text(&*self.disk, &self.with(".dynamic.next"), &membership.to_string())
    }

    /// A configuration is in force: zoo.cfg names its file from now on. One that was proposed later stays.
    pub(crate) fn save_active(&self, membership: &Membership, own_client: bool) -> Result<(), StorageError> {
        let dynamic = self.with(&format!(".dynamic.{:x}", membership.version));
        replace_text(&*self.disk, &dynamic, &membership.lines().join("\n"))?;
        let text = self.read(&self.zoo_cfg)?;
        let backup = self.with(".bak");
        if !self.disk.exists(&backup).during("look for", &backup)? {
            replace_text(&*self.disk, &backup, &text)?;
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
        let files = ConfigFiles::beside(path.clone(), Arc::new(OsDisk));
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let membership =
            Membership::parse("server.1=a:1:2;2181\nserver.2=b:1:2;2181\nversion=100000003").unwrap();

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
