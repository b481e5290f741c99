//! A leader, from its election to its end.

mod patience;
mod epoch;
mod epochs;
mod duplicate_ids;
mod standing;
