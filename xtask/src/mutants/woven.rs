//! Builds a copy of the project with all mutants of a part, and runs its tests with one mutant after the other.

use super::{
    listed::{Kind, Mutant},
    weave::{self, SWITCH, Woven},
};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The most rounds of leaving out mutants that do not compile.
const ROUNDS_MAX: usize = 25;
/// Memory limit of a test program, KiB: a mutant may loop and allocate without end.
const MEMORY_MAX: &str = "6000000";
/// Time limit of a test program: this many times its time without a mutant, plus a fixed time, because a short program
/// may be slowed down by other work.
const TIMES_MAX: u32 = 3;
const SPARE: Duration = Duration::from_secs(30);
/// The number of tests of one program that run at a time. Many of them wait.
const TESTS_AT_ONCE: &str = "4";

/// A copy of the checkout with the mutants of one part in it.
pub(super) struct Copy<'a> {
    checkout: &'a Path,
    tree: PathBuf,
    target: PathBuf,
    mutants: &'a [Mutant],
    woven: BTreeMap<String, Woven>,
}

/// A test program.
struct Program {
    executable: PathBuf,
    folder: PathBuf,
    timeout: Duration,
}

impl<'a> Copy<'a> {
    /// Copies the tracked files as they are now into a folder in `results`.
    pub(super) fn new(checkout: &'a Path, results: &Path, mutants: &'a [Mutant]) -> Result<Copy<'a>> {
        let tree = results.join("woven");
        let copy =
            Copy { checkout, tree, target: results.join("woven-target"), mutants, woven: BTreeMap::new() };
        let files: BTreeSet<String> =
            tracked(checkout)?.into_iter().filter(|file| checkout.join(file).is_file()).collect();
        for file in &files {
            let source = checkout.join(file);
            let text = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
            copy.write(file, &text)?;
        }
        remove_others(&copy.tree, Path::new(""), &files)?;
        Ok(copy)
    }

    /// Writes only files that differ, so that cargo builds no more than it must.
    fn write(&self, file: &str, text: &[u8]) -> Result<()> {
        let path = self.tree.join(file);
        if fs::read(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let folder = path.parent().context("a file has a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Weaves all mutants that compile into the sources. Returns their places in the list.
    pub(super) fn weave(&mut self, package: &str) -> Result<BTreeSet<usize>> {
        let mut left_out: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..ROUNDS_MAX {
            self.write_woven(&left_out)?;
            let errors = self.errors(package)?;
            if errors.is_empty() {
                return Ok(self.woven.values().flat_map(|woven| woven.numbers.iter().copied()).collect());
            }
            let guilty: BTreeSet<usize> = errors
                .iter()
                .flat_map(|error| self.guilty(error))
                .filter(|of| !left_out.contains(of))
                .collect();
            if guilty.is_empty() {
                bail!("the woven tree does not compile: {}", errors[0].text);
            }
            left_out.extend(guilty);
        }
        bail!("the woven tree still does not compile after {ROUNDS_MAX} rounds")
    }

    fn write_woven(&mut self, left_out: &BTreeSet<usize>) -> Result<()> {
        let mut by_file: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in self.mutants.iter().enumerate() {
            let of = by_file.entry(&mutant.file).or_default();
            if !left_out.contains(&number) {
                of.push((number, mutant));
            }
        }
        let mut switches = BTreeSet::new();
        for (file, mutants) in by_file {
            let path = self.checkout.join(file);
            let source =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut woven =
                weave::weave(&source, &mutants).with_context(|| format!("cannot weave {file}"))?;
            let root = root_of(file).with_context(|| format!("{file} is in no library"))?;
            if root == file {
                woven.text.push_str(SWITCH);
            }
            switches.insert(root);
            self.write(file, woven.text.as_bytes())?;
            self.woven.insert(file.to_owned(), woven);
        }
        for root in switches.into_iter().filter(|root| !self.woven.contains_key(root)) {
            let path = self.checkout.join(&root);
            let source =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            self.write(&root, (source + SWITCH).as_bytes())?;
        }
        Ok(())
    }

    /// Removes all mutants again. Returns the folder, in which cargo-mutants then inserts one after the other.
    pub(super) fn restore(&self) -> Result<&Path> {
        for file in self.mutants.iter().map(|mutant| &mutant.file).collect::<BTreeSet<_>>() {
            for file in [Some(file.clone()), root_of(file)].into_iter().flatten() {
                let path = self.checkout.join(&file);
                let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                self.write(&file, &text)?;
            }
        }
        Ok(&self.tree)
    }

    /// Builds, using what was built before.
    pub(super) fn build_beside(&self, command: &mut Command) {
        command.env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", "--cap-lints=allow");
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.tree).args(arguments).arg("--message-format=json");
        self.build_beside(&mut command);
        command.stderr(Stdio::null());
        command
    }

    fn errors(&self, package: &str) -> Result<Vec<CompileError>> {
        let output =
            self.cargo(&["check", "--package", package, "--lib"]).output().context("cannot run cargo")?;
        let found: Vec<CompileError> =
            messages(&output.stdout).filter_map(|message| CompileError::read(&message)).collect();
        if found.is_empty() && !output.status.success() {
            bail!("cargo check of the woven tree ended with {}", output.status);
        }
        Ok(found)
    }

    /// The mutants at the place of an error, or else all of the function around it.
    fn guilty(&self, error: &CompileError) -> Vec<usize> {
        let mut guilty = Vec::new();
        for (file, bytes) in &error.places {
            let Some(woven) = self.woven.get(file) else { continue };
            guilty.extend(woven.at(bytes.clone()));
            if guilty.is_empty() {
                let before = woven.text[..bytes.start].matches('\n').count() + 1;
                let line = before - inserted_lines(&woven.text[..bytes.start]);
                guilty.extend(woven.numbers.iter().copied().filter(|number| {
                    self.mutants[*number].function.is_some_and(|(first, last)| (first..=last).contains(&line))
                }));
                if error.code == "E0004" {
                    guilty.retain(|number| self.mutants[*number].kind == Kind::MatchArm);
                }
            }
        }
        guilty
    }

    /// Builds the tests of a package, checks that they pass without a mutant, and measures their time.
    fn programs(&self, package: &str, tests: &[&str]) -> Result<Vec<Program>> {
        let arguments = [&["test", "--no-run", "--package", package], tests].concat();
        let output = self.cargo(&arguments).output().context("cannot run cargo")?;
        if !output.status.success() {
            let errors: Vec<String> = messages(&output.stdout)
                .filter_map(|one| CompileError::read(&one))
                .map(|one| one.text)
                .collect();
            bail!("the tests of {package} do not compile with its mutants: {}", errors.join("\n"));
        }
        let mut programs = Vec::new();
        for message in messages(&output.stdout) {
            let Some(executable) = message["executable"].as_str() else { continue };
            let folder = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent());
            let mut program = Program {
                executable: executable.into(),
                folder: folder.context("an executable is of a package")?.to_owned(),
                timeout: Duration::from_secs(600),
            };
            let started = Instant::now();
            if program.notices(None)? {
                bail!("{executable} fails without a mutant");
            }
            program.timeout = started.elapsed() * TIMES_MAX + SPARE;
            programs.push(program);
        }
        programs.sort_by_key(|program| program.timeout);
        Ok(programs)
    }

    /// Runs the tests with each of the mutants, and reports each result at once.
    pub(super) fn run(
        &self,
        package: &str,
        tests: &[&str],
        mutants: &[usize],
        on_fate: impl Fn(usize, bool) + Sync,
    ) -> Result<()> {
        if mutants.is_empty() {
            return Ok(());
        }
        let programs = self.programs(package, tests)?;
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut noticed = Ok(false);
                for program in &programs {
                    noticed = program.notices(Some(*mutant));
                    if !matches!(noticed, Ok(false)) {
                        break;
                    }
                }
                match noticed {
                    Ok(noticed) => on_fate(*mutant, noticed),
                    Err(error) => *failure.lock().unwrap_or_else(|of| of.into_inner()) = Some(error),
                }
            }
        };
        let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        match failure.into_inner().unwrap_or_else(|of| of.into_inner()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The number of lines that were inserted before this end of a text.
fn inserted_lines(text: &str) -> usize {
    text.lines().filter(|line| line.contains("woven_mutants::is") && line.ends_with("; }")).count()
}

impl Program {
    /// Whether the program fails or does not end in time.
    fn notices(&self, mutant: Option<usize>) -> Result<bool> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY_MAX}; exec \"$0\" --quiet")]).arg(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("RUST_TEST_THREADS", TESTS_AT_ONCE);
        if let Some(mutant) = mutant {
            command.env("WOVEN_MUTANT", mutant.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().with_context(|| format!("cannot run {}", self.executable.display()))?;
        let output = child.stdout.take().context("a test's output is read")?;
        let failed = Arc::new(AtomicBool::new(false));
        thread::spawn({
            let failed = failed.clone();
            move || failed.store(names_a_failure(output), Ordering::Relaxed)
        });
        let end = Instant::now() + self.timeout;
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for a test")? {
                return Ok(!ExitStatus::success(&status));
            }
            if failed.load(Ordering::Relaxed) || Instant::now() >= end {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether a test has failed. Known as it happens, so that the other tests need not run.
fn names_a_failure(output: impl Read) -> bool {
    BufReader::new(output).split(b'\n').map_while(Result::ok).any(|line| line.ends_with(b"FAILED"))
}

fn tracked(checkout: &Path) -> Result<Vec<String>> {
    let output =
        Command::new("git").current_dir(checkout).args(["ls-files"]).output().context("cannot run git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Removes the files below `folder` of the tree that are not in `files`: an earlier checkout had them.
fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<String>) -> Result<()> {
    let path = tree.join(folder);
    let entries = fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", path.display()))?;
        let name = folder.join(entry.file_name());
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_others(tree, &name, files)?;
            // Fails if something is left in it, as it should.
            let _ = fs::remove_dir(&path);
        } else if !name.to_str().is_some_and(|name| files.contains(name)) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The first file of the library to which a file belongs.
fn root_of(file: &str) -> Option<String> {
    let (package, _) = file.split_once("/src/")?;
    Some(format!("{package}/src/lib.rs"))
}

fn messages(output: &[u8]) -> impl Iterator<Item = Value> {
    String::from_utf8_lossy(output)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect::<Vec<_>>()
        .into_iter()
}

struct CompileError {
    code: String,
    text: String,
    /// Files and bytes, the nearest first.
    places: Vec<(String, std::ops::Range<usize>)>,
}

impl CompileError {
    fn read(message: &Value) -> Option<CompileError> {
        let message = &message["message"];
        if message["level"].as_str()? != "error" {
            return None;
        }
        let spans = message["spans"].as_array()?;
        let primary = spans.iter().filter(|span| span["is_primary"].as_bool() == Some(true));
        let place = |span: &Value| {
            let byte = |name: &str| span[name].as_u64().and_then(|byte| usize::try_from(byte).ok());
            Some((span["file_name"].as_str()?.to_owned(), byte("byte_start")?..byte("byte_end")?))
        };
        let places: Vec<_> = primary.filter_map(place).collect();
        let code = message["code"]["code"].as_str().unwrap_or_default().to_owned();
        (!places.is_empty()).then(|| CompileError {
            code,
            text: message["rendered"].as_str().unwrap_or_default().to_owned(),
            places,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_that_are_not_tracked_are_removed() {
        let tree = tempfile::tempdir().unwrap();
        for file in ["Cargo.toml", "crates/new/src/lib.rs", "crates/old/src/lib.rs", "crates/new/old.rs"] {
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let tracked = ["Cargo.toml", "crates/new/src/lib.rs"].map(str::to_owned).into();
        remove_others(tree.path(), Path::new(""), &tracked).unwrap();
        assert!(tree.path().join("crates/new/src/lib.rs").is_file());
        assert!(tree.path().join("Cargo.toml").is_file());
        assert!(!tree.path().join("crates/old").exists());
        assert!(!tree.path().join("crates/new/old.rs").exists());
    }
}
