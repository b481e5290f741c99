//! Tests that measure the process's memory run alone; all others side by side.

use std::{
    fs,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

static GATE: RwLock<()> = RwLock::new(());

pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    GATE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Measures the peak growth of the process's memory.
pub(crate) struct MemoryMeter {
    before_kb: u64,
}

impl MemoryMeter {
    pub(crate) fn start() -> MemoryMeter {
        // 5 resets the peak to the current size.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        MemoryMeter { before_kb: status_kb("VmRSS:") }
    }

    pub(crate) fn peak_growth_mb(&self) -> u64 {
        status_kb("VmHWM:").saturating_sub(self.before_kb) / 1024
    }
}

fn status_kb(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
