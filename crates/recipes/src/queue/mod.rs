//! Queues, compatible with Curator's.
//!
//! # A warning
//! ZooKeeper makes a very bad queue, as Curator's own documentation says in its technical note 4, and nothing here
//! changes that:
//! - An item must be smaller than a packet (1 MB), and a queue's list of names must fit in one as well: some ten
//!   thousands of items.
//! - All of it is in the servers' memory, and each item costs two writes of the whole ensemble.
//! - A server that starts with very many znodes takes longer, and each change of a long queue sends its whole list of
//!   names to each consumer.
//!
//! Use a message broker, unless the queue is short and rarely used.
//!
//! # What is delivered
//! Without a lock path an item is delivered once at most: it is deleted first, and lost if its consumer dies after
//! that. With a [lock path](QueueBuilder::lock_path) it is delivered at least once: it is deleted after the consumer is
//! done with it, and delivered again if that dies before or its session ends.
//!
//! # What fails
//! With a lock path an item whose consumer fails is [put back](ErrorMode::Requeue) under its id or priority, or with
//! another due time, and the rest goes on meanwhile; a panic of it is a failure like another. Nobody counts how often:
//! one that always fails comes again and again, so a consumer that wants to give one up must say that it is done with
//! it.
//!
//! An item that cannot be handled at all, because a server refuses to let it be read, say, or because it is too large
//! to be put back, stays where it is. It is logged, left for a while and tried again, and the rest goes on meanwhile.

mod consumer;
mod items;
mod kinds;
mod names;
mod set_aside;
mod simple;

pub use consumer::Consumer;
pub use items::ItemError;
pub use kinds::{
    DistributedDelayQueue, DistributedIdQueue, DistributedPriorityQueue, DistributedQueue, ErrorMode,
    QueueBuilder,
};
pub use simple::SimpleDistributedQueue;
