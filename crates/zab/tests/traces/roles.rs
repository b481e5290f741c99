//! Carries out the outputs of leaders and learners.

use crate::{
    message::Message,
    packets,
    server::{Held, Log, Role},
    world::{Next, TIMING, World},
};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Mono, Proposals, Record,
    leading::{FromLearner, Leading, LeadingOutput, LinkId},
    learning::{FromLeader, LearningOutput},
    sync::{Reach, SyncPlan, plan, plan_from_log},
};

impl World {
    pub(crate) fn begin_leading(&mut self, id: i64) {
        let (now, electorate, mut out) = (Mono(self.now), self.electorate.clone(), Vec::new());
        let own = self.server(id).data.durable_state();
        let leading = Leading::new(now, ServerId(id), own, electorate, TIMING, &mut out);
        self.server(id).role = Role::Leading(Box::new(leading), None);
        self.carry_out_leading(id, out);
    }

    fn lead(&mut self, id: i64, act: impl FnOnce(&mut Leading, Mono, &mut Vec<LeadingOutput>)) {
        let (now, mut out) = (Mono(self.now), Vec::new());
        let Role::Leading(leading, _) = &mut self.server(id).role else { return };
        act(leading, now, &mut out);
        self.carry_out_leading(id, out);
    }

    pub(crate) fn tick(&mut self, id: i64) {
        let (at, before) = (self.trace.len(), self.now);
        self.lead(id, |leading, now, out| leading.tick(now, out));
        if self.trace.len() > at {
            self.trace.insert(at, format!("{before} ms: {id} looks at its learners"));
        }
    }

    pub(crate) fn leader_hears(&mut self, id: i64, link: LinkId, packet: FromLearner) {
        if let FromLearner::Info { id: learner, observer: false, .. } = packet {
            self.server(id).election.voter_follows(learner);
        }
        self.lead(id, |leading, now, out| leading.heard(now, link, packet, out));
    }

    fn carry_out_leading(&mut self, id: i64, outputs: Vec<LeadingOutput>) {
        for output in outputs {
            match output {
                LeadingOutput::SaveAccepted(epoch) => {
                    self.save_accepted(id, epoch, Some(Held::AcceptedSaved))
                }
                LeadingOutput::SaveCurrent(epoch) => self.save_current(id, epoch, Some(Held::CurrentSaved)),
                LeadingOutput::LeaderInfo { link, epoch } => self.tell(link, FromLeader::LeaderInfo(epoch)),
                LeadingOutput::Synchronise { link, last } => self.synchronise(id, link, last),
                LeadingOutput::Established(epoch) => {
                    self.output(format!("{id} epoch {} begins", epoch.0));
                    let proposals = Proposals::new(self.electorate.clone(), Zxid::new(epoch, 0));
                    let server = self.server(id);
                    server.election.established(epoch);
                    if let Role::Leading(_, of) = &mut server.role {
                        *of = Some(proposals);
                    }
                }
                LeadingOutput::MoveOn(_)
                | LeadingOutput::BorderOnDisk(_)
                | LeadingOutput::MoveObserver { .. } => unreachable!("no move begins here"),
                LeadingOutput::UpToDate(link) => self.tell(link, FromLeader::UpToDate),
                LeadingOutput::Acknowledged { from, zxid } => self.acknowledged(id, from, zxid),
                LeadingOutput::DataLost(server) => {
                    self.output(format!("{id} notes that {} has lost its data", server.0));
                }
                LeadingOutput::Refuse { link, server, why } => {
                    self.output(format!("{id} refuses {}: {why}", server.map_or(0, |server| server.0)));
                    self.close(link, id);
                }
                LeadingOutput::StepDown(why) => {
                    self.output(format!("{id} steps down: {}", packets::step_down(why)));
                    return self.look(id);
                }
            }
        }
    }

    fn tell(&mut self, link: LinkId, packet: FromLeader) {
        self.send_on(link, true, Message::ToLearner(link, packet));
    }

