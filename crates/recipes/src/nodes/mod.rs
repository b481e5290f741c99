//! Znodes that are there as long as somebody wants them to be, and groups made of them.

mod group_member;
mod persistent_node;
mod persistent_ttl_node;
mod upkeep;

pub use group_member::GroupMember;
pub(crate) use group_member::place;
pub use persistent_node::{Creations, PersistentNode, PersistentNodeBuilder};
pub use persistent_ttl_node::PersistentTtlNode;
