//! Carries out a leader's outputs in the simulated world.

use crate::{
    disk::Act,
    member::{Held, Role},
    world::{Wire, World},
};
use ostler_proto::id::{Epoch, Zxid};
use ostler_zab::{
    EpochLength, History, HistoryLimits, Mono, Proposals, Record,
    leading::{LeadingOutput, LinkId},
    learning::FromLeader,
    sync::{Reach, SyncPlan, plan, plan_from_log},
};
use std::sync::Arc;

fn record(value: u64) -> Record {
    Record(Arc::from(value.to_be_bytes().as_slice()))
}

impl World {
    pub(crate) fn lead(&mut self, id: i64, outputs: Vec<LeadingOutput>) {
        for output in outputs {
            match output {
                LeadingOutput::SaveAccepted(epoch) => {
                    self.member(id).save(Act::SaveAccepted(epoch));
                    self.member(id).hold(Held::AcceptedSaved);
                }
                LeadingOutput::SaveCurrent(epoch) => {
                    self.member(id).save(Act::SaveCurrent(epoch));
                    self.member(id).hold(Held::CurrentSaved);
                }
                LeadingOutput::LeaderInfo { link, epoch } => self.tell(link, FromLeader::LeaderInfo(epoch)),
                LeadingOutput::Synchronise { link, last } => self.synchronise(id, link, last),
                LeadingOutput::Established(epoch) => self.established(id, epoch),
                LeadingOutput::UpToDate(link) => self.tell(link, FromLeader::UpToDate),
                LeadingOutput::Acknowledged { from, zxid } => self.acknowledged(id, from.0, zxid),
                LeadingOutput::DataLost(_) => {}
                LeadingOutput::Refuse { link, why, .. } => {
                    self.hang_ups.push(format!("{why:?}"));
                    self.close(link);
                }
                LeadingOutput::MoveOn(epoch) => self.move_on(id, epoch),
                LeadingOutput::BorderOnDisk(_) => self.end_move_if_committed(id),
                LeadingOutput::MoveObserver { .. } => unreachable!("there is no observer"),
                LeadingOutput::StepDown(_) => return self.look(id),
            }
        }
    }

    fn established(&mut self, id: i64, epoch: Epoch) {
        let electorate = self.electorate.clone();
        let member = self.member(id);
        // The new epoch's first zxid is the one after counter 0.
        let broadcast_from = Zxid::new(epoch, 0);
        member.applied = member.standing.last;
        member.election.established(epoch);
        let log = member.log.clone();
        if let Role::Leading { broadcast, .. } = &mut member.role {
            *broadcast = Some(Proposals::new(electorate, broadcast_from));
        }
        self.truth.established(id, epoch, &log);
    }

    /// A client asks for a write. `false` if this is no leader that serves.
    pub(crate) fn propose_at(&mut self, id: i64) -> bool {
        self.values += 1;
        let value = self.values;
        let member = self.member(id);
        let Role::Leading { leading, broadcast: Some(broadcast) } = &mut member.role else { return false };
        let zxid = broadcast.propose();
        let links: Vec<LinkId> = leading.forwarding().map(|(link, _)| link).collect();
        member.save(Act::Append(zxid, value));
        member.hold(Held::Own(zxid));
        for link in links {
            self.tell(link, FromLeader::Proposal(zxid, record(value)));
        }
        self.move_if_due(id);
        true
    }

    fn move_if_due(&mut self, id: i64) {
        let length = EpochLength { in_place: self.moves_after, ..EpochLength::default() };
        let Role::Leading { leading, broadcast: Some(broadcast) } = &mut self.member(id).role else { return };
        let mut out = Vec::new();
        if broadcast.may_move(length) {
            leading.begin_move(&mut out);
        }
        self.lead(id, out);
    }

    fn move_on(&mut self, id: i64, epoch: Epoch) {
        self.truth.uses(id, epoch);
        let member = self.member(id);
        member.save(Act::SaveCurrent(epoch));
        member.hold(Held::CurrentSaved);
        let Role::Leading { leading, broadcast: Some(broadcast) } = &mut member.role else { return };
        broadcast.move_to(epoch);
        for link in leading.active_followers().collect::<Vec<_>>() {
            self.tell(link, FromLeader::NewLeader(epoch));
        }
    }

