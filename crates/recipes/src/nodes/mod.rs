//! Persistent nodes: znodes that are created again when they are lost, and groups of them.

mod group_member;
mod persistent_node;
mod persistent_ttl_node;
mod upkeep;

pub use group_member::GroupMember;
pub(crate) use group_member::member_path;
pub use persistent_node::{Creations, PersistentNode, PersistentNodeBuilder};
pub use persistent_ttl_node::PersistentTtlNode;
