//! A leader, from its election to its end.

mod duplicate_ids;
mod epoch;
mod epochs;
mod moving;
mod patience;
mod standing;
