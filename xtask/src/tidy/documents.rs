//! Checks that files and folders named in documents exist.

use super::sources::SourceFile;
use std::path::Path;

/// A text in backticks is checked as a path if it begins with one of these.
const ROOTS: [&str; 10] =
    ["crates/", "xtask/", "docs/", "interop/", "chaos/", "bench/", "fuzz/", "packaging/", ".ci/", ".cargo/"];

pub(crate) fn check(checkout: &Path, file: &SourceFile) -> Vec<String> {
    if !file.is_document() {
        return Vec::new();
    }
    let folder = checkout.join(&file.name);
    let folder = folder.parent().unwrap_or(checkout);
    let links = links(&file.text).into_iter().filter(|target| !folder.join(target).exists());
    let paths = paths(&file.text).into_iter().filter(|path| !checkout.join(path).exists());
    links.chain(paths).map(|missing| format!("{}: {missing} does not exist", file.name)).collect()
}

/// Targets of Markdown links into the checkout, without the part after `#`.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    local
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty())
        .collect()
}

/// Paths from the root of the checkout in backticks, without patterns.
fn paths(text: &str) -> Vec<&str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let named = quoted.filter(|name| ROOTS.iter().any(|root| name.starts_with(root)));
    named
        .filter(|name| !name.contains([' ', '*', '{', '<', '…']))
        .map(|name| name.split(':').next().unwrap_or(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found() {
        let text = "See [the map](ARCHITECTURE.md#rooms), [there](https://x.y/z), [here](#top).\n\
            `crates/tree/src/tree.rs` and `crates/*/src` and `cargo test` and `fuzz/run`\n";
        assert_eq!(links(text), ["ARCHITECTURE.md"]);
        assert_eq!(paths(text), ["crates/tree/src/tree.rs", "fuzz/run"]);
    }
}
