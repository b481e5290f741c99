//! Checks the manifests of crates that can be published: that they have what a registry shows, that the documentation has
//! all features, and that all crates for an older Rust name the same one.

use crate::published;
use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package};
use std::{collections::BTreeSet, fs};

/// Files beside each manifest.
const FILES: [&str; 3] = ["README.md", "LICENSE", "NOTICE"];
/// A registry takes no more keywords, and no more categories.
const WORDS_MAX: usize = 5;

pub(crate) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let crates = published::crates(metadata);
    let mut complaints = Vec::new();
    for package in &crates {
        let name = &package.name;
        let told = lacks(package).into_iter().chain(undocumented(package)?);
        complaints.extend(told.map(|complaint| format!("{name}: {complaint}")));
    }
    let versions: BTreeSet<_> = crates.iter().filter_map(|package| package.rust_version.as_ref()).collect();
    // That of the servers, and that of the clients.
    if versions.len() > 2 {
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        complaints.push(format!("crates name more than two values of rust-version: {}", versions.join(", ")));
    }
    Ok(complaints)
}

/// The parts that the manifest lacks.
fn lacks(package: &Package) -> Vec<String> {
    let mut lacks = Vec::new();
    let mut need = |there: bool, part: &str| {
        if !there {
            lacks.push(format!("its manifest needs {part}; or publish = false"));
        }
    };
    need(package.description.is_some(), "a description");
    need(package.license.is_some(), "a license");
    need(package.rust_version.is_some(), "a rust-version");
    need(package.readme.is_some(), "a readme");
    need((1..=WORDS_MAX).contains(&package.keywords.len()), "one to five keywords");
    need((1..=WORDS_MAX).contains(&package.categories.len()), "one to five categories");
    let missing = FILES.iter().filter(|file| !package.manifest_path.with_file_name(file).is_file());
    lacks.extend(missing.map(|file| format!("{file} is missing beside its manifest")));
    lacks
}

/// The features that docs.rs does not build, or the README does not name.
fn undocumented(package: &Package) -> Result<Vec<String>> {
    let readme = package.manifest_path.with_file_name("README.md");
    if !readme.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&readme).with_context(|| format!("cannot read {readme}"))?;
    let unnamed = published::features(package).filter(|feature| !text.contains(&format!("`{feature}`")));
    let mut complaints: Vec<String> =
        unnamed.map(|feature| format!("README.md does not name the feature `{feature}`")).collect();
    let built = features_of_docs_rs(package);
    let unbuilt =
        published::documented_features(package).into_iter().filter(|feature| !built.contains(*feature));
    complaints.extend(
        unbuilt.map(|feature| format!("[package.metadata.docs.rs] does not have the feature {feature}")),
    );
    Ok(complaints)
}

/// The features with which docs.rs builds a crate.
fn features_of_docs_rs(package: &Package) -> BTreeSet<String> {
    let settings = &package.metadata["docs"]["rs"];
    if settings["all-features"].as_bool() == Some(true) {
        return published::features(package).map(str::to_owned).collect();
    }
    let named = settings["features"].as_array().into_iter().flatten();
    named.filter_map(|feature| feature.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(more: &str) -> Package {
        let manifest = format!(
            r#"{{"name": "a", "version": "0.1.0", "id": "a", "dependencies": [], "targets": [],
            "manifest_path": "/nowhere/Cargo.toml", {more}}}"#
        );
        serde_json::from_str(&manifest).unwrap()
    }

    #[test]
    fn missing_parts_are_found() {
        let whole = r#""description": "A.", "license": "MIT", "rust_version": "1.85", "readme": "README.md",
            "keywords": ["a"], "categories": ["b"], "features": {}"#;
        assert_eq!(lacks(&package(whole)).len(), FILES.len(), "only the files, which are nowhere");
        let less = whole.replace(r#""keywords": ["a"], "#, "");
        assert!(lacks(&package(&less))[0].contains("keywords"));
    }

    #[test]
    fn features_of_docs_rs_are_read() {
        let features = r#""features": {"x": [], "y": [], "default": ["x"]}, "metadata": {"docs": {"rs": "#;
        let built = |settings: &str| features_of_docs_rs(&package(&format!("{features}{settings}}}}}")));
        assert_eq!(built(r#"{"all-features": true}"#).len(), 2);
        assert_eq!(built(r#"{"features": ["y"]}"#), BTreeSet::from(["y".to_owned()]));
        assert_eq!(built("{}").len(), 0);
    }
}
