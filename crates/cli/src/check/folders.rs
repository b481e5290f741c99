//! The data folders: whether they exist, are on a real disk, can be written, and have space.

use super::finding::{Finding, Level, Topic};
use ostler_server::config::ServerConfig;
use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};
use std::path::{Path, PathBuf};

/// Less space than this fills up with a few logs and snapshots.
const COMFORTABLE_BYTES: u64 = 2 << 30;
const MIB: u64 = 1 << 20;
/// The types of file systems in `statfs` that need a word.
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;
const NFS: i64 = 0x6969;
const OVERLAY: i64 = 0x794c_7630;

/// The system's facts about one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderFacts {
    setting: &'static str,
    path: PathBuf,
    /// The folder itself, or the nearest one above that exists.
    exists: bool,
    is_folder: bool,
    may_autocreate: bool,
    writable: bool,
    read_only: bool,
    free_bytes: u64,
    free_files: u64,
    kind: i64,
    /// Files in it that this user cannot read and write.
    foreign: Vec<String>,
    /// The space that a start takes at least: a log file that is reserved, and a snapshot beside the newest one.
    needed_bytes: u64,
}

pub(super) fn check(config: &ServerConfig) -> Vec<Finding> {
    let folders = &config.folders;
    let mut settings = vec![("dataDir", &folders.data_dir)];
    if folders.data_log_dir != folders.data_dir {
        settings.push(("dataLogDir", &folders.data_log_dir));
    }
    let mut findings = Vec::new();
    for (setting, path) in settings {
        match look(setting, path, config) {
            Ok(facts) => findings.extend(judge(&facts)),
            Err(error) => findings.push(Finding::new(
                Level::Error,
                Topic::Folders,
                format!("{setting}: {}: {error}", path.display()),
            )),
        }
    }
    findings
}

fn look(setting: &'static str, path: &Path, config: &ServerConfig) -> std::io::Result<FolderFacts> {
    let whole = std::path::absolute(path)?;
    let found = whole.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let space = statvfs(found)?;
    let inner = whole.join("version-2");
    let at = if inner.is_dir() { &inner } else { found };
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    Ok(FolderFacts {
        setting,
        path: path.to_path_buf(),
        exists: whole.exists(),
        is_folder: found.is_dir(),
        may_autocreate: config.folders.datadir_autocreate,
        writable: access(found, rights).is_ok() && access(at, rights).is_ok(),
        read_only: space.f_flag.contains(StatVfsMountFlags::RDONLY),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        free_files: space.f_favail,
        kind: statfs(found)?.f_type as i64,
        foreign: foreign(&inner),
        needed_bytes: config.log.pre_alloc_size_kb.saturating_mul(1024).saturating_add(largest(&inner)),
    })
}

/// Names of files that this user cannot both read and write, as after a start by root.
fn foreign(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| access(entry.path(), Access::READ_OK | Access::WRITE_OK).is_err())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The size of the largest snapshot.
fn largest(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let snapshots =
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"snapshot."));
    snapshots.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).max().unwrap_or(0)
}

fn judge(facts: &FolderFacts) -> Vec<Finding> {
    let (setting, path) = (facts.setting, facts.path.display());
    let finding =
        |level, text: String| Finding::new(level, Topic::Folders, format!("{setting}: {path}{text}"));
    if !facts.is_folder {
        return vec![finding(
            Level::Error,
            " is below a file that is no folder; correct the setting".to_owned(),
        )];
    }
    if !facts.exists && !facts.may_autocreate {
        let text = " does not exist, and zookeeper.datadir.autocreate=false; create it and give it to the server's \
        user";
        return vec![finding(Level::Error, text.to_owned())];
    }
    let mut findings = Vec::new();
    if !facts.exists {
        findings.push(finding(Level::Fact, " does not exist; the first start makes it".to_owned()));
    }
    if facts.read_only {
        findings.push(finding(Level::Error, " is on a file system that is mounted read-only".to_owned()));
    } else if !facts.writable {
        let text =
            " cannot be read and written by this user; give it to the user of the server with chown -R";
        findings.push(finding(Level::Error, text.to_owned()));
    }
    if let [first, rest @ ..] = &facts.foreign[..] {
        let others = if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) };
        findings.push(finding(
            Level::Error,
            format!("/version-2/{first}{others}: this user cannot read and write it, as after a start by root; use \
            chown -R"),
        ));
    }
    let about_kind = match facts.kind {
        TMPFS | RAMFS => Some((Level::Warning, "is in memory: a restart of the machine loses it")),
        NFS => Some((
            Level::Warning,
            "is on NFS: syncs are slow there, and a lock may be lost; use a local disk",
        )),
        OVERLAY => {
            Some((Level::Warning, "is in the layer of a container and ends with it; mount a volume there"))
        }
        _ => None,
    };
    if let Some((level, text)) = about_kind {
        findings.push(finding(level, format!(" {text}")));
    }
    findings.push(judge_space(facts, &finding));
    findings
}

