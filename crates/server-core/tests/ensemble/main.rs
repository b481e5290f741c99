//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod configurations;
mod late_answers;
mod member;
mod sessions;
