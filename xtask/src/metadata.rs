//! Reads the packages of the workspace and their dependencies from `cargo metadata`.

use crate::program::cargo_program;
use anyhow::{Context, Result};
use cargo_metadata::{Dependency, DependencyKind, Metadata, MetadataCommand, Package};
use std::path::Path;

/// Runs `cargo metadata` in a folder.
pub(crate) fn read(folder: &Path) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo_program()).current_dir(folder).other_options(["--locked".to_owned()]);
    command.exec().with_context(|| format!("cargo metadata in {}", folder.display()))
}

/// Whether a package is of this checkout, and not of a registry.
pub(crate) fn is_member(package: &Package) -> bool {
    package.source.is_none()
}

/// The dependencies of a package, without those of its tests only.
pub(crate) fn imports(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development)
}
