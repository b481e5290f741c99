//! A leader, from its election to its end.

mod patience;
mod reign;
mod reigns;
mod rivals;
mod standing;
