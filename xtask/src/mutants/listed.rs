//! The mutants that cargo-mutants finds.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

/// Where a line and a column begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function returns at once.
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    Other,
}

/// One change of the code.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// `FILE:LINE:COLUMN: what is changed`, alone of its name.
    pub(super) name: String,
    /// From the checkout on.
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) replacement: String,
    pub(super) start: Place,
    /// Lines of the function that it is in.
    pub(super) function: Option<(usize, usize)>,
}

/// Asks cargo-mutants, `command` with all that chooses.
pub(super) fn list(mut command: Command) -> Result<Vec<Mutant>> {
    let output = command.args(["--list", "--json"]).output().context("cannot run cargo mutants")?;
    if !output.status.success() {
        bail!("cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    if output.stdout.trim_ascii().is_empty() {
        // So it says that a diff is about none of its files.
        return Ok(Vec::new());
    }
    let found: Value = serde_json::from_slice(&output.stdout).context("cargo mutants --list --json")?;
    let all = found.as_array().context("cargo mutants lists something else")?;
    all.iter().map(|one| read(one).with_context(|| format!("cargo mutants lists {one}"))).collect()
}

fn read(value: &Value) -> Option<Mutant> {
    let text = |name: &str| Some(value[name].as_str()?.to_owned());
    let place = |of: &Value| Some(Place { line: number(&of["line"])?, column: number(&of["column"])? });
    let kind = match value["genre"].as_str()? {
        "FnValue" => Kind::FnValue,
        "BinaryOperator" => Kind::BinaryOperator,
        "UnaryOperator" => Kind::UnaryOperator,
        "MatchArm" => Kind::MatchArm,
        "MatchArmGuard" => Kind::MatchArmGuard,
        _ => Kind::Other,
    };
    let (span, function) = (&value["span"], &value["function"]["span"]);
    Some(Mutant {
        name: text("name")?,
        file: text("file")?,
        kind,
        replacement: text("replacement")?,
        start: place(&span["start"])?,
        function: number(&function["start"]["line"]).zip(number(&function["end"]["line"])),
    })
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}
