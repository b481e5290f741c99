//! Which processes have files of a folder open. Java takes no lock, so only the system knows.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The ids of other processes that have a file in one of the folders open, as far as this user may see them.
pub fn users(folders: &[&Path]) -> Vec<u32> {
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let found: BTreeSet<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && has_open(*pid, &folders))
        .collect();
    found.into_iter().collect()
}

fn has_open(pid: u32, folders: &[PathBuf]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|file| folders.iter().any(|folder| file.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_with_an_open_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.1");
        let file = fs::File::create(&path).unwrap();
        assert_eq!(users(&[dir.path()]), [0; 0], "the own process does not count");
        let mut other = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn().unwrap();
        let found = users(&[dir.path()]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(found, [other.id()]);
    }
}
