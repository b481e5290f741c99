//! The step `features`: crates with optional parts are compiled without features, with each feature by itself, and with
//! all of them.

use crate::{
    beside::has_kerberos,
    metadata,
    outcome::Outcome,
    program::{Finished, Runner},
    published::{self, KERBEROS},
};
use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package};

/// The crates whose users choose features.
const CHOSEN: [&str; 3] = ["ostler-proto", "ostler-client", "ostler-recipes"];

pub(crate) fn check(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let metadata = metadata::read(runner.checkout())?;
    let kerberos = has_kerberos(runner.checkout());
    let mut checked = 0;
    for name in CHOSEN {
        for features in feature_sets(find(&metadata, name)?, kerberos) {
            let finished = compile(runner, name, &features)?;
            if !finished.success || has_warnings(&finished.output) {
                let reason =
                    format!("{name} with the features [{}]: {}", features.join(", "), finished.status);
                return Ok(Outcome::failed(reason, finished.output));
            }
            checked += 1;
        }
    }
    Ok(Outcome::ok(format!("{checked} sets of features")))
}

pub(crate) fn find<'a>(metadata: &'a Metadata, name: &str) -> Result<&'a Package> {
    let found =
        metadata.packages.iter().find(|package| *package.name == name && metadata::is_member(package));
    found.with_context(|| format!("there is no crate {name} in the workspace"))
}

/// No feature, each one by itself, and all but Kerberos; with Kerberos, if it is there, by itself only.
fn feature_sets(package: &Package, kerberos: bool) -> Vec<Vec<&str>> {
    let mut sets = vec![Vec::new()];
    sets.extend(
        published::features(package).filter(|feature| kerberos || *feature != KERBEROS).map(|one| vec![one]),
    );
    let all: Vec<&str> = published::features(package).filter(|feature| *feature != KERBEROS).collect();
    if all.len() > 1 {
        sets.push(all);
    }
    sets
}

fn compile(runner: &Runner<'_>, name: &str, features: &[&str]) -> Result<Finished> {
    let features = features.join(",");
    runner.cargo(&[
        "check",
        "--locked",
        "-p",
        name,
        "--lib",
        "--no-default-features",
        "--features",
        &features,
    ])
}

/// Whether cargo reports warnings of a crate that it has compiled. `-D warnings` in RUSTFLAGS would build everything
/// again.
pub(crate) fn has_warnings(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("warning: `") && line.contains(" generated "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_the_compiler_are_told_from_those_of_cargo() {
        assert!(has_warnings("x\nwarning: `ostler-client` (lib) generated 1 warning\n"));
        assert!(!has_warnings("warning: manifest has no documentation, homepage or repository\n"));
    }

    #[test]
    fn each_feature_is_compiled_by_itself() {
        let manifest = r#"{"name": "a", "version": "0.1.0", "id": "a", "dependencies": [], "targets": [],
            "features": {"default": ["x"], "x": [], "y": [], "gssapi": []}, "manifest_path": "/a/Cargo.toml"}"#;
        let package: Package = serde_json::from_str(manifest).unwrap();
        assert_eq!(feature_sets(&package, false), [vec![], vec!["x"], vec!["y"], vec!["x", "y"]]);
        assert_eq!(
            feature_sets(&package, true),
            [vec![], vec!["gssapi"], vec!["x"], vec!["y"], vec!["x", "y"]]
        );
    }
}
