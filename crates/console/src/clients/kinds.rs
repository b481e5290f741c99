//! Guesses a client's library by its handshake and requests.

use ostler_proto::op::Op;
use ostler_server_core::report::clients::Habits;
use serde::{Deserialize, Serialize};

/// The C client begins to number its requests with the time in seconds; nobody else comes so far soon.
const XID_OF_A_CLOCK: i32 = 1_000_000_000;

/// The library that a client seems to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Curator,
    PerhapsCurator,
    Java,
    Kazoo,
    C,
    NoFlag,
    JavaOrKazoo,
    Silent,
    Unknown,
}

impl Kind {
    /// The guess.
    pub(super) fn of(habits: &Habits) -> Kind {
        let sets_watches_again = habits.has_asked(Op::SetWatches) || habits.has_asked(Op::SetWatches2);
        match habits.first_xid {
            _ if habits.has_asked_unknown() => Kind::Unknown,
            XID_OF_A_CLOCK.. => Kind::C,
            _ if habits.read_only().is_none() => Kind::NoFlag,
            0 if !sets_watches_again => Kind::Silent,
            _ if habits.reads_config && habits.has_asked(Op::CreateContainer) => Kind::Curator,
            // The shells have commands for each of the two.
            _ if habits.reads_config || habits.has_asked(Op::CreateContainer) => Kind::PerhapsCurator,
            _ if sets_watches_again => Kind::Java,
            1 if habits.came_back => Kind::Kazoo,
            1 => Kind::JavaOrKazoo,
            _ if habits.came_back => Kind::Java,
            _ => Kind::Unknown,
        }
    }

    /// Why a client counts as one of this kind.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Kind::Curator => {
                "They read /zookeeper/config first, and create containers, as Curator does with ZooKeeper's Java client."
            }
            Kind::PerhapsCurator => {
                "They read /zookeeper/config first, or create containers. Curator does both, and other programs do one of them, \
                 such as a shell."
            }
            Kind::Java => {
                "They set their watches again or count their requests on when they come back to a session, as ZooKeeper's Java \
                 client does. Ostler's client does that, too."
            }
            Kind::Kazoo => {
                "They have come back to a session and number their requests from 1 again, without setting watches, as kazoo does."
            }
            Kind::C => {
                "They begin to number their requests with the time, as ZooKeeper's C client and what is made of it does."
            }
            Kind::NoFlag => {
                "Their handshake has no read-only flag: clients in Go and JavaScript, and others from before ZooKeeper 3.4, send \
                 none."
            }
            Kind::JavaOrKazoo => {
                "They number their requests from 1 and have a read-only flag, as ZooKeeper's Java client, kazoo and Ostler's \
                 client do. They have not come back to a session yet, which would tell."
            }
            Kind::Silent => "They have opened a session and asked for nothing but pings.",
            Kind::Unknown => "Their requests fit no library that is known here.",
        }
    }
}
