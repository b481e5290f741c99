//! A leader, from its election to its end.

mod reign;
mod reigns;
