//! The other servers of the ensemble: bytes on the election port and the quorum port, in and out.
//!
//! Nothing is decided here. What comes goes to the core; what the core wants sent is queued by the driver.

mod address_book;
mod addresses;
mod claims;
mod election_door;
mod large_packets;
mod link;
mod own_ports;
mod quorum_door;
mod tasks;
mod tree_stream;
mod unidentified;

pub(crate) use address_book::AddressBook;
pub(crate) use election_door::ElectionDoor;
pub(crate) use link::{PeerOutbox, WAITING_MAX};
pub(crate) use quorum_door::QuorumDoor;

/// What reads the other servers' bytes, for the fuzz targets.
pub mod decoders {
    pub use super::{
        election_door::{greeting, read_greeting, read_message},
        tree_stream::decode_pieces,
    };
}
