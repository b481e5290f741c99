//! One server, and what a test tells it.

use crate::world::candidate;
use ostler_proto::{
    election::{Notification, PeerState},
    id::ServerId,
};
use ostler_zab::{
    Election, ElectionOutput, ElectionTiming, Electorate, Mono, Quorum,
    election::{ElectionEvent, Verdict},
};

/// One server and votes by hand.
pub(crate) struct Hand {
    pub(crate) election: Election,
    pub(crate) electorate: Electorate,
    pub(crate) out: Vec<ElectionOutput>,
    /// When votes come.
    pub(crate) now: Mono,
}

impl Hand {
    /// Server 2 of three, with epoch 1 and counter 5.
    pub(crate) fn looking() -> Hand {
        let electorate = Electorate::of(Quorum::majority([1, 2, 3].map(ServerId)));
        let mut election = Election::new(ServerId(2), false, ElectionTiming::default(), String::new());
        let mut out = Vec::new();
        election.look(Mono(0), Some(candidate(1, 5, 2)), &electorate, &mut out);
        Hand { election, electorate, out, now: Mono(1) }
    }

    pub(crate) fn hear(
        &mut self,
        from: i64,
        state: PeerState,
        round: u64,
        for_whom: (u32, u32, i64),
    ) -> Verdict {
        let candidate = Some(candidate(for_whom.0, for_whom.1, for_whom.2));
        let vote = Notification { state, candidate, round, version: 2, config: String::new() };
        self.out.clear();
        self.election.notified(self.now, ServerId(from), &vote, &self.electorate, &mut self.out);
        let entries = self.election.record().entries.iter().rev();
        entries
            .filter_map(|entry| match entry.event {
                ElectionEvent::Received { verdict, .. } => Some(verdict),
                _ => None,
            })
            .next()
            .unwrap()
    }

    /// Hears nothing until then; gives when it last said something.
    pub(crate) fn look_until(&mut self, until: u64) -> u64 {
        let mut last = 0;
        while let Some(Mono(due)) = self.election.next_deadline().filter(|due| due.0 <= until) {
            self.out.clear();
            self.election.deadline(Mono(due), &self.electorate, &mut self.out);
            last = due;
        }
        last
    }

    /// To whom, and whom this server backs now.
    pub(crate) fn sent(&self) -> Vec<(i64, i64)> {
        let sent = self.out.iter().filter_map(|output| match output {
            ElectionOutput::Send { to, notification } => Some((to.0, notification.candidate?.id.0)),
            ElectionOutput::Elected { .. } | ElectionOutput::LookAgain => None,
        });
        sent.collect()
    }
}