fn judge_space(facts: &FolderFacts, finding: &dyn Fn(Level, String) -> Finding) -> Finding {
    let free = format!(" has {} MiB free", facts.free_bytes / MIB);
    if facts.free_files == 0 && facts.free_bytes > 0 {
        // File systems without a limit of files report 0 too.
        return finding(Level::Note, format!("{free} and says that no more files can be made (df -i)"));
    }
    if facts.free_bytes < facts.needed_bytes {
        let needed = facts.needed_bytes / MIB;
        let text = format!("{free}, and the next log and snapshot take about {needed} MiB; free some space");
        return finding(Level::Warning, text);
    }
    if facts.free_bytes < COMFORTABLE_BYTES {
        let text = format!(
            "{free}, which a few logs and snapshots fill; set autopurge.purgeInterval, or use a larger disk"
        );
        return finding(Level::Warning, text);
    }
    finding(Level::Fact, free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> FolderFacts {
        FolderFacts {
            setting: "dataDir",
            path: "/data".into(),
            exists: true,
            is_folder: true,
            may_autocreate: true,
            writable: true,
            read_only: false,
            free_bytes: 100 << 30,
            free_files: 1000,
            kind: 0xef53,
            foreign: Vec::new(),
            needed_bytes: 64 << 20,
        }
    }

    fn worst(facts: FolderFacts) -> Level {
        judge(&facts).iter().map(|finding| finding.level).max().unwrap()
    }

    #[test]
    fn a_folder_that_a_server_cannot_use_is_an_error() {
        assert_eq!(worst(facts()), Level::Fact);
        assert_eq!(worst(FolderFacts { exists: false, ..facts() }), Level::Fact);
        assert_eq!(worst(FolderFacts { exists: false, may_autocreate: false, ..facts() }), Level::Error);
        assert_eq!(worst(FolderFacts { writable: false, ..facts() }), Level::Error);
        assert_eq!(worst(FolderFacts { read_only: true, ..facts() }), Level::Error);
        assert_eq!(worst(FolderFacts { is_folder: false, ..facts() }), Level::Error);
        assert_eq!(worst(FolderFacts { foreign: vec!["log.1".into()], ..facts() }), Level::Error);
    }

    #[test]
    fn memory_and_little_space_are_warned_of() {
        assert_eq!(worst(FolderFacts { kind: TMPFS, ..facts() }), Level::Warning);
        assert_eq!(worst(FolderFacts { free_bytes: 1 << 30, ..facts() }), Level::Warning);
        assert_eq!(worst(FolderFacts { needed_bytes: 200 << 30, ..facts() }), Level::Warning);
        assert_eq!(worst(FolderFacts { free_files: 0, ..facts() }), Level::Note);
    }

    #[test]
    fn a_real_folder_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let config = ServerConfig::embedded(dir.path());
        let found = check(&config);
        assert!(found.iter().all(|finding| finding.level < Level::Error), "{found:?}");
        let below = dir.path().join("file/data");
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert_eq!(check(&ServerConfig::embedded(below))[0].level, Level::Error);
    }
}
