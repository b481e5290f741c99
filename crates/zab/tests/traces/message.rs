//! The messages of a trace.

use crate::{packets, server::Log, words};
use ostler_proto::{election::Notification, id::Zxid};
use ostler_zab::{
    leading::{FromLearner, LinkId},
    learning::FromLeader,
};

/// A message on the election port or the quorum port.
#[derive(Clone)]
pub(crate) enum Message {
    Vote(Notification),
    ToLeader(LinkId, FromLearner),
    ToLearner(LinkId, FromLeader),
    /// SNAP with the whole tree, for which the log stands here.
    Tree(LinkId, Zxid, Log),
    /// The sender has closed the connection.
    Closed(LinkId),
}

impl Message {
    pub(crate) fn text(&self) -> String {
        match self {
            Message::Vote(vote) => words::vote(vote),
            Message::ToLeader(_, packet) => packets::from_learner(*packet),
            Message::ToLearner(_, packet) => packets::from_leader(packet),
            Message::Tree(_, at, _) => packets::from_leader(&FromLeader::Snap(*at)),
            Message::Closed(_) => "closes the connection".into(),
        }
    }
}
