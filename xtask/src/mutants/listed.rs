//! Reads the list of mutants that cargo-mutants finds.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

/// A place in a file: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The kind of code that a mutant changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function's body is replaced by a value.
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    Other,
}

/// One mutant: a change of the code.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// `FILE:LINE:COLUMN: what is changed`; unique.
    pub(super) name: String,
    /// The file's path from the root of the checkout.
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) replacement: String,
    pub(super) start: Place,
    /// The lines of the function around it.
    pub(super) function: Option<(usize, usize)>,
}

/// Runs cargo-mutants. `command` has the arguments that choose the mutants.
pub(super) fn list(mut command: Command) -> Result<Vec<Mutant>> {
    let output = command.args(["--list", "--json"]).output().context("cannot run cargo mutants")?;
    if !output.status.success() {
        bail!("cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    if output.stdout.trim_ascii().is_empty() {
        // cargo-mutants prints nothing if no file is in the diff.
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
