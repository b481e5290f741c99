//! Finds the problems of a data folder, and makes it usable again.
//!
//! [`plan`] reads everything, and tries a start on a disk that keeps no change ([`PlannedDisk`]). It plans only what
//! loses no transaction that can be read. If a start needs more, it names the transaction after which everything would
//! be lost; with [`RepairOptions::drop_after`] the operator accepts this loss. [`apply`] does what was planned: each
//! file that it changes or takes away is kept in a folder beside `version-2`.

mod apply;
mod candidates;
mod diagnose;
mod in_use;
#[cfg(test)]
mod tests;

pub use apply::{Applied, apply};
pub use in_use::users;

use crate::{
    error::{InspectError, Result},
    logs::LogFinding,
    planned_disk::PlannedDisk,
    state::StateBuilder,
    view::zxid_text,
};
use diagnose::Diagnosis;
use ostler_proto::id::Zxid;
use ostler_storage::{
    folders::DataFolders,
    recover::{Origin, RecoverOptions, recover},
};
use serde::Serialize;
use std::{fmt, path::PathBuf};

/// The wishes of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairOptions {
    /// All transactions after this one are dropped, also those that were acknowledged. By default none is.
    pub drop_after: Option<Zxid>,
}

/// The result of a start that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "start", rename_all = "snake_case")]
pub enum Start {
    /// A server starts.
    Works {
        /// The last transaction that it has.
        #[serde(serialize_with = "zxid_text")]
        zxid: Zxid,
        /// The digest of its tree, in hex.
        digest: String,
        /// The number of its znodes.
        znodes: usize,
    },
    /// A server refuses to start.
    Refused {
        /// The error, with its ways out.
        reason: String,
    },
    /// There are no files: a server starts with an empty tree, or waits for one, by its configuration.
    Empty,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Works { zxid, digest, znodes } => {
                write!(f, "a server starts, at {zxid} with {znodes} znodes, digest {digest}")
            }
            Start::Refused { reason } => write!(f, "a server refuses to start: {reason}"),
            Start::Empty => write!(f, "there are no logs and no snapshots: a server starts empty"),
        }
    }
}

/// Something that is wrong with the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, or the folder if the problem is of no single file.
    pub file: PathBuf,
    /// The problem and its effect, in a sentence.
    pub problem: String,
    /// Whether a repair changes something because of it. The other problems do not stand in the way of a start, or no
    /// tool can undo them.
    pub repaired: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.problem)
    }
}

/// One change of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// The file is moved out of the way.
    Move {
        /// The file.
        file: PathBuf,
    },
    /// The file is copied, then cut.
    Cut {
        /// The file.
        file: PathBuf,
        /// Its new size in bytes.
        size: u64,
    },
}

impl Action {
    /// The file that is changed.
    pub fn file(&self) -> &PathBuf {
        match self {
            Action::Move { file } | Action::Cut { file, .. } => file,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Move { file } => write!(f, "move {} away", file.display()),
            Action::Cut { file, size } => write!(f, "cut {} to {size} bytes", file.display()),
        }
    }
}

/// The transactions that a repair drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The last transaction that is kept.
    #[serde(serialize_with = "zxid_text")]
    pub after: Zxid,
    /// The highest zxid in any file of the folder. Everything up to it is lost.
    #[serde(serialize_with = "zxid_text")]
    pub through: Zxid,
    /// The number of dropped transactions that the logs still have; damage can hide others.
    pub readable: u64,
}

/// The problems, and the actions of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The result of a start as the folder is now.
    pub before: Start,
    /// The problems.
    pub problems: Vec<Problem>,
    /// The actions of a repair, in order.
    pub actions: Vec<Action>,
    /// The result of a start after the repair.
    pub after: Start,
    /// The loss by the repair. `None` if it loses nothing that can be read.
    pub drops: Option<Drops>,
    /// The loss that would be needed, if a start is only possible with a loss that was not accepted.
    pub needs_drop: Option<Drops>,
}

impl Plan {
    /// Whether nothing is wrong and nothing is to be done.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.actions.is_empty() && !matches!(self.before, Start::Refused { .. })
    }
}

