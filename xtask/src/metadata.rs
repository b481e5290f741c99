//! Reads the packages of the workspace and their dependencies from `cargo metadata`.

use crate::program::cargo_program;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// All packages that `cargo metadata` lists.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// The folder of its Cargo.toml.
    pub(crate) folder: PathBuf,
    /// Whether the package is a member of the workspace.
    pub(crate) member: bool,
    /// Its dependencies, without those of its tests only.
    pub(crate) imports: Vec<String>,
}

/// Runs `cargo metadata`.
pub(crate) fn read(checkout: &Path) -> Result<Metadata> {
    let output = Command::new(cargo_program())
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(checkout)
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let all: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let packages = all["packages"].as_array().context("cargo metadata names no packages")?;
    Ok(Metadata { packages: packages.iter().map(package).collect::<Result<_>>()? })
}

fn package(value: &Value) -> Result<Package> {
    let text = |key: &str| {
        value[key]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("a package of cargo metadata has no {key}"))
    };
    let dependencies = value["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    let imported = dependencies.iter().filter(|dependency| dependency["kind"].as_str() != Some("dev"));
    let manifest = PathBuf::from(text("manifest_path")?);
    Ok(Package {
        name: text("name")?,
        version: text("version")?,
        licence: value["license"].as_str().map(str::to_owned),
        folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
        member: value["source"].is_null(),
        imports: imported.filter_map(|it| it["name"].as_str()).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_only_are_left_out() {
        let value = serde_json::json!({
            "name": "ostler-tree", "version": "0.1.0", "license": "Apache-2.0", "source": null,
            "manifest_path": "/x/crates/tree/Cargo.toml",
            "dependencies": [
                {"name": "ostler-proto", "kind": null}, {"name": "proptest", "kind": "dev"},
                {"name": "cc", "kind": "build"},
            ],
        });
        let package = package(&value).unwrap();
        assert_eq!(package.imports, ["ostler-proto", "cc"]);
        assert!(package.member);
        assert_eq!(package.folder, Path::new("/x/crates/tree"));
    }
}
