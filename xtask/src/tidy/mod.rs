//! Checks of the code as text, for what rustc and clippy do not check.

mod documents;
mod floors;
mod sources;
mod statements;
mod words;

use crate::metadata::Metadata;
use anyhow::Result;
use std::path::Path;

/// Returns one sentence per complaint, and the number of files that were checked.
pub(crate) fn check(checkout: &Path, metadata: &Metadata) -> Result<(Vec<String>, usize)> {
    let files = sources::read(checkout)?;
    let mut complaints = floors::check(metadata)?;
    complaints.extend(statements::check(&files));
    for file in &files {
        complaints.extend(sources::check(file));
        complaints.extend(words::check(file));
        complaints.extend(documents::check(checkout, file));
    }
    Ok((complaints, files.len()))
}
