//! Elections among several servers, over a network that delays and loses.

mod occasions;
mod random;
mod world;
