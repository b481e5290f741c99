//! Members of ensembles, one at a time.
#![allow(clippy::unwrap_used)]

mod configurations;
mod member;
mod sessions;
