//! A hash of everything that happened in a run, in order. Two runs of one seed have the same fingerprint.

use crate::network::Parcel;

/// A running hash (in the manner of FNV-1a, over 64-bit words).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// The hash so far.
    pub fn value(self) -> u64 {
        self.0
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for word in bytes.chunks(8) {
            self.number(word.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
    }

    /// Adds a parcel that has arrived.
    pub(crate) fn parcel(&mut self, lane: u64, parcel: &Parcel) {
        self.number(lane);
        match parcel {
            Parcel::Vote(vote) => {
                self.number(vote.round);
                self.number(vote.candidate.map_or(0, |of| of.zxid.0 ^ of.id.0 as u64));
            }
            Parcel::Packet(bytes)
            | Parcel::Connect(bytes)
            | Parcel::Request(bytes)
            | Parcel::Part(_, bytes) => self.bytes(bytes),
            Parcel::Tree { zxid, digest, .. } => self.number(zxid.0 ^ digest),
            Parcel::Connected(response) => self.number(response.session.0 as u64),
            Parcel::Reply(reply) => {
                self.number(reply.zxid.map_or(0, |zxid| zxid.0));
                self.number(reply.xid.0 as u64);
                self.number(reply.result.as_ref().map_or_else(|error| error.code() as u64, |_| 0));
            }
            Parcel::Event { zxid, path, .. } => {
                self.number(zxid.map_or(0, |zxid| zxid.0));
                self.bytes(path.as_bytes());
            }
            Parcel::Call => self.number(1),
            Parcel::End => self.number(2),
        }
    }
}
