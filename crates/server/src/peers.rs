//! Connections to the other servers of the ensemble, at the election port and the quorum port.
//!
//! Nothing is decided here. Votes and packets that arrive go to the core; the driver queues those that the core sends.

mod address_book;
mod addresses;
mod claims;
mod election_door;
mod election_peer;
mod election_wire;
mod large_packets;
mod link;
mod link_error;
mod link_writer;
mod own_ports;
mod packet_batch;
mod peer_login;
mod peer_outbox;
mod peer_security;
mod peer_stream;
mod quorum_door;
mod tasks;
mod tree_stream;

pub(crate) use address_book::AddressBook;
pub(crate) use election_door::ElectionDoor;
pub use election_peer::ElectionLinkReport;
pub(crate) use peer_outbox::{PeerOutbox, WAITING_MAX};
pub(crate) use peer_security::{OtherServers, PeerConfigs, PeerSecurity};
pub(crate) use quorum_door::QuorumDoor;

/// The functions that read bytes of other servers, for the fuzz targets.
pub mod decoders {
    pub use super::{
        election_wire::{ElectionReadError, greeting, read_greeting, read_message},
        tree_stream::{TreeStreamError, decode_pieces},
    };
}
