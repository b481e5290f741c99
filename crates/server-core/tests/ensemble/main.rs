//! Members of ensembles, one at a time.

mod configurations;
mod member;
mod sessions;
