//! A leader, from its election to its end.

mod duplicate_ids;
mod epoch;
mod epochs;
mod patience;
mod standing;
