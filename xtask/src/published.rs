//! The crates that can be published, and their features.

use crate::metadata::is_member;
use cargo_metadata::{Metadata, Package};

/// Links a library that is not on every machine.
pub(crate) const KERBEROS: &str = "gssapi";
/// Compiles bugs on purpose, for tests.
const PLANTED: &str = "planted-bugs";
/// A list of features, not a feature with code of its own.
const DEFAULT: &str = "default";

/// The crates of the workspace whose manifest does not refuse to publish them, by name.
pub(crate) fn crates(metadata: &Metadata) -> Vec<&Package> {
    let may_be = |package: &&Package| is_member(package) && package.publish.is_none();
    let mut crates: Vec<&Package> = metadata.packages.iter().filter(may_be).collect();
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    crates
}

/// The features of a crate, without `default`.
pub(crate) fn features(package: &Package) -> impl Iterator<Item = &str> {
    package.features.keys().map(String::as_str).filter(|feature| *feature != DEFAULT)
}

/// The features that documentation shows, and whose API is listed: all that every machine can build and programs use.
pub(crate) fn documented_features(package: &Package) -> Vec<&str> {
    features(package).filter(|feature| ![KERBEROS, PLANTED].contains(feature)).collect()
}
