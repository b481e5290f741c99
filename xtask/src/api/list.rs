//! A crate's public API as a list, from the JSON of rustdoc.

use crate::program::{Finished, Runner, cargo_program};
use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package};
use serde::Deserialize;
use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The format of rustdoc's JSON that the version of public-api in Cargo.toml reads.
const FORMAT: u32 = 57;
/// The variable in which the wrapper finds the real rustdoc.
const REAL: &str = "OSTLER_RUSTDOC";
/// The JSON of a stable rustdoc needs RUSTC_BOOTSTRAP. In cargo's own environment this variable would build every build
/// script anew that looks at it, and all that depends on these.
const WRAPPER: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec \"$OSTLER_RUSTDOC\" \"$@\"\n";

/// The result of reading one file.
pub(crate) enum Listed {
    /// The items, a line each.
    Items(String),
    /// The file has another format.
    OtherFormat {
        /// Its number.
        found: u32,
        /// The number of the format that can be read.
        known: u32,
    },
}

/// The part of every format that says which one it is.
#[derive(Deserialize)]
struct FormatVersion {
    format_version: u32,
}

/// Runs rustdoc for JSON.
pub(crate) struct Rustdoc {
    target: PathBuf,
    wrapper: PathBuf,
}

impl Rustdoc {
    /// Writes the wrapper.
    pub(crate) fn prepare(metadata: &Metadata) -> Result<Rustdoc> {
        let target = metadata.target_directory.as_std_path().to_path_buf();
        let folder = target.join("xtask");
        let wrapper = folder.join("rustdoc-json");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let write = || -> std::io::Result<()> {
            fs::write(&wrapper, WRAPPER)?;
            fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))
        };
        write().with_context(|| format!("cannot write {}", wrapper.display()))?;
        Ok(Rustdoc { target, wrapper })
    }

    /// Writes the JSON of a crate with these features.
    pub(crate) fn run(&self, runner: &Runner<'_>, package: &Package, features: &[&str]) -> Result<Finished> {
        let features = features.join(",");
        let mut command = Command::new(cargo_program());
        command.args(["rustdoc", "--locked", "-p", &package.name, "--lib", "--no-default-features"]);
        command.args(["--features", &features, "--", "-Zunstable-options", "--output-format=json"]);
        let real = env::var_os("RUSTDOC").unwrap_or_else(|| OsString::from("rustdoc"));
        runner.run(command.env(REAL, real).env("RUSTDOC", &self.wrapper))
    }

    /// Reads the JSON of a crate. Left out are implementations that follow from the type: of `Send` and the like, by a
    /// `derive`, and for every type.
    pub(crate) fn list(&self, package: &Package) -> Result<Listed> {
        let name = package.name.replace('-', "_");
        let path = self.target.join("doc").join(format!("{name}.json"));
        let found = format_of(&path)?;
        if found != FORMAT {
            return Ok(Listed::OtherFormat { found, known: FORMAT });
        }
        let api = public_api::Builder::from_rustdoc_json(&path)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Listed::Items(api.to_string()))
    }
}

fn format_of(path: &Path) -> Result<u32> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let version: FormatVersion =
        serde_json::from_str(&text).with_context(|| format!("no JSON of rustdoc in {}", path.display()))?;
    Ok(version.format_version)
}