    fn end_move_if_committed(&mut self, id: i64) {
        let now = Mono(self.now);
        let member = self.member(id);
        let Role::Leading { leading, broadcast: Some(_) } = &mut member.role else { return };
        let epoch = leading.epoch().unwrap();
        let outstanding = member.log.iter().find(|(zxid, _)| *zxid > member.applied);
        if !leading.is_border_on_disk() || outstanding.is_some_and(|(zxid, _)| zxid.epoch() < epoch) {
            return;
        }
        let mut out = Vec::new();
        leading.border_committed(now, &mut out);
        member.election.established(epoch);
        self.moves += 1;
        self.lead(id, out);
    }

    pub(crate) fn acknowledged(&mut self, id: i64, from: i64, zxid: Zxid) {
        let member = self.member(id);
        let Role::Leading { leading, broadcast: Some(broadcast) } = &mut member.role else { return };
        let before = broadcast.committed();
        let after = broadcast.acknowledge(ostler_proto::id::ServerId(from), zxid);
        let links: Vec<LinkId> = leading.forwarding().map(|(link, _)| link).collect();
        let committed = member.log.iter().filter(|(zxid, _)| before < *zxid && *zxid <= after);
        for (zxid, value) in committed.copied().collect::<Vec<_>>() {
            self.end_move_if_committed(id);
            let member = self.member(id);
            member.applied = zxid;
            let log = member.log.clone();
            self.truth.committed(id, zxid.epoch(), (zxid, value));
            self.truth.applied(id, &log, zxid);
            for link in &links {
                self.tell(*link, FromLeader::Commit(zxid));
            }
        }
        self.end_move_if_committed(id);
    }

    /// The whole way of a learner to this history: the table decides, some of it is in memory, the rest on disk.
    fn synchronise(&mut self, id: i64, link: LinkId, peer: Zxid) {
        let in_memory = 1 + self.random(8) as usize;
        let member = self.member(id);
        let Role::Leading { leading, broadcast } = &member.role else { return };
        let epoch = leading.epoch().unwrap();
        let committed = match broadcast {
            Some(broadcast) => broadcast.committed(),
            None => member.standing.last,
        };
        let log: Vec<(Zxid, u64)> =
            member.log.iter().copied().filter(|(zxid, _)| *zxid <= committed).collect();
        let outstanding: Vec<(Zxid, u64)> =
            member.log.iter().copied().filter(|(zxid, _)| *zxid > committed).collect();
        let last = log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);

        let mut history = History::new(HistoryLimits { records: in_memory, bytes: 1 << 20 }, Zxid::ZERO);
        log.iter().for_each(|(zxid, value)| history.push(*zxid, record(*value)));
        let reach = Reach { first: history.first(), last, applied: last };
        let (before, mut after) = history.around(peer);
        let mut planned = plan(peer, reach, before, after.next().map(|(zxid, _)| *zxid));
        if planned == SyncPlan::AskLog {
            let before = log.iter().map(|(zxid, _)| *zxid).filter(|zxid| *zxid <= peer).max();
            let next = log.iter().map(|(zxid, _)| *zxid).find(|zxid| *zxid > peer);
            // Sometimes the log is too long to be worth it.
            planned = if in_memory > 6 { SyncPlan::Snap } else { plan_from_log(peer, reach, before, next) };
        }
        let kept = match planned {
            SyncPlan::Diff { after: kept, .. } | SyncPlan::Trunc { to: kept } => kept,
            SyncPlan::Snap | SyncPlan::AskLog => Zxid::ZERO,
        };
        if let Role::Leading { leading, broadcast: Some(broadcast) } = &mut self.member(id).role
            && let Some(server) = leading.server_of(link)
        {
            broadcast.cut_back(server, kept);
        }
        let from = match planned {
            SyncPlan::Diff { after, .. } => {
                self.tell(link, FromLeader::Diff);
                after
            }
            SyncPlan::Trunc { to } => {
                self.tell(link, FromLeader::Trunc(to));
                to
            }
            SyncPlan::Snap | SyncPlan::AskLog => {
                self.send(link, true, Wire::Snapshot(last, log.clone()));
                last
            }
        };
        for (zxid, value) in log.into_iter().filter(|(zxid, _)| *zxid > from) {
            self.tell(link, FromLeader::Proposal(zxid, record(value)));
            self.tell(link, FromLeader::Commit(zxid));
        }
        for (zxid, value) in outstanding {
            self.tell(link, FromLeader::Proposal(zxid, record(value)));
        }
        self.tell(link, FromLeader::NewLeader(epoch));
    }
}
