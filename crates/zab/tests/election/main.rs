//! Elections among several servers, over a network that delays and loses.
#![expect(clippy::unwrap_used)]

mod counting;
mod false_votes;
mod hand;
mod left_out;
mod occasions;
mod random;
mod votes_by_hand;
mod without_vote;
mod world;
