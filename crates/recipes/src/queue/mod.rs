//! Queues, compatible with Curator's.
//!
//! # A warning
//! ZooKeeper makes a very bad queue, as Curator's own documentation says in its technical note 4. This crate cannot
//! change that:
//! - An item must be smaller than a packet (1 MB), and a queue's list of names must fit in one as well: some ten
//!   thousands of items.
//! - All of it is in the servers' memory, and each item costs two writes of the whole ensemble.
//! - A server that starts with very many znodes takes longer, and each change of a long queue sends its whole list of
//!   names to each consumer.
//!
//! Use a message broker, unless the queue is short and rarely used.
//!
//! # What is delivered
//! Without a lock path an item is delivered at most once: it is deleted first, and is lost if its consumer dies after
//! that. With a [lock path](QueueBuilder::lock_path) it is delivered at least once: it is deleted after the consumer
//! has ended, and delivered again if the consumer dies, or its session ends, before that.
//!
//! A [`Consumer`] that is [closed](Consumer::close) ends its present item. One that is dropped stops in the middle of
//! it, as if it died.
//!
//! # What fails
//! With a lock path an item whose consumer fails is [put back](ErrorMode::Requeue) with its id or priority, or with a
//! later due time. Other items are consumed meanwhile. A panic of the consumer counts as a failure. Failures are not
//! counted: an item whose consumer always fails is delivered again and again. To give such an item up, the consumer
//! must return success.
//!
//! An item that cannot be handled at all stays where it is, for example because the server refuses to read it, or
//! because it is too large to be put back. This is logged, and the item is tried again after a while. Other items are
//! consumed meanwhile.
//!
//! An item whose data is not in the format of Curator's items is deleted, and logged as an error, as in Curator.

mod consumer;
mod items;
mod kinds;
mod names;
mod set_aside;
mod simple;

pub use consumer::Consumer;
pub use kinds::{
    DistributedDelayQueue, DistributedIdQueue, DistributedPriorityQueue, DistributedQueue, ErrorMode,
    QueueBuilder,
};
pub use simple::SimpleDistributedQueue;
