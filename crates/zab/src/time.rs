//! Time as it is passed in.

/// Milliseconds of a clock that never goes back; its zero means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// The time this number of milliseconds later.
    pub fn after(self, ms: u64) -> Mono {
        Mono(self.0.saturating_add(ms))
    }
}