/// Finds what is wrong with the folders and plans a repair. Nothing is changed.
pub fn plan(folders: &DataFolders, options: RepairOptions) -> Result<Plan> {
    let before = try_start(folders, &PlannedDisk::default())?;
    let diagnosis = Diagnosis::of(folders)?;
    let mut problems = diagnosis.problems(&before);
    let actions = match options.drop_after {
        Some(after) => candidates::actions_to_drop(folders, &diagnosis, after)?,
        None => diagnosis.harmless_actions(&before),
    };
    let after = if actions.is_empty() { before.clone() } else { try_start(folders, &planned(&actions))? };
    let drops = match options.drop_after {
        Some(zxid) => {
            check_reached(zxid, &after)?;
            Some(diagnosis.drops(zxid)).filter(|drops| drops.through > zxid)
        }
        None => {
            check_unchanged(&before, &after)?;
            None
        }
    };
    let needs_drop = match (&after, options.drop_after) {
        (Start::Refused { .. }, None) => {
            candidates::best(folders, &diagnosis)?.map(|zxid| diagnosis.drops(zxid))
        }
        _ => None,
    };
    for problem in &mut problems {
        problem.repaired = actions.iter().any(|action| *action.file() == problem.file);
    }
    Ok(Plan { before, problems, actions, after, drops, needs_drop })
}

/// A repair with a loss must end exactly where the operator has said.
fn check_reached(wanted: Zxid, after: &Start) -> Result<()> {
    match after {
        Start::Works { zxid, .. } if *zxid == wanted => Ok(()),
        Start::Works { zxid, .. } => Err(InspectError::Refused(format!(
            "after dropping everything after {wanted} a server would start at {zxid}: there is no state of {wanted} in \
             these files; name a transaction that they have, as `ostler inspect log` shows them"
        ))),
        Start::Refused { reason } => Err(InspectError::Refused(format!(
            "after dropping everything after {wanted} a server would still refuse to start: {reason}"
        ))),
        Start::Empty => Err(InspectError::Refused(format!(
            "dropping everything after {wanted} would leave no snapshot and no log; to start empty, empty the folder"
        ))),
    }
}

/// A repair without an accepted loss must not change what a server starts with.
fn check_unchanged(before: &Start, after: &Start) -> Result<()> {
    match (before, after) {
        (Start::Refused { .. }, Start::Refused { .. }) => Ok(()),
        (before, after) if before == after => Ok(()),
        (before, after) => Err(InspectError::Refused(format!(
            "nothing is done: before the repair {before}; after it {after}; and a repair may not change that"
        ))),
    }
}

/// The disk as it is after these actions.
fn planned(actions: &[Action]) -> PlannedDisk {
    let mut disk = PlannedDisk::default();
    for action in actions {
        match action {
            Action::Move { file } => {
                disk.gone.insert(file.clone());
            }
            Action::Cut { file, size } => {
                disk.cut.insert(file.clone(), *size);
            }
        }
    }
    disk
}

/// Tries a start on the planned disk.
fn try_start(folders: &DataFolders, disk: &PlannedDisk) -> Result<Start> {
    let mut builder = StateBuilder::new();
    match recover(disk, folders, RecoverOptions::default(), &mut builder) {
        Ok(recovered) if matches!(recovered.origin, Origin::Fresh | Origin::Untrusted) => Ok(Start::Empty),
        Ok(recovered) => {
            let tree = builder.tree();
            let digest = format!("{:#x}", tree.digest());
            Ok(Start::Works { zxid: recovered.last_zxid, digest, znodes: tree.node_count() })
        }
        Err(ostler_storage::StorageError::Io { action, path, source }) => {
            Err(ostler_storage::StorageError::Io { action, path, source }.into())
        }
        Err(refused) => Ok(Start::Refused { reason: refused.to_string() }),
    }
}

/// Whether a finding in the logs is worth a line. The start of each file is not.
fn is_problem(finding: &LogFinding) -> bool {
    !matches!(finding, LogFinding::File { .. })
}
