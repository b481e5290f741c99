//! Checks that crates for a Rust before 1.88 have no let chain (`if a && let Some(b) = c`), which clippy does not report.

use super::sources::SourceFile;
use crate::metadata::is_member;
use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package, semver::Version};
use syn::{BinOp, Expr, ExprBinary, ExprLet, spanned::Spanned, visit::Visit};

/// The first Rust with let chains.
const FIRST: Version = Version::new(1, 88, 0);

pub(crate) fn check(metadata: &Metadata, files: &[SourceFile]) -> Result<Vec<String>> {
    let older = |package: &&Package| {
        is_member(package) && package.rust_version.as_ref().is_some_and(|rust| *rust < FIRST)
    };
    let mut complaints = Vec::new();
    for package in metadata.packages.iter().filter(older) {
        let folder = package.manifest_path.with_file_name("src");
        let folder = folder.strip_prefix(&metadata.workspace_root).unwrap_or(&folder);
        let begin = format!("{folder}/");
        let own = files.iter().filter(|file| file.name.starts_with(&begin) && file.name.ends_with(".rs"));
        for file in own {
            let name = &file.name;
            let lines = lines(&file.text).with_context(|| format!("cannot parse {name}"))?;
            let rust = package.rust_version.as_ref().map(ToString::to_string).unwrap_or_default();
            let complaint =
                |line| format!("{name}:{line}: a let chain needs Rust {FIRST}, and its crate names {rust}");
            complaints.extend(lines.into_iter().map(complaint));
        }
    }
    Ok(complaints)
}

/// The lines with let chains.
fn lines(text: &str) -> syn::Result<Vec<usize>> {
    let mut chains = Chains::default();
    chains.visit_file(&syn::parse_file(text)?);
    Ok(chains.lines)
}

#[derive(Default)]
struct Chains {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Chains {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let lets = [&*binary.left, &*binary.right].into_iter().filter_map(|side| match side {
            Expr::Let(side) => Some(side),
            _ => None,
        });
        if matches!(binary.op, BinOp::And(_)) {
            self.lines.extend(lets.map(|ExprLet { let_token, .. }| let_token.span().start().line));
        }
        syn::visit::visit_expr_binary(self, binary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn let_chains_are_found() {
        let text = "fn f() {\n    if a && let Some(b) = c && d {\n    }\n    while let Some(b) = c\n        && d {}\n}\n";
        assert_eq!(lines(text).unwrap(), [2, 4]);
    }

    #[test]
    fn other_conditions_are_allowed() {
        let text = "fn f() {\n    if let Some(b) = c {\n    } else if a && b {\n    }\n    let Some(b) = c else { return };\n}\n";
        assert_eq!(lines(text).unwrap(), [0; 0]);
    }
}
