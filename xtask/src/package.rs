//! The step `package`: packages all crates that can be published, and compiles the examples of their READMEs in a project
//! outside the workspace that has nothing but the packages.

use crate::{
    features::has_warnings,
    metadata,
    outcome::Outcome,
    program::{Finished, Runner, cargo_program},
    published, readme,
};
use anyhow::{Context, Result, bail};
use cargo_metadata::Package;
use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Files that each package must have.
const FILES: [&str; 3] = ["README.md", "LICENSE", "NOTICE"];
/// The dependencies of the examples beside the packages.
const OF_EXAMPLES: &str =
    "tokio = { version = \"1\", features = [\"macros\", \"rt-multi-thread\", \"signal\"] }\n";
/// Features whose dependencies need a newer Rust than their crate; the README says so.
const NEED_NEWER_RUST: [&str; 1] = ["srv"];
/// The folder in the target folder; the projects in it, and the folder with the unpacked packages.
const OUTSIDE: &str = "outside";
const EXAMPLES: &str = "readme-examples";
const OLDEST: &str = "oldest-rust";
const PACKAGES: &str = "packages";

pub(crate) fn check(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let metadata = metadata::read(runner.checkout())?;
    let target = metadata.target_directory.as_std_path();
    let crates = published::crates(&metadata);
    let packed = pack(runner, &crates)?;
    if !packed.success {
        return Ok(Outcome::failed(format!("cargo package: {}", packed.status), packed.output));
    }
    let outside = target.join(OUTSIDE);
    remove_folder(&outside)?;
    let mut complaints = Vec::new();
    for package in &crates {
        let folder = unpack(runner, package, target)?;
        let lacks = FILES.iter().filter(|file| !folder.join(file).is_file());
        complaints.extend(lacks.map(|file| format!("the package of {} has no {file}", package.name)));
    }
    if !complaints.is_empty() {
        return Ok(Outcome::of_complaints(&complaints, String::new()));
    }
    write_oldest(&outside, &crates)?;
    let examples = write_examples(runner.checkout(), &outside, &crates)?;
    let checked = compile(runner, &outside, target)?;
    if !checked.success || has_warnings(&checked.output) {
        return Ok(Outcome::failed(format!("the examples of READMEs: {}", checked.status), checked.output));
    }
    Ok(Outcome::ok(format!("{} packages, {examples} examples", crates.len())))
}

fn pack(runner: &Runner<'_>, crates: &[&Package]) -> Result<Finished> {
    let mut arguments = vec!["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"];
    for package in crates {
        arguments.extend(["-p", &package.name]);
    }
    runner.cargo(&arguments)
}

/// The name and version of a package, as its file and its folder are called.
fn full_name(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// Returns the folder of the package.
fn unpack(runner: &Runner<'_>, package: &Package, target: &Path) -> Result<PathBuf> {
    let name = full_name(package);
    let packages = target.join(OUTSIDE).join(PACKAGES);
    make_folder(&packages)?;
    let file = target.join("package").join(format!("{name}.crate"));
    // With the time of now: cargo takes files for unchanged by their times, and those in packages are always the same.
    let finished = runner.run(Command::new("tar").arg("-xmzf").arg(&file).arg("-C").arg(&packages))?;
    if !finished.success {
        bail!("cannot unpack {}: {}", file.display(), finished.output.trim());
    }
    Ok(packages.join(name))
}

/// Writes the project with the examples, and returns their number.
fn write_examples(checkout: &Path, outside: &Path, crates: &[&Package]) -> Result<usize> {
    let folder = outside.join(EXAMPLES);
    let mut manifest = manifest_head(EXAMPLES, "");
    manifest += OF_EXAMPLES;
    crates.iter().for_each(|package| depend(&mut manifest, package, &[]));
    write_project(&folder, &(manifest + &patches(crates)))?;
    // The versions of the workspace are built already.
    let lock = fs::read(checkout.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    write(&folder.join("Cargo.lock"), &lock)?;
    let mut examples = 0;
    for package in crates {
        let readme = outside.join(PACKAGES).join(full_name(package)).join("README.md");
        let text =
            fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
        let programs = readme::programs(&text);
        if programs.is_empty() {
            bail!("the README of {} has no example in Rust", package.name);
        }
        for (number, program) in programs.iter().enumerate() {
            let name = format!("{}-{}.rs", package.name, number + 1);
            write(&folder.join("examples").join(name), program.as_bytes())?;
        }
        examples += programs.len();
    }
    Ok(examples)
}

/// Writes a project that depends on the crates for which an older Rust is enough, and that lets cargo choose versions for
/// that Rust. CONTRIBUTING.md says how it is built.
fn write_oldest(outside: &Path, crates: &[&Package]) -> Result<()> {
    let Some(newest) = crates.iter().filter_map(|package| package.rust_version.as_ref()).max() else {
        return Ok(());
    };
    let oldest =
        crates.iter().filter(|package| package.rust_version.as_ref().is_some_and(|rust| rust < newest));
    let oldest: Vec<&Package> = oldest.copied().collect();
    let Some(rust) = oldest.iter().filter_map(|package| package.rust_version.as_ref()).max() else {
        return Ok(());
    };
    let mut manifest = manifest_head(OLDEST, &format!("rust-version = \"{rust}\"\n"));
    for package in &oldest {
        let mut features = published::documented_features(package);
        features.retain(|feature| !NEED_NEWER_RUST.contains(feature));
        depend(&mut manifest, package, &features);
    }
    write_project(&outside.join(OLDEST), &(manifest + &patches(&oldest)))
}

/// The begin of a manifest, up to its dependencies. The project is a workspace of its own.
fn manifest_head(name: &str, more: &str) -> String {
    format!(
        "[workspace]\nresolver = \"3\"\n\n[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\n{more}\n[dependencies]\n"
    )
}

fn depend(manifest: &mut String, package: &Package, features: &[&str]) {
    let (name, folder) = (&package.name, full_name(package));
    let _ = writeln!(manifest, "{name} = {{ path = \"../{PACKAGES}/{folder}\", features = {features:?} }}");
}

/// The packages depend on each other by version, as those of crates.io do.
fn patches(crates: &[&Package]) -> String {
    let mut patches = "\n[patch.crates-io]\n".to_owned();
    for package in crates {
        let (name, folder) = (&package.name, full_name(package));
        let _ = writeln!(patches, "{name} = {{ path = \"../{PACKAGES}/{folder}\" }}");
    }
    patches
}

/// Writes a package with an empty library.
fn write_project(folder: &Path, manifest: &str) -> Result<()> {
    write(&folder.join("Cargo.toml"), manifest.as_bytes())?;
    write(&folder.join("src/lib.rs"), b"")
}

/// Uses the target folder of the workspace, where the packages of crates.io are built already.
fn compile(runner: &Runner<'_>, outside: &Path, target: &Path) -> Result<Finished> {
    let manifest = outside.join(EXAMPLES).join("Cargo.toml");
    let mut command = Command::new(cargo_program());
    command.args(["check", "--offline", "--examples", "--manifest-path"]).arg(manifest);
    runner.run(command.env("CARGO_TARGET_DIR", target))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
