//! Checks the licences of dependencies against the list in deny.toml.

use crate::metadata::is_member;
use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use serde::Deserialize;
use spdx::{Expression, ParseError, ParseMode};
use std::{collections::BTreeSet, fs, path::Path};

/// The part of deny.toml that is used here.
#[derive(Deserialize)]
struct DenyToml {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
}

/// Reads `allow` of `[licenses]` in deny.toml.
pub(crate) fn allowed(checkout: &Path) -> Result<BTreeSet<String>> {
    let path = checkout.join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let deny: DenyToml = toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    if deny.licenses.allow.is_empty() {
        bail!("{}: no licences in allow = [...] of [licenses]", path.display());
    }
    Ok(deny.licenses.allow)
}

/// A sentence for each package whose licence is not allowed.
pub(crate) fn check(metadata: &Metadata, allowed: &BTreeSet<String>) -> Vec<String> {
    let foreign = metadata.packages.iter().filter(|package| !is_member(package));
    foreign
        .filter_map(|package| {
            let (name, version) = (&package.name, &package.version);
            match package.license.as_deref() {
                None => Some(format!("{name} {version}: names no licence")),
                Some(licence) => match is_allowed(licence, allowed) {
                    Ok(true) => None,
                    Ok(false) => Some(format!("{name} {version}: {licence} is not allowed by deny.toml")),
                    Err(error) => Some(format!("{name} {version}: {licence:?}: {error}")),
                },
            }
        })
        .collect()
}

/// Whether a licence expression can be satisfied. The list has a licence with an exception as one entry. Old packages
/// write `/` for OR, which [`ParseMode::LAX`] accepts.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, ParseError> {
    let expression = Expression::parse_mode(expression, ParseMode::LAX)?;
    Ok(expression.evaluate(|requirement| allowed.contains(&requirement.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = BTreeSet::from(["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned));
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("MIT OR GPL-3.0-only", Some(true)),
            ("GPL-3.0-only/MIT", Some(true)),
            ("MIT AND GPL-3.0-only", Some(false)),
            ("(MIT OR GPL-3.0-only) AND Zlib", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("MIT OR", None),
            ("MIT Zlib", None),
        ] {
            assert_eq!(is_allowed(expression, &allowed).ok(), expected, "{expression}");
        }
    }
}
