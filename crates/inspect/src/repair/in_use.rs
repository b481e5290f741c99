//! Finds the processes that use a folder. Java takes no lock, so only the system and the file of its process id tell.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The file with the process id that ZooKeeper's start script writes to dataDir.
const PID_FILE: &str = "zookeeper_server.pid";

/// The ids of other processes that have a file in one of the folders (`version-2`) open, as far as this user may see
/// them, and of a Java server that was started by its script. Java opens its log with the first write only.
pub fn users(folders: &[&Path]) -> Vec<u32> {
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let started = folders.iter().filter_map(|folder| started_by_script(folder.parent()?));
    let found: BTreeSet<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && has_open(*pid, &folders))
        .chain(started)
        .collect();
    found.into_iter().collect()
}

/// The process id in the file in dataDir, if a Java process with this id runs.
fn started_by_script(data_dir: &Path) -> Option<u32> {
    let text = fs::read_to_string(data_dir.join(PID_FILE)).ok()?;
    let pid: u32 = text.trim().parse().ok()?;
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (program.trim() == "java").then_some(pid)
}

fn has_open(pid: u32, folders: &[PathBuf]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|file| folders.iter().any(|folder| file.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::tests::user_of;

    #[test]
    fn a_process_with_an_open_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.1");
        let file = fs::File::create(&path).unwrap();
        assert_eq!(users(&[dir.path()]), [0; 0], "the own process does not count");
        let mut other = user_of(file);
        let found = users(&[dir.path()]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(found, [other.id()]);
    }
}
