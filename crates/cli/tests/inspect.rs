//! Tests of `ostler inspect` and `ostler check --preflight`: exit codes, JSON, and the commands of docs/inspect.md on
//! files that Java ZooKeeper wrote.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A data folder with files of Java 3.9.5: a log of 26 transactions, and snapshots of its end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../storage/tests/golden/3.9.5");
        fs::create_dir(dir.path().join("version-2")).unwrap();
        for entry in fs::read_dir(golden).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, dir.path().join("version-2").join(path.file_name().unwrap())).unwrap();
        }
        Folder(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names and contents of all files.
    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

fn ostler(words: &[&str], cwd: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ostler")).args(words).current_dir(cwd).output().unwrap()
}

/// The exit code, and the lines of JSON.
fn json(words: &[&str], cwd: &Path) -> (Option<i32>, Vec<Value>) {
    let run = ostler(&[words, &["--json"]].concat(), cwd);
    let text = String::from_utf8(run.stdout).unwrap();
    (run.status.code(), text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn a_log_is_printed_as_lines_of_json_and_damage_gives_exit_code_1() {
    let folder = Folder::new();
    let (code, lines) = json(&["inspect", "log", "."], folder.0.path());
    let end = lines.last().unwrap();
    assert_eq!((code, &end["kind"], &end["transactions"]), (Some(0), &"end".into(), &26.into()));
    let log = folder.path("version-2/log.1");
    let mut bytes = fs::read(&log).unwrap();
    bytes[40] ^= 1;
    fs::write(&log, bytes).unwrap();
    let (code, lines) = json(&["inspect", "log", "."], folder.0.path());
    assert_eq!((code, &lines[1]["kind"], &lines[1]["offset"]), (Some(1), &"damage".into(), &16.into()));
    assert_eq!(json(&["inspect", "log", "version-2/none"], folder.0.path()).0, Some(2));
    assert_eq!(json(&["inspect", "sizes", "version-2/log.1"], folder.0.path()).0, Some(2));
}

#[test]
fn a_dry_run_of_a_repair_changes_no_file() {
    let folder = Folder::new();
    let log = folder.path("version-2/log.1");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 3]).unwrap();
    let before = folder.contents();
    let (code, lines) = json(&["inspect", "repair", "."], folder.0.path());
    assert_eq!((code, &lines[0]["actions"][0]["action"]), (Some(1), &"cut".into()));
    assert_eq!(folder.contents(), before);
    let (code, lines) = json(&["inspect", "repair", ".", "--apply"], folder.0.path());
    assert_eq!((code, &lines[0]["applied"]), (Some(0), &true.into()));
    assert_eq!(json(&["inspect", "repair", "."], folder.0.path()).0, Some(0));
    assert_eq!(fs::read(folder.path("before-repair-1/log.1")).unwrap().len(), bytes.len() - 3);
}

/// Each command of the document, with the paths and zxids of the folder here.
#[test]
fn the_commands_of_the_document_run() {
    const HERE: [(&str, &str); 12] = [
        ("/var/lib/zookeeper/version-2/log.100000001", "log.1"),
        ("/var/lib/zookeeper/version-2/snapshot.100000001", "snapshot.1a"),
        ("snapshot.100000001", "snapshot.1a"),
        ("snapshot.200000001", "snapshot.1a.gz"),
        ("/var/lib/zookeeper", ".."),
        ("/backup/zk1", ".."),
        ("/backup/zk2", ".."),
        ("/app/config", "/plain"),
        ("/app", "/plain"),
        ("0x100000010", "0x2"),
        ("0x100000020", "0x9"),
        ("0x100000fff", "0x1a"),
    ];
    let document =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/inspect.md")).unwrap();
    let commands: Vec<&str> =
        document.lines().filter_map(|line| line.strip_prefix("ostler inspect ")).collect();
    assert!(commands.len() > 9, "{commands:?}");
    for command in commands {
        let folder = Folder::new();
        let text = command.split('#').next().unwrap();
        let text = HERE.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here));
        let words: Vec<&str> = std::iter::once("inspect").chain(text.split_whitespace()).collect();
        let run = ostler(&words, &folder.path("version-2"));
        let shown = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(0), "{text}: {shown}");
        assert!(!run.stdout.is_empty(), "{text}");
    }
}

#[test]
fn a_preflight_tells_of_a_port_in_use_and_leaves_no_file() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let data = folder.0.path().display();
    let zoo_cfg = folder.path("zoo.cfg");
    fs::write(&zoo_cfg, format!("dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n")).unwrap();
    let before = folder.contents();
    let levels = |level: &str, topic: &str, lines: &[Value]| {
        lines.iter().filter(|line| line["level"] == level && line["topic"] == topic).count()
    };
    let words = ["check", "zoo.cfg", "--preflight"];
    let (code, lines) = json(&words, folder.0.path());
    assert_eq!((code, levels("error", "ports", &lines)), (Some(2), 1), "{lines:?}");
    assert_eq!(levels("note", "data", &lines), 1, "the data is of Java: {lines:?}");
    drop(listener);
    let (code, lines) = json(&words, folder.0.path());
    assert_eq!((code, levels("error", "ports", &lines)), (Some(1), 0), "{lines:?}");
    assert!(lines.iter().any(|line| line["topic"] == "disk"), "{lines:?}");
    assert_eq!(folder.contents(), before);
}
