//! The pages about leadership, at a real server, with programs that hold by Ostler's recipes.
#![allow(clippy::unwrap_used)]

mod groups;
mod hand_over;
mod rights;
mod world;
