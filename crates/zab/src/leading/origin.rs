//! The origin of a learner: how its address compares with its id. It decides which of two learners with one id stays.
//!
//! Nothing on the quorum port proves a learner's id. Its address is a hint, no more: addresses are translated, a name
//! can have several, and servers move. So the address matters only if another learner has the same id.

/// How a learner's address compares with the addresses that the configuration has for its id. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum AddressMatch {
    /// The address is none of them.
    Elsewhere,
    /// Not known: a name cannot be looked up, or the id is not in the configuration.
    #[default]
    Unclear,
    /// The address is one of them.
    AtHome,
}

/// The reasons to believe a learner's id. The weakest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LearnerOrigin {
    /// The comparison of its address.
    pub place: AddressMatch,
    /// Whether there was an election port connection with the server of this id when the learner came. A server has one
    /// before it comes as a learner: it learns there which server leads.
    pub linked: bool,
}