    /// A client asks the leader for a write.
    pub(crate) fn propose(&mut self, id: i64, name: &str) {
        self.input(format!("{id} is asked to write {name}"));
        let record = Record(name.as_bytes().into());
        let Role::Leading(leading, Some(proposals)) = &mut self.server(id).role else {
            return self.output(format!("{id} does not lead"));
        };
        let (zxid, links): (Zxid, Vec<_>) = (proposals.propose(), leading.forwarding().collect());
        self.append(id, zxid, record.clone());
        self.hold(id, Held::OwnAck(zxid));
        for (link, _) in links.into_iter().filter(|(_, observer)| !observer) {
            self.tell(link, FromLeader::Proposal(zxid, record.clone()));
        }
    }

    fn acknowledged(&mut self, id: i64, from: ServerId, zxid: Zxid) {
        let Role::Leading(leading, Some(proposals)) = &mut self.server(id).role else { return };
        let (before, after) = (proposals.committed(), proposals.acknowledge(from, zxid));
        let links: Vec<_> = leading.forwarding().collect();
        let committed = self.server(id).data.log.clone().into_iter();
        for (zxid, record) in committed.filter(|(zxid, _)| before < *zxid && *zxid <= after) {
            self.output(format!("{id} commits {zxid}"));
            for (link, observer) in &links {
                let packet = if *observer {
                    FromLeader::Inform(zxid, record.clone())
                } else {
                    FromLeader::Commit(zxid)
                };
                self.tell(*link, packet);
            }
        }
    }

    /// Brings a learner to the leader's history. All of it is in memory here.
    fn synchronise(&mut self, id: i64, link: LinkId, peer: Zxid) {
        let server = self.server(id);
        let Role::Leading(leading, proposals) = &mut server.role else { return };
        let epoch = leading.epoch().unwrap();
        let committed = proposals.as_ref().map_or(server.data.last(), Proposals::committed);
        let (log, outstanding): (Log, Log) =
            server.data.log.iter().cloned().partition(|(zxid, _)| *zxid <= committed);
        let last = log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
        let reach = Reach { first: log.first().map_or(last, |(zxid, _)| *zxid), last, applied: last };
        let before = log.iter().map(|(zxid, _)| *zxid).rfind(|zxid| *zxid <= peer);
        let next = log.iter().map(|(zxid, _)| *zxid).find(|zxid| *zxid > peer);
        let planned = match plan(peer, reach, before, next) {
            SyncPlan::AskLog => plan_from_log(peer, reach, before, next),
            planned => planned,
        };
        let kept = match planned {
            SyncPlan::Diff { after: kept, .. } | SyncPlan::Trunc { to: kept } => kept,
            SyncPlan::Snap | SyncPlan::AskLog => Zxid::ZERO,
        };
        if let (Some(learner), Some(proposals)) = (leading.server_of(link), proposals) {
            proposals.cut_back(learner, kept);
        }
        let sent = match planned {
            SyncPlan::Diff { .. } => {
                self.tell(link, FromLeader::Diff);
                kept
            }
            SyncPlan::Trunc { to } => {
                self.tell(link, FromLeader::Trunc(to));
                kept
            }
            SyncPlan::Snap | SyncPlan::AskLog => {
                self.send_on(link, true, Message::Tree(link, last, log.clone()));
                last
            }
        };
        for (zxid, record) in log.into_iter().filter(|(zxid, _)| *zxid > sent) {
            self.tell(link, FromLeader::Proposal(zxid, record));
            self.tell(link, FromLeader::Commit(zxid));
        }
        for (zxid, record) in outstanding {
            self.tell(link, FromLeader::Proposal(zxid, record));
        }
        self.tell(link, FromLeader::NewLeader(epoch));
    }

