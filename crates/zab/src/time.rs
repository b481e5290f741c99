//! The clock of the state machines. Every time is passed in; nothing here reads a clock.

/// A time in milliseconds on a clock that never goes back. Its zero has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// The time this number of milliseconds later.
    pub fn after(self, ms: u64) -> Mono {
        Mono(self.0.saturating_add(ms))
    }
}
