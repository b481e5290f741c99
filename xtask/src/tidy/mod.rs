//! Checks of the code as text, for what rustc and clippy do not check.

mod comments;
mod core_docs;
mod documents;
mod floors;
mod let_chains;
mod manifests;
mod sources;
mod statements;
mod words;

use anyhow::Result;
use cargo_metadata::Metadata;
use std::path::Path;

/// Returns one sentence per complaint, and the number of files that were checked.
pub(crate) fn check(checkout: &Path, metadata: &Metadata) -> Result<(Vec<String>, usize)> {
    let files = sources::read(checkout)?;
    let mut complaints = floors::check(metadata)?;
    complaints.extend(manifests::check(metadata)?);
    complaints.extend(let_chains::check(metadata, &files)?);
    complaints.extend(statements::check(&files));
    for file in &files {
        complaints.extend(sources::check(file));
        complaints.extend(words::check(file));
        complaints.extend(comments::check(file));
        complaints.extend(core_docs::check(file)?);
        complaints.extend(documents::check(checkout, file));
    }
    Ok((complaints, files.len()))
}
