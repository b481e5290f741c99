//! Where a learner comes from, for the case that two come with one id.
//!
//! Until the quorum port has a key nothing proves who a learner is. Where it comes from says something, though not on its
//! own: addresses are translated, names have several, servers move. So it matters only beside another learner with the
//! same id.

/// A learner's address beside those that the configuration has for its id, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum AddressMatch {
    /// It is none of them.
    Elsewhere,
    /// Nothing can be said: a name cannot be looked up, or the id is not in the configuration.
    #[default]
    Unclear,
    /// It is one of them.
    AtHome,
}

/// What speaks for a learner, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LearnerOrigin {
    /// Its address.
    pub place: AddressMatch,
    /// When it came, there was a connection of the election ports with the server whose id it has: a server hears there
    /// who leads before it comes.
    pub linked: bool,
}