    /// A packet of the leader has come; a tree, if it is SNAP.
    pub(crate) fn learn(&mut self, id: i64, link: LinkId, packet: FromLeader, tree: Option<Log>) {
        let server = self.server(id);
        let Role::Learning(of, learning) = &mut server.role else { return };
        if *of != link {
            return;
        }
        if matches!(packet, FromLeader::Diff | FromLeader::Trunc(_) | FromLeader::Snap(_)) {
            server.election.history_arrives();
        }
        let mut out = Vec::new();
        learning.heard(packet, &mut out);
        for output in out {
            self.carry_out_learning(id, link, output, &tree);
        }
    }

    fn carry_out_learning(&mut self, id: i64, link: LinkId, output: LearningOutput, tree: &Option<Log>) {
        let answer = |packet| Held::ToLeader(link, packet);
        match output {
            LearningOutput::SaveAccepted(epoch) => self.save_accepted(id, epoch, None),
            LearningOutput::SaveCurrent(epoch) => self.save_current(id, epoch, None),
            LearningOutput::AckEpoch { last, current } => {
                self.hold(id, answer(FromLearner::AckEpoch { last, current }));
            }
            LearningOutput::Ack(zxid) => self.hold(id, answer(FromLearner::Ack(zxid))),
            LearningOutput::Append(zxid, record) => self.append(id, zxid, record),
            LearningOutput::Truncate(to) => {
                self.output(format!("{id} disk truncate after {to}"));
                self.server(id).save(|data| data.log.retain(|(zxid, _)| *zxid <= to));
            }
            LearningOutput::Install(at) => {
                self.output(format!("{id} disk snapshot {at}"));
                self.server(id).save(|data| data.log = tree.clone().unwrap());
            }
            LearningOutput::Commit(zxid) => self.output(format!("{id} commits {zxid}")),
            LearningOutput::Serve(epoch) => {
                self.output(format!("{id} serves clients in epoch {}", epoch.0));
                self.server(id).election.established(epoch);
            }
            LearningOutput::Moved(_) => unreachable!("no move begins here"),
            LearningOutput::Pong(_) => {
                self.send_on(link, false, Message::ToLeader(link, FromLearner::SignOfLife))
            }
            LearningOutput::HangUp(why) => {
                self.output(format!("{id} leaves its leader: {}", packets::hang_up(why)));
                self.look(id);
            }
        }
    }

    fn save_accepted(&mut self, id: i64, epoch: Epoch, then: Option<Held>) {
        self.output(format!("{id} disk acceptedEpoch {}", epoch.0));
        self.server(id).save(|data| data.accepted = epoch);
        then.into_iter().for_each(|then| self.hold(id, then));
    }

    fn save_current(&mut self, id: i64, epoch: Epoch, then: Option<Held>) {
        self.output(format!("{id} disk currentEpoch {}", epoch.0));
        self.server(id).save(|data| data.current = epoch);
        then.into_iter().for_each(|then| self.hold(id, then));
    }

    fn append(&mut self, id: i64, zxid: Zxid, record: Record) {
        self.output(format!("{id} disk append {zxid} {}", packets::name(&record)));
        self.server(id).save(|data| data.log.push((zxid, record)));
    }

    fn hold(&mut self, id: i64, then: Held) {
        let server = self.server(id);
        server.gate.hold(then);
        if !server.disk_waits {
            self.next.push_back(Next::DiskDone(id));
        }
    }

    /// Everything that was to be saved is on disk.
    pub(crate) fn disk_done(&mut self, id: i64) {
        self.server(id).sync();
        let mut is_waited_for = false;
        while let Some(held) = self.server(id).gate.pop() {
            if !std::mem::replace(&mut is_waited_for, true) {
                self.input(format!("{id} disk is done"));
            }
            match held {
                Held::AcceptedSaved => self.lead(id, |leading, now, out| leading.accepted_saved(now, out)),
                Held::CurrentSaved => self.lead(id, |leading, now, out| leading.current_saved(now, out)),
                Held::OwnAck(zxid) => self.acknowledged(id, ServerId(id), zxid),
                Held::ToLeader(link, packet) => self.send_on(link, false, Message::ToLeader(link, packet)),
            }
        }
    }
}
