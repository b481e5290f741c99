//! Certificates of servers that are refused: expired, revoked or of another authority. Connections that stand go on;
//! no new one is made from such a server or to it, until it has a good certificate again.

use crate::{
    chance::Chance,
    world::{Event, World},
};

/// The longest times for which a certificate is bad, ms. The longer ones outlast elections and sessions.
const BAD_FOR: [u64; 3] = [300, 2_000, 8_000];

/// The first message of each side of a handshake that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server that was called has the bad certificate: the caller refuses before it has said anything.
    ByCaller,
    /// The caller has the bad certificate. In TLS 1.3 its handshake is done before the other side judges that, so the
    /// caller takes the connection for a good one and sends into it.
    ByCalled,
}

impl World {
    /// The certificate of a server is bad from now on for some time, and half of the time an election begins meanwhile.
    pub(crate) fn spoil_certificates(&mut self, id: i64, chance: &mut Chance) {
        let longest = BAD_FOR[chance.below(BAD_FOR.len() as u64) as usize];
        let until = self.now + chance.between(longest / 4, longest);
        let of = match chance.below(4) {
            // All certificates of an authority expire together.
            0 => self.ids(),
            1 => self.leader().into_iter().collect(),
            _ => vec![id],
        };
        self.trace(|| format!("the certificates of {of:?} are refused until {until}"));
        for id in of {
            self.net.refused.insert(id, until);
        }
        if let Some(leader) = self.leader().filter(|_| chance.one_in(2)) {
            self.take_down(leader);
        }
    }

    /// Whether a handshake between two servers fails.
    pub(crate) fn refusal(&mut self, caller: i64, called: i64) -> Option<Refusal> {
        let now = self.now;
        let is_bad = |id: i64| self.net.refused.get(&id).is_some_and(|until| now < *until);
        let refusal = if is_bad(called) {
            Refusal::ByCaller
        } else if is_bad(caller) {
            Refusal::ByCalled
        } else {
            return None;
        };
        self.count("handshake refused");
        Some(refusal)
    }

    /// A connection between election ports is refused.
    pub(crate) fn refuse_election(&mut self, id: i64, to: i64, refusal: Refusal) {
        let life = self.nodes[&id].life;
        if refusal == Refusal::ByCalled {
            self.election_link_up(id, to);
            // The caller's vote meets the end of the connection.
            self.net.votes.remove(&(id, to));
        }
        let delay = self.chance.between(1, 20);
        self.after(delay, Event::Election { id, life, peer: to, up: false });
    }
}
