//! `ostler inspect snapshot`.

use super::{DataOption, Form, Output, Verdict};
use clap::Args;
use ostler_inspect::{InspectError, snapshot, source};
use ostler_storage::disk::OsDisk;
use std::path::PathBuf;

/// Print the sessions and znodes of a snapshot
///
/// A line for each session and each znode, with the facts that SnapshotFormatter of ZooKeeper prints. The snapshot can
/// be plain, gzip or Snappy. The last line says whether it is whole. Nothing is kept in memory but the ACLs.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: ostler inspect snapshot /var/lib/zookeeper/version-2/snapshot.100000001 --json"
)]
pub(super) struct SnapshotArgs {
    /// A snapshot file.
    file: PathBuf,
    #[command(flatten)]
    data: DataOption,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(args: &SnapshotArgs, output: &mut Output) -> Result<Verdict, InspectError> {
    let file = source::snapshot(&args.file)?;
    let whole = snapshot::dump(&OsDisk, &file, args.data.form(), &mut |part| {
        output.either(args.form.json, &part)?;
        Ok(())
    })?;
    Ok(Verdict::found_if(!whole))
}
