//! Checks a whole backup in memory.

use crate::{
    error::Result,
    history::{History, UsedSegment, read_segment},
    part::Base,
    rebuild::{Rebuilt, rebuild_from},
    restore::describe,
    store::Store,
};

/// The result of a check of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// The number of bases.
    pub bases: usize,
    /// The number of segments.
    pub segments: usize,
    /// The number of records in the segments.
    pub records: u64,
    /// A line for each gap in the log, and for each tree that was rebuilt.
    pub checked: Vec<String>,
    /// A line for each fault.
    pub faults: Vec<String>,
}

/// Reads every object, rebuilds a tree from each base to the next one and from the last base to the end, and compares the
/// digests of all records on the way.
///
/// # Errors
/// The store cannot be read. Damage is no error, but in [`Verified::faults`].
pub fn verify(store: &Store, history: &History) -> Result<Verified> {
    let mut found = Verified { segments: history.segments().len(), ..Verified::default() };
    for used in history.segments() {
        let whole = UsedSegment { through: used.segment.last, ..used.clone() };
        if let Err(error) = read_segment(store, &whole, &mut |_, _| Ok(true)) {
            found.faults.push(error.to_string());
        }
        found.records += used.segment.records;
    }
    for gap in history.gaps() {
        let line = format!("gap: the log between {} and {} is missing", gap.before, gap.exact_from);
        found.checked.push(format!("{line}; what was in between cannot be restored"));
    }
    let mut bases: Vec<&Base> = history.parts().iter().map(|part| &part.base).collect();
    bases.sort_by_key(|base| base.zxid);
    bases.dedup_by(|a, b| a.object == b.object);
    found.bases = bases.len();
    let ends = bases.iter().skip(1).map(|base| base.zxid).chain([history.last()]);
    for (base, next) in bases.iter().zip(ends.collect::<Vec<_>>()) {
        let end = history.reach(base, next);
        if end < base.exact_from {
            let line = "its log does not reach that yet";
            found.checked.push(format!("base {}: exact from {} on; {line}", base.zxid, base.exact_from));
            continue;
        }
        match rebuild_from(store, history, base, end) {
            Ok(rebuilt) => note(&rebuilt, &mut found),
            Err(error) => found.faults.push(format!("from base {}: {error}", base.zxid)),
        }
    }
    Ok(found)
}

fn note(rebuilt: &Rebuilt, found: &mut Verified) {
    found.checked.push(describe(rebuilt));
    if rebuilt.digest_mismatches > 0 {
        found.faults.push(format!(
            "from base {} to {}: {} records have another digest than the tree after them",
            rebuilt.base, rebuilt.zxid, rebuilt.digest_mismatches
        ));
    }
}
