//! Checks the licences of dependencies against the list in deny.toml.

use crate::metadata::Metadata;
use anyhow::{Context, Result, bail};
use std::{collections::BTreeSet, fs, path::Path};

/// Reads `allow` of `[licenses]` in deny.toml.
pub(crate) fn allowed(checkout: &Path) -> Result<BTreeSet<String>> {
    let path = checkout.join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let allowed = allow_list(&text);
    if allowed.is_empty() {
        bail!("{}: no licences in allow = [...] of [licenses]", path.display());
    }
    Ok(allowed)
}

/// The quoted names between the brackets, without comments.
fn allow_list(text: &str) -> BTreeSet<String> {
    let section = text.lines().skip_while(|line| line.trim() != "[licenses]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let list = section.skip_while(|line| !line.starts_with("allow"));
    let mut names = BTreeSet::new();
    for line in list {
        let code = line.split('#').next().unwrap_or_default();
        names.extend(code.split('"').skip(1).step_by(2).map(str::to_owned));
        if code.contains(']') {
            break;
        }
    }
    names
}

/// A sentence for each package whose licence is not allowed.
pub(crate) fn check(metadata: &Metadata, allowed: &BTreeSet<String>) -> Vec<String> {
    let foreign = metadata.packages.iter().filter(|package| !package.member);
    foreign
        .filter_map(|package| {
            let (name, version) = (&package.name, &package.version);
            match package.licence.as_deref() {
                None => Some(format!("{name} {version}: names no licence")),
                Some(licence) => match is_allowed(licence, allowed) {
                    Some(true) => None,
                    Some(false) => Some(format!("{name} {version}: {licence} is not allowed by deny.toml")),
                    None => Some(format!("{name} {version}: {licence:?} is no licence expression")),
                },
            }
        })
        .collect()
}

/// Whether an SPDX expression can be satisfied; `None` if it is not valid. Old packages write `/` for OR.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = &words[..];
    let value = any_of(&mut words, allowed)?;
    words.is_empty().then_some(value)
}

type Words<'a, 'b> = &'a mut &'b [&'b str];

/// `any = all ("OR" all)*`
fn any_of(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = all_of(words, allowed)?;
    while take(words, "OR") {
        value |= all_of(words, allowed)?;
    }
    Some(value)
}

/// `all = one ("AND" one)*`
fn all_of(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = one(words, allowed)?;
    while take(words, "AND") {
        value &= one(words, allowed)?;
    }
    Some(value)
}

/// `one = "(" any ")" | licence ("WITH" exception)?`. A licence with an exception is one entry of the list.
fn one(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    if take(words, "(") {
        let value = any_of(words, allowed)?;
        return take(words, ")").then_some(value);
    }
    let licence = next(words)?;
    if take(words, "WITH") {
        let exception = next(words)?;
        return Some(allowed.contains(&format!("{licence} WITH {exception}")));
    }
    Some(allowed.contains(licence))
}

fn take(words: Words<'_, '_>, wanted: &str) -> bool {
    let found = words.first() == Some(&wanted);
    if found {
        *words = &words[1..];
    }
    found
}

fn next<'b>(words: &mut &'b [&'b str]) -> Option<&'b str> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    (!matches!(*first, "AND" | "OR" | "WITH" | "(" | ")")).then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = BTreeSet::from(["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned));
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("(MIT OR GPL-3.0) AND Zlib", Some(true)),
            ("GPL-3.0 OR MIT AND Zlib", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT Zlib", None),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn the_list_of_deny_toml_is_found() {
        let text = "[graph]\nallow = [\"no\"]\n\n[licenses]\n# why\nallow = [\n    \"MIT\", # \"Gone\"\n    \"Zlib\",\n]\n\
            confidence-threshold = 0.9\n[bans]\nallow = [\"nor this\"]\n";
        assert_eq!(allow_list(text), BTreeSet::from(["MIT", "Zlib"].map(str::to_owned)));
        assert_eq!(allow_list("[licenses]\nallow = [\"0BSD\"]\nx = \"y\"\n").len(), 1);
        assert!(allow_list("").is_empty());
    }
}
