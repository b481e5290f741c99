//! Checks sizes and names of files, and marks of unfinished work.

use anyhow::{Context, Result};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A text file of the checkout.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path from the root of the checkout, with slashes.
    pub(crate) name: String,
    pub(crate) text: String,
}

const LINES_MAX: usize = 700;
/// Extensions of code and documents. A file without an extension is code if it starts with `#!`.
const CODE: [&str; 5] = ["rs", "py", "js", "java", "sh"];
const DOCUMENT: &str = "md";
/// Scripted traces, in folders of this name.
const TRACE: &str = "txt";
const TRACES: &str = "testdata";
/// Folders that tools and servers create; they are not checked.
const NOT_OURS: [&str; 7] =
    ["target", "node_modules", "__pycache__", "corpus", "artifacts", "ostler-data", "ostler-ensemble"];
/// Hidden folders that are checked.
const HIDDEN: [&str; 2] = [".ci", ".cargo"];
/// Parts of names that say nothing about the content.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];
/// Joined from parts, so that this file does not contain the words itself.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("d", "bg!("),
    concat!("#[ig", "nore"),
];

impl SourceFile {
    pub(crate) fn is_document(&self) -> bool {
        self.name.ends_with(".md")
    }

    fn is_code(&self) -> bool {
        !self.is_document()
    }
}

/// All files of code and text in the checkout.
pub(crate) fn read(checkout: &Path) -> Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    walk(checkout, &mut paths).with_context(|| format!("cannot read the folder {}", checkout.display()))?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // The file may be deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let ending = path.extension().and_then(|ending| ending.to_str());
        let wanted = match ending {
            Some(TRACE) => path.components().any(|part| part.as_os_str() == TRACES),
            Some(ending) => CODE.contains(&ending) || ending == DOCUMENT,
            None => bytes.starts_with(b"#!"),
        };
        if wanted {
            let name = path.strip_prefix(checkout).unwrap_or(&path).display().to_string();
            files.push(SourceFile { name, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    Ok(files)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&&*name);
            if !hidden && !NOT_OURS.contains(&&*name) {
                walk(&entry.path(), found)?;
            }
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Complaints about a file.
pub(crate) fn check(file: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    if file.is_code() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            complaints.push(format!(
                "{}: {lines} lines; {LINES_MAX} is the limit, so split it by subject",
                file.name
            ));
        }
        complaints.extend(empty_name(&file.name));
    }
    for (number, line) in file.text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(**word)) {
            complaints.push(format!(
                "{}:{}: {word} is unfinished work; finish it or file it",
                file.name,
                number + 1
            ));
        }
    }
    complaints
}

fn empty_name(name: &str) -> Option<String> {
    let empty = |part: &str| part.split(['_', '-', '.']).any(|word| EMPTY_NAMES.contains(&word));
    let part = name.split('/').find(|part| empty(part))?;
    Some(format!("{name}: {part} says nothing; name it by its subject"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, text: &str) -> usize {
        check(&SourceFile { name: name.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn long_files_and_empty_names_are_found() {
        assert_eq!(complaints("crates/tree/src/tree.rs", "fn a() {}\n"), 0);
        assert_eq!(complaints("crates/tree/src/tree.rs", &"\n".repeat(LINES_MAX + 1)), 1);
        assert_eq!(complaints("docs/operations.md", &"\n".repeat(LINES_MAX + 1)), 0);
        assert_eq!(complaints("crates/common/src/lib.rs", ""), 1);
        assert_eq!(complaints("crates/x/src/session_manager.rs", ""), 1);
        assert_eq!(complaints("crates/x/src/uncommon.rs", ""), 0);
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in UNFINISHED {
            assert_eq!(complaints("a.rs", &format!("let a = 1;\n// {word} b\n")), 1, "{word}");
        }
    }
}
