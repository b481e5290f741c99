//! The context of a step: the moment at which its input came, and the effects that follow from it.

use crate::{effect::Effect, input::Now};
use alloc::vec::Vec;

/// Goes with every input through the parts of the server.
pub(crate) struct Context<'a> {
    /// The moment at which the input came.
    pub(crate) now: Now,
    /// The effects so far, in the order in which the shell carries them out.
    pub(crate) effects: &'a mut Vec<Effect>,
}
