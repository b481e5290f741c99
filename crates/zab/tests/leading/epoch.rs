//! A leader, and what its learners say.

use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Electorate, Mono, Quorum,
    leading::{DurableState, FromLearner, Leading, LeadingOutput, LeadingTiming, LearnerOrigin, LinkId},
};

pub(crate) const TIMING: LeadingTiming = LeadingTiming { init: 1000, sync: 500 };
pub(crate) const OWN: DurableState =
    DurableState { accepted: Epoch(4), current: Epoch(3), last: Zxid(0x3_0000_0009) };

/// Server 3 of three leads; link n is server n.
pub(crate) struct LeadingRig {
    pub(crate) leading: Leading,
    pub(crate) now: u64,
    out: Vec<LeadingOutput>,
}

impl LeadingRig {
    pub(crate) fn new(voters: &[i64]) -> LeadingRig {
        LeadingRig::with_accepted(voters, OWN.accepted)
    }

    pub(crate) fn with_accepted(voters: &[i64], accepted: Epoch) -> LeadingRig {
        let electorate = Electorate::of(Quorum::majority(voters.iter().copied().map(ServerId)));
        let (own, mut out) = (DurableState { accepted, ..OWN }, Vec::new());
        let leading = Leading::new(Mono(0), ServerId(3), own, electorate, TIMING, &mut out);
        LeadingRig { leading, now: 0, out }
    }

    pub(crate) fn took(&mut self) -> Vec<LeadingOutput> {
        std::mem::take(&mut self.out)
    }

    pub(crate) fn hear(&mut self, link: u64, what: FromLearner) -> Vec<LeadingOutput> {
        self.leading.heard(Mono(self.now), LinkId(link), what, &mut self.out);
        self.took()
    }

    pub(crate) fn greet(&mut self, link: u64, accepted: u32) -> Vec<LeadingOutput> {
        let info = FromLearner::Info {
            id: ServerId(link as i64),
            observer: link > 3,
            accepted: Epoch(accepted),
            moves: false,
        };
        self.hear(link, info)
    }

    pub(crate) fn accepted_saved(&mut self) -> Vec<LeadingOutput> {
        self.leading.accepted_saved(Mono(self.now), &mut self.out);
        self.took()
    }

    pub(crate) fn current_saved(&mut self) -> Vec<LeadingOutput> {
        self.leading.current_saved(Mono(self.now), &mut self.out);
        self.took()
    }

    pub(crate) fn begin_move(&mut self) -> Vec<LeadingOutput> {
        self.leading.begin_move(&mut self.out);
        self.took()
    }

    pub(crate) fn border_committed(&mut self) -> Vec<LeadingOutput> {
        self.leading.border_committed(Mono(self.now), &mut self.out);
        self.took()
    }

    /// The side of an observer master towards its observers.
    pub(crate) fn relaying(epoch: u32) -> LeadingRig {
        LeadingRig { leading: Leading::relaying(ServerId(3), Epoch(epoch), TIMING), now: 0, out: Vec::new() }
    }

    pub(crate) fn relay_move(&mut self, epoch: Epoch) -> Vec<LeadingOutput> {
        self.leading.relay_move(epoch, &mut self.out);
        self.took()
    }

    pub(crate) fn hear_from(
        &mut self,
        link: u64,
        origin: LearnerOrigin,
        what: FromLearner,
    ) -> Vec<LeadingOutput> {
        self.leading.heard_from(Mono(self.now), LinkId(link), origin, what, &mut self.out);
        self.took()
    }

    pub(crate) fn hear_at(&mut self, now: u64, link: u64) {
        self.now = now;
        assert_eq!(self.hear(link, FromLearner::SignOfLife), []);
    }

    pub(crate) fn tick(&mut self, now: u64) -> Vec<LeadingOutput> {
        self.now = now;
        self.leading.tick(Mono(now), &mut self.out);
        self.took()
    }

    /// With server 1 as follower.
    pub(crate) fn established() -> LeadingRig {
        let mut epoch = LeadingRig::new(&[1, 2, 3]);
        epoch.greet(1, 4);
        epoch.accepted_saved();
        epoch.hear(1, ack_epoch(3, 5));
        epoch.hear(1, FromLearner::Ack(begin(5)));
        epoch.current_saved();
        assert!(epoch.leading.is_established());
        epoch
    }
}

pub(crate) fn ack_epoch(current: u32, counter: u32) -> FromLearner {
    let current = Epoch(current);
    FromLearner::AckEpoch { last: Zxid::new(current, counter), current: Some(current) }
}

pub(crate) fn begin(epoch: u32) -> Zxid {
    Zxid::new(Epoch(epoch), 0)
}

pub(crate) const ONE: LinkId = LinkId(1);
