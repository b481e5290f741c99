//! Carries out a learner's outputs in the simulated world.

use crate::{
    disk::{Act, Log},
    member::{Held, Role},
    world::World,
};
use ostler_proto::id::Zxid;
use ostler_zab::{
    Record,
    leading::{FromLearner, LinkId},
    learning::{FromLeader, Learning, LearningOutput},
};

fn value(record: &Record) -> u64 {
    u64::from_be_bytes(record.0[..].try_into().unwrap())
}

impl World {
    /// A packet of the leader has come; `tree` with a snapshot.
    pub(crate) fn learn(&mut self, id: i64, link: LinkId, packet: FromLeader, tree: Option<Log>) {
        let now = self.now;
        let member = self.member(id);
        let Role::Learning { link: Some((at, learning)), heard, .. } = &mut member.role else { return };
        if *at != link {
            return;
        }
        *heard = now;
        let mut out = Vec::new();
        learning.heard(packet, &mut out);
        for output in out {
            match output {
                LearningOutput::SaveAccepted(epoch) => self.member(id).save(Act::SaveAccepted(epoch)),
                LearningOutput::AckEpoch { last, current } => {
                    self.member(id).hold(Held::AckEpoch { link, last, counts: current });
                }
                LearningOutput::Truncate(to) => {
                    self.member(id).save(Act::Truncate(to));
                    self.member(id).applied = Zxid::ZERO;
                }
                LearningOutput::Install(at) => {
                    self.member(id).save(Act::Install(tree.clone().unwrap()));
                    self.member(id).applied = at;
                    self.check_applied(id, at);
                }
                LearningOutput::Append(zxid, record) => {
                    self.member(id).save(Act::Append(zxid, value(&record)));
                }
                LearningOutput::Commit(zxid) => {
                    self.member(id).applied = zxid;
                    self.check_applied(id, zxid);
                }
                LearningOutput::SaveCurrent(epoch) => self.member(id).save(Act::SaveCurrent(epoch)),
                LearningOutput::Ack(zxid) => self.member(id).hold(Held::Ack { link, zxid }),
                LearningOutput::Serve(epoch) => self.member(id).election.established(epoch),
                LearningOutput::Moved(epoch) => self.member(id).election.established(epoch),
                LearningOutput::Pong(_) => self.answer(link, FromLearner::SignOfLife),
                LearningOutput::HangUp(why) => {
                    self.hang_ups.push(format!("{why:?}"));
                    self.close(link);
                    return self.look(id);
                }
            }
        }
        self.release(id);
    }

    fn check_applied(&mut self, id: i64, zxid: Zxid) {
        let log = self.member(id).log.clone();
        self.truth.applied(id, &log, zxid);
    }

    /// Connected to the leader.
    pub(crate) fn greet(&mut self, id: i64, link: LinkId) {
        let now = self.now;
        let member = self.member(id);
        let standing = member.standing;
        if let Role::Learning { link: slot, heard, .. } = &mut member.role {
            *slot = Some((link, Learning::new(standing, false)));
            *heard = now;
        }
        let (accepted, moves) = (standing.accepted, self.moves_after.is_some());
        let info = FromLearner::Info { id: ostler_proto::id::ServerId(id), observer: false, accepted, moves };
        self.answer(link, info);
    }
}
