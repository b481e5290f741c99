//! The step `api` and the command `cargo xtask api`: the public API of the crates that programs use, as lists in
//! docs/api, and its comparison with the last release.

mod list;
mod semver;

use crate::{
    features::{find, has_warnings},
    metadata,
    outcome::Outcome,
    program::Runner,
    published,
};
use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, Package};
use clap::Args;
use list::{Listed, Rustdoc};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The crates that programs use, and those whose types are in the API of these.
const CRATES: [&str; 5] =
    ["ostler-proto", "ostler-client-core", "ostler-client", "ostler-recipes", "ostler-testkit"];
const LISTS: &str = "docs/api";
/// The name of the log in target/xtask.
const LOG: &str = "api";

/// Compare the public API with the lists in docs/api.
#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// Write the lists anew.
    #[arg(long)]
    write: bool,
}

/// Runs the command. Returns whether the lists are as the code is.
pub(crate) fn run(args: &ApiArgs, checkout: &Path) -> Result<bool> {
    let runner = Runner::new(checkout, LOG);
    let metadata = metadata::read(checkout)?;
    let lists = match read_all(&runner, &metadata)? {
        Ok(lists) => lists,
        Err(outcome) => bail!("{}\n{}", outcome.reason, outcome.details),
    };
    let mut same = true;
    for (name, list) in lists {
        let path = kept_path(checkout, name);
        if args.write {
            fs::write(&path, &list).with_context(|| format!("cannot write {}", path.display()))?;
        } else if let Some(difference) = difference(name, &read_kept(&path)?, &list) {
            println!("{difference}");
            same = false;
        }
    }
    Ok(same)
}

/// The step.
pub(crate) fn check(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let checkout = runner.checkout();
    let metadata = metadata::read(checkout)?;
    let lists = match read_all(runner, &metadata)? {
        Ok(lists) => lists,
        Err(outcome) => return Ok(outcome),
    };
    let mut complaints = Vec::new();
    for (name, list) in &lists {
        complaints.extend(difference(name, &read_kept(&kept_path(checkout, name))?, list));
    }
    let items: usize = lists.iter().map(|(_, list)| list.lines().count()).sum();
    if !complaints.is_empty() {
        return Ok(Outcome::of_complaints(&complaints, String::new()));
    }
    let packages = CRATES.iter().map(|name| find(&metadata, name)).collect::<Result<Vec<&Package>>>()?;
    let listed = format!("{items} items of {} crates", CRATES.len());
    Ok(match semver::compare(runner, &packages)? {
        Ok(compared) => Outcome::ok(format!("{listed}; {compared}")),
        Err(failed) => failed,
    })
}

/// The lists of all crates; or the outcome, if one cannot be made.
fn read_all(
    runner: &Runner<'_>,
    metadata: &Metadata,
) -> Result<std::result::Result<Vec<(&'static str, String)>, Outcome>> {
    let rustdoc = Rustdoc::prepare(metadata)?;
    let mut lists = Vec::new();
    for name in CRATES {
        let package = find(metadata, name)?;
        let finished = rustdoc.run(runner, package, &published::documented_features(package))?;
        // Warnings are public items without docs, and links that lead nowhere.
        if !finished.success || has_warnings(&finished.output) {
            let reason = format!("documentation of {name}: {}", finished.status);
            return Ok(Err(Outcome::failed(reason, finished.output)));
        }
        match rustdoc.list(package)? {
            Listed::Items(list) => lists.push((name, list)),
            Listed::OtherFormat { found, known } => {
                return Ok(Err(Outcome::skipped(format!(
                    "this toolchain's rustdoc writes format {found}, and public-api of xtask reads {known}"
                ))));
            }
        }
    }
    Ok(Ok(lists))
}

fn kept_path(checkout: &Path, name: &str) -> PathBuf {
    checkout.join(LISTS).join(format!("{name}.txt"))
}

/// The kept list; empty if there is none yet.
fn read_kept(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The lines that are only in one of two lists, with the way to accept them; `None` if the lists are the same.
fn difference(name: &str, kept: &str, now: &str) -> Option<String> {
    if kept == now {
        return None;
    }
    let gone =
        kept.lines().filter(|line| count(kept, line) > count(now, line)).map(|line| format!("- {line}\n"));
    let new =
        now.lines().filter(|line| count(now, line) > count(kept, line)).map(|line| format!("+ {line}\n"));
    let lines: String = gone.chain(new).collect();
    let lines = if lines.is_empty() { "  (the order of the lines only)\n" } else { &lines };
    Some(format!(
        "{LISTS}/{name}.txt: the API has changed. If that is meant, `cargo xtask api --write` writes the list anew, and \
         CHANGELOG.md gets a line:\n{lines}"
    ))
}

fn count(text: &str, line: &str) -> usize {
    text.lines().filter(|other| *other == line).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_lines_of_one_list_only() {
        assert_eq!(difference("a", "x\ny\n", "x\ny\n"), None);
        let shown = difference("a", "x\ny\nz\nz\n", "x\nz\nw\n").unwrap();
        let lines: Vec<&str> = shown.lines().skip(1).collect();
        assert_eq!(lines, ["- y", "- z", "- z", "+ w"]);
        assert!(difference("a", "x\ny\n", "y\nx\n").unwrap().contains("order"));
    }
}
