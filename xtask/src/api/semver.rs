//! Whether the API keeps the promise of its version number, by cargo-semver-checks: compared with the last release.

use crate::{
    outcome::Outcome,
    program::{Runner, is_installed},
    published,
};
use anyhow::Result;
use cargo_metadata::Package;
use std::process::Command;

const PROGRAM: &str = "cargo-semver-checks";
/// The tags of releases.
const TAGS: &str = "v*";

/// A few words if all is well, or the outcome of the step.
pub(crate) fn compare(
    runner: &Runner<'_>,
    packages: &[&Package],
) -> Result<std::result::Result<String, Outcome>> {
    let Some(tag) = last_tag(runner)? else {
        return Ok(Ok("no tag yet, so nothing to compare with".to_owned()));
    };
    if !is_installed(PROGRAM) {
        let installed = runner.cargo(&["install", PROGRAM, "--locked"])?;
        if !installed.success {
            return Ok(Err(Outcome::failed(format!("cargo install {PROGRAM}"), installed.output)));
        }
    }
    for package in packages {
        let features = published::documented_features(package).join(",");
        let arguments = ["semver-checks", "--baseline-rev", &tag, "-p", &package.name];
        let finished = runner
            .cargo(&[&arguments[..], &["--only-explicit-features", "--features", &features]].concat())?;
        if !finished.success {
            let reason = format!("{} breaks the promise of its version since {tag}", package.name);
            return Ok(Err(Outcome::failed(reason, finished.output)));
        }
    }
    Ok(Ok(format!("the version fits what has changed since {tag}")))
}

/// The newest tag of a release that this commit contains.
fn last_tag(runner: &Runner<'_>) -> Result<Option<String>> {
    let mut command = Command::new("git");
    command.args(["tag", "--list", TAGS, "--merged", "HEAD", "--sort=-version:refname"]);
    let finished = runner.run(&mut command)?;
    let newest = finished.output.lines().next().filter(|_| finished.success);
    Ok(newest.map(str::to_owned))
}
